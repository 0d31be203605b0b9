/**
 * Copies the journal into a folder, while the service runs.
 *
 * - A backup is the journal up to one moment: one snapshot of the database determines the newest record of every
 *   account. Records are copied afterwards, without a long transaction. The views are not copied: they follow from the
 *   journal.
 * - A further run into the same folder adds the new records. Existing files stay unchanged, except those with records
 *   from which a person's data was erased since: these files are written anew, and deleted after the manifest.
 * - A run continues a killed one: complete files count, and files that the manifest does not name are removed. The
 *   manifest is written last; until then the folder holds the previous backup.
 * - A record whose hash does not follow from its predecessor's is not copied: the backup fails and names its position.
 * - A folder holds the history of one installation. Another history (of another database, or of this one after a reset
 *   to an earlier state) is refused.
 * - The folder belongs to the caller, and no other user can change its content or replace it. No link in it is
 *   followed.
 */
import { Clock, Effect, Option, Redacted, type Scope, Stream } from "effect"
import { hash } from "node:crypto"
import * as fs from "node:fs"
import * as Path from "node:path"
import type { AccountId, Millis } from "../engine/log/Document.ts"
import { type ErasedPlace, Journal, type StorageFailure } from "../engine/log/Journal.ts"
import { Progress } from "../engine/process/Progress.ts"
import {
  BEFORE_ALL,
  type ChainHead,
  tryRead,
  checkLink,
  FORMAT as RECORD_FORMAT,
  type JournalCorrupt,
  type JournalRow,
  missingRecord
} from "../engine/log/Record.ts"
import * as DataFolder from "../postgres/embedded/DataFolder.ts"
import type { EmbeddedPostgresError } from "../postgres/embedded/EmbeddedPostgresError.ts"
import * as OwnFiles from "../postgres/embedded/OwnFiles.ts"
import { attempt, BackupFailed } from "./BackupFailed.ts"
import type { Heads, Manifest, Mode, RecordFile } from "./Manifest.ts"
import * as Manifests from "./Manifest.ts"
import { isNameOfFile, nameOf, rowsIn, Writer } from "./RecordFile.ts"

const PAGE = 1000
const HEADS_PAGE = 200
const FILE_BYTES = 64 * 1_048_576

/** The installation's data in a backup, besides the journal. */
export interface Installation {
  readonly secret: Redacted.Redacted
  readonly manifestKeys: Manifests.ManifestKeys
  readonly migration: number
}

export interface Options {
  readonly folder: string
  readonly mode: Mode
  readonly installation: Installation
  /** The people whose data was erased. */
  readonly erasures: ReadonlyArray<Manifests.Erasure>
  /** Returns whether an account belongs to a backup of this mode. */
  readonly holds: (account: AccountId) => boolean
  /** The maximum size of a file before compression, in bytes. A killed run loses at most one file. */
  readonly fileBytes?: number
}

export interface Summary {
  readonly accounts: number
  readonly records: number
  readonly bytes: number
  /** Records added by this run and the killed runs before it. */
  readonly added: number
  readonly at: Millis
}

export const backup = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Summary, BackupFailed | EmbeddedPostgresError | JournalCorrupt | StorageFailure, Journal> {
  return yield* Effect.scoped(run(options))
})

