/** Till finds everything in a database that an older version has written, and refuses one of a newer version. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Effect, Exit, Logger } from "effect"
import { runOnce } from "../../src/engine/Accounts.ts"
import { innermostMessage } from "../../src/engine/log/Journal.ts"
import { idOf, nextSequence } from "../../src/engine/log/Identifiers.ts"
import { project } from "../../src/engine/views/Projection.ts"
import type { JournalRow } from "../../src/engine/log/Record.ts"
import { GENESIS, textOf, unseal } from "../../src/engine/log/Record.ts"
import { newest } from "../../src/postgres/Migrations.ts"
import { remakeOutdated } from "../../src/engine/verify/Verify.ts"
import * as Harness from "../engine/Harness.ts"
import { journalOf, viewsOf } from "../engine/Harness.ts"
import { olderRow } from "../engine/OlderRecords.ts"
import * as PostgresStorage from "../engine/PostgresStorage.ts"
import * as Toy from "../engine/Toy.ts"

const ACCOUNT = "mer_1:test"

const JSONS = [
  '{"id":"a","text":"\\u0000\\ud800 ü→😀"}',
  '{"10":2,"__proto__":1}',
  `{"long":"${"x".repeat(9000)}"}`
] as const

const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1)

const inserted = (table: string, rows: ReadonlyArray<object>): string =>
  `INSERT INTO ${table} SELECT * FROM json_populate_recordset(NULL::${table}, '${JSON.stringify(rows).replaceAll("'", "''")}')`

const NOTHING_DONE = {
  at: 1,
  now: 1,
  clock: 0,
  advanced: 0,
  wiped: false,
  sequence: 1,
  request: null,
  events: [],
  apiVersion: null,
  timers: [],
  subscriptions: [],
  deliveries: [],
  attempts: [],
  hastened: [],
  response: null
}

const counter = (id: string, document: string | null, hidden: string | null) => {
  return { id, kind: "counter", document, hidden, labels: { customer: "cus_1" }, format: 1, created: false }
}

/** The changes of three commands. */
const commands = [
  // The second document lies in the first as well.
  [counter("ctr_1", `{"id":"ctr_1","inside":${JSONS[0]}}`, null), counter("ctr_2", JSONS[0], JSONS[1])],
  [counter("ctr_3", JSONS[2], JSONS[1]), counter("ctr_4", "{}", null)],
  [counter("ctr_4", null, null), counter("ü'\"\\", JSONS[1], '"ü"')]
]

/** A chain of records with those changes. */
const sealedCommands = () => {
  const rows: Array<JournalRow> = []
  const records = commands.map((changes, i) => {
    const version = i + 1
    const before = { version: i, hash: rows.at(-1)?.hash ?? GENESIS }
    const row = olderRow({ ...NOTHING_DONE, account: ACCOUNT, version, changes }, 4, before.hash)
    rows.push(row)
    return unseal(before, row).record
  })
  return { rows, records }
}

