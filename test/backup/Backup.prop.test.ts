/**
 * Backups of random journals: whatever ended the runs that made one, it holds the journal up to its last run, and any
 * cut in time gives each account a prefix of its own. What was changed in a file since is noticed, and named.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Redacted, Schema } from "effect"
import { spawnSync } from "node:child_process"
import { createHmac } from "node:crypto"
import * as fs from "node:fs"
import * as Path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { backup, type Installation } from "../../src/backup/Backup.ts"
import type { Mode } from "../../src/backup/Manifest.ts"
import * as Manifests from "../../src/backup/Manifest.ts"
import { check, load } from "../../src/backup/Restore.ts"
import { Journal, StorageFailure } from "../../src/engine/Journal.ts"
import type { JournalRecord, JournalRow, Sealed } from "../../src/engine/Record.ts"
import { GENESIS, seal, textOf } from "../../src/engine/Record.ts"
import type { Storage } from "../engine/Harness.ts"
import * as Harness from "../engine/Harness.ts"
import { COUNTER } from "../engine/Toy.ts"
import { Random, Seed } from "../support/Random.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"

const ACCOUNTS = ["mer_1:live", "mer_1:test", "mer_2:test", "till"]
const MIGRATION = 11
const START = 1_790_000_000_000

/** Follows from the secret, as one does in the service. */
const keyOf = (secret: Redacted.Redacted): Manifests.ManifestKey =>
  Redacted.make(createHmac("sha256", Redacted.value(secret)).update("manifests").digest())

const SECRET = Redacted.make("ab".repeat(32))

const installation: Installation = {
  secret: SECRET,
  manifestKey: keyOf(SECRET),
  migration: MIGRATION,
  olderLinks: "0000000000000000"
}

const AWKWARD = ["", "plain", "ünï→😀", "a\nb", "\u0000\ud800", '"__proto__"', "x".repeat(5000)]

/** A journal that goes on: rows are appended to any account, and the clock steps back now and then. */
class Source {
  readonly storage: Storage
  readonly #random: Random
  readonly #heads = new Map<string, Sealed>()
  #now = START

  constructor(storage: Storage, random: Random) {
    this.storage = storage
    this.#random = random
  }

  grow(count: number) {
    const rows = Array.from({ length: count }, () => this.#row(this.#random.pick(ACCOUNTS)))
    return Effect.orDie(Effect.forEach(rows, (row) => Harness.journalOf(this.storage).append([row])))
  }

  #row(account: string) {
    const head = this.#heads.get(account)
    const version = (head?.record.version ?? 0) + 1
    this.#now += this.#random.chance(0.1) ? -this.#random.below(5000) : this.#random.below(1000)
    const sealed = seal(head?.hash ?? GENESIS, this.#record(account, version))
    this.#heads.set(account, sealed)
    return { account, version, hash: sealed.hash, bytes: sealed.bytes, previous: sealed.previous }
  }

  #record(account: string, version: number): JournalRecord {
    const id = `ctr_${this.#random.below(5)}`
    const name = this.#random.pick(AWKWARD)
    return {
      account,
      version,
      at: this.#now,
      now: this.#now,
      clock: 0,
      advanced: 0,
      wiped: false,
      sequence: version,
      request: null,
      changes: [
        {
          id,
          kind: COUNTER.name,
          document: JSON.stringify({ id, object: "counter", slot: "a", name, count: version }),
          hidden: null,
          labels: {},
          format: 1,
          created: false
        }
      ],
      events: [],
      apiVersion: null,
      timers: [],
      subscriptions: [],
      deliveries: [],
      attempts: [],
      hastened: [],
      response: null
    }
  }
}

const rowsOf = (storage: Storage) =>
  Effect.gen(function* () {
    const journal = Harness.journalOf(storage)
    const rows = new Map<string, ReadonlyArray<JournalRow>>()
    for (const account of yield* journal.accounts) rows.set(account, yield* journal.read(account, 0, 1_000_000))
    return rows
  }).pipe(Effect.orDie)

/** What is compared of a journal: hashes stand for all of a chain. */
const summary = (rows: ReadonlyMap<string, ReadonlyArray<JournalRow>>) =>
  [...rows].map(([account, chain]) => [account, chain.length, chain.at(-1)?.hash])

