/**
 * The embedded Postgres' cluster: its files in the data folder, created at the first start.
 *
 * Guarantees: the cluster exists completely and on disk, or not at all (it is created under another name and then
 * renamed), so a killed start leaves nothing that disturbs the next one. Only a cluster of this Postgres' major version
 * is opened.
 *
 * One role can log in, from this machine, with the password next to the cluster, which only Till's user can read
 * (semantics operation.postgres). The role owns its database and has no other privilege: it reads and writes no files,
 * runs no programs and creates no roles. The superuser cannot log in; its statements run in Postgres' single-user mode,
 * before a server runs.
 */
import { Effect, Redacted } from "effect"
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as Path from "node:path"
import { announce } from "./Announcement.ts"
import { hold, syncFolder, writeAtomically } from "./DataFolder.ts"
import {
  attempt,
  describeCause,
  embeddedPostgresError,
  errorCode,
  type EmbeddedPostgresError
} from "./EmbeddedPostgresError.ts"
import { readIfThere, write } from "./OwnFiles.ts"
import { install, locate, type PackagedPostgres } from "./PostgresBinaries.ts"
import {
  chooseUsers,
  commandAs,
  changeOwner,
  isOwnedBy,
  makeOwned,
  type PostgresUsers,
  type UserCommand
} from "./PostgresUser.ts"
import { environment } from "./Postmaster.ts"

export const roleName = "till_service"
export const databaseName = "postgres"
/** The role that `initdb` creates. Its privileges cannot be revoked. */
const superuserName = "till"

const ACCESS_HEAD = "# Written by Till.\n"
const ACCESS = `${ACCESS_HEAD}local all ${roleName} scram-sha-256
host all ${roleName} 127.0.0.1/32 scram-sha-256
`

export interface Cluster {
  /** The cluster proper (Postgres' `data_directory`). */
  readonly path: string
  /** The folder of the server's socket; undefined if the path would be too long for a socket. */
  readonly socketFolder: string | undefined
  readonly logFile: string
  readonly password: Redacted.Redacted
  readonly users: PostgresUsers
  /** Builds the command that runs one of the packaged programs as one of the cluster's users. */
  readonly command: (
    program: "initdb" | "postgres",
    args: ReadonlyArray<string>,
    user?: keyof PostgresUsers
  ) => Effect.Effect<UserCommand, EmbeddedPostgresError>
}

const homeIn = (folder: string): string => Path.join(folder, "postgres")
export const pathIn = (folder: string): string => Path.join(homeIn(folder), "data")
const passwordFile = (home: string): string => Path.join(home, "password")
const SOCKET_PATH_BYTES_MAX = process.platform === "darwin" ? 103 : 107

/** Returns whether a folder can hold the socket. A comma would separate several folders for Postgres. */
const fitsSocket = (folder: string): boolean =>
  !folder.includes(",") && Buffer.byteLength(`${folder}/.s.PGSQL.65535`) <= SOCKET_PATH_BYTES_MAX

const versionFile = (path: string): string => Path.join(path, "PG_VERSION")

export const isMade = (folder: string): boolean => fs.existsSync(pathIn(folder))

/** The part of a cluster that clients of a running server use. */
export type ServedCluster = Pick<Cluster, "path" | "password">

/** Finds the cluster of a data folder that another process holds; undefined until it is created. */
export const findCluster = (folder: string): Effect.Effect<ServedCluster | undefined, EmbeddedPostgresError> =>
  attempt(`read ${passwordFile(homeIn(folder))}`, () => {
    const known = readIfThere(passwordFile(homeIn(folder)))?.trim()
    if (known === undefined || known === "" || !isMade(folder)) return undefined
    return { path: pathIn(folder), password: Redacted.make(known, { label: "database password" }) }
  })

/**
 * Creates the cluster of a data folder unless there is one, and leaves it to the service that is starting. Most of that
 * time another process works, in which this one can load the service.
 */
export const createAhead = (dataFolder: string): Effect.Effect<void, EmbeddedPostgresError> =>
  isMade(dataFolder) ? Effect.void : Effect.asVoid(Effect.scoped(Effect.flatMap(hold(dataFolder), openCluster)))

