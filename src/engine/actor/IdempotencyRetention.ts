import type { Millis } from "../log/Document.ts"

/**
 * How long the answer to an idempotency key is kept, in milliseconds of running time (semantics idempotency.retention).
 */
export const RETENTION_MILLIS: Millis = 24 * 3600 * 1000
