/**
 * Verification finds and names every difference from the written data (semantics storage.verify): in the journal, and
 * in each table of the views.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Schema } from "effect"
import { runOnce } from "../../../src/engine/Accounts.ts"
import { TestClock } from "effect/testing"
import { timeIn } from "../../../src/engine/log/Identifiers.ts"
import { Journal, type JournalShape } from "../../../src/engine/log/Journal.ts"
import type { JournalRow } from "../../../src/engine/log/Record.ts"
import type { SearchEntry } from "../../../src/engine/log/Search.ts"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import type { DeliveryRow, EventRow } from "../../../src/engine/views/Projection.ts"
import { type ViewRow, Views, type ViewsShape, type ViewTable, viewTables } from "../../../src/engine/views/Views.ts"
import type { Storage } from "../Harness.ts"
import * as Harness from "../Harness.ts"
import { Random, Seed } from "../../support/Random.ts"
import * as Toy from "../Toy.ts"

/** 24 hours (semantics idempotency.retention). */
const RETENTION_MILLIS = 86_400_000
const ACCOUNTS = ["mer_1:test", "mer_2:test", "mer_3:live"]

/** Storage with at least one row of every table in each account. */
const filled = Effect.fnUntraced(function* (seed: Random) {
  yield* Harness.startClock
  const storage = yield* Harness.storageInMemory
  const engine = yield* Harness.startEngine(storage)
  let key = 0
  for (const account of ACCOUNTS) {
    const run = (operation: Toy.Operation) =>
      runOnce(engine.accounts, account, Toy.request(`key-${key++}`), () => Toy.command(operation))
    const transact = (f: (transaction: Transaction) => void) => engine.accounts.run(account, Effect.map(Transaction, f))
    yield* transact((transaction) => {
      transaction.advanceClock(1 + seed.below(30))
      transaction.subscribe("we_1", ["*"])
      transaction.subscribe("we_2", ["counter.created"])
      transaction.subscribe("we_3", ["counter.deleted"])
    })
    for (const slot of ["a", "b", "c"] as const) {
      yield* run({ op: "create", slot, name: "plain" })
      yield* run({ op: "setTimer", slot, delay: 90 })
      for (let times = seed.below(3); times > 0; times--) yield* run({ op: "increment", slot, by: 1 })
    }
    yield* run({ op: "delete", slot: "c" })
    yield* transact((transaction) => transaction.advanceClock(seed.below(30)))
    const { deliveries } = yield* engine.accounts.deliveries(account, { destination: "we_1", limit: 100 })
    for (const { destination, id } of deliveries.filter(() => seed.chance(0.5))) {
      const next = seed.pick(["delivered", "exhausted", { retryAfterMillis: 60_000 }] as const)
      const outcome = { attempt: 1, startedAt: Harness.START, durationMillis: 9, status: 500, error: null, next }
      yield* transact((transaction) => transaction.attempted({ id, destination, ...outcome }))
    }
    yield* transact((transaction) => transaction.unsubscribe("we_3"))
  }
  yield* engine.projector.drained
  yield* engine.stop
  yield* Harness.verified(storage)
  return storage
})

const problemsIn = (storage: Storage, rowsMax: number = 1000) =>
  Effect.map(Harness.verification(storage, { rowsMax }), ({ problems }) => problems)

/** The same storage with an edited journal. */
const withRows = (
  storage: Storage,
  account: string,
  edit: (rows: ReadonlyArray<JournalRow>) => ReadonlyArray<JournalRow>
): Storage => {
  const journal = Harness.journalOf(storage)
  const edited: JournalShape = {
    ...journal,
    read: (of, after, limit) =>
      of === account
        ? Effect.map(journal.read(of, 0, 1_000_000), (rows) =>
            edit(rows)
              .filter(({ version }) => version > after)
              .slice(0, limit)
          )
        : journal.read(of, after, limit)
  }
  return Context.add(storage, Journal, edited)
}

