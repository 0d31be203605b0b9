/**
 * The log of requests in Postgres. Answered requests are buffered in memory and written in batches, one statement at a
 * time with asynchronous commit: a crash may lose the last batches. A batch has a maximum size; requests beyond it, and
 * those that the database refused, are left out and counted.
 *
 * Accounts are trimmed to the kept days, number and bytes of requests, by the process that serves them and by processes
 * that write much to them. Measuring an account costs as much as writing a tenth of its rows, so a writer counts its
 * own rows until a limit may be exceeded.
 */
import { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Layer } from "effect"
import type { Fragment } from "effect/sql/Statement"
import { Unavailable } from "../engine/Accounts.ts"
import { type Between, idsOf } from "../engine/log/Created.ts"
import type { AccountId } from "../engine/log/Document.ts"
import { idAt } from "../engine/log/Identifiers.ts"
import { Placement } from "../engine/process/Placement.ts"
import * as Metrics from "../engine/process/Metrics.ts"
import { type Paced, PRUNED_MAX, Pruning } from "../engine/process/Pruning.ts"
import { type ErrorGroup, type LoggedRequest, type RequestFilter, RequestLog } from "../engine/RequestLog.ts"
import { bigints, ints, texts } from "./Rows.ts"
import { logOf } from "../engine/process/Log.ts"

const log = logOf("postgres")

const DAY_MILLIS = 86_400_000
/** The size of a batch and of the buffer: a thousand requests a second. */
const BATCH_MAX = 500
const BATCH_MILLIS = 500
/** A statement that takes longer is abandoned and tried again. */
const WRITE_MILLIS_MAX = 10_000
/** How long the process waits at its end for the last batch to be written. */
const LAST_MILLIS_MAX = 1000
/** How many requests an account keeps, and how many bytes of them, newest first. */
const KEPT_MAX = 100_000
const BYTES_MAX = 64 * 1024 * 1024
/** The size of a row without its texts of variable length. */
const ROW_BYTES = 300
/**
 * An account is trimmed when this process has written this share of the kept amount since its start; after that,
 * whenever the account exceeds the kept amount by this share; and once an hour.
 */
const TRIM_AFTER = 1 / 10
const TRIM_MILLIS = 10_000
const ROUNDS_AN_HOUR = 360
const REPORT_MILLIS = 60_000
/** How many of the newest requests are searched for groups of errors. */
const GROUPED_MAX = 20_000
const GROUPS_MAX = 50

export interface Limits {
  readonly batchMillis: number
  readonly batchMax: number
  readonly keptMax: number
  readonly bytesMax: number
  readonly trimMillis: number
}

interface Row {
  readonly account: string
  readonly id: string
  readonly at: bigint
  readonly method: string
  readonly path: string
  readonly status: number
  readonly micros: bigint
  readonly api_key: string
  readonly api_version: string
  readonly idempotency_key: string | null
  readonly original_request: string | null
  readonly error_type: string | null
  readonly error_code: string | null
  readonly error_param: string | null
  readonly error_message: string | null
  readonly objects: ReadonlyArray<string>
  readonly sent: string | null
}

const COLUMNS = `account, id, at, method, path, status, micros, api_key, api_version, idempotency_key,
  original_request, error_type, error_code, error_param, error_message, objects, sent`

const toLogged = (row: Row): LoggedRequest => ({
  id: row.id,
  account: row.account,
  at: Number(row.at),
  method: row.method,
  path: row.path,
  status: row.status,
  millis: Number(row.micros) / 1000,
  apiKey: row.api_key,
  apiVersion: row.api_version,
  idempotencyKey: row.idempotency_key,
  originalRequest: row.original_request,
  error:
    row.error_type === null
      ? null
      : { type: row.error_type, code: row.error_code!, param: row.error_param, message: row.error_message! },
  objects: row.objects,
  sent: row.sent
})

