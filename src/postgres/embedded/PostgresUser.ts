/**
 * As which user the embedded Postgres runs.
 *
 * An ordinary user runs it as itself. Postgres refuses to run as root, so root runs it as an unprivileged user, who
 * owns the cluster: `postgres` where the machine has one, else a number that nobody has. `nobody` is the user of
 * services that have nothing to do with one another, so what it owns is everybody's.
 *
 * That user often cannot reach the programs or the cluster: `/root` and `mktemp -d` folders are closed to it. Then
 * Postgres gets one capability of root's along (through util-linux' `setpriv`), the one that passes through closed
 * folders and reads, and writes nothing; neither the folders' modes nor the place of the data change.
 */
import { Effect } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { attempt, embeddedPostgresError, type EmbeddedPostgresError } from "./EmbeddedPostgresError.ts"
import { makeFolder, readIfThere, readNamedIfThere } from "./OwnFiles.ts"

/** undefined stands for the user that Till itself runs as. */
export type PostgresUser = { readonly userId: number; readonly groupId: number } | undefined

/** A command as `child_process.spawn` takes it. */
export interface UserCommand {
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly options: { readonly uid?: number; readonly gid?: number }
}

const isRoot = (): boolean => process.geteuid?.() === 0

/** Who keeps a cluster, and who makes it. */
export interface PostgresUsers {
  readonly keeper: PostgresUser
  /** `initdb` insists on a user that the machine knows by name. It is the keeper where that has one. */
  readonly maker: PostgresUser
}

const ORDINARY: PostgresUsers = { keeper: undefined, maker: undefined }

/** The users for the cluster in `folder`. Whoever owns it already keeps it, unless that is root or `nobody`. */
export const choose = (folder: string): Effect.Effect<PostgresUsers, EmbeddedPostgresError> =>
  Effect.gen(function* () {
    if (!isRoot()) return ORDINARY
    const accounts = yield* attempt("read /etc/passwd", () => readNamedIfThere("/etc/passwd") ?? "")
    const owner = yield* attempt(`read ${folder}`, () => fs.lstatSync(folder, { throwIfNoEntry: false }))
    const users = usersOf(accounts, owner && { userId: owner.uid, groupId: owner.gid })
    if (users !== undefined) return users
    return yield* embeddedPostgresError(
      "StartFailed",
      "Postgres does not run as root, and this machine has no user named postgres or nobody: " +
        "run Till as an ordinary user."
    )
  })

/** Numbers that neither people, system services nor containers are given by any convention (systemd's UIDS-GIDS). */
const FREE_NUMBERS = { first: 61_000, last: 61_183 }

/** The users by what the machine's accounts are, and who owns the cluster; undefined if none of them can make one. */
export const usersOf = (accounts: string, owner?: PostgresUser): PostgresUsers | undefined => {
  const known = accountsIn(accounts)
  const nobody = known.get("nobody")
  const database = known.get("postgres") ?? known.get("_postgres")
  const isOwned = owner !== undefined && owner.userId !== 0 && owner.userId !== nobody?.userId
  const keeper = isOwned ? owner : (database ?? unnamed(known))
  const hasName = [...known.values()].some((account) => account?.userId === keeper?.userId)
  const maker = hasName ? keeper : (nobody ?? database)
  return keeper === undefined || maker === undefined ? undefined : { keeper, maker }
}

/** The accounts that are no root's, by name. macOS has a `_postgres`, and a `nobody` without a number of its own. */
const accountsIn = (text: string): ReadonlyMap<string, PostgresUser> =>
  new Map(
    text.split("\n").flatMap((line) => {
      const [name, , userId, groupId] = line.split(":")
      const account = { userId: Number(userId), groupId: Number(groupId) }
      return account.userId > 0 && account.groupId > 0 ? [[name!, account]] : []
    })
  )

const unnamed = (known: ReadonlyMap<string, PostgresUser>): PostgresUser => {
  const taken = new Set([...known.values()].flatMap((account) => [account?.userId, account?.groupId]))
  for (let number = FREE_NUMBERS.first; number <= FREE_NUMBERS.last; number++) {
    if (!taken.has(number)) return { userId: number, groupId: number }
  }
  return undefined
}

/** Makes `folder` if it is missing, readable for the user alone and owned by it. */
export const own = (folder: string, user: PostgresUser): Effect.Effect<void, EmbeddedPostgresError> =>
  attempt(`write to ${folder}`, () => makeFolder(folder, user))

/** True if a user that is not the caller's owns a folder's content already. */
export const isOwnedBy = (folder: string, user: PostgresUser): boolean =>
  user === undefined || fs.lstatSync(folder).uid === user.userId

/**
 * Gives a folder to a user with all that is in it. Its owner until then may put links there meanwhile: each folder is
 * held open while its names are looked at, and a link itself is given, not what it leads to.
 */
export const give = (folder: string, { groupId, userId }: NonNullable<PostgresUser>): void => {
  const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = fs.constants
  const descriptor = fs.openSync(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  try {
    fs.fchownSync(descriptor, userId, groupId)
    const held = `/proc/self/fd/${descriptor}`
    for (const name of fs.readdirSync(held)) {
      const path = Path.join(held, name)
      if (fs.lstatSync(path).isDirectory()) give(path, { groupId, userId })
      else fs.lchownSync(path, userId, groupId)
    }
  } finally {
    fs.closeSync(descriptor)
  }
}

/** The command that runs `file` as `user`, who must be able to reach each of `paths`. */
export const commandAs = (
  user: PostgresUser,
  paths: ReadonlyArray<string>,
  file: string,
  args: ReadonlyArray<string>
): UserCommand => {
  if (user === undefined) return { file, args, options: {} }
  if ([file, ...paths].every((path) => canReach(user, path))) {
    return { file, args, options: { uid: user.userId, gid: user.groupId } }
  }
  const only = `-all,+${capability()}`
  return {
    file: "setpriv",
    args: [
      `--reuid=${user.userId}`,
      `--regid=${user.groupId}`,
      "--clear-groups",
      "--no-new-privs",
      // Without this bit access(2), which Postgres asks first, leaves capabilities out of account.
      "--securebits=+no_setuid_fixup",
      `--inh-caps=${only}`,
      `--ambient-caps=${only}`,
      `--bounding-set=${only}`,
      file,
      ...args
    ],
    options: {}
  }
}

/** Each capability passes through closed folders, by its number. The first one writes nothing. */
const PASSING = [
  [2, "dac_read_search"],
  [1, "dac_override"]
] as const

/** The least capability that passes, of those that this process has: containers often have the second one alone. */
const capability = (): string => {
  const held = BigInt(`0x${/^CapPrm:\t([0-9a-f]+)$/m.exec(readIfThere("/proc/self/status") ?? "")?.[1] ?? "0"}`)
  const [, name] = PASSING.find(([number]) => (held & (1n << BigInt(number))) !== 0n) ?? PASSING[0]
  return name
}

/** True if the user may pass through every folder above `path`, by the folders' modes alone. */
const canReach = (user: { readonly userId: number; readonly groupId: number }, path: string): boolean => {
  for (let folder = Path.dirname(path); ; folder = Path.dirname(folder)) {
    const { mode, uid, gid } = fs.statSync(folder)
    const bit = uid === user.userId ? 0o100 : gid === user.groupId ? 0o010 : 0o001
    if ((mode & bit) === 0) return false
    if (folder === Path.dirname(folder)) return true
  }
}
