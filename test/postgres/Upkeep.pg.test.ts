/**
 * Postgres' own decisions: its plans, with the rough statistics of the migrations and without any, for given parameters
 * and generic; and the columns that it samples.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { JournalShape } from "../../src/engine/log/Journal.ts"
import { partitionOf } from "../../src/engine/process/Placement.ts"
import type { DeliveryStep, Projection } from "../../src/engine/views/Projection.ts"
import { type Filter, termNumbers } from "../../src/engine/log/Search.ts"
import { recordId, type ViewsShape } from "../../src/engine/views/Views.ts"
import { journalOf, viewsOf } from "../engine/Harness.ts"
import * as PostgresStorage from "../engine/PostgresStorage.ts"

const ACCOUNT = "mer_1:test"
/** The partitions of the accounts, and one without accounts. */
const PARTITIONS = [partitionOf(ACCOUNT), partitionOf("mer_2:test"), partitionOf("nobody")]
const ROWS = 20_000
const MIDDLE = ROWS / 2
const numberOf = termNumbers(ACCOUNT, "payment_intent")
/** Returns a number with as many digits as ids have. */
const digits = (n: number): string => String(n).padStart(24, "0")

/** Rows: `ROWS` per table in one account, a hundredth of that in another; every tenth delivery is pending. */
const FILL = [
  "checkpoints SELECT account, 1 FROM accounts",
  `objects SELECT account, 'cus_' || n, 'customer', i, 0, 10, NULL, NULL,
    jsonb_build_object('email', i || '@example.com'), 1 FROM numbered`,
  // A term that all have, a term of every thousandth, and terms and measures of their own.
  `objects SELECT account, 'pi_' || n, 'payment_intent', i, 0, 10, NULL, NULL,
    jsonb_build_object('customer', 'cus_' || n, 'status', CASE WHEN i % 3 = 0 THEN 'succeeded' ELSE 'processing' END),
    1, ARRAY[${numberOf("common")}, i] || CASE WHEN i % 1000 = 0 THEN ARRAY[${numberOf("rare")}]
      ELSE ARRAY[]::bigint[] END || (i % 200 + 1000000), i % 200
    FROM numbered`,
  // Charges of a single customer, and prices of a single product.
  `objects SELECT account, 'ch_' || n, 'charge', i, 0, 10, NULL, NULL,
    jsonb_build_object('customer', 'cus_${digits(1)}', 'payment_intent', 'pi_' || n), 1 FROM numbered`,
  `objects SELECT account, 'price_' || n, 'price', i, 0, 10, NULL, NULL,
    jsonb_build_object('product', 'prod_${digits(1)}', 'type', CASE WHEN i % 2 = 0 THEN 'recurring' ELSE 'one_time' END),
    1 FROM numbered`,
  `revisions SELECT account, 'pi_' || n, i + ${ROWS} FROM numbered`,
  // A document that is written again and again.
  `revisions SELECT account, 'cus_${digits(MIDDLE)}', i FROM numbered`,
  `events SELECT account, 'evt_' || n, CASE WHEN i <= 20 THEN 'refund.created' ELSE 'customer.created' END, i
    FROM numbered`,
  "timers SELECT account, 'pi_' || n, 'settle', i, i, i FROM numbered",
  "idempotency SELECT account, 'key_' || n, i, i FROM numbered",
  "subscriptions SELECT account, 'we_' || n, ARRAY['*'], 1 FROM numbered WHERE i < 10",
  `deliveries SELECT account, 'we_' || i % 10, 'whd_' || n, 'evt_' || n, i, i, i,
    CASE WHEN i % 10 = 1 THEN 'pending' ELSE 'delivered' END, '[]', i, i, i FROM numbered`,
  `journal SELECT account, i, decode(md5(n), 'hex'), convert_to('{"secret":"' || md5(n || 'r') || '"}', 'UTF8') FROM numbered`
].map(
  (rows) => `WITH accounts (account, rows) AS (VALUES ('${ACCOUNT}', ${ROWS}), ('mer_2:test', ${ROWS / 100})),
    numbered AS (SELECT account, i, lpad(i::text, 24, '0') AS n FROM accounts, generate_series(1, rows) AS i)
    INSERT INTO ${rows}`
)