/**
 * Inserts rows with asynchronous commit. `again` is set if some of the rows may be stored already: the check for
 * existing rows costs half as much as the insert, so it is left out otherwise.
 */
const insert = (sql: PgClient.PgClient, rows: ReadonlyArray<LoggedRequest>, again: boolean) =>
  sql`WITH later AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
    INSERT INTO request_logs (${sql.literal(COLUMNS)})
    SELECT account, id, at, method, path, status, micros, api_key, api_version, idempotency_key, original_request,
      error_type, error_code, error_param, error_message, string_to_array(objects, ' '), sent
    FROM later, unnest(${texts(rows.map((r) => r.account))}, ${texts(rows.map((r) => r.id))},
      ${bigints(rows.map((r) => r.at))}, ${texts(rows.map((r) => r.method))}, ${texts(rows.map((r) => r.path))},
      ${ints(rows.map((r) => r.status))}, ${bigints(rows.map((r) => Math.round(r.millis * 1000)))},
      ${texts(rows.map((r) => r.apiKey))}, ${texts(rows.map((r) => r.apiVersion))},
      ${texts(rows.map((r) => r.idempotencyKey))}, ${texts(rows.map((r) => r.originalRequest))},
      ${texts(rows.map((r) => r.error?.type ?? null))}, ${texts(rows.map((r) => r.error?.code ?? null))},
      ${texts(rows.map((r) => r.error?.param ?? null))}, ${texts(rows.map((r) => r.error?.message ?? null))},
      ${texts(rows.map((r) => r.objects.join(" ")))}, ${texts(rows.map((r) => r.sent))})
      AS r (account, id, at, method, path, status, micros, api_key, api_version, idempotency_key, original_request,
        error_type, error_code, error_param, error_message, objects, sent)
    ${sql.literal(again ? "ON CONFLICT DO NOTHING" : "")}`

const whenIn =
  (sql: PgClient.PgClient) =>
  <A>(value: A | undefined, condition: (value: A) => Fragment): Fragment =>
    value === undefined ? sql`` : condition(value)

const conditions = (sql: PgClient.PgClient, filter: RequestFilter): Fragment => {
  const { apiKey, apiVersion, code, idempotencyKey, method, object, path, status } = filter
  const when = whenIn(sql)
  return sql`${when(status, ([from, to]) => sql`AND status BETWEEN ${from} AND ${to}`)}
    ${when(method, (method) => sql`AND method = ${method}`)}
    ${when(path, (path) => sql`AND starts_with(path, ${path})`)}
    ${when(apiKey, (key) => sql`AND api_key = ${key}`)}
    ${when(apiVersion, (version) => sql`AND api_version = ${version}`)}
    ${when(idempotencyKey, (key) => sql`AND idempotency_key = ${key}`)}
    ${when(object, (object) => sql`AND objects @> ${texts([object])}`)}
    ${when(code, (code) => sql`AND error_code = ${code}`)}`
}

interface SqlGroup extends Pick<Row, "method" | "status" | "id" | "at" | "path"> {
  readonly error_type: string
  readonly error_code: string
  readonly error_param: string | null
  readonly error_message: string
  readonly count: bigint
}

const toGroup = ({ at, count, error_code, error_message, error_param, error_type, id, path, ...row }: SqlGroup) =>
  ({
    method: row.method,
    status: row.status,
    type: error_type,
    code: error_code,
    param: error_param,
    count: Number(count),
    last: { id, at: Number(at), path, message: error_message }
  }) satisfies ErrorGroup

const execute = <Rows, A>(
  statement: Effect.Effect<Rows, unknown>,
  f: (rows: Rows) => A
): Effect.Effect<A, Unavailable> =>
  Effect.mapBoth(statement, {
    onSuccess: f,
    onFailure: () => new Unavailable({ reason: "The database does not answer." })
  })

