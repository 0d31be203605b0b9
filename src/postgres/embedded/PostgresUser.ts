/**
 * As which user the embedded Postgres runs.
 *
 * An ordinary user runs it as itself. Postgres refuses to run as root, so root runs it as an unprivileged user, who
 * owns the cluster. That user often cannot reach the programs or the cluster: `/root` and `mktemp -d` folders are
 * closed to it. Then Postgres gets one capability of root's along, the one that passes through closed folders (through
 * util-linux' `setpriv`); neither the folders' modes nor the place of the data change.
 */
import { Effect } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { readIfThere } from "./DataFolder.ts"
import { attempt, embeddedPostgresError, type EmbeddedPostgresError } from "./EmbeddedPostgresError.ts"

/** undefined stands for the user that Till itself runs as. */
export type PostgresUser = { readonly userId: number; readonly groupId: number } | undefined

/** A command as `child_process.spawn` takes it. */
export interface UserCommand {
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly options: { readonly uid?: number; readonly gid?: number }
}

const isRoot = (): boolean => process.geteuid?.() === 0

/** The user for the cluster in `folder`: whoever owns it already, else `postgres` or `nobody` of this machine. */
export const choose = (folder: string): Effect.Effect<PostgresUser, EmbeddedPostgresError> =>
  Effect.gen(function* () {
    if (!isRoot()) return undefined
    const owner = yield* attempt(`read ${folder}`, () => (fs.existsSync(folder) ? fs.statSync(folder) : undefined))
    if (owner !== undefined && owner.uid !== 0) return { userId: owner.uid, groupId: owner.gid }
    const accounts = yield* attempt("read /etc/passwd", () => readIfThere("/etc/passwd") ?? "")
    const user = userOf(accounts)
    if (user !== undefined) return user
    return yield* embeddedPostgresError(
      "StartFailed",
      "Postgres does not run as root, and this machine has no user named postgres or nobody: " +
        "run Till as an ordinary user."
    )
  })

/** macOS has a `_postgres`, and a `nobody` without a number of its own. */
export const userOf = (accounts: string): PostgresUser =>
  accountOf(accounts, "postgres") ?? accountOf(accounts, "_postgres") ?? accountOf(accounts, "nobody")

// initdb insists on a user that the machine knows by name, so a number of our own choice would not do.
const accountOf = (accounts: string, name: string): PostgresUser => {
  const fields = accounts
    .split("\n")
    .find((line) => line.startsWith(`${name}:`))
    ?.split(":")
  const [userId, groupId] = [Number(fields?.[2]), Number(fields?.[3])]
  return userId > 0 && groupId > 0 ? { userId, groupId } : undefined
}

/** Makes `folder` if it is missing, readable for the user alone and owned by it. */
export const own = (folder: string, user: PostgresUser): Effect.Effect<void, EmbeddedPostgresError> =>
  attempt(`write to ${folder}`, () => {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (user !== undefined) fs.chownSync(folder, user.userId, user.groupId)
    fs.chmodSync(folder, 0o700)
  })

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
  const only = "-all,+dac_override"
  return {
    file: "setpriv",
    args: [
      `--reuid=${user.userId}`,
      `--regid=${user.groupId}`,
      "--clear-groups",
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

/** True if the user may pass through every folder above `path`, by the folders' modes alone. */
const canReach = (user: { readonly userId: number; readonly groupId: number }, path: string): boolean => {
  for (let folder = Path.dirname(path); ; folder = Path.dirname(folder)) {
    const { mode, uid, gid } = fs.statSync(folder)
    const bit = uid === user.userId ? 0o100 : gid === user.groupId ? 0o010 : 0o001
    if ((mode & bit) === 0) return false
    if (folder === Path.dirname(folder)) return true
  }
}
