/**
 * Restores a backup. First it checks everything: the manifest against its HMAC, then the checksum of each file and the
 * chain of hashes of each account against the manifest. Nothing is written before all checks have passed. Then it
 * writes the records into the journal of an empty installation, and builds the views, as `till rebuild` does.
 *
 * A backup can be cut at a time. Each account then ends with its newest record up to that time. No command spans
 * accounts, so each prefix is a state that its account was in.
 */
import { Effect, Redacted } from "effect"
import { hash } from "node:crypto"
import * as fs from "node:fs"
import * as Path from "node:path"
import type { AccountId, Millis } from "../engine/log/Document.ts"
import { type Fenced, Journal, type StorageFailure } from "../engine/log/Journal.ts"
import { Progress } from "../engine/process/Progress.ts"
import { Projector } from "../engine/actor/Projector.ts"
import {
  BEFORE_ALL,
  type ChainHead,
  tryRead,
  type JournalCorrupt,
  type JournalRow,
  timeOf
} from "../engine/log/Record.ts"
import type { EmbeddedPostgresError } from "../postgres/embedded/EmbeddedPostgresError.ts"
import { readIfThere } from "../postgres/embedded/OwnFiles.ts"
import { linked, requirePrivate } from "./Backup.ts"
import { attempt, BackupFailed } from "./BackupFailed.ts"
import type { Manifest, ManifestKeys } from "./Manifest.ts"
import * as Manifests from "./Manifest.ts"
import { checkFile, rowsIn } from "./RecordFile.ts"

/** The shares of the phases in the displayed progress: the views take longest. */
const SHARES = { check: 0.1, load: 0.3, project: 0.6 }

/** A checked backup, and the part of it to restore. */
export interface Checked {
  readonly folder: string
  readonly manifest: Manifest
  readonly secret: Redacted.Redacted
  /** The newest version to restore of each account. Accounts that did not exist yet are missing. */
  readonly versions: ReadonlyMap<AccountId, number>
  readonly records: number
  /** The time of the restored state: that of the backup, or an earlier one. */
  readonly at: Millis
}

export interface Options {
  readonly folder: string
  /** The time up to which to restore; undefined for all. */
  readonly until: Millis | undefined
  readonly migration: number
  /** Derives the manifest's keys from the secret in the backup, or refuses a secret that is not the known one. */
  readonly keysOf: (secret: Redacted.Redacted) => Effect.Effect<ManifestKeys, EmbeddedPostgresError>
}

/** Checks the manifest against its HMAC, and the backup against its manifest. */
export const check = Effect.fnUntraced(function* ({
  folder: path,
  keysOf,
  migration,
  until
}: Options): Effect.fn.Return<Checked, BackupFailed | EmbeddedPostgresError | JournalCorrupt> {
  const { folder, found, secret } = yield* attempt(`read ${path}`, () => open(path))
  const keys = yield* keysOf(secret)
  const manifest = yield* attempt(`read ${folder}`, () => {
    requireSameSecret(folder, found, secret, keys)
    return found.authenticated(keys)
  })
  if (manifest.migration > migration) {
    return yield* new BackupFailed({
      message: `${folder} holds a backup of a newer Till (migration ${manifest.migration}; this one knows ${migration}).`
    })
  }
  const records = Path.join(folder, Manifests.RECORDS)
  ;(yield* Progress).begin(Manifests.recordsOf(manifest))
  yield* Effect.forEach(manifest.files, (file) => attempt(`read ${records}`, () => checkFile(records, file)))
  const versions = yield* checkChains(records, manifest, until ?? Infinity)
  if (versions.size === 0) {
    return yield* new BackupFailed({
      message: `This backup has nothing from ${new Date(until ?? 0).toISOString()} or earlier: choose a later time.`
    })
  }
  return {
    folder,
    manifest,
    secret,
    versions,
    records: versions.values().reduce((sum, version) => sum + version, 0),
    at: Math.min(until ?? Infinity, manifest.at)
  }
})

