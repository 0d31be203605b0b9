/** Erasures in Postgres: the replacement of records and of the rows that point into them is one transaction. */
import { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Layer } from "effect"
import type { AccountId } from "../engine/log/Document.ts"
import {
  type ErasedPerson,
  ErasureStore,
  type ReplacedAttempt,
  type ReplacedDocument,
  type ReplacedRow,
  type Replacement
} from "../engine/Erasures.ts"
import { StorageFailure } from "../engine/log/Journal.ts"
import {
  bigint,
  bigints,
  byteStrings,
  execute,
  failureOf,
  ints,
  labelsText,
  storageFailure,
  termsText,
  texts
} from "./Rows.ts"

/** Texts compared with the log of requests in one statement, at most. */
const TEXTS_MAX = 200

/** Two erasures that replace the same record must not bring back what the other one has removed. */
const replaceRecords = (sql: PgClient.PgClient, account: AccountId, rows: ReadonlyArray<ReplacedRow>) =>
  Effect.flatMap(
    sql`UPDATE journal SET record = r.record, erased = r.erased
      FROM unnest(${bigints(rows.map((r) => r.version))}, ${byteStrings(rows.map((r) => r.bytes))},
        ${texts(rows.map((r) => r.erased))}, ${texts(rows.map((r) => r.digestBefore))})
        AS r (version, record, erased, digest_before)
      WHERE journal.account = ${account} AND journal.version = r.version
        AND journal.erased IS NOT DISTINCT FROM r.digest_before`.raw,
    (result) =>
      (result as { readonly rowCount: number }).rowCount === rows.length
        ? Effect.void
        : Effect.fail(new StorageFailure({ cause: "Another erasure has replaced one of the records" }))
  )

/** A row whose document was written again since points to another record, and stays. */
const replaceDocuments = (sql: PgClient.PgClient, account: AccountId, rows: ReadonlyArray<ReplacedDocument>) =>
  sql`UPDATE objects SET id = d.id, document_at = d.document_at, document_length = d.document_length,
      hidden_at = d.hidden_at, hidden_length = d.hidden_length, labels = d.labels::jsonb,
      term_numbers = d.terms::bigint[], measure = d.measure, checksum = d.checksum
    FROM unnest(${texts(rows.map((d) => d.idBefore))}, ${texts(rows.map((d) => d.id))},
      ${bigints(rows.map((d) => d.version))},
      ${ints(rows.map((d) => d.documentSpan?.at ?? null))}, ${ints(rows.map((d) => d.documentSpan?.length ?? null))},
      ${ints(rows.map((d) => d.hiddenSpan?.at ?? null))}, ${ints(rows.map((d) => d.hiddenSpan?.length ?? null))},
      ${texts(rows.map(labelsText))}, ${texts(rows.map(termsText))},
      ${bigints(rows.map((d) => d.search?.measure ?? null))}, ${ints(rows.map((d) => d.checksum))})
      AS d (id_before, id, version, document_at, document_length, hidden_at, hidden_length, labels, terms, measure,
        checksum)
    WHERE objects.account = ${account} AND objects.id = d.id_before AND objects.version = d.version`

const replaceRevisions = (sql: PgClient.PgClient, account: AccountId, rows: ReadonlyArray<ReplacedDocument>) =>
  sql`UPDATE revisions SET id = d.id
    FROM unnest(${texts(rows.map((d) => d.idBefore))}, ${texts(rows.map((d) => d.id))},
      ${bigints(rows.map((d) => d.version))}) AS d (id_before, id, version)
    WHERE revisions.account = ${account} AND revisions.id = d.id_before AND revisions.version = d.version`

const replaceAttempts = (sql: PgClient.PgClient, account: AccountId, attempts: ReadonlyArray<ReplacedAttempt>) =>
  sql`UPDATE deliveries SET attempts = (
      SELECT jsonb_agg(CASE WHEN (a -> 'attempt')::int = ANY (r.attempts) THEN a - 'body' ELSE a END ORDER BY position)
      FROM jsonb_array_elements(deliveries.attempts) WITH ORDINALITY AS each (a, position)
    )
    FROM (
      SELECT destination, id, array_agg(attempt) AS attempts
      FROM unnest(${texts(attempts.map((a) => a.destination))}, ${texts(attempts.map((a) => a.id))},
        ${ints(attempts.map((a) => a.attempt))}) AS u (destination, id, attempt) GROUP BY destination, id
    ) AS r
    WHERE deliveries.account = ${account} AND deliveries.destination = r.destination AND deliveries.id = r.id`