const makeReads = (sql: PgClient.PgClient) => {
  const columns = sql.literal(COLUMNS)
  const when = whenIn(sql)
  return {
    find: (account: AccountId, ids: ReadonlyArray<string>) => {
      // No text in Postgres contains NUL.
      const found = texts(ids.filter((id) => !id.includes("\0")))
      return execute(
        sql<Row>`SELECT ${columns} FROM request_logs WHERE account = ${account} AND id = ANY(${found})`,
        (rows) => new Map(rows.map((row) => [row.id, toLogged(row)]))
      )
    },
    list: (account: AccountId, { created, filter, limit, newerThan, olderThan }: Parameters<Shape["list"]>[1]) => {
      const place =
        newerThan !== undefined
          ? sql`AND id > ${newerThan}`
          : olderThan !== undefined
            ? sql`AND id < ${olderThan}`
            : sql``
      const { before, behind }: Between = created === undefined ? {} : idsOf("req", created, 0)
      const time = sql`${when(behind, (id) => sql`AND id > ${id}`)} ${when(before, (id) => sql`AND id < ${id}`)}`
      const order = sql.literal(newerThan !== undefined ? "ASC" : "DESC")
      return execute(
        sql<Row>`SELECT ${columns} FROM request_logs
          WHERE account = ${account} ${place} ${time} ${conditions(sql, filter)} ORDER BY id ${order} LIMIT ${limit + 1}`,
        (rows) => {
          const found = rows.slice(0, limit).map(toLogged)
          return { requests: newerThan === undefined ? found : found.toReversed(), hasMore: rows.length > limit }
        }
      )
    },
    errors: (account: AccountId, filter: RequestFilter) =>
      execute(
        sql<SqlGroup>`SELECT DISTINCT ON (count, error_code, method, status, error_type, error_param)
            method, status, error_type, error_code, error_param, error_message, id, at, path, count
          FROM (
            SELECT *, count(*) OVER (PARTITION BY method, status, error_type, error_code, error_param) AS count
            FROM (
              SELECT * FROM request_logs WHERE account = ${account} ORDER BY id DESC LIMIT ${GROUPED_MAX}
            ) AS newest
            WHERE error_code IS NOT NULL ${conditions(sql, filter)}
          ) AS counted
          ORDER BY count DESC, error_code, method, status, error_type, error_param, id DESC LIMIT ${GROUPS_MAX}`,
        (rows) => rows.map(toGroup)
      )
  }
}
type Shape = typeof RequestLog.Service

/** Returns the size of a request. `trim` computes the same in SQL. */
const bytesOf = ({ error, idempotencyKey, objects, path, sent }: LoggedRequest): number => {
  const lengthOf = (text: string | null) => (text === null ? 0 : Buffer.byteLength(text))
  const texts = lengthOf(path) + lengthOf(idempotencyKey) + lengthOf(error?.message ?? null) + lengthOf(sent)
  return objects.reduce((bytes, id) => bytes + id.length, ROW_BYTES + texts)
}

type Kept = Pick<Limits, "keptMax" | "bytesMax"> & { readonly days: number }

interface Amount {
  readonly count: number
  readonly bytes: number
}