interface Run {
  readonly folder: string
  readonly mode?: Mode
  readonly fileBytes?: number
  /** The journal cannot be read any more after so many pages. */
  readonly pages?: number
  readonly secret?: Redacted.Redacted
}

const backUp = (storage: Storage, { folder, fileBytes, mode = "all", pages = Infinity, secret }: Run) => {
  const journal = Harness.journalOf(storage)
  let left = pages
  const failing: Journal["Service"] = {
    ...journal,
    read: (account, after, limit) =>
      left-- > 0 ? journal.read(account, after, Math.min(limit, 7)) : new StorageFailure({ cause: "killed" })
  }
  return backup({
    folder,
    mode,
    installation: secret === undefined ? installation : { ...installation, secret, manifestKey: keyOf(secret) },
    holds: (account) => mode === "all" || !account.endsWith(":live"),
    ...(fileBytes !== undefined && { fileBytes })
  }).pipe(Effect.provideService(Journal, failing))
}

const checking = (folder: string, until?: number) =>
  check({ folder, until, migration: MIGRATION, keyOf: (secret) => Effect.succeed(keyOf(secret)) })

const manifestIn = (folder: string, name: Manifests.Name = "manifest.json"): Manifests.Manifest | undefined =>
  Manifests.find(folder, name)?.authenticated(installation.manifestKey)

const restored = Effect.fnUntraced(function* (folder: string, until?: number) {
  const checked = yield* checking(folder, until)
  const storage = yield* Harness.storageInMemory
  yield* Harness.projecting(storage, load(checked))
  const report = yield* Harness.verified(storage)
  assert.strictEqual(report.records, checked.records)
  return yield* rowsOf(storage)
})

/** Something outside of a backup that a link in it leads to: a file and a folder, and a name that is free. */
const outside = (folder: string) => {
  const [file, inner, free] = ["file", "folder", "free"].map((name) => Path.join(folder, name)) as [
    string,
    string,
    string
  ]
  fs.writeFileSync(file, "an important file")
  fs.chmodSync(file, 0o644)
  fs.mkdirSync(inner, { mode: 0o755 })
  fs.writeFileSync(Path.join(inner, "secret"), "another one")
  const seen = () =>
    ["", ...fs.readdirSync(folder, { recursive: true, encoding: "utf8" }).toSorted()].map((name) => {
      const { gid, mode, size, uid } = fs.lstatSync(Path.join(folder, name))
      return [name, uid, gid, mode, size]
    })
  return { file, folder: inner, free, seen }
}

const filesOf = (folder: string) =>
  fs
    .readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => fs.statSync(Path.join(folder, name)).isFile())

const writtenAt = ({ bytes }: JournalRow): number => (JSON.parse(textOf(bytes)) as { at: number }).at