describe("a database of an older Till", () => {
  it.live("keeps the keys that were projected before 0003_keys_by_version", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      const keys = ["a", "ü'\"\\", ""].map((key, i) => {
        return { account: ACCOUNT, key, version: i + 1, at: i }
      })
      yield* database.migrated("0002")
      yield* database.edit(`INSERT INTO checkpoints VALUES ('${ACCOUNT}', ${keys.length})`)
      yield* database.edit(
        inserted(
          "idempotency",
          keys.map((row) => ({ ...row, fingerprint: "f" }))
        )
      )
      const views = viewsOf(yield* database.connect("till"))
      assert.deepStrictEqual(yield* views.keys(keys.map(({ key }) => ({ account: ACCOUNT, id: key }))), keys)
      const again = { account: ACCOUNT, key: "a", version: keys.length + 1, at: 99 }
      const checkpoints = [{ account: ACCOUNT, from: keys.length, to: again.version, ahead: 0 }]
      yield* views.apply({ ...project([]), checkpoints, keys: [again] }, 0)
      assert.deepStrictEqual(yield* views.keys([{ account: ACCOUNT, id: "a" }]), [again])
    })
  )

  it.live("keeps the documents that were projected before 0006_documents_in_journal", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      const { records, rows } = sealedCommands()
      const { documentsChanged: documents } = project(records)
      const changes = commands.flatMap((changes, i) =>
        changes.map((change) => ({ account: ACCOUNT, ...change, version: i + 1 }))
      )
      const newest = documents.map(({ id }) => changes.findLast((change) => change.id === id)!)
      yield* database.migrated("0005")
      yield* database.edit(`INSERT INTO checkpoints VALUES ('${ACCOUNT}', ${rows.length})`)
      yield* database.edit(
        inserted(
          "journal",
          rows.map(({ bytes, ...row }) => ({ ...row, record: textOf(bytes) }))
        )
      )
      yield* database.edit(inserted("objects", newest))
      const storage = yield* database.connect("till")
      const views = viewsOf(storage)
      assert.deepStrictEqual(yield* journalOf(storage).read(ACCOUNT, 0, 10), rows)
      const scanned = yield* views.scan(ACCOUNT, "documents", "", 10)
      // They have no checksums until they are made anew.
      const unchecked = <Row>(row: Row) => ({ ...row, checksum: NaN })
      assert.deepStrictEqual(
        scanned.map(({ row }) => row),
        documents.toSorted(byId).map(unchecked)
      )
      assert.deepStrictEqual(yield* views.outdated, [ACCOUNT])
      const found = yield* views.documents(newest)
      const texts = newest.map(({ document, hidden }, i) => {
        const { search: _search, tallies: _tallies, ...row } = documents[i]!
        return unchecked({ ...row, document, hidden })
      })
      assert.deepStrictEqual(found, texts)
    })
  )

  it.live("keeps the events that were projected before 0007_events_by_type", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      const types = ["customer.created", "customer.updated", "charge.failed"]
      const events = Array.from({ length: 30 }, (_, i) => {
        return { account: ACCOUNT, id: `evt_${String(i).padStart(2, "0")}`, type: types[i % 3]!, version: i + 1 }
      })
      yield* database.migrated("0006")
      yield* database.edit(`INSERT INTO checkpoints VALUES ('${ACCOUNT}', ${events.length})`)
      yield* database.edit(inserted("events", events))
      const views = viewsOf(yield* database.connect("till"))
      for (const event of events) assert.deepStrictEqual(yield* views.event(event), event)
      assert.deepStrictEqual(yield* views.events(ACCOUNT, { limit: 100 }), events.toReversed())
      const failed = yield* views.events(ACCOUNT, { type: { exact: "charge.failed" }, limit: 100 })
      assert.deepStrictEqual(failed, events.filter(({ type }) => type === "charge.failed").toReversed())
      const indexes = yield* database.ask("SELECT indexname FROM pg_indexes WHERE tablename = 'events'")
      assert.deepStrictEqual(indexes, [{ indexname: "events_pkey" }])
    })
  )

  it.live(
    "lets links of before 0010_account_numbers lead to their accounts, by an index that later links are not in",
    () =>
      Effect.gen(function* () {
        const database = yield* PostgresStorage.make
        const now = yield* Clock.currentTimeMillis
        const idAt = (prefix: string, at: number) => idOf(prefix, nextSequence(0, at))
        const day = 24 * 3600 * 1000
        // The clock of a test environment is ahead.
        const older = [idAt("cs", now), idAt("pi", now - 400 * day), idAt("cs", now + 30 * day)]
        const rowOf = (id: string, i: number) => {
          return { account: `mer_${i}:test`, id, kind: "k", version: 1, document_at: 0, document_length: 1, format: 1 }
        }
        const others = [idAt("cus", now), "cs_short", "lookup_zzz", `cs_${"z".repeat(40)}`]
        yield* database.migrated("0009")
        yield* database.edit(`INSERT INTO checkpoints SELECT 'mer_' || i || ':test', 1 FROM generate_series(0, 9) AS i`)
        yield* database.edit(inserted("objects", [...older, ...others].map(rowOf)))
        const views = viewsOf(yield* database.connect("till"))
        const later = [idAt("cs", now + 32 * day), idAt("pi", now + 32 * day)]
        yield* database.edit(inserted("objects", later.map(rowOf)))
        for (const [i, id] of older.entries()) assert.strictEqual(yield* views.olderHolder(id), `mer_${i}:test`)
        for (const id of [...later, "", "%", "cs_", idAt("pi", now), "\u{1F600}"]) {
          assert.isUndefined(yield* views.olderHolder(id))
        }
        assert.lengthOf(yield* views.accountsUnnumbered(100), 10)
        const [size] = yield* database.ask<{ rows: number }>(
          "SELECT reltuples::int AS rows FROM pg_class WHERE relname = 'objects_older_links'"
        )
        assert.strictEqual(size!.rows, older.length)
      })
  )

  it.live("has no such links if it is new", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      const views = viewsOf(yield* database.connect("till"))
      const id = idOf("pi", nextSequence(0, yield* Clock.currentTimeMillis))
      const row = { account: ACCOUNT, id, kind: "k", version: 1, document_at: 0, document_length: 1, format: 1 }
      yield* database.edit(inserted("objects", [row]))
      assert.isUndefined(yield* views.olderHolder(id))
      const indexed = yield* database.ask("SELECT FROM objects WHERE is_older_link(id)")
      assert.lengthOf(indexed, 0)
    })
  )

  it.live("lets no Till of before 0024_tallies move its views, which was cut off meanwhile and comes back", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      const move = database.edit(`UPDATE checkpoints SET version = version + 1, ahead = ahead, checksum = checksum`)
      yield* database.migrated("0023")
      yield* move
      yield* database.connect("till")
      const exit = yield* Effect.exit(move)
      const problem = Exit.isFailure(exit) ? innermostMessage(Cause.squash(exit.cause)) : ""
      assert.strictEqual(problem, `column "ahead" does not exist`)
    })
  )

  it.live("lets the next start say which records have written documents before 0027_revisions", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      yield* Effect.scoped(
        Effect.gen(function* () {
          const before = yield* Harness.startEngine(yield* database.connect("before"))
          const operations = [
            { op: "create", slot: "a", name: "plain" },
            { op: "increment", slot: "a", by: 1 },
            { op: "create", slot: "b", name: "plain" },
            { op: "rename", slot: "a", name: "" },
            { op: "delete", slot: "b" },
            { op: "create", slot: "b", name: "plain" }
          ] as const
          for (const operation of operations) {
            yield* runOnce(before.accounts, ACCOUNT, Toy.request(null), () => Toy.command(operation))
          }
          yield* before.stop
        })
      )
      yield* database.asBefore0024
      const storage = yield* database.connect("after")
      yield* Harness.projecting(storage, remakeOutdated)
      const after = yield* Harness.startEngine(storage)
      yield* Harness.historyAgrees(after, storage, ACCOUNT, 2)
      yield* after.stop
      yield* Harness.verified(storage)
      assert.lengthOf(yield* viewsOf(storage).scan(ACCOUNT, "revisions", "", 100), 5)
    })
  )

  it.live("is the reason that is given for a start that takes longer", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => lines.push(String(message)))
      const start = Effect.provide(database.connect("till"), Logger.layer([logger]))
      yield* database.migrated("0005")
      for (let i = 0; i < 2; i++) yield* start
      assert.deepStrictEqual(lines, ["The database is of an older Till; its tables are brought up to date"])
    })
  )
})

