/**
 * The views in Postgres return the same as the ones in memory, whatever was projected; and the journal in Postgres
 * keeps the guarantees of its port.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { hash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import type { Between } from "../../src/engine/log/Created.ts"
import type { Searchable } from "../../src/engine/log/Document.ts"
import { READ_BYTES_MAX } from "../../src/engine/process/Memory.ts"
import { partitionOf, PARTITIONS } from "../../src/engine/process/Placement.ts"
import {
  type Attempt,
  type ChainedRow,
  GENESIS,
  type JournalRow,
  RECORD_BYTES_MAX,
  type Span,
  textOf
} from "../../src/engine/log/Record.ts"
import {
  type DeliveryRow,
  type DeliveryStep,
  project,
  type ProjectedDocument,
  type Projection
} from "../../src/engine/views/Projection.ts"
import { entryOf, type Filter } from "../../src/engine/log/Search.ts"
import { entriesOf, SPANS, type TallyEntry, tallyId } from "../../src/engine/log/Tallies.ts"
import {
  type Cursor,
  eventId,
  keyId,
  recordId,
  revisionId,
  type ViewRow,
  type ViewsShape,
  type ViewTable,
  viewTables
} from "../../src/engine/views/Views.ts"
import { journalOf, storageInMemory, viewsOf } from "../engine/Harness.ts"
import { SearchDepths } from "../../src/postgres/SearchPostgres.ts"
import * as PostgresStorage from "../engine/PostgresStorage.ts"
import { Random, Seed } from "../support/Random.ts"

const ACCOUNTS = ["mer_1:test", "mer_1:live", "mer_2:test"]
const IDS = ["a", "B", "b", "Z", "z_1", "z_2", "z-1", "ä", "😀", "';--", "%", "a_1", "a_2"]
const TIMER_NAMES = ["increment", "settle"]
const TYPES = ["counter.created", "counter.deleted", "counter", "counted.x", "c%.created", "other_type"]
const KINDS = ["counter", "slot"]
/** Kinds whose ids have a prefix, which is the kind's name here. */
const PREFIXES = ["a", "z"]
const JSONS = [
  '{"id":"a","text":"\\u0000\\ud800 ü→😀"}',
  '{"__proto__":1,"10":2,"9":3}',
  `{"long":"${"x".repeat(9000)}"}`
]

/** The content of every record in the journal, with all documents. */
const RECORD = `{"ü":[${JSONS.join(",")}]}`

const spanOf = (json: string): Span => ({
  at: Buffer.byteLength(RECORD.slice(0, RECORD.indexOf(json))),
  length: Buffer.byteLength(json)
})

const distinct = <A>(random: Random, choices: ReadonlyArray<A>) => choices.filter(() => random.chance(0.4))

/** Labels of every sort: ids and emails, customers and products, and common ones are found by different indexes. */
const LABEL_VALUES = ["", "x", "ü'\"\\", "10", "cus_8Q0eQxL7onWPq0YtTwltHu2V", "jenny@example.com"]

const LABEL_NAMES = ["name", "slot", "ü", "customer", "product", "email"]

const labels = (random: Random, names = distinct(random, LABEL_NAMES)): Record<string, string> =>
  Object.fromEntries(
    // Owners have many documents.
    names.map((name) => [name, random.pick(name === "customer" ? LABEL_VALUES.slice(1, 3) : LABEL_VALUES)])
  )

const TERMS = ["a", "b", "c=ü", "d"]
const measure = (random: Random) => random.below(random.pick([5, 300, Number.MAX_SAFE_INTEGER]))

const searchable = (random: Random): Searchable => ({
  terms: distinct(random, TERMS),
  measure: random.chance(0.2) ? null : measure(random)
})

const TALLY_KEYS = ["paid usd", "it's é", "b"]

/** Tallies, some of which cancel out. */
const tallies = (random: Random): ReadonlyArray<TallyEntry> =>
  entriesOf(
    Array.from({ length: random.below(3) }, () => ({
      at: 3600 * random.below(60),
      key: random.pick(TALLY_KEYS),
      count: random.below(4) - 1,
      amount: random.below(1000) - 500
    }))
  )

const filter = (random: Random): Filter => {
  const from = measure(random)
  const few = () => TERMS.filter(() => random.chance(0.2))
  return {
    all: few(),
    any: random.chance(0.4) ? [distinct(random, TERMS)] : [],
    none: few(),
    ...(random.chance(0.3) && { id: random.pick(IDS) }),
    ...(random.chance(0.4) && { measure: { from, to: random.chance(0.3) ? from : measure(random) } })
  }
}

const EMPTY = project([])

const DESTINATIONS = ["we_1", "we_2", "we_3"]
/** The partitions of the accounts, and one without accounts. */
const SOME = [...ACCOUNTS, "nobody"].map(partitionOf)

/** Milliseconds by which an account's clock may be ahead of the wall clock. */
const CLOCK_LEAD_MAX = 7

/** The upper bound of times, which is low so that many are equal. */
const TIME_MAX = 20

/** An account's checkpoint, and the milliseconds by which its clock is ahead. */
interface Head {
  readonly version: number
  readonly clock: number
}

const headOf = (heads: Map<string, Head>, account: string): Head => heads.get(account) ?? { version: 0, clock: 0 }

