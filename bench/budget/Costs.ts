/**
 * Measures what a request costs in figures that do not depend on the machine: bytes, rows and statements.
 *
 * Rows and statements are counted in batches of `SIZE` requests, each of which starts when the views hold the one
 * before. Allocations are counted afterwards, in warm code.
 */
import { Effect, Schedule } from "effect"
import { BenchFailure } from "../BenchFailure.ts"
import { contenders, start } from "../Contender.ts"
import * as Database from "../Database.ts"
import * as Seed from "../Seed.ts"
import { verify } from "../Verification.ts"
import * as Batches from "./Batches.ts"
import { allocatedDuring, NODE_OPTIONS } from "./Heap.ts"
import { idIn, type Kind, KINDS, makeNextText, type Target } from "./Requests.ts"
import * as StatementProxy from "./StatementProxy.ts"

/** Figures by name. Bytes are per request; statements and rows per batch. */
export type Figures = Readonly<Record<string, number>>
export type Costs = Readonly<Record<Kind, Figures>>

const DATABASE = "till"
/** Views whose rows are counted; those of subscriptions and deliveries need an endpoint. */
const VIEWS = ["checkpoints", "objects", "revisions", "events", "timers", "idempotency", "tallies"]
const TABLES = ["journal", ...VIEWS]
/** Tables of which a projection changes the same rows however many records it has. */
const PER_PROJECTION = ["checkpoints", "tallies"]

const BATCHES = 20
/** Batches without a pause: the request log leaves requests out if more than 500 wait to be written. */
const GROUP = 20
const WARM_UP_GROUPS = 12
const GROUPS_PER_ROUND = 5
/** The least of the rounds counts: the compiler and background work only add to allocations. */
const ROUNDS = 3

/** The request log is written twice a second. */
const LOG_MILLIS = 1000
/** A busy machine may have Till refuse a request, or collect garbage: such a measurement is made again. */
const RETRIES = 4

const POLL_MILLIS = 20
const WAIT_MILLIS_MAX = 60_000

const until = <E>(problem: string, condition: Effect.Effect<boolean, E>) =>
  condition.pipe(
    Effect.repeat({ schedule: Schedule.spaced(POLL_MILLIS), until: (holds) => holds }),
    Effect.timeoutOrElse({
      duration: WAIT_MILLIS_MAX,
      orElse: () => Effect.fail(new BenchFailure({ problem }))
    })
  )

interface Contents {
  /** Rows inserted, updated and deleted since the beginning, by table. */
  readonly touched: Readonly<Record<string, number>>
  /** Bytes of the rows, by table. */
  readonly bytes: Readonly<Record<string, number>>
}

const CONTENTS = TABLES.map(
  (table) => `SELECT '${table}' AS table, (n_tup_ins + n_tup_upd + n_tup_del)::text AS touched,
    (n_tup_ins - n_tup_del = (SELECT count(*) FROM ${table}))::text AS "isCurrent",
    (SELECT coalesce(sum(${table === "journal" ? "octet_length(record)" : `pg_column_size(t.*)`}), 0)
      FROM ${table} AS t)::text AS bytes FROM pg_stat_user_tables WHERE relname = '${table}'`
).join(" UNION ALL ")

/** Reads the tables when Postgres' sessions have reported their counts, which they do within ten idle seconds. */
const contentsOf = Effect.fnUntraced(function* (database: Database.Database) {
  let contents: Contents = { touched: {}, bytes: {} }
  const current = Effect.map(database.rows(DATABASE, CONTENTS), (rows) => {
    const column = (name: string) => Object.fromEntries(rows.map((row) => [row["table"]!, Number(row[name])]))
    contents = { touched: column("touched"), bytes: column("bytes") }
    return rows.every(({ isCurrent }) => isCurrent === "true")
  })
  yield* until("Postgres does not report its rows.", current)
  return contents
})

const BEHIND = `SELECT count(*) FROM checkpoints AS c
  WHERE EXISTS (SELECT FROM journal AS j WHERE j.account = c.account AND j.version > c.version)`

interface Bench {
  readonly database: Database.Database
  readonly proxy: StatementProxy.StatementProxy
  readonly folder: string
  readonly send: (nextText: () => string) => Effect.Effect<ReadonlyArray<string>, BenchFailure>
  /** Waits until the views hold everything. */
  readonly projected: Effect.Effect<unknown, BenchFailure>
  /** Waits until everything is written, and counts requests from there. */
  readonly begin: Effect.Effect<unknown, BenchFailure>
  /** Waits until the request log holds all requests since `begin`. */
  readonly logged: Effect.Effect<unknown, BenchFailure>
  readonly logBytes: Effect.Effect<number, BenchFailure>
}