/** Opens the cluster of a data folder that this process holds; creates it if there is none. */
export const openCluster = Effect.fnUntraced(function* (
  folder: string
): Effect.fn.Return<Cluster, EmbeddedPostgresError> {
  const packaged = yield* locate
  const home = homeIn(folder)
  const users = yield* chooseUsers(home)
  yield* makeOwned(home, users.keeper)
  const cluster: Cluster = {
    path: pathIn(folder),
    socketFolder: fitsSocket(home) ? home : undefined,
    logFile: Path.join(folder, "postgres.log"),
    password: yield* password(home),
    users,
    command: Effect.fnUntraced(function* (program, args, user = "keeper") {
      const programs = yield* install(packaged, Path.join(folder, "programs"))
      return yield* attempt(`run ${program}`, () =>
        commandAs(users[user], [Path.join(home, "data"), packaged.native], Path.join(programs, program), args)
      )
    })
  }
  const version = yield* attempt(`read ${cluster.path}`, () => readIfThere(versionFile(cluster.path)))
  if (version === undefined) {
    yield* refuseForeign(cluster)
    yield* initialize(cluster, home)
  } else {
    yield* checkVersion(cluster, packaged, version.trim())
    yield* refuseUnreleased(cluster)
  }
  return cluster
})

const checkVersion = (cluster: Cluster, packaged: PackagedPostgres, version: string) =>
  version === packaged.majorVersion
    ? Effect.void
    : embeddedPostgresError(
        "IncompatibleVersion",
        `${cluster.path} was written by Postgres ${version}, and this Till brings Postgres ${packaged.majorVersion}: ` +
          `start the version of Till that wrote it, or set TILL_DATA_DIR to another folder.`
      )

/** Refuses a cluster from before the first release: it has other roles, and its access file does not name Till. */
const refuseUnreleased = ({ path }: Cluster) =>
  Effect.gen(function* () {
    const access = yield* attempt(`read ${accessFile(path)}`, () => readIfThere(accessFile(path)))
    if (access?.startsWith(ACCESS_HEAD) === true) return
    return yield* embeddedPostgresError(
      "IncompatibleVersion",
      `${path} was made by a Till from before its first release, which no release can read: ` +
        "start anew with an empty TILL_DATA_DIR."
    )
  })

const refuseForeign = (cluster: Cluster) =>
  Effect.gen(function* () {
    if (yield* attempt(`read ${cluster.path}`, () => fs.existsSync(cluster.path))) {
      return yield* embeddedPostgresError("FolderUnusable", `${cluster.path} is damaged: it has no PG_VERSION.`)
    }
  })

const password = (home: string): Effect.Effect<Redacted.Redacted, EmbeddedPostgresError> =>
  attempt(`read or write the password in ${home}`, () => {
    const file = passwordFile(home)
    const known = readIfThere(file)?.trim()
    if (known !== undefined && known !== "") return Redacted.make(known, { label: "database password" })
    if (fs.existsSync(Path.join(home, "data"))) throw new Error(`${file} is missing`)
    const made = randomBytes(24).toString("hex")
    writeAtomically(file, `${made}\n`)
    return Redacted.make(made, { label: "database password" })
  })

const unfinishedPrefix = "initializing-"

const initialize = (cluster: Cluster, home: string): Effect.Effect<void, EmbeddedPostgresError> =>
  Effect.gen(function* () {
    yield* removeUnfinished(home)
    const unfinished = Path.join(home, `${unfinishedPrefix}${randomBytes(6).toString("hex")}`)
    yield* makeOwned(unfinished, cluster.users.maker)
    const args = [
      `--pgdata=${unfinished}`,
      `--username=${superuserName}`,
      "--auth=reject",
      "--encoding=UTF8",
      "--locale=C",
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8",
      "--no-instructions",
      // One call for the whole file system in place of a thousand, where the system has it.
      `--sync-method=${process.platform === "linux" ? "syncfs" : "fsync"}`
    ]
    yield* announce(`Preparing a database in ${home}. This happens only once …`)
    yield* run(yield* cluster.command("initdb", args, "maker"), home)
    const made = { ...cluster, path: unfinished }
    yield* administrate(made, statementsOf(Redacted.value(cluster.password)))
    yield* secure(made)
    yield* attempt(`write ${cluster.path}`, () => {
      fs.renameSync(unfinished, cluster.path)
      syncFolder(home)
    })
  }).pipe(Effect.tapError(() => Effect.ignore(removeUnfinished(home))))

