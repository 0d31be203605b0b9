/** The schedule by which a delivery is tried again (spec: Events, Delivery; semantics §2.5). */
import type { AttemptOutcome } from "../engine/Deliveries.ts"

/** Pause before the second, third, … attempt, from the end of the one before it. Seconds. */
export const RETRY_AFTER_SECONDS = [60, 300, 1800, 7200, 28_800, 86_400, 259_200] as const

/** Says what follows an attempt, numbered from 1. */
export const after = (attempt: number, delivered: boolean): AttemptOutcome["next"] => {
  if (delivered) return "delivered"
  const seconds = RETRY_AFTER_SECONDS[attempt - 1]
  return seconds === undefined ? "exhausted" : { retryAfterMillis: seconds * 1000 }
}