const projection = (from: number): Projection => {
  const id = digits(MIDDLE + 1)
  const step: DeliveryStep = {
    account: ACCOUNT,
    destination: "we_1",
    id: `whd_${id}`,
    after: 0,
    attempt: { attempt: 1, startedAt: 1, durationMillis: 1, status: 200, error: null },
    state: "delivered",
    nextAttemptAt: null,
    dueAt: null
  }
  const version = ROWS + from
  const row = {
    account: ACCOUNT,
    kind: "payment_intent",
    version,
    hiddenSpan: null,
    labels: {},
    format: 1,
    search: null,
    tallies: null,
    checksum: 1
  }
  const documentSpan = { at: 0, length: 10 }
  return {
    checkpoints: [{ account: ACCOUNT, from, to: from + 1, ahead: 0 }],
    documentsCreated: [{ ...row, id: `pi_${digits(ROWS + from)}`, documentSpan }],
    documentsChanged: [{ ...row, id: `pi_${id}`, documentSpan }],
    revisions: [{ account: ACCOUNT, id: `cus_${id}`, version }],
    events: [{ account: ACCOUNT, id: `evt_new_${from}`, type: "customer.created", version }],
    timersSet: [
      { account: ACCOUNT, id: `pi_${digits(MIDDLE)}`, name: "settle", version, dueAt: 1, wakeAt: 1, checksum: 1 }
    ],
    timersCleared: [{ account: ACCOUNT, id: `pi_${digits(MIDDLE + from)}` }],
    keys: [{ account: ACCOUNT, key: `new ${from}`, version, at: 1 }],
    subscriptionsSet: [],
    deliveriesMade: [],
    deliverySteps: [step],
    sweep: null
  }
}

const address = { account: ACCOUNT, id: `pi_${digits(MIDDLE)}` }
const intents = { kind: "payment_intent", prefix: "pi", limit: 10 }
const charges = { kind: "charge", prefix: "ch", labels: { customer: `cus_${digits(1)}` }, limit: 10 }
const product = `prod_${digits(1)}`
/** A list of which there are fewer documents than the limit, and many of other kinds with smaller ids. */
const first = { kind: "customer", prefix: "cus", olderThan: `cus_${digits(5)}`, limit: 10 }

const ANY: Filter = { all: [], any: [], none: [] }