describe("a backup", () => {
  it.effect.prop(
    "holds the journal up to its last run, whatever ended the runs before, and adds only what is new",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        const random = new Random(seed)
        const source = new Source(yield* Harness.storageInMemory, random)
        const folder = Path.join(yield* temporaryFolder(), "backup")
        const full = Path.join(yield* temporaryFolder(), "backup")
        const fileBytes = random.pick([1, 2000, 20_000, undefined])
        let before: ReadonlyArray<readonly [string, Buffer]> = []
        yield* source.grow(1)
        for (let round = random.integer(1, 4); round > 0; round--) {
          yield* source.grow(random.below(60))
          while (random.chance(0.6)) {
            const run = { folder, pages: random.below(8), ...(fileBytes !== undefined && { fileBytes }) }
            const killed = yield* Effect.exit(backUp(source.storage, run))
            if (Exit.isSuccess(killed)) break
            // A process that is killed cannot tidy up.
            if (random.chance(0.5)) fs.writeFileSync(Path.join(folder, "records", "00000099.zst.part"), "half")
            if (random.chance(0.5)) fs.writeFileSync(Path.join(folder, "records", "00000098.zst"), "unnamed")
            if (random.chance(0.5)) fs.writeFileSync(Path.join(folder, "manifest.json.0123456789ab"), "half")
            if (random.chance(0.5)) yield* source.grow(random.below(9))
          }
          const known = manifestIn(folder, "unfinished.json") ?? manifestIn(folder)
          const done = yield* backUp(source.storage, { folder, ...(fileBytes !== undefined && { fileBytes }) })
          const now = yield* rowsOf(source.storage)
          const total = [...now.values()].flat().length
          assert.strictEqual(done.records, total)
          assert.strictEqual(done.added, total - (known === undefined ? 0 : Manifests.recordsOf(known)))
          assert.deepStrictEqual(summary(yield* restored(folder)), summary(now))
          for (const [name, bytes] of before) assert.deepStrictEqual(fs.readFileSync(Path.join(folder, name)), bytes)
          before = filesOf(folder)
            .filter((name) => name.startsWith("records/"))
            .map((name) => [name, fs.readFileSync(Path.join(folder, name))])
          const named = manifestIn(folder)!.files.map(({ name }) => `records/${name}`)
          assert.deepStrictEqual(
            filesOf(folder).toSorted(),
            ["lock", "manifest.json", "owner", "secret", ...named].toSorted()
          )
          assert.strictEqual((yield* backUp(source.storage, { folder })).added, 0)
        }
        for (const name of ["", ...fs.readdirSync(folder, { recursive: true, encoding: "utf8" })]) {
          const found = fs.statSync(Path.join(folder, name))
          assert.strictEqual(found.mode & 0o777, found.isDirectory() ? 0o700 : 0o600, name)
        }
        yield* backUp(source.storage, { folder: full })
        assert.deepStrictEqual(summary(yield* restored(folder)), summary(yield* restored(full)))
      }),
    { arbitrary: { runs: 25, maxShrinks: 5 } }
  )

  it.effect.prop(
    "is cut at any time, each account at its last record until then",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        const random = new Random(seed)
        const source = new Source(yield* Harness.storageInMemory, random)
        const folder = Path.join(yield* temporaryFolder(), "backup")
        yield* source.grow(random.integer(1, 90))
        yield* backUp(source.storage, { folder })
        const rows = yield* rowsOf(source.storage)
        const times = [...rows.values()].flat().map((row) => writtenAt(row))
        const until = random.pick(times) + random.integer(-1, 1)
        const expected = [...rows].flatMap(([account, chain]) => {
          const kept = chain.slice(0, chain.findLastIndex((row) => writtenAt(row) <= until) + 1)
          return kept.length === 0 ? [] : [[account, kept] as const]
        })
        if (expected.length === 0) {
          const nothing = yield* Effect.flip(restored(folder, until))
          assert.match(nothing.message, /^Nothing was there yet at /)
        } else {
          assert.deepStrictEqual(summary(yield* restored(folder, until)), summary(new Map(expected)))
        }
      }),
    { arbitrary: { runs: 40, maxShrinks: 5 } }
  )

  it.effect.prop(
    "is refused if a byte of any of its files is another, or a file is shorter or gone",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        const random = new Random(seed)
        const source = new Source(yield* Harness.storageInMemory, random)
        const folder = Path.join(yield* temporaryFolder(), "backup")
        yield* source.grow(random.integer(20, 60))
        yield* backUp(source.storage, { folder, fileBytes: 10_000 })
        for (const name of filesOf(folder).filter((name) => !["lock", "owner"].includes(name))) {
          const file = Path.join(folder, name)
          const bytes = fs.readFileSync(file)
          const place = random.below(bytes.length)
          const flipped = bytes.with(place, bytes[place]! ^ (1 << random.below(8)))
          for (const damaged of [flipped, bytes.subarray(0, -1), undefined]) {
            if (damaged === undefined) fs.rmSync(file)
            else fs.writeFileSync(file, damaged)
            const refused = yield* Effect.flip(checking(folder))
            assert.notInclude(refused.message, "\n")
            assert.include(refused.message, name === "manifest.json" && damaged === undefined ? folder : file)
          }
          fs.writeFileSync(file, bytes)
        }
        yield* checking(folder)
      }),
    { arbitrary: { runs: 15, maxShrinks: 5 } }
  )
})