// An initdb of a killed Till may still write there; it fails as soon as its folder is removed.
const removeUnfinished = (home: string): Effect.Effect<void, EmbeddedPostgresError> =>
  attempt(`remove an unfinished cluster from ${home}`, () => {
    for (const name of fs.readdirSync(home)) {
      if (name.startsWith(unfinishedPrefix)) {
        fs.rmSync(Path.join(home, name), { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
      }
    }
  })

const accessFile = (path: string): string => Path.join(path, "pg_hba.conf")

/** False if another user owns the cluster, as after a copy, or its access file was changed. */
export const isSecured = ({ path, users }: Cluster): boolean =>
  isOwnedBy(path, users.keeper) && readIfThere(accessFile(path)) === ACCESS

/** Writes the access file and gives the cluster to its keeper. No server may run on it. */
export const secure = Effect.fnUntraced(function* ({
  path,
  users: { keeper }
}: Cluster): Effect.fn.Return<void, EmbeddedPostgresError> {
  if (yield* attempt(`read ${path}`, () => readIfThere(accessFile(path)) !== ACCESS)) {
    yield* attempt(`write ${accessFile(path)}`, () => write(accessFile(path), ACCESS))
  }
  if (keeper !== undefined)
    yield* attempt(`write to ${path}`, () => !isOwnedBy(path, keeper) && changeOwner(path, keeper))
})

/** Runs statements as the superuser, one after the other. No server may run on the cluster. */
export const administrate = Effect.fnUntraced(function* (
  cluster: Cluster,
  statements: ReadonlyArray<string>,
  further: ReadonlyArray<string> = []
): Effect.fn.Return<void, EmbeddedPostgresError> {
  const { path, users } = cluster
  const { maker } = users
  if (maker !== undefined) yield* attempt(`write to ${path}`, () => !isOwnedBy(path, maker) && changeOwner(path, maker))
  // Statements may contain a password, which must not be logged.
  const settings = ["exit_on_error=on", "log_checkpoints=off", "log_min_error_statement=panic", ...further]
  const args = ["--single", "-D", path, ...settings.flatMap((setting) => ["-c", setting]), databaseName]
  yield* run(yield* cluster.command("postgres", args, "maker"), path, `${statements.join("\n")}\n`)
})

/** The statements that create the role and changeOwner it the database, of one line each. */
const statementsOf = (password: string): ReadonlyArray<string> => [
  `CREATE ROLE ${roleName} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD ` +
    `'${password.replaceAll("'", "''")}'`,
  // The owner of the database may create tables in its schema.
  `ALTER DATABASE ${databaseName} OWNER TO ${roleName}`
]

/** Runs a program to its end; fails with the program's last error line. */
const run = (command: UserCommand, directory: string, input = ""): Effect.Effect<void, EmbeddedPostgresError> =>
  Effect.callback((resume) => {
    const child = spawn(command.file, [...command.args], {
      ...command.options,
      cwd: directory,
      env: environment,
      detached: true,
      stdio: ["pipe", "ignore", "pipe"]
    })
    // A program that has ended reads no more input; its output has the reason.
    child.stdin.on("error", () => {}).end(input)
    let errors = ""
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => (errors = (errors + chunk).slice(-8192)))
    child.once("error", (cause) => resume(Effect.fail(cannotRun(command, cause))))
    child.once("close", (code) =>
      resume(code === 0 ? Effect.void : Effect.fail(startFailure("Postgres could not make its cluster", errors)))
    )
    return Effect.sync(() => void child.kill("SIGTERM"))
  })

export const cannotRun = (command: UserCommand, cause: unknown): EmbeddedPostgresError =>
  embeddedPostgresError(
    "StartFailed",
    command.file === "setpriv" && errorCode(cause) === "ENOENT"
      ? "Root runs Postgres as another user, who cannot reach this folder without the program setpriv (util-linux): " +
          "install it, or move Till and its data folder to where every user may pass, or run Till as an ordinary user."
      : `Postgres cannot be run: ${describeCause(cause)}.`
  )

/** Makes an error of the last error line in Postgres' output. */
export const startFailure = (what: string, output: string): EmbeddedPostgresError => {
  const lines = output.split("\n").filter((line) => line.trim() !== "")
  const telling = lines.findLast((line) => /FATAL|PANIC|error:/.test(line)) ?? lines.at(-1) ?? "it said nothing"
  const isFull = /No space left on device|Disk quota exceeded/i.test(output)
  return embeddedPostgresError(
    isFull ? "FolderUnusable" : "StartFailed",
    isFull
      ? "The disk of the data folder is full: no space left on the device."
      : `${what}: ${telling.replace(/^.*?(FATAL|PANIC|error):\s*/, "")}.`
  )
}
