/** The names and ids of timers, one object's each. Journals contain them, so none may change. */
import type { Millis } from "../../engine/log/Document.ts"

const PREFIXES = {
  /** A payment that was processing settles (semantics payment_intents.processing). */
  "payment_intent.settle": "settle",
  /** An authorization was not captured in time (semantics payment_intents.holds). */
  "payment_intent.expire_hold": "hold",
  /** A refund gets its final result from the processor (semantics refunds.states). */
  "refund.settle": "refund",
  /** An operation without a final outcome needs attention (semantics operations.states). */
  "operation.attend": "operation",
  /** The grace period of a rolled API key ends (semantics keys.roll). */
  "api_key.expire": "api_key",
  /** A Checkout Session was not completed in time (semantics checkout.expire). */
  "checkout.session.expire": "checkout_session",
  /** A Checkout Session accepts payments again after too many failed attempts (semantics checkout.attempts). */
  "checkout.session.reopen": "reopen",
  /** A dashboard session expires (semantics dashboard.sessions). */
  "dashboard_session.expire": "dashboard_session",
  /** A sign-in link expires unused (semantics dashboard.links). */
  "dashboard_link.expire": "dashboard_link",
  /** A mail's next attempt (semantics mail.attempts). */
  "mail.attempt": "mail",
  /** An erasure has not come to its end (semantics erasure.course). */
  "data.erase": "erase",
  /** Test payments were deleted, and their texts are not out of the records yet (semantics storage.unpaid). */
  "data.forget": "forget",
  /** A webhook endpoint has failed for an hour (semantics mail.webhook_alert). */
  "webhook_endpoint.alert": "alert"
} as const

export type TimerName = keyof typeof PREFIXES

export const isTimerName = (name: string): name is TimerName => Object.hasOwn(PREFIXES, name)

export const timerId = (name: TimerName, objectId: string): string => `${PREFIXES[name]}:${objectId}`

/** Returns an object's timer, to be set. `dueAt` is in milliseconds of the account's clock. */
export const timer = (
  name: TimerName,
  objectId: string,
  dueAt: Millis
): { readonly id: string; readonly name: TimerName; readonly dueAt: Millis } => {
  return { id: timerId(name, objectId), name, dueAt }
}

export const subjectOf = (timerId: string): string => timerId.slice(timerId.indexOf(":") + 1)
