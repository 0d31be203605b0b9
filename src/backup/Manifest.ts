/**
 * The manifest of a backup: its files with their checksums, and the head of each account's chain. It defines the
 * backup, so it is written last and atomically.
 *
 * A running backup writes another manifest, of its completed files: the next run continues from there if this one is
 * killed. No restore reads that one.
 *
 * Its HMAC, under a key derived from the installation's secret, authenticates the manifest and, by their hashes, all
 * files. A check with the secret from the backup itself shows only that secret and manifest belong together. While the
 * secret is rolled, a manifest of either secret is authentic.
 */
import { Redacted, Schema } from "effect"
import { createHmac, timingSafeEqual } from "node:crypto"
import * as Path from "node:path"
import type { AccountId } from "../engine/log/Document.ts"
import { type ChainHead, FORMAT as RECORD_FORMAT } from "../engine/log/Record.ts"
import { parseJson } from "../json/JsonParse.ts"
import { writeAtomically } from "../postgres/embedded/DataFolder.ts"
import { readIfThere } from "../postgres/embedded/OwnFiles.ts"
import { BackupFailed } from "./BackupFailed.ts"

/** Version of a backup's layout. It increases with each change after which an older Till cannot read a new backup. */
export const FORMAT = 1

export const MANIFEST = "manifest.json"
export const UNFINISHED = "unfinished.json"
export type Name = typeof MANIFEST | typeof UNFINISHED
export const SECRET = "secret"
export const RECORDS = "records"

/** The accounts in a backup: all, or those of test mode and the installation's own. */
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
  /** The newest record format of the Till that made the backup. */
  record_format: Count,
  migration: Count,
  mode: Schema.Literals(MODES),
  /** Unix milliseconds. All commands that were answered before are in the backup. */
  at: Count,
  secret_sha256: Sha256,
  /** In the order in which they were written, so that each account's records ascend. */
  files: Schema.Array(RecordFile),
  accounts: Schema.Array(Schema.Struct({ account: Schema.String, version: Count, hash: Sha256 })),
  /** A hash of all rows from which data was erased, as the files hold them; absent without such rows. */
  erased_sha256: Schema.optionalKey(Sha256),
  /** The people whose data was erased: an older backup that is restored is erased again. Absent for none. */
  erasures: Schema.optionalKey(Schema.Array(Schema.Struct({ account: Schema.String, id: Schema.String })))
})
export type Manifest = typeof Manifest.Type

export type Erasure = NonNullable<Manifest["erasures"]>[number]

export type Heads = ReadonlyMap<AccountId, ChainHead>

export const headsOf = ({ accounts }: Manifest): Heads =>
  new Map(accounts.map(({ account, hash, version }) => [account, { version, hash }]))

export const recordsOf = ({ accounts }: Manifest): number => accounts.reduce((sum, { version }) => sum + version, 0)

/** The keys of the HMAC, derived from the installation's secrets, newest first. The first one authenticates. */
export type ManifestKeys = ReadonlyArray<Redacted.Redacted<Uint8Array>>

/** Encodes a manifest with its HMAC, which covers the file's name. A manifest has exactly one text. */
const textOf = (name: Name, manifest: unknown, key: ManifestKeys[number]): string => {
  const hmac = createHmac("sha256", Redacted.value(key)).update(`${name}\n${JSON.stringify(manifest)}`)
  return `${JSON.stringify({ hmac_sha256: hmac.digest("hex"), manifest }, null, 1)}\n`
}

export const write = (folder: string, name: Name, manifest: Manifest, [key]: ManifestKeys): void =>
  writeAtomically(Path.join(folder, name), textOf(name, manifest, key!))

const decode = Schema.decodeUnknownSync(Manifest)

/** A manifest that is not authenticated yet. */
export interface Found {
  /** The hash of the secret's file at the time of the backup, as the manifest claims. */
  readonly secretSha256: unknown
  /** Whether its HMAC matches. */
  readonly isAuthentic: (keys: ManifestKeys) => boolean
  /** Returns the manifest if its HMAC matches; throws `BackupFailed` otherwise. */
  readonly authenticated: (keys: ManifestKeys) => Manifest
}

/** Finds a manifest; undefined if there is none. Throws `BackupFailed` for one that this Till cannot read. */
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
  const isAuthentic = (keys: ManifestKeys) => keys.some((key) => isSame(textOf(name, manifest, key), text))
  return {
    secretSha256,
    isAuthentic,
    authenticated: (keys) => {
      if (!isAuthentic(keys)) throw damaged
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
