/**
 * Files and folders that Till creates and uses under fixed names. Another user may have put something else there
 * before: a link to another place, a pipe, a device. None of these is followed, opened or changed, so nothing outside
 * of the folder changes (semantics operation.files).
 */
import * as fs from "node:fs"
import * as Path from "node:path"

const { O_APPEND, O_CREAT, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = fs.constants

/** Opens a regular file. Fails immediately for anything else; a pipe would block otherwise. */
const open = (file: string, flags: number): number => {
  const descriptor = fs.openSync(file, flags | O_NOFOLLOW | O_NONBLOCK, 0o600)
  if (fs.fstatSync(descriptor).isFile()) return descriptor
  fs.closeSync(descriptor)
  throw new Error("something that is no file is in its place")
}

const using = <A>(descriptor: number, use: (descriptor: number) => A): A => {
  try {
    return use(descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
}

/** Opens a file to append to; creates it if it is missing. The caller closes the descriptor. */
export const openToAppend = (file: string): number => open(file, O_WRONLY | O_APPEND | O_CREAT)

/** Opens a file to read. The caller closes the descriptor. */
export const openToRead = (file: string): number => open(file, O_RDONLY)

/** Overwrites a small file in place, which keeps its owner and mode. */
export const write = (file: string, text: string): void =>
  using(open(file, O_WRONLY | O_CREAT), (descriptor) => {
    fs.ftruncateSync(descriptor)
    fs.writeFileSync(descriptor, text)
  })

/** Creates a file if it is missing, and makes it readable for its owner only. */
export const make = (file: string): void => using(openToAppend(file), (descriptor) => fs.fchmodSync(descriptor, 0o600))

const unlessMissing = (read: () => string): string | undefined => {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return undefined
    throw cause
  }
}

export const readIfThere = (file: string): string | undefined =>
  unlessMissing(() => using(openToRead(file), (descriptor) => fs.readFileSync(descriptor, "utf8")))

/** The same for a file that a person has named, which may be a link: secrets in Kubernetes are links. */
export const readNamedIfThere = (file: string): string | undefined => unlessMissing(() => fs.readFileSync(file, "utf8"))

/** Creates a folder if it is missing, and makes it accessible for its owner only. Fails for a link to a folder. */
export const makeFolder = (folder: string, owner?: { readonly userId: number; readonly groupId: number }): void => {
  try {
    fs.mkdirSync(folder, { mode: 0o700 })
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause && cause.code === "EEXIST")) throw cause
  }
  using(fs.openSync(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), (descriptor) => {
    if (owner !== undefined) fs.fchownSync(descriptor, owner.userId, owner.groupId)
    fs.fchmodSync(descriptor, 0o700)
  })
}

/** Returns the users who may own the folders of a path: the caller, and root or its substitute in a sandbox. */
const trusted = (): ReadonlySet<number | undefined> => new Set([process.geteuid?.(), 0, fs.statSync("/").uid])

const OTHERS_WRITE = 0o022
const STICKY = 0o1000

/**
 * Returns why another user could change the content of a folder, or replace the folder; undefined if none could.
 * Folders above it may be writable for all if they are sticky, as /tmp is. The folder need not exist.
 */
export const intrusionInto = (folder: string): string | undefined => {
  const friends = trusted()
  const problemOf = (path: string): string | undefined => {
    const found = fs.lstatSync(path, { throwIfNoEntry: false })
    if (found === undefined) return undefined
    if (!friends.has(found.uid)) return `${path} belongs to another user (${found.uid})`
    if (found.isSymbolicLink() || (found.mode & OTHERS_WRITE) === 0) return undefined
    if (path !== folder && (found.mode & STICKY) !== 0) return undefined
    return `others may write to ${path} (mode ${(found.mode & 0o7777).toString(8)})`
  }
  for (let path = folder; ; path = Path.dirname(path)) {
    const problem = problemOf(path)
    if (problem !== undefined || path === Path.dirname(path)) return problem
  }
}