const deleteEvents = (sql: PgClient.PgClient, account: AccountId, events: Replacement["events"]) =>
  sql`DELETE FROM events USING unnest(${texts(events.map((e) => e.type))}, ${texts(events.map((e) => e.id))})
      AS e (type, id)
    WHERE events.account = ${account} AND events.type = e.type AND events.id = e.id`

const deleteDeliveries = (sql: PgClient.PgClient, account: AccountId, deliveries: Replacement["deliveries"]) =>
  sql`DELETE FROM deliveries
    USING unnest(${texts(deliveries.map((d) => d.destination))}, ${texts(deliveries.map((d) => d.id))})
      AS d (destination, id)
    WHERE deliveries.account = ${account} AND deliveries.destination = d.destination AND deliveries.id = d.id`

/** Write the tables anew whose rows are replaced or deleted, and the statistics of their values. */
export const PURGING: ReadonlyArray<string> = ["journal", "objects", "deliveries", "request_logs"].map(
  (table) => `VACUUM (FULL, ANALYZE) ${table}`
)

/** Pieces of a list, each of a bounded length. */
const pieces = <A>(items: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(items.length / TEXTS_MAX) }, (_, i) => items.slice(i * TEXTS_MAX, (i + 1) * TEXTS_MAX))

export const layer: Layer.Layer<ErasureStore, never, PgClient.PgClient> = Layer.effect(
  ErasureStore,
  Effect.map(PgClient.PgClient, (sql) =>
    ErasureStore.of({
      people: execute(
        sql<ErasedPerson>`SELECT account, id, ended_at IS NOT NULL AS "isDone" FROM erasures ORDER BY account, id`,
        (rows) => rows
      ),
      note: ({ account, id, isDone }) =>
        Effect.flatMap(Clock.currentTimeMillis, (millis) => {
          const now = bigint(millis)
          const ended = isDone ? now : null
          return execute(
            sql`INSERT INTO erasures (account, id, begun_at, ended_at) VALUES (${account}, ${id}, ${now}, ${ended})
              ON CONFLICT (account, id) DO UPDATE SET ended_at = excluded.ended_at`,
            () => undefined
          )
        }),
      replace: (account, { attempts, deliveries, documents, events, rows }) =>
        sql
          .withTransaction(
            Effect.gen(function* () {
              yield* replaceRecords(sql, account, rows)
              if (documents.length > 0) yield* replaceDocuments(sql, account, documents)
              const renamed = documents.filter(({ id, idBefore }) => id !== idBefore)
              if (renamed.length > 0) yield* replaceRevisions(sql, account, renamed)
              if (attempts.length > 0) yield* replaceAttempts(sql, account, attempts)
              if (deliveries.length > 0) yield* deleteDeliveries(sql, account, deliveries)
              if (events.length > 0) yield* deleteEvents(sql, account, events)
            })
          )
          .pipe(Effect.catchTag("SqlError", (cause) => Effect.fail(failureOf(cause)))),
      deleteRequests: (account, traces) =>
        storageFailure(
          Effect.gen(function* () {
            for (const some of pieces(traces.ids)) {
              yield* sql`DELETE FROM request_logs WHERE account = ${account} AND (objects && ${texts(some)}
                OR status >= 400 AND EXISTS (
                  SELECT FROM regexp_matches(sent, '"([a-z]{1,12}_[0-9A-Za-z]{24})"', 'g') AS m (ids)
                  WHERE ids && ${texts(some)}))`
            }
            for (const some of pieces(traces.texts.map((text) => text.toLowerCase()))) {
              yield* sql`DELETE FROM request_logs WHERE account = ${account} AND EXISTS (
                SELECT FROM unnest(${texts(some)}) AS t (found)
                WHERE position(found IN lower(concat_ws(' ', sent, path, error_message, idempotency_key))) > 0)`
            }
            for (const some of pieces(traces.searched.map((text) => text.toLowerCase()))) {
              yield* sql`DELETE FROM request_logs WHERE account = ${account} AND path LIKE '%/search' AND EXISTS (
                SELECT FROM unnest(${texts(some)}) AS t (found)
                WHERE position(found IN lower(concat_ws(' ', sent, error_message))) > 0)`
            }
          })
        )
    })
  )
)