/** All reads of a running Till. `round` counts from 1. */
const questions = (
  journal: JournalShape,
  views: ViewsShape,
  round: number
): ReadonlyArray<Effect.Effect<unknown, unknown>> => [
  journal.read(ACCOUNT, MIDDLE, 10),
  journal.at([{ account: ACCOUNT, version: MIDDLE }]),
  journal.slices([MIDDLE, 1].map((version) => ({ account: ACCOUNT, version, span: { at: 0, length: 10 } }))),
  views.apply(projection(round), 0),
  views.documents([address, { account: ACCOUNT, id: "missing" }]),
  views.keepNumber(ACCOUNT, round),
  views.accountsNumbered(round),
  views.accountsUnnumbered(1000),
  views.keys([
    { account: ACCOUNT, id: "missing" },
    { account: ACCOUNT, id: `key_${digits(MIDDLE)}` }
  ]),
  views.timers("nobody", 10),
  views.timers(ACCOUNT, 10),
  views.nextTimers(10, ["nobody"], null),
  views.nextTimers(10, ["nobody"], PARTITIONS),
  // An empty partition beside full ones.
  views.nextTimers(10, [], PARTITIONS.slice(-1)),
  views.newest([
    { ...intents, account: ACCOUNT },
    { ...intents, account: "nobody" }
  ]),
  views.newest(Array.from({ length: 5 }, () => ({ ...intents, account: ACCOUNT, olderThan: address.id }))),
  views.newest([{ ...first, account: ACCOUNT }]),
  views.list(ACCOUNT, first),
  views.list(ACCOUNT, { ...intents, newerThan: address.id }),
  views.list(ACCOUNT, { ...intents, labels: charges.labels }),
  views.list(ACCOUNT, { ...intents, labels: { customer: `cus_${digits(MIDDLE)}` } }),
  views.list(ACCOUNT, { ...intents, labels: { status: "succeeded" } }),
  views.list(ACCOUNT, charges),
  views.list(ACCOUNT, { ...charges, newerThan: `ch_${digits(MIDDLE)}` }),
  views.list(ACCOUNT, { ...charges, olderThan: `ch_${digits(MIDDLE)}` }),
  views.list(ACCOUNT, { ...charges, labels: { ...charges.labels, payment_intent: address.id } }),
  views.list(ACCOUNT, { kind: "price", prefix: "price", labels: { product, type: "recurring" }, limit: 10 }),
  views.list(ACCOUNT, { kind: "customer", prefix: "cus", labels: { email: "17@example.com" }, limit: 10 }),
  views.standing(ACCOUNT),
  views.list(ACCOUNT, { ...intents, behind: `pi_${digits(5)}`, before: `pi_${digits(9)}` }),
  views.list(ACCOUNT, { ...charges, before: `ch_${digits(MIDDLE)}`, behind: `ch_${digits(MIDDLE - 100)}` }),
  views.newest([{ ...intents, account: ACCOUNT, before: `pi_${digits(9)}`, behind: `pi_${digits(5)}` }]),
  views.list(ACCOUNT, { kind: "customer", prefix: "cus", labels: { email: "nobody" }, limit: 10 }),
  views.events(ACCOUNT, { limit: 10, before: `evt_${digits(MIDDLE)}`, behind: `evt_${digits(MIDDLE - 100)}` }),
  views.event({ account: ACCOUNT, id: `evt_${digits(MIDDLE)}` }),
  views.events(ACCOUNT, { limit: 10 }),
  views.events(ACCOUNT, { limit: 10, type: { exact: "customer.created" }, olderThan: `evt_${digits(MIDDLE)}` }),
  views.events(ACCOUNT, { limit: 10, type: { prefix: "customer." } }),
  views.events(ACCOUNT, { limit: 10, type: { exact: "refund.created" } }),
  views.events(ACCOUNT, { limit: 10, type: { prefix: "refund." }, newerThan: `evt_${digits(10)}` }),
  views.events(ACCOUNT, { limit: 10, type: { prefix: "r" }, olderThan: `evt_${digits(10)}` }),
  views.subscriptions(ACCOUNT),
  views.deliveries(ACCOUNT, { destination: "we_1", limit: 10 }),
  views.delivery(ACCOUNT, "we_1", `whd_${digits(MIDDLE)}`),
  views.revisions(ACCOUNT, { ids: [address.id, "missing"], labels: { payment_intent: address.id }, limit: 51 }),
  views.revisions(ACCOUNT, { ids: [`cus_${digits(MIDDLE)}`], olderThan: recordId(MIDDLE), limit: 51 }),
  views.revisions(ACCOUNT, { ids: [`cus_${digits(MIDDLE)}`], newerThan: recordId(5), limit: 51 }),
  views.eventDeliveries(
    [MIDDLE, MIDDLE + 1].map((i) => ({ account: ACCOUNT, id: `evt_${digits(i)}` })),
    20
  ),
  views.pendingDeliveries([MIDDLE, MIDDLE + 1].map((i) => ({ account: ACCOUNT, id: `evt_${digits(i)}` }))),
  views.takeDeliveries({ now: round, limit: 1, busy: ["we_3"], partitions: PARTITIONS, leasedUntil: ROWS }),
  views.nextDelivery(["we_3"], PARTITIONS)
]

/**
 * Searches for terms that all documents have, few, and none. A search for a rare term reads the newest thousand; beyond
 * these it reads a few matches, or the hundred of a measure.
 */
const searches = (views: ViewsShape): ReadonlyArray<Effect.Effect<unknown, unknown>> =>
  [
    { ...ANY, all: ["common"] },
    { ...ANY, all: ["rare"] },
    { ...ANY, all: ["common", "rare"] },
    { ...ANY, any: [["rare", "nothing"]], none: ["nothing"] },
    { ...ANY, all: ["nothing"] },
    { ...ANY, all: ["common"], measure: { from: 5, to: 5 } },
    { ...ANY, measure: { from: 1000, to: 2000 } },
    { ...ANY, id: address.id, all: ["common"] }
  ].flatMap((filter) => [
    views.search(ACCOUNT, { ...intents, filter }),
    views.search(ACCOUNT, { ...intents, filter, before: address.id, behind: `pi_${digits(5)}` })
  ])
const SEARCHED_ROWS_MAX = 850

/** Pages of a table's indexes. A list that reads beyond its end would read more in `ROUNDS`. */
const PAGES_MAX = 1500

/** More than the 5 executions after which Postgres uses a generic plan, if its estimated cost is not higher. */
const ROUNDS = 8

const TABLES = ["objects", "revisions", "events", "timers", "idempotency", "deliveries", "journal"]
const named = TABLES.map((table) => `'${table}'`).join(", ")

interface Reads {
  readonly table: string
  readonly scans: number
  /** Rows read by any scan. */
  readonly rows: number
  /** Pages of indexes read: an entry that a condition excludes within an index does not count as a row. */
  readonly pages: number
}