/** Makes a projection of a sweep, which contains nothing else. */
const sweeping = (random: Random, heads: Map<string, Head>): Projection => {
  const account = random.pick(ACCOUNTS)
  const head = headOf(heads, account)
  const from = head.version + (random.chance(0.4) ? 1 : 0)
  const wiped = random.chance(0.3)
  // Only a wipe sets a clock back. No due time is before 1970.
  const clock = wiped ? 0 : random.chance(0.6) ? head.clock + random.below(CLOCK_LEAD_MAX + 1 - head.clock) : null
  if (from === head.version) heads.set(account, { version: from + 1, clock: clock ?? head.clock })
  const unsubscribed = wiped ? [] : distinct(random, DESTINATIONS)
  return {
    ...EMPTY,
    checkpoints: [{ account, from, to: from + 1, ahead: random.below(3) }],
    sweep: { account, wiped, unsubscribed, clock }
  }
}

/** Makes new deliveries, some with attempts, and steps of earlier ones, some of which do not apply. */
const deliveries = (
  random: Random,
  checkpoints: Projection["checkpoints"],
  heads: Map<string, Head>,
  made: Array<DeliveryRow>
): Pick<Projection, "deliveriesMade" | "deliverySteps"> => {
  const attempt = (n: number): Attempt => ({
    attempt: n,
    startedAt: random.below(2 ** 42),
    durationMillis: random.below(30_000),
    status: random.chance(0.5) ? null : 500,
    error: random.chance(0.5) ? null : "ü'\"\\"
  })
  const fate = (account: string): Pick<DeliveryRow, "state" | "nextAttemptAt" | "dueAt"> => {
    const state = random.pick(["pending", "pending", "delivered", "exhausted"] as const)
    if (state !== "pending") return { state, nextAttemptAt: null, dueAt: null }
    const nextAttemptAt = CLOCK_LEAD_MAX + random.below(TIME_MAX - CLOCK_LEAD_MAX)
    return { state, nextAttemptAt, dueAt: nextAttemptAt - headOf(heads, account).clock }
  }
  const older = made.filter(({ account }) => checkpoints.some((checkpoint) => checkpoint.account === account))
  const deliverySteps = distinct(random, older).map(({ account, destination, id }): DeliveryStep => {
    const after = random.below(3)
    const step = { account, destination, id, after }
    if (after === 0 || random.chance(0.7)) return { ...step, attempt: attempt(after + 1), ...fate(account) }
    const dueAt = random.below(TIME_MAX)
    return { ...step, attempt: null, state: "pending", nextAttemptAt: dueAt + headOf(heads, account).clock, dueAt }
  })
  const deliveriesMade = checkpoints.flatMap(({ account, to }) =>
    distinct(random, DESTINATIONS).map((destination, i): DeliveryRow => {
      const attempts = Array.from({ length: random.below(3) }, (_, n) => attempt(n + 1))
      const id = `whd_${made.length}_${i}_${account}`
      const event = `${random.pick(IDS)}1`
      const row = { account, destination, id, event, eventVersion: to, version: to, at: to, attempts, ...fate(account) }
      return row
    })
  )
  made.push(...deliveriesMade)
  return { deliveriesMade, deliverySteps }
}

const document = (random: Random, account: string, version: number, id: string): ProjectedDocument => {
  const kind = PREFIXES.find((prefix) => id.startsWith(`${prefix}_`)) ?? random.pick(KINDS)
  return {
    account,
    id,
    kind,
    version,
    documentSpan: random.chance(0.2) ? null : spanOf(random.pick(JSONS)),
    hiddenSpan: random.chance(0.5) ? null : spanOf(random.pick(JSONS)),
    labels: labels(random),
    format: 1 + random.below(3),
    search: random.chance(0.2) ? null : entryOf(account, kind, searchable(random)),
    tallies: random.chance(0.2) ? null : tallies(random),
    checksum: random.below(2 ** 32) | 0
  }
}

