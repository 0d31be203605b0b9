/** Random journals, their backups, and restores of these. */
import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { createHmac } from "node:crypto"
import * as fs from "node:fs"
import * as Path from "node:path"
import { backup, type Installation } from "../../src/backup/Backup.ts"
import type { Mode } from "../../src/backup/Manifest.ts"
import * as Manifests from "../../src/backup/Manifest.ts"
import { check, load } from "../../src/backup/Restore.ts"
import { Journal, StorageFailure } from "../../src/engine/log/Journal.ts"
import { GENESIS, type JournalRecord, type JournalRow, seal, type Sealed, textOf } from "../../src/engine/log/Record.ts"
import type { Storage } from "../engine/Harness.ts"
import * as Harness from "../engine/Harness.ts"
import { COUNTER } from "../engine/Toy.ts"
import { Random } from "../support/Random.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"

const ACCOUNTS = ["mer_1:live", "mer_1:test", "mer_2:test", "till"]
export const MIGRATION = 11
const START = 1_790_000_000_000

/** Derives the manifests' keys from the lines of a secret, as the service does. */
export const keysOf = (secret: Redacted.Redacted): Manifests.ManifestKeys =>
  Redacted.value(secret)
    .split("\n")
    .map((line) => Redacted.make(createHmac("sha256", line).update("manifests").digest()))

export const SECRET = Redacted.make("ab".repeat(32))

export const installation: Installation = {
  secret: SECRET,
  manifestKeys: keysOf(SECRET),
  migration: MIGRATION
}

const AWKWARD = ["", "plain", "ünï→😀", "a\nb", "\u0000\ud800", '"__proto__"', "x".repeat(5000)]

/** A growing journal: rows are appended to any account, and the clock sometimes steps back. */
export class Source {
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

export const rowsOf = (storage: Storage) =>
  Effect.gen(function* () {
    const journal = Harness.journalOf(storage)
    const rows = new Map<string, ReadonlyArray<JournalRow>>()
    for (const account of yield* journal.accounts) rows.set(account, yield* journal.read(account, 0, 1_000_000))
    return rows
  }).pipe(Effect.orDie)

/** Returns the part of a journal to compare: a hash stands for a whole chain. */
export const summary = (rows: ReadonlyMap<string, ReadonlyArray<JournalRow>>) =>
  [...rows].map(([account, chain]) => [account, chain.length, chain.at(-1)?.hash])

export interface Run {
  readonly folder: string
  readonly mode?: Mode
  readonly fileBytes?: number
  /** The number of pages after which the journal cannot be read. */
  readonly pages?: number
  readonly secret?: Redacted.Redacted
}

export const backUp = (storage: Storage, { folder, fileBytes, mode = "all", pages = Infinity, secret }: Run) => {
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
    installation: secret === undefined ? installation : { ...installation, secret, manifestKeys: keysOf(secret) },
    erasures: [],
    holds: (account) => mode === "all" || !account.endsWith(":live"),
    ...(fileBytes !== undefined && { fileBytes })
  }).pipe(Effect.provideService(Journal, failing))
}

export const checking = (folder: string, until?: number) =>
  check({ folder, until, migration: MIGRATION, keysOf: (secret) => Effect.succeed(keysOf(secret)) })

export const manifestIn = (folder: string, name: Manifests.Name = "manifest.json"): Manifests.Manifest | undefined =>
  Manifests.find(folder, name)?.authenticated(installation.manifestKeys)

export const restored = Effect.fnUntraced(function* (folder: string, until?: number) {
  const checked = yield* checking(folder, until)
  const storage = yield* Harness.storageInMemory
  yield* Harness.projecting(storage, load(checked))
  const report = yield* Harness.verified(storage)
  assert.strictEqual(report.records, checked.records)
  return yield* rowsOf(storage)
})

/** Targets outside of a backup for links in it: a file, a folder, and an unused name. */
export const outside = (folder: string) => {
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

export const filesOf = (folder: string) =>
  fs
    .readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => fs.statSync(Path.join(folder, name)).isFile())

export const writtenAt = ({ bytes }: JournalRow): number => (JSON.parse(textOf(bytes)) as { at: number }).at

export const grown = Effect.fnUntraced(function* (count: number) {
  const source = new Source(yield* Harness.storageInMemory, new Random(1))
  yield* source.grow(count)
  return { source, folder: Path.join(yield* temporaryFolder(), "backup") }
})
