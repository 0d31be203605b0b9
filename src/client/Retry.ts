/**
 * Decides which failures are worth another attempt, and when.
 *
 * Every attempt of a POST carries the same `Idempotency-Key`, so however often it is repeated it has one effect. A
 * DELETE is repeated as well: one that was carried out but whose answer was lost then finds its object gone, which is
 * what it was for, and fails with `resource_missing`.
 */
import type { TillError } from "./Errors.ts"

/** Attempts after the first. */
export const RETRIES_MAX_DEFAULT = 3
/** The wait before the second attempt, doubled for each further one. */
export const BACKOFF_MIN_MILLIS = 250
export const BACKOFF_MAX_MILLIS = 8_000
/** An answer that asks for a longer wait than this is handed on instead. */
export const RETRY_AFTER_MAX_SECONDS = 60

/** No answer, 409 (the key is in use), 429, and 5xx. */
const isTransient = ({ status, type }: TillError): boolean =>
  type === "connection_error" || status === 409 || status === 429 || (status !== null && status >= 500)

/**
 * Says how long to wait before the next attempt; undefined if there should be none.
 *
 * `attempt` is the number of the one that failed, from 1. `random`, from 0 to 1, spreads clients that failed together
 * over half of the backoff. What `Retry-After` asks for is never cut short.
 */
export const retryDelayMillis = (error: TillError, attempt: number, random: number): number | undefined => {
  const retryAfter = error.retry_after ?? 0
  if (!isTransient(error) || retryAfter > RETRY_AFTER_MAX_SECONDS) return undefined
  const backoff = Math.min(BACKOFF_MAX_MILLIS, BACKOFF_MIN_MILLIS * 2 ** (attempt - 1))
  return Math.max(retryAfter * 1000, Math.round(backoff * (0.5 + random / 2)))
}
