/** Rows as Postgres gives them, and as the engine takes them. */
import type { Labels } from "../engine/Document.ts"
import type { DocumentRow, EventRow, KeyRow, SubscriptionRow, TimerRow } from "../engine/Projection.ts"

/** A row as Postgres gives it: its bigints are bigint. */
export type Sql<Row> = { readonly [K in keyof Row]: Row[K] extends number ? bigint : Row[K] }
export type SqlTimer = Omit<Sql<TimerRow>, "dueAt" | "wakeAt"> & { readonly due_at: bigint; readonly wake_at: bigint }

export const toDocument = (row: Sql<DocumentRow>): DocumentRow => ({
  ...row,
  version: Number(row.version),
  labels: (row.labels as Labels | null) ?? {}
})
export const toEvent = (row: Sql<EventRow>): EventRow => ({ ...row, version: Number(row.version) })
export const toKey = (row: Sql<KeyRow>): KeyRow => ({ ...row, version: Number(row.version), at: Number(row.at) })
export const toTimer = ({ due_at, wake_at, ...row }: SqlTimer): TimerRow => ({
  ...row,
  version: Number(row.version),
  dueAt: Number(due_at),
  wakeAt: Number(wake_at)
})
export const toSubscription = (row: Sql<SubscriptionRow>): SubscriptionRow => ({ ...row, version: Number(row.version) })

/** Null if there are none. */
export const labelsText = ({ labels }: { readonly labels?: Labels }): string | null => {
  for (const _ in labels) return JSON.stringify(labels)
  return null
}

/** Puts rows where their addresses stood; `position` counts from 1. */
export const placed = <Row extends { readonly position: bigint }, A>(
  length: number,
  rows: ReadonlyArray<Row>,
  f: (row: Omit<Row, "position">) => A
): ReadonlyArray<A | undefined> => {
  const answers = Array.from({ length }, (): A | undefined => undefined)
  for (const { position, ...row } of rows) answers[Number(position) - 1] = f(row)
  return answers
}
