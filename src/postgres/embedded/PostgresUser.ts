/**
 * The user that the embedded Postgres runs as.
 *
 * An ordinary user runs it as itself. Postgres refuses to run as root, so root runs it as an unprivileged user, who
 * owns the cluster: `postgres` where the machine has one, otherwise an unused number. The machine's shared unprivileged
 * user owns no cluster: unrelated services run as that user and could all access it.
 *
 * That user often cannot reach the programs or the cluster, in folders such as `/root` or of `mktemp -d`. Then Postgres
 * gets one capability of root (through util-linux' `setpriv`), which allows it to pass through closed folders and to
 * read, but not to write. The modes of the folders and the location of the data stay as they are.
 */
import { Effect } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { attempt, embeddedPostgresError, type EmbeddedPostgresError } from "./EmbeddedPostgresError.ts"
import { makeFolder, readIfThere, readNamedIfThere } from "./OwnFiles.ts"

/** Undefined for the user that Till itself runs as. */
export type PostgresUser = { readonly userId: number; readonly groupId: number } | undefined

/** A command as `child_process.spawn` takes it. */
export interface UserCommand {
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly options: { readonly uid?: number; readonly gid?: number }
}

const isRoot = (): boolean => process.geteuid?.() === 0

/** The user who owns and runs a cluster, and the user who creates it. */
export interface PostgresUsers {
  readonly keeper: PostgresUser
  /** `initdb` requires a user with a name. It is the keeper if the keeper has a name. */
  readonly maker: PostgresUser
}

const ORDINARY: PostgresUsers = { keeper: undefined, maker: undefined }

/** Returns the users for the cluster in `folder`. Its owner stays the keeper, except root and the shared user. */
export const chooseUsers = (folder: string): Effect.Effect<PostgresUsers, EmbeddedPostgresError> =>
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

/** User ids that no convention assigns to people, system services or containers (systemd's UIDS-GIDS). */
const FREE_NUMBERS = { first: 61_000, last: 61_183 }

/** Returns the users by `/etc/passwd` and the cluster's owner; undefined if none can create a cluster. */
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

/** Parses the accounts other than root, by name. macOS has a `_postgres`, and a shared user without a valid number. */
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

/** Creates `folder` if it is missing, and gives it to the user, accessible for no other. */
export const makeOwned = (folder: string, user: PostgresUser): Effect.Effect<void, EmbeddedPostgresError> =>
  attempt(`write to ${folder}`, () => makeFolder(folder, user))

export const isOwnedBy = (folder: string, user: PostgresUser): boolean =>
  user === undefined || fs.lstatSync(folder).uid === user.userId

/**
 * Changes the owner of a folder and its content. The present owner may add links while this runs: so each folder is
 * held open while its names are read, and the owner of a link is changed, not that of its target.
 */
export const changeOwner = (folder: string, { groupId, userId }: NonNullable<PostgresUser>): void => {
  const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = fs.constants
  const descriptor = fs.openSync(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  try {
    fs.fchownSync(descriptor, userId, groupId)
    const held = `/proc/self/fd/${descriptor}`
    for (const name of fs.readdirSync(held)) {
      const path = Path.join(held, name)
      if (fs.lstatSync(path).isDirectory()) changeOwner(path, { groupId, userId })
      else fs.lchownSync(path, userId, groupId)
    }
  } finally {
    fs.closeSync(descriptor)
  }
}

/** Builds the command that runs `file` as `user`, who must be able to reach each of `paths`. */
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
      // Without this bit access(2), which Postgres calls first, ignores capabilities.
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

/** The capabilities that allow a process to pass through closed folders, by number. The first allows no writes. */
const PASSING = [
  [2, "dac_read_search"],
  [1, "dac_override"]
] as const

/** Returns the first of these capabilities that this process has: in containers often only the second. */
const capability = (): string => {
  const held = BigInt(`0x${/^CapPrm:\t([0-9a-f]+)$/m.exec(readIfThere("/proc/self/status") ?? "")?.[1] ?? "0"}`)
  const [, name] = PASSING.find(([number]) => (held & (1n << BigInt(number))) !== 0n) ?? PASSING[0]
  return name
}

/** Returns whether the modes of all folders above `path` let the user pass. */
const canReach = (user: { readonly userId: number; readonly groupId: number }, path: string): boolean => {
  for (let folder = Path.dirname(path); ; folder = Path.dirname(folder)) {
    const { mode, uid, gid } = fs.statSync(folder)
    const bit = uid === user.userId ? 0o100 : gid === user.groupId ? 0o010 : 0o001
    if ((mode & bit) === 0) return false
    if (folder === Path.dirname(folder)) return true
  }
}