/** Makes a batch as the projector does; sometimes it does not start at the checkpoint. */
const projection = (random: Random, heads: Map<string, Head>, made: Array<DeliveryRow>, batch: number): Projection => {
  if (random.chance(0.3)) return sweeping(random, heads)
  const checkpoints = distinct(random, ACCOUNTS).map((account) => {
    const head = headOf(heads, account)
    const from = head.version + (random.chance(0.2) ? 1 : 0)
    const to = from + 1 + random.below(3)
    if (from === head.version) heads.set(account, { ...head, version: to })
    return { account, from, to, ahead: random.below(3) }
  })
  const perAccount = <Row>(f: (account: string, version: number, id: string) => Row): ReadonlyArray<Row> =>
    checkpoints.flatMap(({ account, to }) => distinct(random, IDS).map((id) => f(account, to, id)))
  const cleared = perAccount((account, _, id) => ({ account, id }))
  const documentsChanged = perAccount((account, version, id) => document(random, account, version, id))
  return {
    checkpoints,
    documentsCreated: perAccount((account, version, id) => document(random, account, version, `${id}${batch}`)),
    documentsChanged,
    // Earlier records of the same batch have written some of the documents too.
    revisions: documentsChanged.flatMap(({ account, id, version }) => {
      const { from } = checkpoints.find((checkpoint) => checkpoint.account === account)!
      return version - 1 > from && random.chance(0.5) ? [{ account, id, version: version - 1 }] : []
    }),
    events: perAccount((account, version, id) => ({
      account,
      id: `${id}${batch}`,
      type: random.pick(TYPES),
      version
    })),
    timersSet: perAccount((account, version, id) => ({
      account,
      id: `${id} of ${account}`,
      name: random.pick(TIMER_NAMES),
      version,
      dueAt: random.below(random.pick([TIME_MAX, 2 ** 42])),
      wakeAt: random.below(random.pick([TIME_MAX, 2 ** 42])),
      checksum: random.below(2 ** 32) | 0
    })).filter(
      ({ account, id }) => !cleared.some((one) => one.account === account && id === `${one.id} of ${account}`)
    ),
    timersCleared: cleared.map(({ account, id }) => ({ account, id: `${id} of ${account}` })),
    // A record has one key at most, and few keys are reused again and again.
    keys: checkpoints.flatMap(({ account, from, to }) =>
      distinct(
        random,
        Array.from({ length: to - from }, (_, i) => from + 1 + i)
      ).map((version) => ({ account, key: random.pick(IDS), version, at: random.below(TIME_MAX) }))
    ),
    subscriptionsSet: checkpoints.flatMap(({ account, to: version }) =>
      distinct(random, DESTINATIONS).map((destination) => {
        const types = random.pick([["*"], ["a.b", "c.d"], ["ü'\"\\"]])
        return { account, destination, types, version, checksum: random.below(2 ** 32) | 0 }
      })
    ),
    ...deliveries(random, checkpoints, heads, made),
    sweep: null
  }
}

const cursor = (random: Random): Cursor => {
  if (random.chance(0.3)) return {}
  return random.chance(0.5) ? { olderThan: random.pick(IDS) } : { newerThan: random.pick(IDS) }
}

/** Reads of every sort, to compare between both storages. */
const questions = (random: Random) => {
  const account = random.pick(ACCOUNTS)
  const addresses = Array.from({ length: random.below(6) }, () => ({
    account: random.pick(ACCOUNTS),
    id: random.pick([...IDS, "missing"])
  }))
  const ofKind = () => {
    const kind = random.pick([...KINDS, ...PREFIXES])
    return { kind, ...(PREFIXES.includes(kind) && random.chance(0.7) && { prefix: kind }) }
  }
  const between: Between = {
    ...(random.chance(0.3) && { behind: random.pick(IDS) }),
    ...(random.chance(0.3) && { before: random.pick(IDS) })
  }
  const list = {
    ...ofKind(),
    limit: 1 + random.below(5),
    ...cursor(random),
    ...between,
    ...(random.chance(0.7) && { labels: labels(random, random.pick([undefined, ["customer"], ["product"]])) })
  }
  const newest = Array.from({ length: random.below(4) }, () => ({
    account: random.pick(ACCOUNTS),
    ...ofKind(),
    limit: 1 + random.below(5),
    ...(random.chance(0.5) && { olderThan: random.pick(IDS) }),
    ...between
  }))
  const prefix = random.pick(PREFIXES)
  const search = { kind: prefix, prefix, filter: filter(random), limit: 1 + random.below(5), ...between }
  const type = random.pick([
    undefined,
    { exact: random.pick(TYPES) },
    { prefix: random.pick(["counter", "counter.", "count", "c%", "_", "other_"]) }
  ])
  const events = { limit: 1 + random.below(5), ...cursor(random), ...between, ...(type && { type }) }
  const event = { account, id: `${random.pick(IDS)}1` }
  const limit = 1 + random.below(8)
  const timerName = random.pick(TIMER_NAMES)
  const table = random.pick(viewTables)
  const destination = random.pick(DESTINATIONS)
  const delivery = `whd_${random.below(6)}_${random.below(3)}_${random.pick(ACCOUNTS)}`
  const busy = distinct(random, DESTINATIONS)
  const passedOver = distinct(random, ACCOUNTS)
  const partitions = random.chance(0.5) ? null : distinct(random, ACCOUNTS).map(partitionOf)
  const now = random.below(TIME_MAX)
  const owned = distinct(random, SOME)
  const lease = { now, limit, busy, partitions: owned, leasedUntil: now + 1 + random.below(TIME_MAX / 2) }
  const happened = distinct(random, IDS).map((id) => ({ account: random.pick(ACCOUNTS), id: `${id}1` }))
  const steps = random.pick([
    { starts: [limit, 2 * limit, 3 * limit] },
    { starts: [24, 48, 72] },
    { starts: [0, 48] },
    { starts: [limit, limit + 23, limit + 47, limit + 72] }
  ])
  const revisions = {
    ids: distinct(random, [...IDS, "missing"]),
    limit: 1 + random.below(5),
    ...(random.chance(0.5) && { labels: labels(random) }),
    ...random.pick([{}, { olderThan: recordId(random.below(20)) }, { newerThan: recordId(random.below(20)) }])
  }
  const places = {
    revisions: IDS.map((id) => revisionId({ id, version: random.below(20) })),
    keys: [3, 9, 27].map((version) => keyId({ version })),
    events: IDS.map((id) => eventId({ type: random.pick(TYPES), id: `${id}1` })),
    tallies: [0, 9, 24].map((hour) => tallyId({ hours: random.pick(SPANS), hour, key: random.pick(TALLY_KEYS) }))
  }
  const after = random.pick(["", ...(table in places ? places[table as keyof typeof places] : IDS)])
  return {
    checkpoint: (views: ViewsShape) => views.checkpoint(account),
    documents: (views: ViewsShape) => views.documents(addresses),
    keepNumber: (views: ViewsShape) => views.keepNumber(account, limit),
    accountsNumbered: (views: ViewsShape) =>
      Effect.map(views.accountsNumbered(limit), (accounts) => accounts.toSorted()),
    accountsUnnumbered: (views: ViewsShape) =>
      Effect.map(views.accountsUnnumbered(100), (accounts) => accounts.toSorted()),
    keys: (views: ViewsShape) => views.keys(addresses),
    timers: (views: ViewsShape) => views.timers(account, limit),
    nextTimers: (views: ViewsShape) => views.nextTimers(limit, passedOver, partitions),
    timerCounts: (views: ViewsShape) =>
      Effect.map(views.timerCounts(timerName), (counts) => counts.toSorted((a, b) => (a.account < b.account ? -1 : 1))),
    list: (views: ViewsShape) => views.list(account, list),
    newest: (views: ViewsShape) => views.newest(newest),
    search: (views: ViewsShape) => views.search(account, search),
    revisions: (views: ViewsShape) => views.revisions(account, revisions),
    tallies: (views: ViewsShape) =>
      Effect.map(views.tallies(account, steps), (steps) =>
        steps.toSorted((a, b) => a.step - b.step || (a.key < b.key ? -1 : 1))
      ),
    standing: (views: ViewsShape) => views.standing(account),
    event: (views: ViewsShape) => views.event(event),
    events: (views: ViewsShape) => views.events(account, events),
    accounts: (views: ViewsShape) => Effect.map(views.accounts, (accounts) => accounts.toSorted()),
    subscriptions: (views: ViewsShape) =>
      Effect.map(views.subscriptions(account), (rows) =>
        rows.toSorted((a, b) => (a.destination < b.destination ? -1 : 1))
      ),
    deliveries: (views: ViewsShape) =>
      views.deliveries(account, {
        destination,
        limit,
        ...(events.olderThan && { olderThan: "whd_2" }),
        ...(events.behind && { behind: "whd_1" })
      }),
    delivery: (views: ViewsShape) => views.delivery(account, destination, delivery),
    eventDeliveries: (views: ViewsShape) => views.eventDeliveries(happened, limit),
    pendingDeliveries: (views: ViewsShape) => views.pendingDeliveries(happened),
    takeDeliveries: (views: ViewsShape) => views.takeDeliveries(lease),
    nextDelivery: (views: ViewsShape) => Effect.map(views.nextDelivery(busy, owned), String),
    freeDeliveries: (views: ViewsShape) => (limit === 1 ? views.freeDeliveries(owned) : Effect.void),
    runningTime: (views: ViewsShape) => views.runningTime(now),
    keepRunningTime: (views: ViewsShape) => (limit === 1 ? views.keepRunningTime(now) : Effect.void),
    scan: (views: ViewsShape) => views.scan(account, table, after, limit),
    scanDeliveries: (views: ViewsShape) => views.scan(account, "deliveries", `${destination}/${delivery}`, 100)
  }
}