const grown = Effect.fnUntraced(function* (count: number) {
  const source = new Source(yield* Harness.storageInMemory, new Random(1))
  yield* source.grow(count)
  return { source, folder: Path.join(yield* temporaryFolder(), "backup") }
})

/** Writes the manifest anew, as somebody would who has the secret. */
const edited = (folder: string, edit: (manifest: Manifests.Manifest) => object) =>
  Manifests.write(folder, "manifest.json", edit(manifestIn(folder)!) as Manifests.Manifest, installation.manifestKey)

/** Every name that a backup gives to something in its folder. */
const NAMES = [
  "lock",
  "lock-journal",
  "owner",
  "manifest.json",
  "unfinished.json",
  "secret",
  "records",
  "records/00000001.zst",
  "records/00000001.zst.part",
  "records/00000002.zst",
  "records/00000002.zst.part"
]

describe("a folder for backups", () => {
  it.effect.prop(
    "with a link, a pipe or a folder in the place of a file is refused, or the file takes its place; nothing outside changes",
    {
      name: Schema.Literals(NAMES),
      planted: Schema.Literals(["file", "folder", "free", "relative", "pipe", "directory"]),
      isFirst: Schema.Boolean
    },
    ({ isFirst, name, planted }) =>
      Effect.gen(function* () {
        const { folder, source } = yield* grown(20)
        const place = outside(yield* temporaryFolder())
        if (!isFirst) yield* backUp(source.storage, { folder, fileBytes: 2000 })
        const path = Path.join(folder, name)
        fs.rmSync(path, { recursive: true, force: true })
        fs.mkdirSync(Path.dirname(path), { recursive: true, mode: 0o700 })
        if (planted === "pipe") spawnSync("mkfifo", [path])
        else if (planted === "directory") fs.mkdirSync(path)
        else if (planted === "relative") fs.symlinkSync(Path.relative(Path.dirname(path), place.file), path)
        else fs.symlinkSync(place[planted], path)
        const before = place.seen()
        yield* source.grow(20)
        const done = yield* Effect.exit(backUp(source.storage, { folder, fileBytes: 2000 }))
        yield* Effect.exit(checking(folder))
        assert.deepStrictEqual(place.seen(), before)
        assert.strictEqual(fs.readFileSync(place.file, "utf8"), "an important file")
        if (Exit.isFailure(done)) {
          const { message } = (yield* Effect.flip(done)) as Error
          assert.notInclude(message, "\n")
          assert.include(message, folder)
        }
      }),
    { arbitrary: { runs: 150, maxShrinks: 5 } }
  )

  const mine = process.geteuid!()
  const OTHERS: Readonly<Record<string, (folder: string) => void>> = {
    "that its group may write to": (folder) => fs.chmodSync(folder, 0o770),
    "that everybody may write to": (folder) => fs.chmodSync(folder, 0o777),
    "that everybody may write to, though not over others' files": (folder) => fs.chmodSync(folder, 0o1777),
    "in a folder that everybody may write to": (folder) => fs.chmodSync(Path.dirname(folder), 0o777),
    ...(mine === 0 && {
      "of somebody else": (folder) => fs.chownSync(folder, 65_534, 65_534),
      "in a folder of somebody else": (folder) => fs.chownSync(Path.dirname(folder), 65_534, 65_534)
    })
  }

  it.effect.each(Object.keys(OTHERS))("%s is refused, empty or not, to write and to read", (name) =>
    Effect.gen(function* () {
      const { folder, source } = yield* grown(10)
      yield* backUp(source.storage, { folder })
      const empty = Path.join(yield* temporaryFolder(), "backup")
      fs.mkdirSync(empty)
      for (const one of [folder, empty]) {
        OTHERS[name]!(one)
        const names = fs.readdirSync(one, { recursive: true })
        const { message } = yield* Effect.flip(backUp(source.storage, { folder: one }))
        assert.match(
          message,
          /is no safe place for a backup: .* (belongs to another user|others may write to)|others may/u
        )
        assert.notInclude(message, "\n")
        assert.deepStrictEqual(fs.readdirSync(one, { recursive: true }), names)
      }
      assert.include((yield* Effect.flip(checking(folder))).message, "is no safe place for a backup: ")
    })
  )

  it.effect.skipIf(mine !== 0)("is refused behind a link of somebody else, and nothing is made where it leads", () =>
    Effect.gen(function* () {
      const { source } = yield* grown(5)
      const shared = yield* temporaryFolder()
      fs.chmodSync(shared, 0o1777)
      const link = Path.join(shared, "backups")
      const target = yield* temporaryFolder()
      fs.symlinkSync(target, link)
      fs.lchownSync(link, 65_534, 65_534)
      for (const folder of [link, Path.join(link, "new")]) {
        const { message } = yield* Effect.flip(backUp(source.storage, { folder }))
        assert.include(message, `${link} belongs to another user (65534)`)
      }
      assert.deepStrictEqual(fs.readdirSync(target), [])
    })
  )

  it.effect(
    "in one where each name is its owner's is used, behind a link of one's own as well, and gets mode 0700",
    () =>
      Effect.gen(function* () {
        const { source } = yield* grown(5)
        const shared = yield* temporaryFolder()
        fs.chmodSync(shared, 0o1777)
        const folder = Path.join(shared, "a", "b")
        fs.mkdirSync(folder, { recursive: true, mode: 0o755 })
        fs.symlinkSync(folder, Path.join(shared, "link"))
        yield* backUp(source.storage, { folder: Path.join(shared, "link") })
        assert.strictEqual(fs.statSync(folder).mode & 0o777, 0o700)
        yield* checking(Path.join(shared, "link"))
      })
  )
})