/** Deletes requests beyond the kept time, number or bytes. Returns an upper bound of the rest. */
export const trim = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  account: AccountId,
  { bytesMax, days, keptMax }: Kept,
  paced: Paced
) {
  const oldest = idAt("req", (yield* Clock.currentTimeMillis) - days * DAY_MILLIS)
  // `octet_length` does not read texts that are stored out of line.
  const isBeyond = sql`(count > ${keptMax} OR bytes > ${bytesMax})`
  const [found] = yield* paced(sql<{ beyond: string | null; count: bigint; bytes: bigint | null }>`
    SELECT max(id) FILTER (WHERE ${isBeyond}) AS beyond, count(*) FILTER (WHERE NOT ${isBeyond}) AS count,
      max(bytes) FILTER (WHERE NOT ${isBeyond}) AS bytes
    FROM (
      SELECT id, row_number() OVER newer AS count, sum(${ROW_BYTES}::int + octet_length(path)
        + coalesce(octet_length(idempotency_key), 0) + coalesce(octet_length(error_message), 0)
        + coalesce(octet_length(sent), 0) + octet_length(array_to_string(objects, ''))) OVER newer AS bytes
      FROM request_logs WHERE account = ${account}
      WINDOW newer AS (ORDER BY id DESC ROWS UNBOUNDED PRECEDING)
    ) AS newest`)
  const { beyond, bytes, count } = found!
  // `!` sorts before every character of an id, so that the row `beyond` itself is deleted too.
  const behind = beyond !== null && beyond > oldest ? `${beyond}!` : oldest
  for (;;) {
    const removed = yield* paced(sql<{ id: string }>`DELETE FROM request_logs WHERE account = ${account} AND id IN (
        SELECT id FROM request_logs WHERE account = ${account} AND id < ${behind} ORDER BY id LIMIT ${PRUNED_MAX}
      ) RETURNING id`)
    if (removed.length === PRUNED_MAX) continue
    return { count: Number(count), bytes: Number(bytes ?? 0) } satisfies Amount as Amount
  }
})

const accountsOf = (sql: PgClient.PgClient) =>
  sql<{ account: AccountId }>`WITH RECURSIVE walk AS (
      (SELECT account FROM request_logs ORDER BY account LIMIT 1)
      UNION ALL
      SELECT (SELECT r.account FROM request_logs r WHERE r.account > walk.account ORDER BY r.account LIMIT 1)
      FROM walk WHERE walk.account IS NOT NULL
    ) SELECT account FROM walk WHERE account IS NOT NULL`

/** Makes the watchers of accounts, which are called after requests were written. */
const makeWatchers = () => {
  const watchers = new Map<AccountId, Set<() => void>>()
  const remove = (account: AccountId, watcher: () => void): void => {
    const those = watchers.get(account)
    those?.delete(watcher)
    if (those?.size === 0) watchers.delete(account)
  }
  return {
    notify: (account: AccountId): void => {
      for (const watcher of watchers.get(account) ?? []) watcher()
    },
    watch: (account: AccountId, watcher: () => void) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => watchers.set(account, (watchers.get(account) ?? new Set()).add(watcher))),
          () => Effect.sync(() => remove(account, watcher))
        )
      )
  }
}

/** Writes buffered requests until the scope closes, and the rest then. Calls `onWritten` after each batch. */
const makeWriter = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  { batchMax, batchMillis }: Pick<Limits, "batchMax" | "batchMillis">,
  onWritten: (rows: ReadonlyArray<LoggedRequest>) => void
) {
  let waiting: Array<() => LoggedRequest> = []
  let leftOut = 0
  /** Set if the buffer contains rows of an abandoned statement, which may be stored already. */
  let again = false
  const flush = Effect.gen(function* () {
    if (waiting.length === 0) return
    const batch = waiting
    waiting = []
    const rows = batch.map((make) => make())
    const mayBeThere = again
    again = false
    yield* insert(sql, rows, mayBeThere).pipe(
      Effect.onInterrupt(() =>
        Effect.sync(() => {
          waiting = [...rows.map((row) => () => row), ...waiting]
          again = true
        })
      ),
      Effect.tapError(() => Effect.sync(() => (leftOut += rows.length))),
      Effect.timeout(WRITE_MILLIS_MAX)
    )
    onWritten(rows)
  }).pipe(
    Effect.ignore,
    Effect.catchDefect((defect) => log.error("Requests could not be logged", defect))
  )
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(Effect.interruptible(flush), LAST_MILLIS_MAX)))
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(batchMillis), flush)))
  return {
    leftOut: () => leftOut,
    write: (_: AccountId, make: () => LoggedRequest): void => {
      if (waiting.length >= batchMax) leftOut++
      else waiting.push(make)
    }
  }
})

/** The amount written since an account was trimmed, and the amount left by the trim; null if it was never trimmed. */
interface Written extends Amount {
  readonly left: Amount | null
}