/** The same storage with an edited table. */
const withTable = (
  storage: Storage,
  account: string,
  table: ViewTable,
  edit: (rows: ReadonlyArray<ViewRow>) => ReadonlyArray<ViewRow>
): Storage => {
  const views = Harness.viewsOf(storage)
  const edited: ViewsShape = {
    ...views,
    scan: (of, from, after, limit) =>
      of === account && from === table
        ? Effect.map(views.scan(of, from, "", 1_000_000), (rows) =>
            edit(rows)
              .filter(({ id }) => id > after)
              .slice(0, limit)
          )
        : views.scan(of, from, after, limit)
  }
  return Context.add(storage, Views, edited)
}

/** Fields that identify a row: with a different one, it is another row. */
const ROW_KEY = ["account", "id", "destination", "type"]
const TALLY_KEY = ["account", "hours", "hour", "key"]

/** Changes one field of a row to a different value of its type. */
const changed = ({ id, row }: ViewRow, seed: Random): ViewRow => {
  const key = "hour" in row ? TALLY_KEY : ROW_KEY
  const field = seed.pick(Object.keys(row).filter((name) => !key.includes(name)))
  const before = (row as unknown as Record<string, unknown>)[field]
  const after = (() => {
    if (typeof before === "number") return before + 1
    if (typeof before === "string") return `${before} `
    if (Array.isArray(before)) return [...before, "more"]
    if (before === null) return nowThere(field)
    const fields = before as Readonly<Record<string, unknown>>
    if (typeof fields.at === "number") return { ...fields, at: fields.at + 1 }
    if (field === "search") return changedEntry(before as SearchEntry, seed)
    return { ...fields, extra: "label" }
  })()
  return { id, row: { ...row, [field]: after } }
}

const changedEntry = ({ measure, terms }: SearchEntry, seed: Random): SearchEntry =>
  seed.chance(0.5) ? { measure, terms: [...terms, 1] } : { measure: measure === null ? 0 : measure + 1, terms }

/** Values for fields that are null. */
const nowThere = (field: string): unknown => {
  if (field.endsWith("At")) return 1
  if (field === "tallies") return []
  return field === "search" ? { measure: null, terms: [] } : { at: 0, length: 2 }
}

const problemNaming = (problems: ReadonlyArray<string>, account: string, ...words: ReadonlyArray<string>) => {
  assert.strictEqual(problems.length, 1, problems.join("\n"))
  for (const word of [...words, account]) assert.include(problems[0], word)
}

const table = Schema.Literals(viewTables)
/** Rows in memory at a time, for an account in many passes, in some, or in one. */
const rowsMax = Schema.Literals([24, 80, 1000])

