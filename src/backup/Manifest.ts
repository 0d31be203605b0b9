/**
 * The manifest says what a backup holds: its files with their checksums, and where each account's chain stands at their
 * end. A backup is what its manifest says, so the manifest is written last, and takes its place in one step.
 *
 * A run that is under way keeps another one, of what it has finished so far: the next run goes on from there if this
 * one is killed. Nobody restores from that one.
 */
import { Schema } from "effect"
import { hash } from "node:crypto"
import * as Path from "node:path"
import type { AccountId } from "../engine/Document.ts"
import type { ChainHead } from "../engine/Record.ts"
import { FORMAT as RECORD_FORMAT } from "../engine/Record.ts"
import { parseJson } from "../json/JsonParse.ts"
import { readIfThere, writeAtomically } from "../postgres/embedded/DataFolder.ts"
import { BackupFailed } from "./BackupFailed.ts"

/** Rises when a backup is laid out in a way that an older Till cannot read. */
export const FORMAT = 1

export const MANIFEST = "manifest.json"
export const UNFINISHED = "unfinished.json"
/** The installation's secret, as in the data folder. */
export const SECRET = "secret"
/** The folder of the files with records. */
export const RECORDS = "records"

/** Which accounts a backup holds: all, or those of test mode and the installation's own. */
export const MODES = ["all", "test"] as const
export type Mode = (typeof MODES)[number]

const Sha256 = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/))
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

const RecordFile = Schema.Struct({
  name: Schema.String.check(Schema.isPattern(/^\d{8}\.zst$/)),
  records: Count,
  bytes: Count,
  sha256: Sha256
})
export type RecordFile = typeof RecordFile.Type

const Manifest = Schema.Struct({
  format: Schema.Literal(FORMAT),
  /** The newest format of a record that the Till knew which made this. */
  record_format: Count,
  /** The newest migration of the database. */
  migration: Count,
  mode: Schema.Literals(MODES),
  /** Unix milliseconds: what was answered before is in it. */
  at: Count,
  /** Ids up to this one are found without a number of their account. */
  older_links: Schema.String.check(Schema.isPattern(/^[0-9A-Za-z]*$/)),
  secret_sha256: Sha256,
  /** In the order in which they were written, which is that of each account's records. */
  files: Schema.Array(RecordFile),
  /** The newest record of each account. */
  accounts: Schema.Array(Schema.Struct({ account: Schema.String, version: Count, hash: Sha256 }))
})
export type Manifest = typeof Manifest.Type

/** Where the chain of each account stands. */
export type Heads = ReadonlyMap<AccountId, ChainHead>

export const headsOf = ({ accounts }: Manifest): Heads =>
  new Map(accounts.map(({ account, hash, version }) => [account, { version, hash }]))

/** How many records all accounts have. */
export const recordsOf = ({ accounts }: Manifest): number => accounts.reduce((sum, { version }) => sum + version, 0)

/** The text has one form alone, so a byte that was changed anywhere shows. */
const textOf = (manifest: unknown): string =>
  `${JSON.stringify({ sha256: hash("sha256", JSON.stringify(manifest)), manifest }, null, 1)}\n`

/** Throws if it cannot be written. */
export const write = (folder: string, name: typeof MANIFEST | typeof UNFINISHED, manifest: Manifest): void =>
  writeAtomically(Path.join(folder, name), textOf(manifest))

const decode = Schema.decodeUnknownSync(Manifest)

/** The manifest under this name; undefined if there is none. Throws `BackupFailed` for one that is not as written. */
export const read = (folder: string, name: typeof MANIFEST | typeof UNFINISHED): Manifest | undefined => {
  const file = Path.join(folder, name)
  const text = readIfThere(file)
  if (text === undefined) return undefined
  const manifest = parse(text)
  if (manifest === undefined || textOf(manifest) !== text) {
    throw new BackupFailed({ message: `${file} is damaged: it is not what was written.` })
  }
  const { format, record_format: recordFormat } = manifest as {
    readonly format: number
    readonly record_format: number
  }
  if (format > FORMAT) throw new BackupFailed({ message: newer(file, "backups in format", format, FORMAT) })
  if (recordFormat > RECORD_FORMAT) {
    throw new BackupFailed({ message: newer(file, "records in format", recordFormat, RECORD_FORMAT) })
  }
  return decode(manifest)
}

const newer = (file: string, what: string, theirs: number, ours: number): string =>
  `${file} is of a newer Till, with ${what} ${theirs}; this one knows them up to ${ours}.`

const parse = (text: string): unknown => {
  try {
    return (parseJson(text) as { readonly manifest?: unknown } | null)?.manifest
  } catch {
    return undefined
  }
}