const plain = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)))

/** Reads all rows, and when the first delivery of each destination may be taken, which no row contains. */
const everything = (views: ViewsShape) =>
  Effect.all([
    Effect.forEach(ACCOUNTS, (account) => Effect.forEach(viewTables, (table) => views.scan(account, table, "", 1000))),
    Effect.forEach(DESTINATIONS, (only) =>
      views.nextDelivery(
        DESTINATIONS.filter((each) => each !== only),
        SOME
      )
    )
  ])

/** Reads all rows of a table, a few at a time. */
const inPages = Effect.fnUntraced(function* (views: ViewsShape, account: string, table: ViewTable, limit: number) {
  const all: Array<ViewRow> = []
  for (;;) {
    const page = yield* views.scan(account, table, all.at(-1)?.id ?? "", limit)
    all.push(...page)
    if (page.length < limit) return all
  }
})

const sameAnswers = Effect.fnUntraced(function* (random: Random, memory: ViewsShape, postgres: ViewsShape) {
  assert.deepStrictEqual(plain(yield* everything(postgres)), plain(yield* everything(memory)), "everything")
  for (let round = 0; round < 3; round++) {
    for (const [name, ask] of Object.entries(questions(random))) {
      assert.deepStrictEqual(plain(yield* ask(postgres)), plain(yield* ask(memory)), name)
    }
  }
})

