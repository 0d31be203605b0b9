/**
 * Backups of random journals (semantics backups.manifest): however the runs ended that made one, it holds the journal
 * up to its last run, and any cut in time is a prefix of each account's records. Every later change of a file is
 * detected and named.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Redacted } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as Manifests from "../../src/backup/Manifest.ts"
import { Journal } from "../../src/engine/log/Journal.ts"
import type { Storage } from "../engine/Harness.ts"
import * as Harness from "../engine/Harness.ts"
import { Random, Seed } from "../support/Random.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import {
  MIGRATION,
  SECRET,
  keysOf,
  installation,
  Source,
  rowsOf,
  summary,
  type Run,
  backUp,
  checking,
  manifestIn,
  restored,
  filesOf,
  writtenAt,
  grown
} from "./Backups.ts"

const begin = Effect.fnUntraced(function* (seed: number) {
  const random = new Random(seed)
  const source = new Source(yield* Harness.storageInMemory, random)
  return { random, source, folder: Path.join(yield* temporaryFolder(), "backup") }
})

describe("a backup", () => {
  it.effect.prop(
    "holds the journal up to its last run, however earlier runs ended, and adds only new records",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        const { folder, random, source } = yield* begin(seed)
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
            // A killed process cannot clean up.
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
    "is cut at any time, each account at its last record up to that time",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        const { folder, random, source } = yield* begin(seed)
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
          assert.match(nothing.message, /^This backup has nothing from .+ or earlier/)
        } else {
          assert.deepStrictEqual(summary(yield* restored(folder, until)), summary(new Map(expected)))
        }
      }),
    { arbitrary: { runs: 40, maxShrinks: 5 } }
  )

  it.effect.prop(
    "is refused if a byte of any of its files was changed, or a file is shorter or missing",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        const { folder, random, source } = yield* begin(seed)
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

/** Edits the manifest and authenticates it with the secret. */
const edited = (folder: string, edit: (manifest: Manifests.Manifest) => object) =>
  Manifests.write(folder, "manifest.json", edit(manifestIn(folder)!) as Manifests.Manifest, installation.manifestKeys)

describe("a manifest", () => {
  it.effect.prop(
    "written without the secret is refused, whatever was changed in it, and so is one under another name",
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
          { mode: "test" }
        ])
        Manifests.write(folder, "manifest.json", { ...manifest, ...forged }, keysOf(Redacted.make("another secret")))
        const forgery = fs.readFileSync(file, "utf8")
        const stale = JSON.stringify({ ...JSON.parse(text), manifest: { ...manifest, ...forged } }, null, 1) + "\n"
        for (const written of [forgery, stale]) {
          fs.writeFileSync(file, written)
          for (const refused of [checking(folder), backUp(source.storage, { folder })]) {
            const { message } = yield* Effect.flip(Effect.asVoid(refused as Effect.Effect<unknown, Error>))
            assert.include(message, `${file} is damaged, or was not written with this installation's secret: `)
          }
        }
        // The manifest of a killed run is no backup.
        fs.rmSync(file)
        Manifests.write(folder, "unfinished.json", manifest, installation.manifestKeys)
        fs.renameSync(Path.join(folder, "unfinished.json"), file)
        assert.include((yield* Effect.flip(checking(folder))).message, "its HMAC does not match")
        fs.writeFileSync(file, text)
        yield* checking(folder)
      }),
    { arbitrary: { runs: 20, maxShrinks: 5 } }
  )
})

describe("operation.roll: a backup of an installation whose secret is rolled", () => {
  const [rolling, rolled] = [`${"cd".repeat(32)}\n${Redacted.value(SECRET)}`, "cd".repeat(32)].map((text) =>
    Redacted.make(text)
  ) as [Redacted.Redacted, Redacted.Redacted]

  it.effect("is continued, also by a run that is killed, as long as one run has both secrets", () =>
    Effect.gen(function* () {
      const { folder, source } = yield* grown(30)
      yield* backUp(source.storage, { folder })
      yield* source.grow(30)
      // Killed before its manifest: the folder has both secrets, and the manifest of the old one.
      yield* Effect.exit(backUp(source.storage, { folder, secret: rolling, pages: 1 }))
      assert.strictEqual((yield* checking(folder)).records, 30)
      assert.strictEqual((yield* backUp(source.storage, { folder, secret: rolling })).records, 60)
      yield* source.grow(10)
      assert.strictEqual((yield* backUp(source.storage, { folder, secret: rolled })).records, 70)
      const { records, secret } = yield* checking(folder)
      assert.deepStrictEqual([records, Redacted.value(secret)], [70, Redacted.value(rolled)])
      const { message } = yield* Effect.flip(backUp(source.storage, { folder }))
      assert.include(message, "or of a secret that has been rolled: give another folder.")
    })
  )

  it.effect("is not continued if no run had both secrets", () =>
    Effect.gen(function* () {
      const { folder, source } = yield* grown(30)
      yield* backUp(source.storage, { folder })
      const { message } = yield* Effect.flip(backUp(source.storage, { folder, secret: rolled }))
      assert.include(message, "or of a secret that has been rolled: give another folder.")
    })
  )
})

describe("a backup of another history or version", () => {
  it.effect("is not continued", () =>
    Effect.gen(function* () {
      const { folder, source } = yield* grown(50)
      yield* backUp(source.storage, { folder })
      const refusal = (storage: Storage, run: Omit<Run, "folder"> = {}) =>
        Effect.map(Effect.flip(backUp(storage, { folder, ...run })), ({ message }) => message)
      assert.include(yield* refusal(source.storage, { mode: "test" }), "holds a backup with --mode all: ")
      const secret = Redacted.make("cd".repeat(32))
      assert.include(yield* refusal(source.storage, { secret }), "holds a backup of another installation, or ")
      const other = new Source(yield* Harness.storageInMemory, new Random(2))
      yield* other.grow(80)
      assert.include(yield* refusal(other.storage), "holds a backup of another history: record ")
      // The same history after a reset to an earlier state.
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

  it.effect("is not made of a damaged journal, and keeps its earlier content", () =>
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

  it.effect("is refused if its format is newer, whatever its content", () =>
    Effect.gen(function* () {
      const { folder, source } = yield* grown(5)
      yield* backUp(source.storage, { folder })
      const refusal = Effect.map(Effect.flip(checking(folder)), ({ message }) => message)
      edited(folder, () => ({ format: 2, something: "else" }))
      assert.include(yield* refusal, "is of a newer Till, with backups in format 2; this one knows them up to 1.")
    })
  )

  it.effect("is refused if it was made before the first release", () =>
    Effect.gen(function* () {
      const { folder, source } = yield* grown(5)
      yield* backUp(source.storage, { folder })
      edited(folder, (manifest) => ({ ...manifest, format: 2, older_links: "" }))
      for (const refused of [checking(folder), backUp(source.storage, { folder })]) {
        const { message } = yield* Effect.flip(Effect.asVoid(refused as Effect.Effect<unknown, Error>))
        assert.include(message, "manifest.json was made by a Till from before its first release")
      }
    })
  )

  it.effect("of test mode has no live accounts", () =>
    Effect.gen(function* () {
      const { folder, source } = yield* grown(80)
      yield* backUp(source.storage, { folder, mode: "test" })
      const kept = yield* restored(folder)
      const all = yield* rowsOf(source.storage)
      all.delete("mer_1:live")
      assert.deepStrictEqual(summary(kept), summary(all))
    })
  )

  it.live("is not written while another one is being written", () =>
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