describe("a manifest", () => {
  it.effect.prop(
    "that somebody has written without the secret is refused, whatever of it is changed, and so is another one's place",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        const random = new Random(seed)
        const { folder, source } = yield* grown(random.integer(5, 30))
        yield* backUp(source.storage, { folder, fileBytes: 2000 })
        const file = Path.join(folder, "manifest.json")
        const text = fs.readFileSync(file, "utf8")
        const manifest = manifestIn(folder)!
        const forged = random.pick<object>([
          { at: manifest.at + 1 },
          { files: manifest.files.slice(0, -1) },
          { accounts: manifest.accounts.slice(1) },
          { migration: manifest.migration - 1 },
          { mode: "test" },
          { older_links: "z" }
        ])
        Manifests.write(folder, "manifest.json", { ...manifest, ...forged }, keyOf(Redacted.make("another secret")))
        const forgery = fs.readFileSync(file, "utf8")
        const stale = JSON.stringify({ ...JSON.parse(text), manifest: { ...manifest, ...forged } }, null, 1) + "\n"
        for (const written of [forgery, stale]) {
          fs.writeFileSync(file, written)
          for (const refused of [checking(folder), backUp(source.storage, { folder })]) {
            const { message } = yield* Effect.flip(Effect.asVoid(refused as Effect.Effect<unknown, Error>))
            assert.include(message, `${file} is damaged, or was not written with this installation's secret: `)
          }
        }
        // What a run that was killed has finished so far is not a backup.
        fs.rmSync(file)
        Manifests.write(folder, "unfinished.json", manifest, installation.manifestKey)
        fs.renameSync(Path.join(folder, "unfinished.json"), file)
        assert.include((yield* Effect.flip(checking(folder))).message, "its HMAC does not match")
        fs.writeFileSync(file, text)
        yield* checking(folder)
      }),
    { arbitrary: { runs: 20, maxShrinks: 5 } }
  )
})