describe("the views in Postgres", () => {
  it.live.prop(
    "return the same as the ones in memory for every read",
    { seed: Seed },
    ({ seed }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const random = new Random(seed)
          const database = yield* PostgresStorage.make
          // Small limits, so that searches take the same steps as with thousands of rows.
          const storage = yield* Effect.provideService(database.connect("views"), SearchDepths, {
            newest: random.below(3),
            few: random.below(3),
            many: random.below(5)
          })
          const postgres = viewsOf(storage)
          const inMemory = yield* storageInMemory
          const memory = viewsOf(inMemory)
          const heads = new Map<string, Head>()
          for (const account of ACCOUNTS) {
            assert.strictEqual(yield* postgres.checkpoint(account), 0)
            yield* memory.checkpoint(account)
            for (const journal of [journalOf(storage), journalOf(inMemory)])
              yield* journal.append(following(...Array.from({ length: 50 }, (_, i) => row(account, i + 1, RECORD))))
          }
          const made: Array<DeliveryRow> = []
          for (let batch = 0; batch < 12; batch++) {
            const rows = projection(random, heads, made, batch)
            // A lease ends after the due time.
            const leasedUntil = random.chance(0.5) ? 0 : TIME_MAX + random.below(TIME_MAX)
            const refused = [yield* memory.apply(rows, leasedUntil), yield* postgres.apply(rows, leasedUntil)] as const
            assert.deepStrictEqual(refused[1].toSorted(), refused[0].toSorted())
            yield* sameAnswers(random, memory, postgres)
          }
          const expired = yield* memory.expireKeys(TIME_MAX / 2, 1_000_000)
          const limit = 1 + random.below(expired + 2)
          for (let left = expired; left > 0; left -= limit) {
            assert.strictEqual(yield* postgres.expireKeys(TIME_MAX / 2, limit), Math.min(left, limit))
          }
          assert.strictEqual(yield* postgres.expireKeys(TIME_MAX / 2, limit), 0)
          yield* sameAnswers(random, memory, postgres)
          for (let times = 0; times < 4; times++) {
            const [account, before, limit] = [random.pick(ACCOUNTS), random.below(2 ** 42), 1 + random.below(9)]
            const count = yield* postgres.expireEvents(account, before, limit)
            assert.strictEqual(count, yield* memory.expireEvents(account, before, limit))
            yield* sameAnswers(random, memory, postgres)
          }
          for (const table of viewTables) {
            const account = random.pick(ACCOUNTS)
            const rows = yield* postgres.scan(account, table, "", 1000)
            assert.deepStrictEqual(yield* inPages(postgres, account, table, 1 + random.below(5)), rows, table)
          }
          for (const views of [memory, postgres]) yield* views.clear(ACCOUNTS[0]!)
          yield* sameAnswers(random, memory, postgres)
        })
      ),
    { arbitrary: { runs: 8, maxShrinks: 5 } }
  )

  it.live("return the newest use of a key, wherever its row is stored", () =>
    Effect.gen(function* () {
      const [account] = ACCOUNTS as [string]
      const database = yield* PostgresStorage.make
      const views = viewsOf(yield* database.connect("views"))
      yield* views.checkpoint(account)
      const use = (version: number) => {
        const keys = [{ account, key: "key", version, at: version }]
        return views.apply({ ...EMPTY, checkpoints: [{ account, from: version - 1, to: version, ahead: 0 }], keys }, 0)
      }
      for (const version of [1, 2]) yield* use(version)
      yield* views.expireKeys(2, 1)
      // Frees the space of the first row for the next.
      yield* database.edit("VACUUM idempotency")
      yield* use(3)
      const places = yield* database.readRows<{ version: string }>(
        "SELECT version::text FROM idempotency ORDER BY ctid"
      )
      assert.deepStrictEqual(
        places.map(({ version }) => version),
        ["3", "2"]
      )
      const [newest] = yield* views.keys([{ account, id: "key" }])
      assert.strictEqual(newest?.version, 3)
    })
  )

  it.live(
    "find the next timers and deliveries of every partition, and agree with Till on every account's partition",
    () =>
      Effect.gen(function* () {
        const database = yield* PostgresStorage.make
        const views = viewsOf(yield* database.connect("views"))
        const accounts = ["till", "ü→😀", "a\\b:test", ...Array.from({ length: 300 }, (_, i) => `mer_${i}:live`)]
        for (const account of accounts) yield* views.checkpoint(account)
        const checkpoints = accounts.map((account) => ({ account, from: 0, to: 1, ahead: 0 }))
        const timer = { id: "t", name: "settle", version: 1, dueAt: 5, wakeAt: 5, checksum: 1 }
        const timersSet = accounts.map((account) => ({ ...timer, account }))
        const pending = { event: "evt_1", eventVersion: 1, version: 1, at: 1, attempts: [], nextAttemptAt: 1, dueAt: 1 }
        const deliveriesMade = accounts.map((account): DeliveryRow => {
          return { ...pending, account, id: "whd_1", destination: "we_1", state: "pending" }
        })
        yield* views.apply({ ...EMPTY, checkpoints, timersSet, deliveriesMade }, 0)
        const found = yield* Effect.forEach(
          Array.from({ length: PARTITIONS }, (_, i) => i),
          (partition) =>
            Effect.map(views.nextTimers(1000, [], [partition]), (timers) => timers.map(({ account }) => account))
        )
        for (const [partition, some] of found.entries()) {
          for (const account of some) assert.strictEqual(partitionOf(account), partition, account)
          const due = { now: 1, limit: 1000, busy: [], partitions: [partition], leasedUntil: 2 }
          const taken = yield* views.takeDeliveries(due)
          assert.sameMembers(
            taken.map(({ account }) => account),
            [...some]
          )
        }
        assert.deepStrictEqual(found.flat().toSorted(), accounts.toSorted())
      })
  )

  it.live("sweep no account that is at another version, and no other destination's deliveries", () =>
    Effect.gen(function* () {
      const [account] = ACCOUNTS as [string]
      const database = yield* PostgresStorage.make
      const views = viewsOf(yield* database.connect("views"))
      yield* views.checkpoint(account)
      const of = { account, version: 1 }
      const pending = { event: "evt_1", eventVersion: 1, at: 1, attempts: [], nextAttemptAt: 9, dueAt: 9 }
      const everyTable: Projection = {
        ...EMPTY,
        checkpoints: [{ account, from: 0, to: 1, ahead: 0 }],
        documentsCreated: [
          {
            ...of,
            id: "a",
            kind: "counter",
            documentSpan: null,
            hiddenSpan: null,
            labels: {},
            format: 1,
            search: null,
            tallies: [{ hour: 1, key: "b", count: 1, amount: 1 }],
            checksum: 1
          }
        ],
        events: [{ ...of, id: "evt_1", type: "counter.created" }],
        timersSet: [{ ...of, id: "a", name: "increment", dueAt: 9, wakeAt: 9, checksum: 1 }],
        keys: [{ ...of, key: "key", at: 1 }],
        subscriptionsSet: [{ ...of, destination: "we_1", types: ["*"], checksum: -1 }],
        deliveriesMade: ["we_1", "we_2"].map((destination) => {
          return { ...of, ...pending, destination, id: `whd_${destination}`, state: "pending" }
        })
      }
      yield* views.apply(everyTable, 0)
      const before = yield* everything(views)
      for (const sweep of [
        { account, wiped: true, unsubscribed: [], clock: 0 },
        { account, wiped: false, unsubscribed: ["we_1"], clock: 5 }
      ]) {
        const checkpoints = [{ account, from: 2, to: 3, ahead: 0 }]
        assert.deepStrictEqual(yield* views.apply({ ...EMPTY, checkpoints, sweep }, 0), [account])
        assert.deepStrictEqual(yield* everything(views), before)
      }
      for (const [from, unsubscribed, clock] of [
        [1, ["we_0"], null],
        [2, ["we_1"], 5]
      ] as const) {
        const sweep = { account, wiped: false, unsubscribed, clock }
        yield* views.apply({ ...EMPTY, checkpoints: [{ account, from, to: from + 1, ahead: 0 }], sweep }, 0)
      }
      const stateOf = (destination: string) =>
        Effect.map(views.deliveries(account, { destination, limit: 1 }), ([row]) => [row?.state, row?.dueAt])
      assert.deepStrictEqual(yield* stateOf("we_1"), ["canceled", null])
      assert.deepStrictEqual(yield* stateOf("we_2"), ["pending", 4])
      assert.strictEqual(yield* views.nextDelivery([], SOME), 4)
    })
  )

  it.live("lease deliveries without waiting for another process that is leasing some", () =>
    Effect.gen(function* () {
      const [account] = ACCOUNTS as [string]
      const database = yield* PostgresStorage.make
      const views = viewsOf(yield* database.connect("views"))
      yield* views.checkpoint(account)
      const pending = { event: "evt_1", eventVersion: 1, version: 1, at: 1, attempts: [], nextAttemptAt: 1, dueAt: 1 }
      const deliveriesMade = ["whd_1", "whd_2", "whd_3"].map((id): DeliveryRow => {
        return { ...pending, account, id, destination: "we_1", state: "pending" }
      })
      yield* views.apply({ ...EMPTY, checkpoints: [{ account, from: 0, to: 1, ahead: 0 }], deliveriesMade }, 0)
      const take = Effect.map(
        views.takeDeliveries({ now: 1, limit: 10, busy: [], partitions: SOME, leasedUntil: 9 }),
        (taken) => taken.map(({ id }) => id)
      )
      const meanwhile = yield* database.within("SELECT FROM deliveries WHERE id <> 'whd_2' FOR UPDATE", take)
      assert.deepStrictEqual(meanwhile, ["whd_2"])
      assert.deepStrictEqual(yield* take, ["whd_1", "whd_3"])
    })
  )

  it.live("find the due deliveries of a partition without reading those of others", () =>
    Effect.gen(function* () {
      const [mine, others] = ["mer_1:test", "mer_1:live"] as const
      const database = yield* PostgresStorage.make
      yield* Effect.scoped(database.connect("migrations"))
      yield* database.edit(`INSERT INTO deliveries SELECT account, 'we_1', 'whd_' || i, 'evt_' || i, i, i, i,
        'pending', '[]', i, i, CASE WHEN account = '${mine}' THEN ${1e9} + i ELSE i END
        FROM (VALUES ('${others}', 20000), ('${mine}', 20)) AS a (account, rows), generate_series(1, rows) AS i`)
      const read = database.readRows<{ readonly rows: number }>(
        "SELECT (seq_tup_read + idx_tup_fetch)::int AS rows FROM pg_stat_user_tables WHERE relname = 'deliveries'"
      )
      // A connection's counts become visible to others shortly after it is closed.
      const settled = Effect.repeat(Effect.delay(read, "200 millis"), { times: 5 })
      const [before] = yield* settled
      yield* Effect.scoped(
        Effect.gen(function* () {
          const views = viewsOf(yield* database.connect("views"))
          const partitions = [partitionOf(mine)]
          assert.strictEqual(yield* views.nextDelivery([], partitions), 1e9 + 1)
          const taken = yield* views.takeDeliveries({ now: 1e9 + 5, limit: 10, busy: [], partitions, leasedUntil: 2e9 })
          assert.strictEqual(taken.length, 5)
          yield* views.freeDeliveries(partitions)
          assert.strictEqual(yield* views.nextDelivery([], partitions), 1)
          assert.strictEqual(yield* views.nextDelivery([], [partitionOf(others)]), 1)
        })
      )
      const [after] = yield* settled
      assert.isBelow(after!.rows - before!.rows, 200)
    })
  )

  it.live("end the leases of a partition, and of no other, even if the clock has stepped back", () =>
    Effect.gen(function* () {
      const [mine, others] = ["mer_1:test", "mer_1:live"] as const
      const database = yield* PostgresStorage.make
      const views = viewsOf(yield* database.connect("views"))
      for (const account of [mine, others]) yield* views.checkpoint(account)
      const take = Effect.suspend(() =>
        Effect.map(
          views.takeDeliveries({ now: 3e12, limit: 10, busy: [], partitions: SOME, leasedUntil: 9e12 }),
          (taken) => taken.map(({ id }) => id)
        )
      )
      const pending = { event: "evt_1", eventVersion: 1, at: 1, attempts: [], nextAttemptAt: 7e12, dueAt: 7e12 }
      const made = (account: string, version: number, ids: ReadonlyArray<string>) => ({
        ...EMPTY,
        checkpoints: [{ account, from: version - 1, to: version, ahead: 0 }],
        deliveriesMade: ids.map((id): DeliveryRow => {
          return { ...pending, version, account, id, destination: "we_1", state: "pending" }
        })
      })
      yield* views.apply(made(mine, 1, ["whd_1", "whd_2"]), 9e12)
      yield* views.apply(made(mine, 2, ["whd_3"]), 0)
      yield* views.apply(made(others, 1, ["whd_4"]), 9e12)
      assert.deepStrictEqual(yield* take, ["whd_3"])
      assert.deepStrictEqual(yield* take, [])
      yield* views.freeDeliveries([partitionOf(mine)])
      assert.deepStrictEqual(yield* take, ["whd_1", "whd_2", "whd_3"])
      yield* views.freeDeliveries([partitionOf(others)])
      assert.deepStrictEqual(yield* take, ["whd_4"])
    })
  )

  it.live("list the accounts that are behind the journal", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      const storage = yield* database.connect("views")
      const [journal, views] = [journalOf(storage), viewsOf(storage)]
      for (const account of ACCOUNTS) yield* views.checkpoint(account)
      yield* journal.append(following(row("mer_1:test", 1), row("mer_1:test", 2), row("mer_2:test", 1)))
      assert.deepStrictEqual([...(yield* views.behind)].toSorted(), ["mer_1:test", "mer_2:test"])
      const checkpoints = [
        { account: "mer_1:test", from: 0, to: 1, ahead: 0 },
        { account: "mer_2:test", from: 0, to: 1, ahead: 0 }
      ]
      yield* views.apply({ ...EMPTY, checkpoints }, 0)
      assert.deepStrictEqual(yield* views.behind, ["mer_1:test"])
    })
  )

  it.live("fail with the server's message", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      const views = viewsOf(yield* database.connect("views"))
      yield* database.edit("DROP TABLE timers")
      const { message } = yield* Effect.flip(views.nextTimers(1, [], null))
      assert.strictEqual(message, 'The storage failed: relation "timers" does not exist')
    })
  )

  it.live("apply one of two projections from the same checkpoint", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      const [one, two] = [viewsOf(yield* database.connect("one")), viewsOf(yield* database.connect("two"))]
      yield* one.checkpoint(ACCOUNTS[0]!)
      for (let from = 0; from < 20; from++) {
        const step = {
          ...EMPTY,
          checkpoints: [{ account: ACCOUNTS[0]!, from, to: from + 1, ahead: 0 }],
          events: [{ account: ACCOUNTS[0]!, id: `evt_${from}`, type: "counter.created", version: from + 1 }]
        }
        const refused = yield* Effect.all([one.apply(step, 0), two.apply(step, 0)], { concurrency: "unbounded" })
        assert.strictEqual(refused.flat().length, 1)
      }
      assert.strictEqual(yield* two.checkpoint(ACCOUNTS[0]!), 20)
    })
  )
})