describe("verification", () => {
  it.effect.prop(
    "names the record in which a bit has flipped",
    { seed: Seed },
    Effect.fnUntraced(function* ({ seed }) {
      const random = new Random(seed)
      const storage = yield* filled(random)
      const account = random.pick(ACCOUNTS)
      const count = (yield* Harness.recordsOf(storage, account)).length
      const at = random.below(count)
      const problems = yield* problemsIn(
        withRows(storage, account, (rows) => {
          const { bytes } = rows[at]!
          const place = random.below(bytes.length)
          return rows.with(at, { ...rows[at]!, bytes: bytes.with(place, bytes[place]! ^ 1) })
        })
      )
      problemNaming(problems, account, `Record ${at + 1} `)
    }),
    { arbitrary: { runs: 30 } }
  )

  it.effect.prop(
    "names the first record that is missing, swapped or cut off",
    { seed: Seed },
    Effect.fnUntraced(function* ({ seed }) {
      const random = new Random(seed)
      const storage = yield* filled(random)
      const account = random.pick(ACCOUNTS)
      const count = (yield* Harness.recordsOf(storage, account)).length
      const at = random.below(count - 1)
      const removed = yield* problemsIn(withRows(storage, account, (rows) => rows.toSpliced(at, 1)))
      problemNaming(removed, account, `Record ${at + 1} `, "is missing")
      const cut = yield* problemsIn(withRows(storage, account, (rows) => rows.slice(0, at)))
      problemNaming(cut, account, `Record ${at + 1} `, "is missing, but the views have it")
      const swapped = yield* problemsIn(
        withRows(storage, account, (rows) => {
          const [one, two] = [rows[at]!, rows[at + 1]!]
          return rows.with(at, { ...two, version: one.version }).with(at + 1, { ...one, version: two.version })
        })
      )
      problemNaming(swapped, account, `Record ${at + 1} `)
    }),
    { arbitrary: { runs: 30 } }
  )

  it.effect.prop(
    "names a row of any table that was changed, removed or added",
    { seed: Seed, table, rowsMax },
    Effect.fnUntraced(function* ({ rowsMax, seed, table }) {
      const random = new Random(seed)
      const storage = yield* filled(random)
      const found = (storage: Storage) => problemsIn(storage, rowsMax)
      assert.deepStrictEqual(yield* found(storage), [])
      const account = random.pick(ACCOUNTS)
      const rows = yield* Harness.viewsOf(storage).scan(account, table, "", 1000)
      const at = random.below(rows.length)
      const row = rows[at]!
      const after = yield* found(withTable(storage, account, table, (rows) => rows.with(at, changed(row, random))))
      problemNaming(after, account, `${table} ${row.id} `, "differs from the journal")
      const removed = yield* found(withTable(storage, account, table, (rows) => rows.toSpliced(at, 1)))
      problemNaming(removed, account, `${table} ${row.id} `, "is in the journal, but not in the views")
      const id = `${row.id}+`
      const added = yield* found(
        withTable(storage, account, table, (rows) => rows.toSpliced(at + 1, 0, { id, row: row.row }))
      )
      problemNaming(added, account, `${table} ${id} `, "is in the views, but not in the journal")
    }),
    { arbitrary: { runs: 60 } }
  )

  it.effect("checks an account in as many passes as its rows need to fit into memory", () =>
    Effect.gen(function* () {
      const storage = yield* filled(new Random(4))
      const journal = Harness.journalOf(storage)
      const passes = Effect.fnUntraced(function* (rowsMax: number) {
        let begun = 0
        const read: JournalShape["read"] = (account, after, limit) => {
          if (after === 0) begun++
          return journal.read(account, after, limit)
        }
        assert.deepStrictEqual(yield* problemsIn(Context.add(storage, Journal, { ...journal, read }), rowsMax), [])
        return begun
      })
      assert.strictEqual(yield* passes(1000), ACCOUNTS.length)
      const some = yield* passes(80)
      assert.isAbove(some, ACCOUNTS.length)
      assert.isAbove(yield* passes(24), some)
    })
  )

  it.effect("reports no keys as missing that a running Till deletes during the check", () =>
    Effect.gen(function* () {
      const storage = yield* filled(new Random(2))
      const views = Harness.viewsOf(storage)
      const scan: ViewsShape["scan"] = (account, table, after, limit) =>
        Effect.gen(function* () {
          if (table === "documents") yield* TestClock.adjust(2 * RETENTION_MILLIS)
          const now = yield* Harness.now
          yield* views.expireKeys((yield* views.keepRunningTime(now)) - RETENTION_MILLIS, 1000)
          return yield* views.scan(account, table, after, limit)
        })
      assert.deepStrictEqual(yield* problemsIn(Context.add(storage, Views, { ...views, scan })), [])
      assert.deepStrictEqual(yield* views.scan(ACCOUNTS[0]!, "keys", "", 1), [])
    })
  )

  it.effect("checks any number of records and rows, as does a rebuild", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const storage = yield* Harness.storageInMemory
      const engine = yield* Harness.startEngine(storage)
      const create = (account: string, i: number) => engine.accounts.run(account, Toy.create(`slot ${i}`, "plain"))
      // One more than the size of a page.
      const many = Array.from({ length: 1001 }, (_, i) => create(ACCOUNTS[0]!, i))
      yield* Effect.all([...many, create(ACCOUNTS[1]!, 0)], { concurrency: "unbounded" })
      yield* engine.stop
      assert.deepStrictEqual(yield* Harness.verified(storage), {
        accounts: 2,
        records: 1002,
        anchored: 0,
        erased: 0,
        problems: []
      })
      yield* Harness.rebuilt(storage)
      assert.strictEqual(yield* Harness.viewsOf(storage).checkpoint(ACCOUNTS[0]!), 1001)
      yield* Harness.verified(storage)
    })
  )

  it.effect("expects in the views only records up to their checkpoint", () =>
    Effect.gen(function* () {
      const storage = yield* filled(new Random(5))
      const engine = yield* Harness.startEngine(storage, {
        faults: (point) => (point === "apply.before" ? Effect.never : Effect.void)
      })
      yield* engine.accounts.run(ACCOUNTS[0]!, Toy.create("d", "plain"))
      yield* engine.kill
      assert.lengthOf(yield* Harness.viewsOf(storage).behind, 1)
      yield* Harness.verified(storage)
    })
  )

  it.effect("reports every damaged account with its first difference", () =>
    Effect.gen(function* () {
      const storage = yield* filled(new Random(1))
      let broken = storage
      for (const account of ACCOUNTS) broken = withTable(broken, account, "events", (rows) => rows.slice(2))
      assert.strictEqual((yield* problemsIn(broken)).length, ACCOUNTS.length)
    })
  )

  it.effect("allows keys to be missing from the views, but only past their retention", () =>
    Effect.gen(function* () {
      const storage = yield* filled(new Random(2))
      const forgotten = withTable(storage, ACCOUNTS[0]!, "keys", () => [])
      const { keepRunningTime } = Harness.viewsOf(storage)
      yield* keepRunningTime(Harness.START + RETENTION_MILLIS)
      assert.strictEqual((yield* problemsIn(forgotten)).length, 1)
      yield* keepRunningTime(Harness.START + RETENTION_MILLIS + 1)
      assert.deepStrictEqual(yield* problemsIn(forgotten), [])
    })
  )

  it.effect.prop(
    "storage.retention: allows events and their deliveries to be missing, but only those past their retention",
    { seed: Seed, rowsMax },
    Effect.fnUntraced(function* ({ rowsMax, seed }) {
      const random = new Random(seed)
      const storage = yield* filled(random)
      const account = random.pick(ACCOUNTS)
      const views = Harness.viewsOf(storage)
      const rowsOf = (table: ViewTable) => views.scan(account, table, "", 1_000_000)
      const eventOf = ({ row }: ViewRow) => (row as DeliveryRow).event
      const events = (yield* rowsOf("events")).map(({ row }) => row as EventRow)
      const deliveries = yield* rowsOf("deliveries")
      const before = timeIn(random.pick(events).id) + random.below(2)
      yield* views.expireEvents(account, before, random.below(events.length + 1))
      const left = yield* rowsOf("events")
      const expired = events.filter(({ id }) => left.every(({ row }) => (row as EventRow).id !== id))
      const isExpired = (event: string) => expired.some(({ id }) => id === event)
      const isPending = ({ row }: ViewRow) => (row as DeliveryRow).state === "pending"
      for (const { id } of expired) assert.isBelow(timeIn(id), before)
      assert.isFalse(deliveries.some((row) => isPending(row) && isExpired(eventOf(row))))
      assert.deepStrictEqual(
        yield* rowsOf("deliveries"),
        deliveries.filter((row) => !isExpired(eventOf(row)))
      )
      assert.deepStrictEqual(yield* problemsIn(storage, rowsMax), [])
      const young = left.filter(({ row }) => timeIn((row as EventRow).id) >= before)
      if (young.length > 0) {
        const { id } = random.pick(young)
        const without = withTable(storage, account, "events", (rows) => rows.filter((row) => row.id !== id))
        problemNaming(yield* problemsIn(without, rowsMax), account, `events ${id} `, "is in the journal")
      }
      yield* Harness.rebuilt(storage)
      assert.lengthOf(yield* rowsOf("events"), events.length)
      assert.strictEqual((yield* views.standing(account)).eventsFrom, 0)
      assert.deepStrictEqual(yield* problemsIn(storage, rowsMax), [])
    }),
    { arbitrary: { runs: 40 } }
  )

  it.effect("finds views of an account without a journal", () =>
    Effect.gen(function* () {
      const storage = yield* filled(new Random(3))
      const account = ACCOUNTS[0]!
      problemNaming(yield* problemsIn(withRows(storage, account, () => [])), account, "Record 1 ", "is missing")
      const withoutJournal = Context.add(storage, Journal, Harness.journalOf(yield* Harness.storageInMemory))
      assert.strictEqual((yield* problemsIn(withoutJournal)).length, ACCOUNTS.length)
      yield* Harness.rebuilt(withoutJournal)
      assert.deepStrictEqual(yield* Harness.viewsOf(storage).accounts, [])
    })
  )
})
