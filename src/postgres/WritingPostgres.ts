/**
 * Detects that Postgres refuses writes, by its answers to Till's writes: its disk is full, it is read-only, or the role
 * may not write (semantics storage.read_only). Logs the reason, one line a minute.
 *
 * While writes are refused, `probe` tries a write, at most once a second: a process that a balancer has taken out of
 * rotation gets no other writes. The probe is a row of the journal, large enough to need pages of its own, in a
 * transaction that is rolled back; its pages are free for records after the next vacuum.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { innermostMessage } from "../engine/log/Journal.ts"
import * as Metrics from "../engine/process/Metrics.ts"
import { Writing } from "../engine/process/Writing.ts"
import { sqlStateOf } from "./SqlState.ts"
import { logOf } from "../engine/process/Log.ts"

const log = logOf("postgres")

const LOG_MILLIS = 60_000
const PROBE_PAUSE_MILLIS = 1000
const PROBE_BYTES = 65_536
const PROBE_ACCOUNT = "probe"

/** Returns why writes are refused; undefined if the reason concerns only this write, or its outcome is unknown. */
const refusalOf = (error: unknown): string | undefined => {
  const sqlState = sqlStateOf(error)
  if (sqlState === undefined) return undefined
  if (sqlState === "53100") return "The disk of the database is full."
  if (sqlState === "25006") return "The database is read-only, as a standby is."
  if (sqlState === "42501") return "The database does not let Till write."
  // Postgres has no code for an exceeded quota.
  if (/quota/i.test(innermostMessage(error))) return "The database has used up its quota of the disk."
  return sqlState.startsWith("58") ? "The disk of the database fails." : undefined
}

/** Kinds of writes that succeed or fail independently. */
type Part = "journal" | "views"

class Refusals {
  readonly #parts = new Map<Part, string>()
  probedAt = -Infinity

  get first(): string | undefined {
    return this.#parts.values().next().value
  }

  /** Records the outcome of a write, and logs a refusal once a minute at most. */
  note(part: Part, error: unknown): Effect.Effect<void> {
    return Effect.suspend(() => (error === undefined ? this.#written(part) : this.#failed(part, error)))
  }

  #failed(part: Part, error: unknown): Effect.Effect<void> {
    const refusal = refusalOf(error)
    if (refusal === undefined) return Effect.void
    this.#parts.set(part, refusal)
    return log.error(`Nothing can be written: ${refusal}`, innermostMessage(error), {
      cause: "refused",
      pauseMillis: LOG_MILLIS
    })
  }

  #written(part: Part): Effect.Effect<void> {
    if (!this.#parts.delete(part) || this.#parts.size > 0) return Effect.void
    return log.warning("The database takes writes again", undefined, { pauseMillis: LOG_MILLIS })
  }
}

const refusals = new WeakMap<PgClient.PgClient, Refusals>()

const refusalsOf = (sql: PgClient.PgClient): Refusals => {
  const known = refusals.get(sql) ?? new Refusals()
  refusals.set(sql, known)
  return known
}

/** Makes a function that records the outcomes of a part's writes. */
export const noting = (sql: PgClient.PgClient, part: Part) => {
  const known = refusalsOf(sql)
  return <A, E, R>(write: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    write.pipe(
      Effect.tapError((error) => known.note(part, error)),
      Effect.tap(() => known.note(part, undefined))
    )
}

const REFUSED = {
  name: "till_database_writes_refused",
  description: "1 while the database refuses all writes, as with a full disk; 0 otherwise."
}

class TakenBack extends Error {}

export const layer: Layer.Layer<never, never, PgClient.PgClient> = Layer.effect(
  Writing,
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const known = refusalsOf(sql)
    yield* Metrics.observeGauge(REFUSED, () => (known.first === undefined ? 0 : 1))
    const row = sql`INSERT INTO journal (account, version, hash, record)
      VALUES (${PROBE_ACCOUNT}, 1, ''::bytea, ${randomBytes(PROBE_BYTES)})`
    const write = sql.withTransaction(Effect.andThen(row, Effect.fail(new TakenBack()))).pipe(
      Effect.catchIf(
        (error) => error instanceof TakenBack,
        () => Effect.void
      ),
      noting(sql, "journal"),
      Effect.ignore
    )
    return {
      refusal: () => known.first,
      probe: Effect.suspend(() => {
        const now = performance.now()
        if (known.first === undefined || now - known.probedAt < PROBE_PAUSE_MILLIS) return Effect.succeed(known.first)
        known.probedAt = now
        return Effect.map(write, () => known.first)
      })
    }
  })
)
