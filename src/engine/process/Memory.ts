/** Limits of caches and buffers, in approximate bytes unless noted. They follow V8's heap limit. */
import { getHeapStatistics } from "node:v8"

const MEBIBYTE = 1_048_576
const heap = getHeapStatistics().heap_size_limit

/** For documents, keys and timers of all accounts in memory (see `makeShares`). */
export const CACHE_BYTES_MAX = Math.min(256 * MEBIBYTE, heap / 4)
/** For the filters of used idempotency keys of all accounts in memory, at about two bytes a key. */
export const KEY_FILTERS_BYTES_MAX = Math.min(128 * MEBIBYTE, heap / 16)
/** The size of a row of a cached list page. */
export const LIST_ROW_BYTES = 400
/** Rows in the cached list pages of all accounts. */
export const LIST_ROWS_MAX = Math.ceil(Math.min(16 * MEBIBYTE, heap / 64) / LIST_ROW_BYTES)
/** Rows whose digests a verification keeps at a time, at up to 64 bytes each, outside of the heap. */
export const VERIFIED_ROWS_MAX = Math.ceil(heap / 2 / 64)
/** Durable records that may wait for projection; above it, flushes wait for the projector. */
export const LAG_BYTES_MAX = Math.min(64 * MEBIBYTE, heap / 32)
/** A page of records from the journal ends with the record that reaches this size. */
export const READ_BYTES_MAX = Math.min(16 * MEBIBYTE, heap / 64)

/** Metrics of the memory that owners of caches and buffers count themselves. */
export const MEMORY = {
  name: "till_memory_bytes",
  description: "Approximate memory of a cache or buffer, by its owner."
}
export const MEMORY_LIMIT = { name: "till_memory_limit_bytes", description: "Limit of that memory." }

/**
 * Lets owners share a capacity: each may use an equal share, and more while the others leave room. So one busy account
 * among many quiet ones keeps its memory until the others get busy. An owner above its present share keeps the excess
 * until it is used again or ends. The returned function gives the share of an owner.
 */
export const makeShares = <Owner extends object>(
  capacity: number,
  owners: ReadonlyMap<string, Owner>,
  weightOf: (owner: Owner) => number
): ((owner: Owner) => number) => {
  let known = new WeakMap<Owner, number>()
  let used = 0
  let calls = Infinity
  // Counting all owners finds those that have ended. Once per round is enough: each call would cost too much.
  const countAll = () => {
    known = new WeakMap()
    used = calls = 0
    for (const owner of owners.values()) count(owner)
  }
  const count = (owner: Owner): number => {
    const own = weightOf(owner)
    used += own - (known.get(owner) ?? 0)
    known.set(owner, own)
    return own
  }
  return (owner) => {
    if (++calls >= owners.size) countAll()
    const own = count(owner)
    const others = used - own
    return Math.max(Math.ceil(capacity / Math.max(owners.size, 1)), capacity - others)
  }
}
