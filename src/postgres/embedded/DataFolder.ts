/**
 * The folder that holds everything an installation keeps on disk: the embedded Postgres' cluster and the secret.
 *
 * Guarantees: at most one live process holds the folder. It holds a lock of the operating system on the file `lock`
 * (taken through SQLite, the only part of Node that locks files), which ends with its process, however that ends; a
 * reused process id has no effect. A folder written by a newer Till is refused.
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

/** Version of the folder's layout. It increases with each change after which an older Till cannot use the folder. */
const dataFolderFormat = 1

/** Creates the folder if it is missing, and returns its real absolute path. */
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
 * Creates a folder and its parents. Node's recursive `mkdir` never ends on a file system without folders to create,
 * such as /proc, and reports a read-only one as missing.
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

export const hold = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<string, EmbeddedPostgresError, Scope.Scope> {
  const folder = yield* prepare(path)
  // Postgres' tools pass paths through a shell.
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

// A killed process holds its locks until the system has cleaned it up; a restart must wait for that.
const lockRetries = Schedule.spaced("50 millis").pipe(Schedule.upTo({ duration: "1 second" }))

/**
 * Holds a folder for this process until the scope closes. `inUse` makes the message if another process holds it, whose
 * description is ` (process 123)` or empty.
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
      // A process that can read the file can lock it, and SQLite would create it readable for all.
      OwnFiles.make(file)
      return new DatabaseSync(file, { timeout: 0 })
    })
    return yield* Effect.try({
      try: () => database.exec("BEGIN EXCLUSIVE"),
      catch: (cause) => (isBusy(cause) ? heldByAnother(folder, inUse) : unlockable(folder, cause))
    }).pipe(
      Effect.retry({ schedule: lockRetries, while: (error) => error.reason === "FolderInUse" }),
      // For the message of a second process; only the lock decides.
      Effect.andThen(
        attempt(`write to the folder ${folder}`, () => OwnFiles.write(ownerFile(folder), `${process.pid}\n`))
      ),
      Effect.as(database),
      // A database that is left open holds the lock until the collector finds it.
      Effect.onError(() => Effect.sync(() => database.close()))
    )
  })

const sqliteBusy = 5

const isBusy = (cause: unknown) => cause instanceof Error && "errcode" in cause && cause.errcode === sqliteBusy

const heldByAnother = (folder: string, inUse: (owner: string) => string) => {
  let owner = ""
  try {
    owner = ` (process ${Number.parseInt(OwnFiles.readIfThere(ownerFile(folder))!, 10)})`
  } catch {
    // The message leaves the owner out.
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

interface Owner {
  readonly uid: number
  readonly gid: number
}

/** Writes a file that appears complete and durable, or not at all. Mode 0600. It belongs to the caller unless given. */
export const writeAtomically = (file: string, content: string | Uint8Array, owner?: Owner): void => {
  const temporary = `${file}.${randomBytes(6).toString("hex")}`
  try {
    const descriptor = fs.openSync(temporary, "wx", 0o600)
    try {
      fs.writeFileSync(descriptor, content)
      if (owner !== undefined) fs.fchownSync(descriptor, owner.uid, owner.gid)
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

/** Makes the creation, renaming and removal of files in a folder durable. */
export const syncFolder = (folder: string): void => {
  const descriptor = fs.openSync(folder, "r")
  try {
    fs.fsyncSync(descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
}
