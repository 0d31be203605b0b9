/**
 * Conversion between the engine's rows and those of Postgres. Parameters carry their type, because the driver infers
 * none from an empty or all-null array, and `int` from small numbers.
 */
import { type PgClient, PgTypes } from "@effect/sql-pg"
import { Effect, Result } from "effect"
import type { SqlError } from "effect/sql"
import type { Fragment } from "effect/sql/Statement"
import type { Labels } from "../engine/log/Document.ts"
import { StorageFailure } from "../engine/log/Journal.ts"
import type {
  DocumentRow,
  EventRow,
  KeyRow,
  ProjectedDocument,
  SubscriptionRow,
  TimerRow
} from "../engine/views/Projection.ts"
import { RECORD_BYTES_MAX, type Span, textOf } from "../engine/log/Record.ts"
import { entriesIn } from "../engine/log/Tallies.ts"
import type { DocumentTexts } from "../engine/views/Views.ts"
import { isDamage, sqlStateOf } from "./SqlState.ts"

export const texts = (values: ReadonlyArray<string | null>): PgTypes.Parameter =>
  Result.getOrThrow(PgTypes.array(values, PgTypes.OID.text))

export const byteStrings = (values: ReadonlyArray<Uint8Array>): PgTypes.Parameter =>
  Result.getOrThrow(PgTypes.array(values, PgTypes.OID.bytea))

export const ints = (values: ReadonlyArray<number | null>): PgTypes.Parameter =>
  Result.getOrThrow(PgTypes.array(values, PgTypes.OID.int4))

/** `bigint[]` of safe integers. */
export const bigints = (values: ReadonlyArray<number | null>): PgTypes.Parameter =>
  Result.getOrThrow(
    PgTypes.array(
      values.map((value) => (value === null ? null : BigInt(value))),
      PgTypes.OID.int8
    )
  )

/** `bigint`, of a safe integer. */
export const bigint = (value: number): PgTypes.Parameter => PgTypes.int8(BigInt(value))

/**
 * The partition of a row's account, as `Placement.ts` computes it. It must be the exact expression of the indexes,
 * which allow no function that may depend on a setting, such as `convert_to`.
 */
export const PARTITION: string = String.raw`get_byte(sha256(decode(replace(account, '\', '\\'), 'escape')), 0) & 63`

/**
 * Builds the slice of a record at the position in two columns. An impossible position, in a row that was changed, gives
 * null: an error would fail all reads of the same statement.
 */
export const cut = (sql: PgClient.PgClient, at: string, length: string): Fragment =>
  sql.literal(
    `CASE WHEN ${at} BETWEEN 0 AND ${RECORD_BYTES_MAX} AND ${length} >= 0
      THEN substring(record FROM ${at} + 1 FOR ${length}) END`
  )

export const failureOf = (cause: SqlError.SqlError): StorageFailure =>
  new StorageFailure({ cause, ...(isDamage(sqlStateOf(cause)) && { isDamage: true }) })

export const storageFailure = Effect.mapError(failureOf)

export const execute = <Rows, A>(
  statement: Effect.Effect<Rows, SqlError.SqlError>,
  f: (rows: Rows) => A
): Effect.Effect<A, StorageFailure> => storageFailure(Effect.map(statement, f))

/** A row as the driver returns it, with `bigint` in place of numbers. */
export type Sql<Row> = { readonly [K in keyof Row]: Row[K] extends number ? bigint : Row[K] }
export interface SqlTimer extends Omit<Sql<TimerRow>, "dueAt" | "wakeAt" | "checksum"> {
  readonly due_at: bigint
  readonly wake_at: bigint
  /** Null only in a row that was edited by hand, as in other tables. */
  readonly checksum: number | null
}
export interface SqlSubscription extends Omit<Sql<SubscriptionRow>, "checksum"> {
  readonly checksum: number | null
}

export interface SqlDocument extends Pick<Sql<DocumentRow>, "account" | "id" | "kind" | "version"> {
  readonly document_at: number | null
  readonly document_length: number | null
  readonly hidden_at: number | null
  readonly hidden_length: number | null
  readonly labels: Labels | null
  readonly format: number
  /** Null only in a row that was edited by hand. */
  readonly checksum: number | null
}

const toSpan = (at: number | null, length: number | null): Span | null =>
  at === null || length === null ? null : { at, length }

export const toDocument = (row: SqlDocument): DocumentRow => ({
  account: row.account,
  id: row.id,
  kind: row.kind,
  version: Number(row.version),
  documentSpan: toSpan(row.document_at, row.document_length),
  hiddenSpan: toSpan(row.hidden_at, row.hidden_length),
  labels: row.labels ?? {},
  format: row.format,
  checksum: row.checksum ?? NaN
})

export interface SqlProjectedDocument extends SqlDocument {
  readonly term_numbers: ReadonlyArray<bigint> | null
  readonly measure: bigint | null
  readonly tallies: string | null
}

export const toProjectedDocument = ({
  measure,
  tallies,
  term_numbers: terms,
  ...row
}: SqlProjectedDocument): ProjectedDocument => ({
  ...toDocument(row),
  tallies: entriesIn(tallies),
  search: terms === null ? null : { terms: terms.map(Number), measure: measure === null ? null : Number(measure) }
})

export interface SqlDocumentTexts extends SqlDocument {
  readonly document: Uint8Array | null
  readonly hidden: Uint8Array | null
}

export const toDocumentTexts = ({ document, hidden, ...row }: SqlDocumentTexts): DocumentTexts => ({
  ...toDocument(row),
  document: document && textOf(document),
  hidden: hidden && textOf(hidden)
})
export const toEvent = (row: Sql<EventRow>): EventRow => ({ ...row, version: Number(row.version) })
export const toKey = (row: Sql<KeyRow>): KeyRow => ({ ...row, version: Number(row.version), at: Number(row.at) })
export const toTimer = ({ checksum, due_at, wake_at, ...row }: SqlTimer): TimerRow => ({
  ...row,
  checksum: checksum ?? NaN,
  version: Number(row.version),
  dueAt: Number(due_at),
  wakeAt: Number(wake_at)
})
export const toSubscription = ({ checksum, ...row }: SqlSubscription): SubscriptionRow => ({
  ...row,
  version: Number(row.version),
  checksum: checksum ?? NaN
})

/** Returns terms as the text of a `bigint[]`: arrays of arrays would need equal lengths. Null without search. */
export const termsText = ({ search }: Pick<ProjectedDocument, "search">): string | null =>
  search === null ? null : `{${search.terms.join(",")}}`

/** Returns labels as JSON; null without labels. */
export const labelsText = ({ labels }: { readonly labels?: Labels }): string | null => {
  for (const _ in labels) return JSON.stringify(labels)
  return null
}

/** Orders rows by `position`, which counts from 1; undefined where a row is missing. */
export const placed = <Row extends { readonly position: bigint }, A>(
  length: number,
  rows: ReadonlyArray<Row>,
  f: (row: Omit<Row, "position">) => A
): ReadonlyArray<A | undefined> => {
  const answers = Array.from({ length }, (): A | undefined => undefined)
  for (const { position, ...row } of rows) answers[Number(position) - 1] = f(row)
  return answers
}