const run = Effect.fnUntraced(function* (options: Options) {
  const folder = yield* openFolder(options.folder)
  const known = yield* attempt(`read ${folder}`, () => knownIn(folder, options))
  const journal = yield* Journal
  const at = yield* Clock.currentTimeMillis
  const targets = new Map([...(yield* journal.heads)].filter(([account]) => options.holds(account)))
  const reached = new Map(known === undefined ? [] : Manifests.headsOf(known))
  yield* requireSameHistory(folder, reached, targets)
  yield* attempt(`write to ${folder}`, () => tidy(folder, filesOf(folder, known, options), options.installation.secret))
  const erased = (yield* journal.erased).filter(({ account, version }) => version <= (targets.get(account) ?? 0))
  const print = printOf(erased)
  let kept = known?.erased_sha256
  const manifestOf = (files: ReadonlyArray<RecordFile>): Manifest => ({
    format: Manifests.FORMAT,
    record_format: RECORD_FORMAT,
    migration: options.installation.migration,
    mode: options.mode,
    at,
    secret_sha256: sha256(options.installation.secret),
    files,
    accounts: [...reached].map(([account, { hash, version }]) => ({ account, version, hash })),
    ...(kept !== undefined && { erased_sha256: kept }),
    ...(options.erasures.length > 0 && { erasures: options.erasures })
  })
  const keep: Keep = (name, files) =>
    Manifests.write(folder, name, manifestOf(files), options.installation.manifestKeys)
  const files = yield* openFiles(folder, known?.files ?? [], options.fileBytes ?? FILE_BYTES, keep)
  const added = yield* copyAll(targets, reached, files)
  if (known !== undefined && kept !== print) yield* eraseAgain(folder, known.files, erased, files)
  kept = print
  const all = yield* files.close
  yield* attempt(`write to ${folder}`, () => {
    keep(Manifests.MANIFEST, all)
    fs.rmSync(Path.join(folder, Manifests.UNFINISHED), { force: true })
    removeOthers(folder, all)
    DataFolder.syncFolder(folder)
  })
  const bytes = all.reduce((sum, file) => sum + file.bytes, 0)
  return { accounts: reached.size, records: Manifests.recordsOf(manifestOf(all)), bytes, added, at }
})

/** Returns a hash of erased rows; undefined for none. */
const printOf = (erased: ReadonlyArray<ErasedPlace>): string | undefined =>
  erased.length === 0
    ? undefined
    : hash("sha256", erased.map(({ account, erased, version }) => `${account} ${version} ${erased}\n`).join(""))

/** Writes a manifest with these files. */
type Keep = (name: Manifests.Name, files: ReadonlyArray<RecordFile>) => void

const sha256 = (secret: Redacted.Redacted): string => hash("sha256", Redacted.value(secret))

const OWN_NAMES = new Set([
  Manifests.MANIFEST,
  Manifests.UNFINISHED,
  Manifests.SECRET,
  Manifests.RECORDS,
  // The files of the lock.
  "lock",
  "lock-journal",
  "owner"
])
const LEFTOVER = /^(manifest\.json|unfinished\.json|secret)\.[0-9a-f]{12}$/

const openFolder = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<string, BackupFailed | EmbeddedPostgresError, Scope.Scope> {
  const folder = yield* attempt(`use the folder ${path}`, () => {
    const real = prepare(path)
    // The root of a file system contains this folder.
    const names = fs.readdirSync(real).filter((name) => name !== "lost+found")
    const stranger = names.find((name) => !OWN_NAMES.has(name) && !LEFTOVER.test(name))
    if (stranger !== undefined) {
      throw new BackupFailed({ message: `${path} has something else in it (${stranger}): give another folder.` })
    }
    // Its files are accessible for the owner only too; other users need not see them.
    OwnFiles.makeFolder(real)
    return real
  })
  yield* DataFolder.lock(folder, (owner) => `Another backup is being written to ${folder}${owner}.`)
  const records = Path.join(folder, Manifests.RECORDS)
  yield* attempt(`use the folder ${records}`, () => OwnFiles.makeFolder(records))
  return folder
})

/** Creates the folder where no other user can interfere, and returns its real path. Refuses any other place. */
const prepare = (path: string): string => {
  const given = Path.resolve(path)
  requirePrivate(path, given)
  DataFolder.makeFolder(given, 0o700)
  const real = fs.realpathSync(given)
  requirePrivate(path, real)
  const owner = fs.statSync(real).uid
  if (owner !== process.geteuid?.()) refuseIntrusion(path, `${real} belongs to another user (${owner})`)
  return real
}

/** Throws `BackupFailed` if another user could change the content of a folder or of its parents. */
export const requirePrivate = (given: string, folder: string): void => {
  const problem = OwnFiles.intrusionInto(folder)
  if (problem !== undefined) refuseIntrusion(given, problem)
}

const refuseIntrusion = (given: string, problem: string): never => {
  throw new BackupFailed({
    message:
      `${given} is no safe place for a backup: ${problem}. ` +
      "Use a folder that is yours, and that nobody else can write to, with all folders above it."
  })
}

