/**
 * The manifest says what a backup holds: its files with their checksums, and where each account's chain stands at their
 * end. A backup is what its manifest says, so the manifest is written last, and takes its place in one step.
 *
 * A run that is under way keeps another one, of what it has finished so far: the next run goes on from there if this
 * one is killed. Nobody restores from that one.
 *
 * Its HMAC, under a key that follows from the installation's secret, says that somebody has written it who has that
 * secret; and with it all that it names, by their hashes. Whoever takes the secret from the backup itself learns only
 * that the two belong together.
 */
import { Redacted, Schema } from "effect"
import { createHmac, timingSafeEqual } from "node:crypto"
import * as Path from "node:path"
import type { AccountId } from "../engine/log/Document.ts"
import type { ChainHead } from "../engine/log/Record.ts"
import { FORMAT as RECORD_FORMAT } from "../engine/log/Record.ts"
import { parseJson } from "../json/JsonParse.ts"
import { writeAtomically } from "../postgres/embedded/DataFolder.ts"
import { readIfThere } from "../postgres/embedded/OwnFiles.ts"
import { BackupFailed } from "./BackupFailed.ts"

/** Version of a backup's layout. It increases with each change after which an older Till cannot read a new backup. */
export const FORMAT = 1

export const MANIFEST = "manifest.json"
export const UNFINISHED = "unfinished.json"
export type Name = typeof MANIFEST | typeof UNFINISHED
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

/** Follows from the installation's secret. */
export type ManifestKey = Redacted.Redacted<Uint8Array>

/** The text has one form alone, so a byte that was changed anywhere shows, and so does another file's text. */
const textOf = (name: Name, manifest: unknown, key: ManifestKey): string => {
  const hmac = createHmac("sha256", Redacted.value(key)).update(`${name}\n${JSON.stringify(manifest)}`)
  return `${JSON.stringify({ hmac_sha256: hmac.digest("hex"), manifest }, null, 1)}\n`
}

/** Throws if it cannot be written. */
export const write = (folder: string, name: Name, manifest: Manifest, key: ManifestKey): void =>
  writeAtomically(Path.join(folder, name), textOf(name, manifest, key))

const decode = Schema.decodeUnknownSync(Manifest)

/** A manifest as it was found: nobody knows yet who has written it. */
export interface Found {
  /** Which secret it says that its key follows from. */
  readonly secretSha256: unknown
  /** The manifest, if it was written with the key and is as it was written; throws `BackupFailed` otherwise. */
  readonly authenticated: (key: ManifestKey) => Manifest
}

/** Looks for a manifest; undefined if there is none. Throws `BackupFailed` for one that this Till cannot read. */
export const find = (folder: string, name: Name): Found | undefined => {
  const file = Path.join(folder, name)
  const text = readIfThere(file)
  if (text === undefined) return undefined
  const manifest = parse(text)
  const damaged = new BackupFailed({
    message: `${file} is damaged, or was not written with this installation's secret: its HMAC does not match.`
  })
  if (typeof manifest !== "object" || manifest === null) throw damaged
  if ("older_links" in manifest) throw unreleased(file)
  const {
    format,
    record_format: recordFormat,
    secret_sha256: secretSha256
  } = manifest as Readonly<Record<string, unknown>>
  refuseNewer(file, "backups", format, FORMAT)
  refuseNewer(file, "records", recordFormat, RECORD_FORMAT)
  return {
    secretSha256,
    authenticated: (key) => {
      if (!isSame(textOf(name, manifest, key), text)) throw damaged
      return decode(manifest)
    }
  }
}

/** All backups from before the first release had a field that no later one has. */
const unreleased = (file: string) =>
  new BackupFailed({
    message: `${file} was made by a Till from before its first release, which no release can read: make a new backup.`
  })

const isSame = (one: string, other: string): boolean => {
  const [first, second] = [Buffer.from(one), Buffer.from(other)]
  return first.length === second.length && timingSafeEqual(first, second)
}

/** Passes a format that is no number: the HMAC check refuses it. */
const refuseNewer = (file: string, what: string, theirs: unknown, newest: number): void => {
  if (typeof theirs !== "number" || theirs <= newest) return
  throw new BackupFailed({
    message: `${file} is of a newer Till, with ${what} in format ${theirs}; this one knows them up to ${newest}.`
  })
}

const parse = (text: string): unknown => {
  try {
    return (parseJson(text) as { readonly manifest?: unknown } | null)?.manifest
  } catch {
    return undefined
  }
}
