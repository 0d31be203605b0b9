/**
 * The names and ids of timers. A timer concerns one object, whose id is part of the timer's. Journals contain names and
 * ids, so none may change.
 */
import type { Millis } from "../engine/log/Document.ts"

/** The prefix of the timer ids, by timer. */
const PREFIXES = {
  /** A payment that was processing settles (semantics I-15). */
  "payment_intent.settle": "settle",
  /** An authorization was not captured in time (semantics I-17). */
  "payment_intent.expire_hold": "hold",
  /** A refund gets its final result from the processor (semantics §2.4). */
  "refund.settle": "refund",
  /** The grace period of a rolled API key ends (semantics A8). */
  "api_key.expire": "api_key",
  /** A Checkout Session was not completed in time (semantics S17). */
  "checkout.session.expire": "checkout_session",
  /** A Checkout Session accepts payments again after too many failed attempts (semantics 9.29). */
  "checkout.session.reopen": "reopen",
  /** A dashboard session expires (semantics 9.60). */
  "dashboard_session.expire": "dashboard_session",
  /** A sign-in link expires unused (semantics 9.60). */
  "dashboard_link.expire": "dashboard_link"
} as const

export type TimerName = keyof typeof PREFIXES

export const isTimerName = (name: string): name is TimerName => Object.hasOwn(PREFIXES, name)

/** Returns the id of an object's timer. */
export const timerId = (name: TimerName, objectId: string): string => `${PREFIXES[name]}:${objectId}`

/** Returns an object's timer, to be set. `dueAt` is in milliseconds of the account's clock. */
export const timer = (
  name: TimerName,
  objectId: string,
  dueAt: Millis
): { readonly id: string; readonly name: TimerName; readonly dueAt: Millis } => {
  return { id: timerId(name, objectId), name, dueAt }
}

/** Returns the id of the timer's object. */
export const subjectOf = (timerId: string): string => timerId.slice(timerId.indexOf(":") + 1)