/** Returns the manifest of the previous runs; undefined if there were none. */
const knownIn = (folder: string, { installation, mode }: Options): Manifest | undefined => {
  const refuse = (problem: string): never => {
    throw new BackupFailed({ message: `${folder} ${problem}: give another folder.` })
  }
  const readIfOwn = (name: Manifests.Name): Manifest | undefined => {
    const found = Manifests.find(folder, name)
    if (found === undefined) return undefined
    const { manifestKeys, secret } = installation
    // A backup of another installation, or from before a roll that has been completed, is not damaged.
    if (found.secretSha256 !== sha256(secret) && !found.isAuthentic(manifestKeys)) {
      refuse("holds a backup of another installation, or of a secret that has been rolled")
    }
    return found.authenticated(manifestKeys)
  }
  const known = readIfOwn(Manifests.UNFINISHED) ?? readIfOwn(Manifests.MANIFEST)
  if (known === undefined) return undefined
  if (known.mode !== mode) refuse(`holds a backup with --mode ${known.mode}`)
  if (known.migration > installation.migration) refuse("holds a backup that a newer Till has made")
  for (const { bytes, name } of known.files) {
    const size = fs.lstatSync(Path.join(folder, Manifests.RECORDS, name), { throwIfNoEntry: false })?.size
    if (size !== bytes) refuse(`holds a backup whose file ${name} is ${size === undefined ? "missing" : "damaged"}`)
  }
  return known
}

/** Returns the files that the known manifest names, and those of the last complete backup. */
const filesOf = (folder: string, known: Manifest | undefined, { installation }: Options): ReadonlyArray<RecordFile> => {
  const complete = Manifests.find(folder, Manifests.MANIFEST)?.authenticated(installation.manifestKeys)
  return [...(known?.files ?? []), ...(complete?.files ?? [])]
}

/** Fails unless the records of a backup are the first ones of the journal. */
const requireSameHistory = Effect.fnUntraced(function* (
  folder: string,
  reached: Heads,
  targets: ReadonlyMap<AccountId, number>
) {
  const journal = yield* Journal
  const heads = [...reached].map(([account, head]) => ({ account, ...head }))
  for (let i = 0; i < heads.length; i += HEADS_PAGE) {
    const page = heads.slice(i, i + HEADS_PAGE)
    const rows = yield* journal.at(page)
    const strange = page.find(
      ({ account, hash, version }, index) => (targets.get(account) ?? 0) < version || rows[index]?.hash !== hash
    )
    if (strange === undefined) continue
    return yield* new BackupFailed({
      message:
        `${folder} holds a backup of another history: record ${strange.version} of account ${strange.account} is not ` +
        "the one in the database. Give another folder."
    })
  }
})

/** Removes the files of killed runs, and writes the secret. */
const tidy = (folder: string, files: ReadonlyArray<RecordFile>, secret: Redacted.Redacted): void => {
  removeOthers(folder, files)
  for (const name of fs.readdirSync(folder)) if (LEFTOVER.test(name)) fs.rmSync(Path.join(folder, name))
  DataFolder.writeAtomically(Path.join(folder, Manifests.SECRET), Redacted.value(secret))
}

/** Removes all files of records except these. */
const removeOthers = (folder: string, files: ReadonlyArray<RecordFile>): void => {
  const names = new Set(files.map(({ name }) => name))
  const records = Path.join(folder, Manifests.RECORDS)
  for (const name of fs.readdirSync(records)) {
    if (isNameOfFile(name) && !names.has(name)) fs.rmSync(Path.join(records, name))
  }
}

interface Files {
  readonly append: (rows: ReadonlyArray<JournalRow>) => Effect.Effect<void, BackupFailed>
  /** Writes a complete file anew, with other rows in its place. */
  readonly replace: (
    file: RecordFile,
    rows: Stream.Stream<ReadonlyArray<JournalRow>, BackupFailed | StorageFailure>
  ) => Effect.Effect<void, BackupFailed | StorageFailure>
  /** Completes the last file and returns all files of the backup. */
  readonly close: Effect.Effect<ReadonlyArray<RecordFile>, BackupFailed>
}

