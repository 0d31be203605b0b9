/** An `*.updated` event says what its update has changed (semantics §4). */
import type { Metadata } from "../domain/Metadata.ts"
import { previousMetadata } from "../domain/Metadata.ts"

interface Updatable {
  readonly metadata: Metadata
}

/**
 * Lists the old values of the top-level fields that an update changed; null for those that were absent, and of
 * `metadata` only what changed. Nothing changed if, and only if, it is empty: so compare before `updated` is stamped,
 * which is left out (semantics §8.23).
 */
export const previousAttributes = <A extends Updatable>(before: A, after: A): Readonly<Record<string, unknown>> => {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]) as ReadonlySet<keyof A & string>
  const changed = [...fields].filter((field) => !isSame(before[field], after[field]))
  return Object.fromEntries(
    changed.map((field) => [
      field,
      field === "metadata" ? previousMetadata(before.metadata, after.metadata) : (before[field] ?? null)
    ])
  )
}

/** Fields hold JSON, with its keys in one order. Metadata is the same object unless it changed. */
const isSame = (one: unknown, other: unknown): boolean => one === other || JSON.stringify(one) === JSON.stringify(other)
