/**
 * 32 random bytes that are this installation's own, made at its first start and kept in the data folder. They key what
 * must not be guessable from outside, such as card fingerprints, and seal webhook secrets; so they belong to every
 * backup.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as Path from "node:path"
import { prepare, readIfThere, syncFolder, writeAtomically } from "./embedded/DataFolder.ts"
import { attempt, embeddedPostgresError, type EmbeddedPostgresError } from "./embedded/EmbeddedPostgresError.ts"

const secretBytes = 32

export class InstallationSecret extends Context.Service<InstallationSecret, Redacted.Redacted<Uint8Array>>()(
  "till/InstallationSecret"
) {}

const fileIn = (folder: string): string => Path.join(folder, "secret")

/** Reads the secret of the data folder, or makes it; safe with several starters at once. */
export const load = Effect.fnUntraced(function* (
  dataFolder: string
): Effect.fn.Return<Redacted.Redacted<Uint8Array>, EmbeddedPostgresError> {
  const file = fileIn(yield* prepare(dataFolder))
  return yield* secretOf(file, yield* attempt(`read or write ${file}`, () => readIfThere(file) ?? create(file)))
})

/** Reads the secret of the data folder; undefined if it has none. */
export const find = Effect.fnUntraced(function* (
  dataFolder: string
): Effect.fn.Return<Redacted.Redacted<Uint8Array> | undefined, EmbeddedPostgresError> {
  const file = fileIn(dataFolder)
  const text = yield* attempt(`read ${file}`, () => readIfThere(file))
  return text === undefined ? undefined : yield* secretOf(file, text)
})

const secretOf = (file: string, text: string) => {
  const secret = Buffer.from(text.trim(), "hex")
  return secret.length === secretBytes
    ? Effect.succeed(Redacted.make(new Uint8Array(secret), { label: "installation secret" }))
    : embeddedPostgresError("FolderUnusable", `${file} is damaged: it must hold ${secretBytes} bytes in hex.`)
}

/**
 * The text of the file, where there has to be one: for backups of what there is. Nothing is made.
 */
export const existing = Effect.fnUntraced(function* (
  dataFolder: string
): Effect.fn.Return<Redacted.Redacted, EmbeddedPostgresError> {
  const file = fileIn(dataFolder)
  const text = yield* attempt(`read ${file}`, () => readIfThere(file))
  if (text === undefined) {
    return yield* embeddedPostgresError(
      "FolderUnusable",
      `There is no ${file}: does TILL_DATA_DIR name the right folder?`
    )
  }
  return Redacted.make(text, { label: "installation secret" })
})

/** Puts a secret there, in the folder's own way; fails if it has another one already. */
export const put = Effect.fnUntraced(function* (
  dataFolder: string,
  secret: Redacted.Redacted
): Effect.fn.Return<void, EmbeddedPostgresError> {
  yield* requireFree(dataFolder, secret)
  const folder = yield* prepare(dataFolder)
  yield* attempt(`write ${fileIn(folder)}`, () => writeAtomically(fileIn(folder), Redacted.value(secret)))
})

/** Fails if the folder has another secret. */
export const requireFree = Effect.fnUntraced(function* (
  dataFolder: string,
  secret: Redacted.Redacted
): Effect.fn.Return<void, EmbeddedPostgresError> {
  const file = fileIn(dataFolder)
  const known = yield* attempt(`read ${file}`, () => readIfThere(file))
  if (known === undefined || known.trim() === Redacted.value(secret).trim()) return
  return yield* embeddedPostgresError(
    "FolderUnusable",
    `${file} is another installation's secret: set TILL_DATA_DIR to another folder.`
  )
})

// Written aside and then linked: of several starters the first one's link wins, and all read the same bytes.
const create = (file: string): string => {
  const candidate = `${file}.${process.pid}.${randomBytes(6).toString("hex")}`
  try {
    writeAtomically(candidate, `${randomBytes(secretBytes).toString("hex")}\n`)
    try {
      fs.linkSync(candidate, file)
    } catch (cause) {
      if (!(cause instanceof Error && "code" in cause && cause.code === "EEXIST")) throw cause
    }
    // Before anything is sealed with it: a database outlives a power cut, and so must its secret.
    syncFolder(Path.dirname(file))
  } finally {
    fs.rmSync(candidate, { force: true })
  }
  return fs.readFileSync(file, "utf8")
}

export const layer = (dataFolder: string): Layer.Layer<InstallationSecret, EmbeddedPostgresError> =>
  Layer.effect(InstallationSecret, load(dataFolder))