describe("the tables in Postgres", () => {
  for (const statistics of ["without", "with"]) {
    // A table lacks statistics for its first minute at most. Postgres then estimates a few rows in place of thousands,
    // and sorts them.
    const rowsMax = statistics === "with" ? ROWS / 10 : ROWS / 2

    it.live(`are never scanned as a whole by a running Till, ${statistics} statistics`, () =>
      Effect.gen(function* () {
        const database = yield* PostgresStorage.make
        yield* Effect.scoped(database.connect("migrations"))
        for (const table of TABLES) yield* database.edit(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`)
        for (const statement of FILL) yield* database.edit(statement)
        if (statistics === "with") yield* database.edit("ANALYZE")
        const reads = database.readRows<Reads>(
          `SELECT relname AS table, seq_scan::int AS scans, (seq_tup_read + idx_tup_fetch)::int AS rows,
             (idx_blks_read + idx_blks_hit)::int AS pages
           FROM pg_stat_user_tables JOIN pg_statio_user_tables USING (relname)
           WHERE relname IN (${named}) ORDER BY relname`
        )
        // A connection's counts become visible to others shortly after it is closed.
        const settled = Effect.repeat(Effect.delay(reads, "200 millis"), { times: 5 })
        const before = yield* settled
        yield* Effect.scoped(
          Effect.gen(function* () {
            const storage = yield* database.connect("till")
            const [journal, views] = [journalOf(storage), viewsOf(storage)]
            for (let round = 1; round <= ROUNDS; round++) {
              for (const question of questions(journal, views, round)) yield* question
            }
            assert.strictEqual(yield* views.checkpoint(ACCOUNT), ROUNDS + 1)
          })
        )
        for (const [i, { pages, rows, scans, table }] of (yield* settled).entries()) {
          assert.strictEqual(scans - before[i]!.scans, 0, table)
          assert.isBelow(rows - before[i]!.rows, rowsMax, table)
          assert.isBelow(pages - before[i]!.pages, PAGES_MAX, `${table}: pages of indexes`)
        }
      })
    )

    it.live(`are never scanned as a whole by a search, ${statistics} statistics`, () =>
      Effect.gen(function* () {
        const database = yield* PostgresStorage.make
        yield* Effect.scoped(database.connect("migrations"))
        yield* database.edit("ALTER TABLE objects SET (autovacuum_enabled = off)")
        for (const statement of FILL) yield* database.edit(statement)
        if (statistics === "with") yield* database.edit("ANALYZE")
        const read = (name: string) =>
          database.readRows<{ readonly scans: number; readonly rows: number; readonly walked: number }>(
            `SELECT seq_scan::int AS scans, (seq_tup_read + idx_tup_fetch)::int AS rows, (
                SELECT sum(idx_tup_read)::int FROM pg_stat_user_indexes
                WHERE relname = 'objects' AND indexrelname <> 'objects_by_term'
              ) AS walked
             FROM pg_stat_user_tables WHERE relname = 'objects' -- ${name}`
          )
        const settled = (name: string) => Effect.repeat(Effect.delay(read(name), "200 millis"), { times: 5 })
        const [before] = yield* settled("before")
        const count = yield* Effect.scoped(
          Effect.gen(function* () {
            const views = viewsOf(yield* database.connect("till"))
            for (let round = 1; round <= ROUNDS; round++) yield* Effect.all(searches(views))
            return ROUNDS * searches(views).length
          })
        )
        const [after] = yield* settled("after")
        assert.strictEqual(after!.scans - before!.scans, 0)
        // An average: one search that reads all rows in every round would exceed it.
        assert.isBelow((after!.rows - before!.rows) / count, SEARCHED_ROWS_MAX)
        assert.isBelow((after!.walked - before!.walked) / count, SEARCHED_ROWS_MAX)
      })
    )
  }

  it.live("are sampled only in columns that conditions use, not in whole texts", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      yield* Effect.scoped(database.connect("migrations"))
      for (const statement of FILL) yield* database.edit(statement)
      yield* database.edit("ANALYZE")
      const sampled = yield* database.readRows<{ readonly name: string }>(
        `SELECT tablename || '.' || attname AS name FROM pg_stats WHERE schemaname = 'public' AND tablename IN (${named})`
      )
      const names = sampled.map(({ name }) => name)
      for (const name of ["journal.account", "journal.version", "objects.id", "objects.labels", "events.type"]) {
        assert.include(names, name)
      }
      for (const name of ["journal.record", "objects.document_length", "idempotency.key", "deliveries.attempts"]) {
        assert.notInclude(names, name)
      }
    })
  )
})
