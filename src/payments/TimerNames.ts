/**
 * The timers of payments. Each is about one object, and its id says which. Journals hold names and ids: none may
 * change.
 */
import type { Millis } from "../engine/log/Document.ts"

/** The ids of each timer begin with its prefix. */
const PREFIXES = {
  /** A payment that was processing settles (semantics I-15). */
  "payment_intent.settle": "settle",
  /** An authorization was not captured in time (semantics I-17). */
  "payment_intent.expire_hold": "hold",
  /** The processor says in the end what became of a refund (semantics §2.4). */
  "refund.settle": "refund",
  /** The grace of a rolled API key ends (semantics A8). */
  "api_key.expire": "api_key",
  /** A Checkout Session was not completed in time (semantics S17). */
  "checkout.session.expire": "checkout_session",
  /** After too many attempts, a Checkout Session takes payments again (semantics 9.29). */
  "checkout.session.reopen": "reopen",
  /** The time of a session in the dashboard is over (semantics 9.60). */
  "dashboard_session.expire": "dashboard_session",
  /** Nobody has used a sign-in link in time (semantics 9.60). */
  "dashboard_link.expire": "dashboard_link"
} as const

export type TimerName = keyof typeof PREFIXES

export const isTimerName = (name: string): name is TimerName => Object.hasOwn(PREFIXES, name)

/** Makes the id of an object's timer. */
export const timerId = (name: TimerName, objectId: string): string => `${PREFIXES[name]}:${objectId}`

/** Makes an object's timer, to be set. `dueAt` is in milliseconds of the account's clock. */
export const timer = (
  name: TimerName,
  objectId: string,
  dueAt: Millis
): { readonly id: string; readonly name: TimerName; readonly dueAt: Millis } => {
  return { id: timerId(name, objectId), name, dueAt }
}

/** Reads the id of the object that a timer is about. */
export const subjectOf = (timerId: string): string => timerId.slice(timerId.indexOf(":") + 1)
