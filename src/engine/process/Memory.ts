/**
 * How much memory the engine takes for what it could read again, and how accounts share it. The limits follow what V8
 * may use in all; they are in bytes, roughly.
 */
import { getHeapStatistics } from "node:v8"

const MEBIBYTE = 1_048_576
const heap = getHeapStatistics().heap_size_limit

/** This much is for documents, keys and timers of all accounts that are in use (see `makeShares`). */
export const CACHE_BYTES_MAX = Math.min(256 * MEBIBYTE, heap / 4)
/** This much is for the filters of used idempotency keys of all accounts in use, at about two bytes a key. */
export const KEY_FILTERS_BYTES_MAX = Math.min(128 * MEBIBYTE, heap / 16)
/** Pages of lists of all accounts have so many rows together, at some 400 bytes each. */
export const LIST_ROWS_MAX = Math.ceil(Math.min(16 * MEBIBYTE, heap / 64) / 400)
/** A verification keeps the fingerprints of so many rows at once, at up to 64 bytes each, beside the heap. */
export const VERIFIED_ROWS_MAX = Math.ceil(heap / 2 / 64)
/** Durable records of so many bytes may wait for projection; then flushes wait for the projector. */
export const LAG_BYTES_MAX = Math.min(64 * MEBIBYTE, heap / 32)
/** Records that are read from the journal at once end with the one that reaches this. */
export const READ_BYTES_MAX = Math.min(16 * MEBIBYTE, heap / 64)

/**
 * Lets owners share a capacity: each may have an equal share, and more as long as the others leave room. So one busy
 * account among many quiet ones keeps what it uses, and gives it back when the others get busy. An owner that had more
 * than it may have now keeps that until it is used again, or ends. The function that is made answers how much an owner
 * may have.
 */
export const makeShares = <Owner extends object>(
  capacity: number,
  owners: ReadonlyMap<string, Owner>,
  weightOf: (owner: Owner) => number
): ((owner: Owner) => number) => {
  let known = new WeakMap<Owner, number>()
  let used = 0
  let asked = Infinity
  // This notices once per round of owners who has ended: with many of them, every time would cost more than it is
  // worth.
  const countAll = () => {
    known = new WeakMap()
    used = asked = 0
    for (const owner of owners.values()) count(owner)
  }
  const count = (owner: Owner): number => {
    const own = weightOf(owner)
    used += own - (known.get(owner) ?? 0)
    known.set(owner, own)
    return own
  }
  return (owner) => {
    if (++asked >= owners.size) countAll()
    const own = count(owner)
    const others = used - own
    return Math.max(Math.ceil(capacity / Math.max(owners.size, 1)), capacity - others)
  }
}
