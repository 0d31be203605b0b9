/**
 * The file of the installation's secret: 32 random bytes, generated at the first start and stored in a file: `secret`
 * in the data folder, or the one that TILL_SECRET_FILE names. They key everything that must not be guessable from
 * outside, such as card fingerprints, and seal webhook secrets; so they belong to every backup. `SecretFile.ts` has the
 * format, which may hold a second secret while the first is being rolled.
 *
 * Processes on one database need the same secret. If they share the file and start at the same time, exactly one of
 * them creates it, and all read the same bytes.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as Path from "node:path"
import * as SecretFile from "../domain/SecretFile.ts"
import { prepare, syncFolder, writeAtomically } from "./embedded/DataFolder.ts"
import { attempt, embeddedPostgresError, type EmbeddedPostgresError } from "./embedded/EmbeddedPostgresError.ts"
import { readNamedIfThere } from "./embedded/OwnFiles.ts"

export class InstallationSecret extends Context.Service<InstallationSecret, SecretFile.SecretFile>()(
  "till/InstallationSecret"
) {}

/** Reads or creates the secret, also in several processes at the same time. An existing file need not be writable. */
export const load = Effect.fnUntraced(function* (
  file: string
): Effect.fn.Return<SecretFile.SecretFile, EmbeddedPostgresError> {
  const found = yield* find(file)
  if (found !== undefined) return found
  yield* prepare(Path.dirname(file))
  return yield* secretOf(file, yield* attempt(`read or write ${file}`, () => readNamedIfThere(file) ?? create(file)))
})

export const find = Effect.fnUntraced(function* (
  file: string
): Effect.fn.Return<SecretFile.SecretFile | undefined, EmbeddedPostgresError> {
  const text = yield* attempt(`read ${file}`, () => readNamedIfThere(file))
  return text === undefined ? undefined : yield* secretOf(file, text)
})

export const secretOf = (file: string, text: string) => {
  const secret = SecretFile.parse(text)
  return secret === undefined
    ? embeddedPostgresError("FolderUnusable", `${file} is damaged: it must hold 32 bytes in hex.`)
    : Effect.succeed(secret)
}

/** Returns the text of the file, for backups. Fails if there is no file. */
export const existing = Effect.fnUntraced(function* (
  file: string
): Effect.fn.Return<Redacted.Redacted, EmbeddedPostgresError> {
  const text = yield* attempt(`read ${file}`, () => readNamedIfThere(file))
  if (text === undefined) {
    return yield* embeddedPostgresError(
      "FolderUnusable",
      `There is no ${file}: do TILL_DATA_DIR and TILL_SECRET_FILE name what you mean?`
    )
  }
  return Redacted.make(text, { label: "installation secret" })
})

/** Writes a secret to the file; fails if the file holds another one. */
export const put = Effect.fnUntraced(function* (
  file: string,
  secret: Redacted.Redacted
): Effect.fn.Return<void, EmbeddedPostgresError> {
  if (yield* isThere(file, secret)) return
  yield* prepare(Path.dirname(file))
  yield* attempt(`write ${file}`, () => writeAtomically(file, Redacted.value(secret)))
})

/**
 * Writes a rolled secret over the one before, also through a link. The file keeps its owner: a command of root must not
 * take it away from the service's user.
 */
export const replace = (file: string, secret: SecretFile.SecretFile): Effect.Effect<void, EmbeddedPostgresError> =>
  attempt(`write ${file}`, () => {
    const path = fs.existsSync(file) ? fs.realpathSync(file) : file
    const owner = process.geteuid?.() === 0 ? fs.statSync(path, { throwIfNoEntry: false }) : undefined
    writeAtomically(path, SecretFile.textOf(secret), owner)
  })

export const requireFree = (file: string, secret: Redacted.Redacted): Effect.Effect<void, EmbeddedPostgresError> =>
  Effect.asVoid(isThere(file, secret))

const isThere = Effect.fnUntraced(function* (
  file: string,
  secret: Redacted.Redacted
): Effect.fn.Return<boolean, EmbeddedPostgresError> {
  const known = yield* find(file)
  if (known === undefined) return false
  if (SecretFile.covers(known, yield* secretOf("The secret", Redacted.value(secret)))) return true
  return yield* embeddedPostgresError(
    "FolderUnusable",
    `${file} is another installation's secret: set TILL_DATA_DIR or TILL_SECRET_FILE to another one.`
  )
})

// Written to another file and then linked: the first process's link wins, and all processes read its bytes.
const create = (file: string): string => {
  const candidate = `${file}.${process.pid}.${randomBytes(6).toString("hex")}`
  try {
    writeAtomically(candidate, SecretFile.textOf(SecretFile.make()))
    try {
      fs.linkSync(candidate, file)
    } catch (cause) {
      if (!(cause instanceof Error && "code" in cause && cause.code === "EEXIST")) throw cause
    }
    // Before anything is sealed with it: the secret must survive a power cut, as the database does.
    syncFolder(Path.dirname(file))
  } finally {
    fs.rmSync(candidate, { force: true })
  }
  return fs.readFileSync(file, "utf8")
}

export const layer = (file: string): Layer.Layer<InstallationSecret, EmbeddedPostgresError> =>
  Layer.effect(InstallationSecret, load(file))