/** Opens a backup. Refuses a folder that another user could change while it is read. */
const open = (path: string) => {
  const given = Path.resolve(path)
  const folder = fs.existsSync(given) ? fs.realpathSync(given) : given
  for (const one of [given, folder]) requirePrivate(path, one)
  const found = Manifests.find(folder, Manifests.MANIFEST)
  if (found === undefined) {
    const isBegun = fs.existsSync(Path.join(folder, Manifests.RECORDS))
    throw new BackupFailed({
      message: isBegun
        ? `${folder} holds a backup that has never come to its end: run \`till backup\` again.`
        : `${folder} holds no backup.`
    })
  }
  const file = Path.join(folder, Manifests.SECRET)
  const secret = readIfThere(file)
  if (secret === undefined) throw new BackupFailed({ message: `${file} is missing.` })
  return { folder, found, secret: Redacted.make(secret, { label: "installation secret" }) }
}

/** A backup that was killed while its secret was rolled has the file of the next manifest, which has both secrets. */
const requireSameSecret = (
  folder: string,
  found: Manifests.Found,
  secret: Redacted.Redacted,
  keys: ManifestKeys
): void => {
  if (hash("sha256", Redacted.value(secret)) === found.secretSha256 || found.isAuthentic(keys)) return
  const [file, manifest] = [Manifests.SECRET, Manifests.MANIFEST].map((name) => Path.join(folder, name))
  throw new BackupFailed({ message: `${file} is not the secret that ${manifest} names: one of them is damaged.` })
}

/** Checks the chain of each account to its end, and returns the version with which each is to end. */
const checkChains = Effect.fnUntraced(function* (folder: string, manifest: Manifest, until: Millis) {
  const progress = yield* Progress
  const heads = new Map<AccountId, ChainHead>()
  const versions = new Map<AccountId, number>()
  const follow = (rows: ReadonlyArray<JournalRow>) => {
    for (const row of rows) {
      heads.set(row.account, linked(heads.get(row.account) ?? BEFORE_ALL, [row]))
      if (timeOf(row) <= until) versions.set(row.account, row.version)
    }
    progress.advance(rows.length * SHARES.check)
  }
  yield* forEachPage(folder, manifest, (rows) => tryRead(() => follow(rows)))
  const wanted = Manifests.headsOf(manifest)
  for (const account of new Set([...heads.keys(), ...wanted.keys()])) {
    if (heads.get(account)?.hash === wanted.get(account)?.hash) continue
    return yield* new BackupFailed({
      message: `${folder} is damaged: the records of account ${account} do not end with the one that the manifest names.`
    })
  }
  return versions
})

const forEachPage = <E, R>(
  folder: string,
  { files }: Manifest,
  use: (rows: ReadonlyArray<JournalRow>) => Effect.Effect<void, E, R>
): Effect.Effect<void, E | BackupFailed, R> =>
  Effect.forEach(
    files,
    Effect.fnUntraced(function* (file) {
      const pages = rowsIn(folder, file)
      const next = attempt(`read ${Path.join(folder, file.name)}`, () => pages.next())
      for (let page = yield* next; page.done !== true; page = yield* next) yield* use(page.value)
    }),
    { discard: true }
  )

/** Writes a checked backup into an empty journal that no other process uses, and builds the views. */
export const load = Effect.fnUntraced(function* ({
  folder,
  manifest,
  records,
  versions
}: Checked): Effect.fn.Return<void, BackupFailed | Fenced | JournalCorrupt | StorageFailure, Journal | Projector> {
  const journal = yield* Journal
  const progress = yield* Progress
  const projector = yield* Projector
  // Progress counts the records of the whole backup: in a cut one, each record counts for more.
  const weight = Manifests.recordsOf(manifest) / records
  const hashes = new Map<AccountId, string>()
  const append = (rows: ReadonlyArray<JournalRow>) => {
    const kept = rows
      .filter(({ account, version }) => version <= (versions.get(account) ?? 0))
      .map((row) => {
        const previous = hashes.get(row.account) ?? BEFORE_ALL.hash
        hashes.set(row.account, row.hash)
        return { ...row, previous }
      })
    progress.advance(kept.length * weight * SHARES.load)
    return kept.length === 0 ? Effect.void : journal.append(kept)
  }
  yield* forEachPage(Path.join(folder, Manifests.RECORDS), manifest, append)
  const projecting = {
    begin: () => {},
    advance: (count: number) => progress.advance(count * weight * SHARES.project)
  }
  for (const account of versions.keys()) {
    yield* Effect.provideService(projector.catchUp(account), Progress, projecting)
  }
})