const openBench = Effect.gen(function* () {
  const database = yield* Database.makeAnywhere
  const databaseUrl = yield* database.create(DATABASE)
  const [apiKey] = yield* Seed.make(databaseUrl, { merchants: 1 })
  const proxy = yield* StatementProxy.make(databaseUrl)
  const till = yield* start(contenders.till, { databaseUrl: proxy.url, nodeOptions: NODE_OPTIONS })
  const sendBatch = yield* Batches.make(till)
  const count = (query: string) => database.count(DATABASE, query)
  const countLogged = count("SELECT count(*) FROM request_logs")
  const projected = until(
    "The views do not get to hold everything.",
    Effect.map(count(BEHIND), (behind) => behind === 0)
  )
  let expected = 0
  const bench: Bench = {
    database,
    proxy,
    folder: till.installation.dataFolder,
    send: (nextText) =>
      Effect.tap(sendBatch(nextText), (answers) => Effect.sync(() => void (expected += answers.length))),
    projected,
    begin: Effect.gen(function* () {
      yield* projected
      yield* Effect.sleep(LOG_MILLIS)
      expected = yield* countLogged
    }),
    logged: until(
      "The request log does not get to hold everything.",
      Effect.map(countLogged, (logged) => logged === expected)
    ),
    logBytes: count("SELECT coalesce(sum(pg_column_size(r.*)), 0) FROM request_logs AS r")
  }
  const target: Target = { port: till.port, apiKey: apiKey!, confirmable: [], known: [] }
  return { bench, target, installation: till.installation }
})

/** Statements of the request log are sent twice a second, however many requests there are. */
const isOfRequestLog = (text: string): boolean => text.includes("request_logs")
/** A flush begins as soon as two thirds of the last one's records wait, so a batch takes one or two. One counts. */
const isFlush = (text: string): boolean => text.startsWith("INSERT INTO journal")
const isProjection = (text: string): boolean => text.includes("UPDATE checkpoints SET version")

/**
 * Returns the number of statements in a batch, and the bytes of their parameters in all batches. The least count of a
 * statement is the one that requests need: periodic statements fall into few batches.
 */
const statementsOf = (batches: ReadonlyArray<StatementProxy.Statements>) => {
  const texts = [...batches[0]!.keys()].filter((text) => !isOfRequestLog(text))
  const least = (text: string) => Math.min(...batches.map((batch) => batch.get(text)?.count ?? 0))
  const regular = texts.filter((text) => least(text) > 0)
  const counts = regular.map((text) => (isFlush(text) ? 1 : least(text)))
  const bytes = batches.flatMap((batch) => regular.map((text) => batch.get(text)!.bytes))
  const all = batches.flatMap((batch) => [...batch])
  const projections = sum(all.filter(([text]) => isProjection(text)).map(([, { count }]) => count))
  return { count: sum(counts), bytes: sum(bytes), projections, isShared: counts.every((count) => count === 1) }
}

const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0)

/** Batches of one kind of request. */
interface Load {
  /** Makes what the batches of a measurement use up. */
  readonly prepare: Effect.Effect<unknown, BenchFailure>
  readonly sendOne: Effect.Effect<unknown, BenchFailure>
}

const again = <A>({ prepare }: Load, measurement: Effect.Effect<A, BenchFailure>) =>
  Effect.retry(Effect.andThen(prepare, measurement), { times: RETRIES })