const hashOf = (account: string, version: number): string => hash("sha256", `${account} ${version}`, "hex")

const row = (account: string, version: number, text: string = "{}"): JournalRow => ({
  account,
  version,
  hash: hashOf(account, version),
  bytes: Buffer.from(text)
})

/** Chains rows, each to the one before. */
const following = (...rows: ReadonlyArray<JournalRow>): ReadonlyArray<ChainedRow> =>
  rows.map((each) => ({ ...each, previous: hashOf(each.account, each.version - 1) }))

describe("the journal in Postgres", () => {
  it.live("appends all rows or none, and names the accounts that another process owns", () =>
    Effect.gen(function* () {
      const journal = journalOf(yield* (yield* PostgresStorage.make).connect("journal"))
      yield* journal.append(following(row("a", 1), row("b", 1)))
      const exit = yield* Effect.exit(journal.append(following(row("a", 2), row("b", 1), row("c", 1))))
      const failure = Exit.isFailure(exit) ? exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error : null
      assert.strictEqual(failure?._tag, "Fenced")
      assert.deepStrictEqual(failure?._tag === "Fenced" ? failure.accounts : [], ["b"])
      assert.deepStrictEqual(yield* journal.accounts, ["a", "b"])
      assert.deepStrictEqual(yield* journal.read("a", 1, 10), [])
    })
  )

  it.live("refuses a record whose predecessor is another or missing, and names its account", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      const journal = journalOf(yield* database.connect("journal"))
      yield* journal.append(following(row("a", 1), row("a", 2), row("b", 1)))
      const refused = (rows: ReadonlyArray<ChainedRow>) =>
        Effect.map(Effect.flip(journal.append(rows)), (failure) => (failure._tag === "Fenced" ? failure.accounts : []))
      assert.deepStrictEqual(yield* refused(following(row("a", 4), row("a", 5), row("b", 2))), ["a"])
      assert.deepStrictEqual(
        yield* refused([{ ...row("b", 2), previous: hashOf("another", 1) }, ...following(row("a", 3))]),
        ["b"]
      )
      assert.deepStrictEqual((yield* refused(following(row("a", 4), row("b", 1)))).toSorted(), ["a", "b"])
      yield* journal.append(following(row("a", 3), row("b", 2), row("c", 1), row("c", 2)))
      assert.deepStrictEqual(yield* journal.read("a", 2, 10), [row("a", 3)])
      const versions = yield* journal.versions(["a", "nobody", "b"])
      assert.deepStrictEqual(
        ["a", "b", "nobody"].map((account) => versions.get(account) ?? 0),
        [3, 2, 0]
      )
    })
  )

  it.live("accepts each version from one of two writers", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      const journals = [journalOf(yield* database.connect("one")), journalOf(yield* database.connect("two"))]
      for (let version = 1; version <= 20; version++) {
        const exits = yield* Effect.forEach(
          journals,
          (journal) => Effect.exit(journal.append(following(row("a", version)))),
          {
            concurrency: "unbounded"
          }
        )
        assert.strictEqual(exits.filter(Exit.isSuccess).length, 1)
      }
    })
  )

  it.live("reads pages that fit into memory, up to the end, as the one in memory does", () =>
    Effect.gen(function* () {
      const third = "x".repeat(Math.ceil(READ_BYTES_MAX / 3))
      const texts = [third, third, third, "{}", third + third, third, "{}"]
      const rows = texts.map((text, i) => row("a", i + 1, text))
      for (const storage of [yield* storageInMemory, yield* (yield* PostgresStorage.make).connect("journal")]) {
        const journal = journalOf(storage)
        for (const each of rows) yield* journal.append(following(each))
        const versionsAfter = (version: number, limit: number) =>
          Effect.map(journal.read("a", version, limit), (read) => read.map(({ version }) => version))
        assert.deepStrictEqual(yield* versionsAfter(0, 10), [1, 2, 3])
        assert.deepStrictEqual(yield* versionsAfter(0, 2), [1, 2])
        assert.deepStrictEqual(yield* versionsAfter(3, 10), [4, 5, 6])
        assert.deepStrictEqual(yield* versionsAfter(5, 10), [6, 7])
        assert.deepStrictEqual(yield* versionsAfter(7, 10), [])
      }
    })
  )

  it.live("returns the longest record", () =>
    Effect.gen(function* () {
      const journal = journalOf(yield* (yield* PostgresStorage.make).connect("journal"))
      const longest = row("a", 1, "x".repeat(RECORD_BYTES_MAX))
      yield* journal.append(following(longest))
      assert.isTrue((yield* journal.read("a", 0, 1))[0]!.bytes.every((byte) => byte === longest.bytes[0]))
      assert.lengthOf((yield* journal.at([longest]))[0]!.bytes, RECORD_BYTES_MAX)
    })
  )

  it.live.prop(
    "returns the texts that were appended, and the rows that were requested",
    { texts: Schema.Array(Schema.String), after: Schema.Literals([0, 1, 3, 100]), limit: Schema.Literals([1, 2, 50]) },
    ({ after, limit, texts }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const journal = journalOf(yield* (yield* PostgresStorage.make).connect("journal"))
          const rows = [...texts, "x".repeat(3_000_000)].map((text, i) => row("ä'\"", i + 1, JSON.stringify({ text })))
          yield* journal.append(following(...rows))
          yield* journal.append(following(row("a", 1)))
          assert.deepStrictEqual(yield* journal.read("ä'\"", after, limit), rows.slice(after, after + limit))
          const places = [rows.at(-1)!, row("ä'\"", 1000), row("a", 1), rows[0]!, row("a", 1), row("nobody", 1)]
          const chained = (row: JournalRow) => {
            return { ...row, previous: row.version === 1 ? GENESIS : hashOf(row.account, row.version - 1) }
          }
          assert.deepStrictEqual(yield* journal.at(places), [
            chained(rows.at(-1)!),
            undefined,
            chained(row("a", 1)),
            chained(rows[0]!),
            chained(row("a", 1)),
            undefined
          ])
          const slices = [...texts.keys(), 999].map((i) => ({ ...row("ä'\"", i + 1), span: { at: 8, length: i } }))
          assert.deepStrictEqual(
            yield* journal.slices(slices),
            slices.map(({ span: { at, length }, version }) => {
              const found = rows[version - 1]
              return found && textOf(found.bytes.subarray(at, at + length))
            })
          )
          assert.deepStrictEqual(yield* journal.accounts, ["a", "ä'\""])
        })
      ),
    { arbitrary: { runs: 8, maxShrinks: 5 } }
  )
})