describe("a backup of something else", () => {
  it.effect("is not gone on with", () =>
    Effect.gen(function* () {
      const { folder, source } = yield* grown(50)
      yield* backUp(source.storage, { folder })
      const refusal = (storage: Storage, run: Omit<Run, "folder"> = {}) =>
        Effect.map(Effect.flip(backUp(storage, { folder, ...run })), ({ message }) => message)
      assert.include(yield* refusal(source.storage, { mode: "test" }), "holds a backup with --mode all: ")
      const secret = Redacted.make("cd".repeat(32))
      assert.include(yield* refusal(source.storage, { secret }), "holds a backup of another installation: ")
      const other = new Source(yield* Harness.storageInMemory, new Random(2))
      yield* other.grow(80)
      assert.include(yield* refusal(other.storage), "holds a backup of another history: record ")
      // The same history, put back to an earlier state.
      const earlier = new Source(yield* Harness.storageInMemory, new Random(1))
      yield* earlier.grow(40)
      assert.include(yield* refusal(earlier.storage), "holds a backup of another history: record ")
      yield* earlier.grow(30)
      assert.strictEqual((yield* backUp(earlier.storage, { folder })).added, 20)
      fs.rmSync(Path.join(folder, "records", "00000001.zst"))
      assert.include(yield* refusal(earlier.storage), "holds a backup whose file 00000001.zst is missing: ")
      fs.writeFileSync(Path.join(folder, "accounts.ods"), "")
      assert.include(yield* refusal(source.storage), "has something else in it (accounts.ods): ")
    })
  )

  it.effect("is not taken of a journal that is damaged, and keeps what it holds", () =>
    Effect.gen(function* () {
      const { folder, source } = yield* grown(50)
      yield* backUp(source.storage, { folder })
      yield* source.grow(30)
      const journal = Harness.journalOf(source.storage)
      const damaged = Context.add(source.storage, Journal, {
        ...journal,
        read: (account, after, limit) =>
          Effect.map(journal.read(account, after, limit), (rows) =>
            rows.map((row) => (account === "till" ? { ...row, bytes: row.bytes.with(40, 0) } : row))
          )
      })
      const { message } = yield* Effect.flip(backUp(damaged, { folder }))
      assert.match(message, /^Record \d+ of account till is not what was written: its hash does not match$/)
      assert.strictEqual([...(yield* restored(folder)).values()].flat().length, 50)
    })
  )

  it.effect("is refused if a newer Till has made it", () =>
    Effect.gen(function* () {
      const { folder, source } = yield* grown(5)
      yield* backUp(source.storage, { folder })
      const refusal = Effect.map(Effect.flip(checking(folder)), ({ message }) => message)
      edited(folder, (manifest) => ({ ...manifest, migration: MIGRATION + 1 }))
      assert.include(yield* refusal, "holds a backup of a newer Till (migration 12; this one knows 11).")
      edited(folder, (manifest) => ({ ...manifest, migration: MIGRATION, record_format: 99 }))
      assert.include(yield* refusal, "is of a newer Till, with records in format 99; this one knows them up to ")
    })
  )

  it.effect("is refused if its format is newer, whatever else is in it", () =>
    Effect.gen(function* () {
      const { folder, source } = yield* grown(5)
      yield* backUp(source.storage, { folder })
      const manifest = manifestIn(folder)!
      const refusal = Effect.map(Effect.flip(checking(folder)), ({ message }) => message)
      edited(folder, () => ({ format: 3, something: "else" }))
      assert.include(yield* refusal, "is of a newer Till, with backups in format 3; this one knows them up to 2.")
      fs.rmSync(Path.join(folder, "manifest.json"))
      Manifests.write(folder, "manifest.json", { ...manifest, format: 1 } as never, installation.manifestKey)
      assert.include(yield* refusal, "is of an older Till, with backups in format 1; this one knows them from 2 on.")
    })
  )

  it.effect("of test mode has no account of live mode", () =>
    Effect.gen(function* () {
      const { folder, source } = yield* grown(80)
      yield* backUp(source.storage, { folder, mode: "test" })
      const kept = yield* restored(folder)
      const all = yield* rowsOf(source.storage)
      all.delete("mer_1:live")
      assert.deepStrictEqual(summary(kept), summary(all))
    })
  )

  it.live("is not taken while another one is being written", () =>
    Effect.gen(function* () {
      const { folder, source } = yield* grown(5)
      yield* backUp(source.storage, { folder })
      const holder = new DatabaseSync(Path.join(folder, "lock"), { timeout: 0 })
      holder.exec("BEGIN EXCLUSIVE")
      const refused = yield* Effect.flip(backUp(source.storage, { folder }))
      holder.close()
      assert.match(refused.message, /^Another backup is being written to /)
      assert.strictEqual((yield* backUp(source.storage, { folder })).added, 0)
    })
  )
})