describe("a database on which an older Till runs", () => {
  it.live("is refused, and left as it is, until that has ended", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      yield* database.migrated("0017")
      const newestOf = Effect.map(
        database.ask<{ id: number }>("SELECT max(migration_id)::int AS id FROM effect_sql_migrations"),
        ([row]) => row?.id
      )
      // By this name its sessions are known.
      const exit = yield* database.within(
        "SET application_name = 'till'",
        Effect.exit(Effect.scoped(database.connect("till service")))
      )
      assert.include(
        Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "",
        "An older Till is running on this database: stop it first."
      )
      assert.strictEqual(yield* newestOf, 17)
      yield* database.connect("till service")
      assert.strictEqual(yield* newestOf, newest)
    })
  )
})

describe("a database of somebody else's", () => {
  it.live("is refused, and left as it is", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      for (const name of ["orders", "events", "customers", "users"])
        yield* database.edit(`CREATE TABLE ${name} (id int)`)
      const exit = yield* Effect.exit(database.connect("till"))
      const problem = Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
      assert.include(problem, "the database has tables that are not Till's (customers, events, orders). Till needs a")
      const [row] = yield* database.ask<{ count: number }>(
        "SELECT count(*)::int AS count FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
      )
      assert.strictEqual(row?.count, 4)
    })
  )

  it.live("is known by what it has, whatever its schema is called, and whether or not it has a journal", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      yield* database.edit('CREATE SCHEMA "My Shop" CREATE TABLE journal (id int, sold text)')
      yield* database.edit(`DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET search_path = "My Shop"', current_database());
      END $$`)
      const exit = yield* Effect.exit(database.connect("till"))
      const problem = Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
      assert.include(problem, "the database has tables that are not Till's (journal). Till needs a")
    })
  )

  it.live("is not one that has only tables of extensions, or of another schema", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      yield* database.edit("CREATE SCHEMA shop CREATE TABLE orders (id int)")
      yield* database.edit("CREATE TABLE brought_along (id int)")
      yield* database.edit("CREATE EXTENSION fuzzystrmatch")
      yield* database.edit("ALTER EXTENSION fuzzystrmatch ADD TABLE brought_along")
      const storage = yield* database.connect("till")
      assert.deepStrictEqual(yield* journalOf(storage).read(ACCOUNT, 0, 10), [])
    })
  )
})

describe("a database that Till may not change", () => {
  it.live("is refused with what the server says", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      yield* database.edit(`DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database());
      END $$`)
      const exit = yield* Effect.exit(database.connect("till"))
      const problem = Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
      assert.include(
        problem,
        "The tables of the database cannot be made or brought up to date: cannot execute CREATE TABLE in a read-only"
      )
    })
  )
})

describe("a database of a newer Till", () => {
  it.live("is refused, and left as it is", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      yield* database.migrated("0001")
      yield* database.edit("INSERT INTO effect_sql_migrations (migration_id, name) VALUES (9999, 'later')")
      const exit = yield* Effect.exit(database.connect("till"))
      const problem = Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
      assert.include(problem, "The database was written by a newer Till (migration 9999; ")
      const [row] = yield* database.ask<{ count: number }>("SELECT count(*)::int AS count FROM effect_sql_migrations")
      assert.strictEqual(row?.count, 2)
    })
  )
})