/** Returns whether an account may exceed the kept amount by `TRIM_AFTER`. */
const isTooMuch = ({ bytes, count, left }: Written, { bytesMax, keptMax }: Kept): boolean => {
  const [most, least] = left === null ? [TRIM_AFTER, { count: 0, bytes: 0 }] : [1 + TRIM_AFTER, left]
  return least.count + count >= keptMax * most || least.bytes + bytes >= bytesMax * most
}

/** Trims accounts until the scope closes: those that were written to, and once an hour all that are served here. */
const makeTrimming = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  { trimMillis, ...kept }: Kept & Pick<Limits, "trimMillis">,
  written: Map<AccountId, Written>
) {
  const { isHere } = yield* Placement
  const all = Effect.fnUntraced(function* (paced: Paced) {
    for (const { account } of yield* accountsOf(sql)) if (isHere(account)) yield* trim(sql, account, kept, paced)
  })
  const busy = Effect.fnUntraced(function* (paced: Paced) {
    for (const [account] of [...written].filter(([, since]) => isTooMuch(since, kept))) {
      written.delete(account)
      const left = yield* trim(sql, account, kept, paced)
      const { bytes, count } = written.get(account) ?? { bytes: 0, count: 0 }
      written.set(account, { bytes, count, left })
    }
  })
  let round = 0
  yield* (yield* Pruning).add({
    name: "requests in the log",
    everyMillis: trimMillis,
    pass: (paced) => (round++ % ROUNDS_AN_HOUR === 0 ? all(paced) : busy(paced))
  })
})

/** Logs how many requests were left out, once a minute, until the scope closes. */
const reportLeftOut = (leftOut: () => number) => {
  let reported = 0
  const report = Effect.suspend(() => {
    const more = leftOut() - reported
    reported += more
    return more === 0
      ? Effect.void
      : log.info(`${more} requests were left out of the log of requests`, undefined, { cause: "left out" })
  })
  return Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(REPORT_MILLIS), report)))
}

const DROPPED = {
  name: "till_request_log_dropped_total",
  description:
    "Requests that were left out of the request log, because there were too many or the database refused them."
}

/** The log, which keeps requests for `days` days, 1 or more. */
export const layer = (
  days: number,
  limits: Partial<Limits> = {}
): Layer.Layer<never, never, PgClient.PgClient | Placement | Pruning> =>
  Layer.effect(
    RequestLog,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { batchMax = BATCH_MAX, batchMillis = BATCH_MILLIS, bytesMax = BYTES_MAX, keptMax = KEPT_MAX } = limits
      const { trimMillis = TRIM_MILLIS } = limits
      const { notify, watch } = makeWatchers()
      const written = new Map<AccountId, Written>()
      const { leftOut, write } = yield* makeWriter(sql, { batchMax, batchMillis }, (rows) => {
        for (const row of rows) {
          const { bytes, count, left } = written.get(row.account) ?? { bytes: 0, count: 0, left: null }
          written.set(row.account, { bytes: bytes + bytesOf(row), count: count + 1, left })
        }
        for (const account of new Set(rows.map(({ account }) => account))) notify(account)
      })
      yield* makeTrimming(sql, { bytesMax, days, keptMax, trimMillis }, written)
      yield* reportLeftOut(leftOut)
      yield* Metrics.observeCounter(DROPPED, leftOut)
      return { days, write, leftOut, watch, ...makeReads(sql) }
    })
  )

/** Without a log, the requests of an earlier one are deleted. */
export const layerOff = (
  trimMillis: number = TRIM_MILLIS
): Layer.Layer<never, never, PgClient.PgClient | Placement | Pruning> =>
  Layer.effectDiscard(
    Effect.flatMap(PgClient.PgClient, (sql) =>
      makeTrimming(sql, { bytesMax: 0, days: 0, keptMax: 0, trimMillis }, new Map())
    )
  )
