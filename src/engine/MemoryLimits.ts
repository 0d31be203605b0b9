/** How much memory the engine takes for what it could read again, by how much V8 may use in all. In bytes, roughly. */
import { getHeapStatistics } from "node:v8"

const MEBIBYTE = 1_048_576
const heap = getHeapStatistics().heap_size_limit

/** Documents, keys and timers of all accounts that are in use (see `CacheShares.ts`). */
export const CACHE_BYTES_MAX = Math.min(512 * MEBIBYTE, heap / 4)
/** Rows that a verification keeps at once: their fingerprints, or the rows themselves, at some 400 bytes each. */
export const VERIFIED_ROWS_MAX = Math.ceil(heap / 2 / 400)
/** Durable records that may wait for projection before flushes wait for the projector. */
export const LAG_BYTES_MAX = Math.min(64 * MEBIBYTE, heap / 32)
/** Records that are read from the journal at once end with the one that reaches this. */
export const READ_BYTES_MAX = Math.min(16 * MEBIBYTE, heap / 64)
