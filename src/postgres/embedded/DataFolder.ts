/**
 * The folder that holds everything an installation keeps on disk: the embedded Postgres' cluster and the secret.
 *
 * Guarantees: at most one live process holds the folder. The hold is a lock of the operating system on the file `lock`
 * (taken through SQLite, the only part of Node that takes one), so it ends with its process however that ends, and a
 * process id that was given to somebody else means nothing. A folder written by a newer Till is refused.
 */
import { Effect, Schedule, type Scope } from "effect"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as Path from "node:path"
import { DatabaseSync } from "node:sqlite"
import {
  attempt,
  describeCause,
  embeddedPostgresError,
  errorCode,
  type EmbeddedPostgresError
} from "./EmbeddedPostgresError.ts"
import * as OwnFiles from "./OwnFiles.ts"

/** Rises when the folder's layout changes in a way that an older Till cannot use. */
export const dataFolderFormat = 1

/** Creates the folder if need be, and answers with its real absolute path. */
export const prepare = (path: string): Effect.Effect<string, EmbeddedPostgresError> =>
  attempt(`use the data folder ${path}`, () => {
    // As root, the database runs as another user, who has to pass through this folder (but cannot list it).
    makeFolder(path, process.geteuid?.() === 0 ? 0o711 : 0o700)
    const folder = fs.realpathSync(path)
    if (!fs.statSync(folder).isDirectory()) throw new Error("it exists and is not a folder")
    fs.accessSync(folder, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK)
    return folder
  })

/**
 * Makes the folder, and those that it lies in. Node's own way to do so never ends where a file system has no folders to
 * give, such as /proc, and calls one that is read-only one that is missing.
 */
export const makeFolder = (path: string, mode: number): void => {
  try {
    fs.mkdirSync(path, { mode })
  } catch (error) {
    const code = errorCode(error)
    if (code === "EEXIST") return
    const parent = Path.dirname(path)
    if (code !== "ENOENT" || fs.existsSync(parent)) throw error
    makeFolder(parent, mode)
    makeFolder(path, mode)
  }
}

/** Prepares the folder and holds it until the scope closes. */
export const hold = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<string, EmbeddedPostgresError, Scope.Scope> {
  const folder = yield* prepare(path)
  // Postgres' own tools pass their paths on through a shell.
  if (/["$`]/.test(folder)) {
    return yield* embeddedPostgresError(
      "FolderUnusable",
      `The data folder ${folder} may not have ", $ or \` in its path.`
    )
  }
  yield* lock(folder, (owner) => `The data folder ${folder} is in use by another Till${owner}.`)
  yield* checkFormat(folder)
  return folder
})

const ownerFile = (folder: string) => Path.join(folder, "owner")

// A process that was just killed holds its locks until the system has taken it apart; a restart must not trip over
// that.
const lockRetries = Schedule.spaced("50 millis").pipe(Schedule.upTo({ duration: "1 second" }))

/**
 * Keeps a folder for this process until the scope closes. `inUse` is what is said if another process has it, given
 * which one: ` (process 123)`.
 */
export const lock = (
  folder: string,
  inUse: (owner: string) => string
): Effect.Effect<void, EmbeddedPostgresError, Scope.Scope> =>
  Effect.asVoid(Effect.acquireRelease(locked(folder, inUse), (database) => Effect.sync(() => database.close())))

const locked = (folder: string, inUse: (owner: string) => string): Effect.Effect<DatabaseSync, EmbeddedPostgresError> =>
  Effect.gen(function* () {
    const file = Path.join(folder, "lock")
    const database = yield* attempt(`lock the folder ${folder}`, () => {
      // A process that can read the file can lock it, and SQLite would let everybody read it.
      OwnFiles.make(file)
      return new DatabaseSync(file, { timeout: 0 })
    })
    yield* Effect.try({
      try: () => database.exec("BEGIN EXCLUSIVE"),
      catch: (cause) => (isBusy(cause) ? heldByAnother(folder, inUse) : unlockable(folder, cause))
    }).pipe(
      Effect.retry({ schedule: lockRetries, while: (error) => error.reason === "FolderInUse" }),
      Effect.onError(() => Effect.sync(() => database.close()))
    )
    // For the message that a second starter prints; the lock alone decides.
    yield* attempt(`write to the folder ${folder}`, () => OwnFiles.write(ownerFile(folder), `${process.pid}\n`))
    return database
  })

const sqliteBusy = 5

const isBusy = (cause: unknown) => cause instanceof Error && "errcode" in cause && cause.errcode === sqliteBusy

const heldByAnother = (folder: string, inUse: (owner: string) => string) => {
  let owner = ""
  try {
    owner = ` (process ${Number.parseInt(OwnFiles.readIfThere(ownerFile(folder))!, 10)})`
  } catch {
    // The message does without it.
  }
  return embeddedPostgresError("FolderInUse", inUse(owner))
}

const unlockable = (folder: string, cause: unknown) =>
  embeddedPostgresError("FolderUnusable", `Cannot lock the folder ${folder}: ${describeCause(cause)}.`)

const checkFormat = (folder: string): Effect.Effect<void, EmbeddedPostgresError> =>
  Effect.gen(function* () {
    const file = Path.join(folder, "format")
    const text = yield* attempt(`read ${file}`, () => OwnFiles.readIfThere(file))
    if (text === undefined) {
      return yield* attempt(`write ${file}`, () => writeAtomically(file, `${dataFolderFormat}\n`))
    }
    const format = /^\d+\n?$/.test(text) ? Number(text) : Number.NaN
    if (format > dataFolderFormat) {
      return yield* embeddedPostgresError(
        "IncompatibleVersion",
        `The data folder ${folder} was written by a newer Till (format ${format}; this one knows ${dataFolderFormat}).`
      )
    }
    if (format !== dataFolderFormat) {
      return yield* embeddedPostgresError("FolderUnusable", `${file} is damaged: it must hold a format number.`)
    }
  })

/** The file appears whole and durable, or not at all. Mode 0600. */
export const writeAtomically = (file: string, content: string | Uint8Array): void => {
  const temporary = `${file}.${randomBytes(6).toString("hex")}`
  try {
    const descriptor = fs.openSync(temporary, "wx", 0o600)
    try {
      fs.writeFileSync(descriptor, content)
      fs.fsyncSync(descriptor)
    } finally {
      fs.closeSync(descriptor)
    }
    fs.renameSync(temporary, file)
    syncFolder(Path.dirname(file))
  } catch (cause) {
    fs.rmSync(temporary, { force: true })
    throw cause
  }
}

/** What was made, renamed or removed in the folder is durable then. */
export const syncFolder = (folder: string): void => {
  const descriptor = fs.openSync(folder, "r")
  try {
    fs.fsyncSync(descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
}