/** Measures rows, bytes and statements. */
const storedBy = Effect.fnUntraced(function* (bench: Bench, { sendOne }: Load) {
  const { begin, database, logBytes, logged, projected, proxy } = bench
  yield* sendOne
  yield* begin
  const [before, logBefore] = [yield* contentsOf(database), yield* logBytes]
  const batches: Array<StatementProxy.Statements> = []
  for (let i = 0; i < BATCHES; i++) {
    proxy.take()
    yield* Effect.andThen(sendOne, projected)
    batches.push(proxy.take())
  }
  yield* logged
  const [after, logAfter] = [yield* contentsOf(database), yield* logBytes]
  const requests = BATCHES * Batches.SIZE
  const difference = (part: keyof Contents, table: string) => after[part][table]! - before[part][table]!
  const statements = statementsOf(batches)
  const perRequest = (total: number) => Math.round(total / requests)
  // Whole rows per projection, because a busy machine projects some batches in two parts.
  const rows = TABLES.map((table) => {
    const isOfProjection = PER_PROJECTION.includes(table)
    const rows = difference("touched", table) / (isOfProjection ? Math.max(statements.projections, 1) : BATCHES)
    return [`rows of ${table} per ${isOfProjection ? "projection" : Batches.SIZE}`, Math.round(rows)]
  })
  const figures: Figures = {
    [`statements per ${Batches.SIZE}`]: statements.count,
    "statement bytes": perRequest(statements.bytes),
    "record bytes": perRequest(difference("bytes", "journal")),
    "view bytes": perRequest(sum(VIEWS.map((table) => difference("bytes", table)))),
    "log bytes": perRequest(logAfter - logBefore),
    ...Object.fromEntries(rows)
  }
  const present = Object.fromEntries(Object.entries(figures).filter(([, value]) => value !== 0)) as Figures
  return { figures: present, statements }
})

/**
 * Measures rows, bytes and statements again if requests of a batch do not share their statements. On a busy machine
 * Till may have lost its lease and read the account anew, so that it loads each document; the least count is right.
 */
const storedAtBest = Effect.fnUntraced(function* (bench: Bench, load: Load) {
  let best = yield* again(load, storedBy(bench, load))
  for (let i = 0; i < RETRIES && !best.statements.isShared; i++) {
    const next = yield* again(load, storedBy(bench, load))
    if (next.statements.count < best.statements.count) best = next
  }
  return best.figures
})

/** Sends a group of batches, and waits until everything behind them is written. */
const groupOf = ({ logged, projected }: Bench, sendOne: Load["sendOne"]) =>
  Effect.andThen(Effect.replicateEffect(sendOne, GROUP, { discard: true }), Effect.andThen(projected, logged))

/** Measures the bytes that V8 allocates per request, work behind the answers included. */
const allocatedBy = Effect.fnUntraced(function* (bench: Bench, load: Load) {
  const groups = (count: number) => Effect.replicateEffect(groupOf(bench, load.sendOne), count, { discard: true })
  const round = Effect.andThen(bench.begin, allocatedDuring(bench.folder, groups(GROUPS_PER_ROUND)))
  yield* again(load, Effect.andThen(bench.begin, groups(WARM_UP_GROUPS)))
  const rounds = yield* Effect.replicateEffect(again(load, round), ROUNDS)
  return Math.round(Math.min(...rounds) / (GROUPS_PER_ROUND * GROUP * Batches.SIZE))
})

/** PaymentIntents that retrieves read in turn. */
const KNOWN = 100
/** PaymentIntents that the confirmations of a measurement use up, at most. */
const CONFIRMED_MAX = WARM_UP_GROUPS * GROUP * Batches.SIZE

const makeLoads = (bench: Bench, target: Target): ((kind: Kind) => Load) => {
  const sendOf = (kind: Kind) => {
    const nextText = makeNextText(kind, target)
    return Effect.map(bench.send(nextText), (answers) => {
      if (kind !== "create") return
      const ids = answers.map(idIn)
      target.confirmable.push(...ids)
      target.known.push(...ids.slice(0, Math.max(KNOWN - target.known.length, 0)))
    })
  }
  const isEnough = () => target.confirmable.length >= CONFIRMED_MAX
  const fill = Effect.suspend(() =>
    isEnough()
      ? Effect.void
      : Effect.andThen(bench.begin, Effect.repeat(groupOf(bench, sendOf("create")), { until: isEnough }))
  )
  return (kind) => ({ prepare: kind === "confirm" ? fill : Effect.void, sendOne: sendOf(kind) })
}

/** Measures all kinds on a Till of its own. */
export const measure = Effect.gen(function* () {
  const { bench, installation, target } = yield* openBench
  const loadOf = makeLoads(bench, target)
  const stored = new Map<Kind, Figures>()
  for (const kind of KINDS) stored.set(kind, yield* storedAtBest(bench, loadOf(kind)))
  const costs: Array<[Kind, Figures]> = []
  for (const kind of KINDS) {
    costs.push([kind, { "allocated bytes": yield* allocatedBy(bench, loadOf(kind)), ...stored.get(kind) }])
  }
  yield* verify(installation)
  return { costs: Object.fromEntries(costs) as Costs, postgres: bench.database.version }
}).pipe(Effect.scoped)