/** Opens the files; `keep` writes the manifest of the unfinished run after each of them. */
const openFiles = Effect.fnUntraced(function* (
  folder: string,
  known: ReadonlyArray<RecordFile>,
  bytesMax: number,
  keep: Keep
): Effect.fn.Return<Files, never, Scope.Scope> {
  const records = Path.join(folder, Manifests.RECORDS)
  const files = [...known]
  let number = Math.max(0, ...known.map(({ name }) => Number.parseInt(name, 10)))
  const open = () => new Writer(records, nameOf(++number))
  let writer: Writer | undefined
  yield* Effect.addFinalizer(() => Effect.promise(async () => writer?.abandon()))
  const finish = async () => {
    if (writer === undefined) return
    files.push(await writer.finish())
    writer = undefined
    keep(Manifests.UNFINISHED, files)
  }
  return {
    append: (rows) =>
      attempt(`write to ${records}`, async () => {
        writer ??= open()
        await writer.write(rows)
        if (writer.size >= bytesMax) await finish()
      }),
    replace: Effect.fnUntraced(function* (file, rows) {
      yield* attempt(`write to ${records}`, finish)
      writer = open()
      yield* Stream.runForEach(rows, (page) => attempt(`write to ${records}`, () => writer!.write(page)))
      yield* attempt(`write to ${records}`, async () => {
        files[files.indexOf(file)] = await writer!.finish()
        writer = undefined
        keep(Manifests.UNFINISHED, files)
      })
    }),
    close: Effect.as(attempt(`write to ${records}`, finish), files)
  }
})

/** Writes the files anew whose records have lost a person's data since they were copied. */
const eraseAgain = Effect.fnUntraced(function* (
  folder: string,
  known: ReadonlyArray<RecordFile>,
  erased: ReadonlyArray<ErasedPlace>,
  files: Files
): Effect.fn.Return<void, BackupFailed | StorageFailure, Journal> {
  const journal = yield* Journal
  const records = Path.join(folder, Manifests.RECORDS)
  const digests = new Map(erased.map(({ account, erased, version }) => [`${account} ${version}`, erased]))
  const isOutdated = ({ account, erased, version }: JournalRow) => digests.get(`${account} ${version}`) !== erased
  const pagesOf = (file: RecordFile) =>
    Stream.fromAsyncIterable(rowsIn(records, file), (cause) => BackupFailed.of(`read ${records}`, cause))
  const present = Effect.fnUntraced(function* (rows: ReadonlyArray<JournalRow>) {
    const outdated = rows.filter(isOutdated)
    if (outdated.length === 0) return rows
    const found = new Map(outdated.map((row, i) => [row, i]))
    const now = yield* journal.at(outdated)
    return rows.map((row) => (found.has(row) ? (now[found.get(row)!] ?? row) : row))
  })
  for (const file of known) {
    const isAny = yield* Stream.runHead(Stream.filter(pagesOf(file), (rows) => rows.some(isOutdated)))
    if (Option.isSome(isAny)) yield* files.replace(file, Stream.mapEffect(pagesOf(file), present))
  }
})

/** Copies each account's records from the end of the backup up to its target. Returns their number. */
const copyAll = Effect.fnUntraced(function* (
  targets: ReadonlyMap<AccountId, number>,
  reached: Map<AccountId, ChainHead>,
  files: Files
) {
  const journal = yield* Journal
  const progress = yield* Progress
  const standOf = (account: AccountId) => reached.get(account) ?? BEFORE_ALL
  const missing = [...targets].reduce((sum, [account, target]) => sum + target - standOf(account).version, 0)
  progress.begin(missing)
  for (const [account, target] of targets) {
    for (let head = standOf(account); head.version < target; head = standOf(account)) {
      const rows = yield* journal.read(account, head.version, Math.min(PAGE, target - head.version))
      if (rows.length === 0) return yield* missingRecord(account, head.version + 1)
      reached.set(account, yield* tryRead(() => linked(head, rows)))
      yield* files.append(rows)
      progress.advance(rows.length)
    }
  }
  return missing
})

/** Returns the head of the chain after these rows. Throws `JournalCorrupt` if they do not follow. */
export const linked = (head: ChainHead, rows: ReadonlyArray<JournalRow>): ChainHead => {
  let newest = head
  for (const row of rows) {
    checkLink(newest, row)
    newest = { version: row.version, hash: row.hash }
  }
  return newest
}
