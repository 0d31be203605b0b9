/**
 * Operations: calls of a processor behind a network, whose outcomes may be unknown for a while (semantics
 * operations.*).
 */
import { Schema } from "effect"
import { identifier, PaymentIntentId, PREFIXES, RefundId } from "./Identifiers.ts"
import { Amount } from "./Money.ts"
import { type OperationOf, stateTable } from "./StateTable.ts"
import { Timestamp } from "./Time.ts"

export const OperationKind = Schema.Literals(["authorize", "capture", "void", "refund"])
export type OperationKind = typeof OperationKind.Type

/**
 * `open`: a request waits for the outcome. `unresolved`: the request has been answered, and Till goes on asking.
 * `waiting`: the payer has to authenticate, or the processor needs time. `decide`: a person decides. `final`: done.
 */
export const OperationStatus = Schema.Literals(["open", "unresolved", "waiting", "decide", "final"])
export type OperationStatus = typeof OperationStatus.Type

/** The state table of operations (semantics operations.states). */
export const operationStates = stateTable<OperationStatus>()({
  /** The processor's word, or a person's. */
  conclude: {
    open: ["final", "waiting"],
    unresolved: ["final", "waiting"],
    waiting: ["final", "waiting"],
    decide: ["final", "waiting"]
  },
  /** No outcome within the time of a request. */
  expire: { open: ["unresolved"] },
  /** A contradiction, or no outcome within the time of the processor. */
  doubt: { open: ["decide"], unresolved: ["decide"], waiting: ["decide"], decide: ["decide"], final: ["decide"] },
  /** The time of the next look. */
  look: { unresolved: ["unresolved"], waiting: ["waiting"], decide: ["decide"], final: ["final"] },
  /** The processor's word is that of the person who has decided. */
  confirm: { final: ["final"] },
  /** Another operation on the payment has ended the challenge. */
  supersede: { waiting: ["final"] }
})

export type OperationStep = OperationOf<typeof operationStates>

export const OperationOutcome = Schema.Struct({
  kind: Schema.Literals([
    "approved",
    "declined",
    "challenge",
    "pending",
    "authenticated",
    "refused",
    "too_late",
    "not_executed",
    "mismatch",
    "unknown",
    "superseded"
  ]),
  code: Schema.NullOr(Schema.String),
  message: Schema.NullOr(Schema.String),
  processor_code: Schema.NullOr(Schema.String)
}).annotate({ identifier: "OperationOutcome" })
export type OperationOutcome = typeof OperationOutcome.Type

/** The source of an outcome: the answer to the call, a later look, a message of the processor, or a person. */
export const OperationResolvedBy = Schema.Literals(["answer", "look", "webhook", "operator"])
export type OperationResolvedBy = typeof OperationResolvedBy.Type

export const OperationId = identifier(PREFIXES.operation)

/** `amount` is in minor units, times in Unix seconds. */
export const Operation = Schema.Struct({
  id: OperationId,
  object: Schema.Literal("operation"),
  kind: OperationKind,
  status: OperationStatus,
  outcome: Schema.NullOr(OperationOutcome),
  resolved_by: Schema.NullOr(OperationResolvedBy),
  payment_intent: PaymentIntentId,
  refund: Schema.NullOr(RefundId),
  processor: Schema.String,
  /** The processor's reference of the payment. */
  reference: Schema.NullOr(Schema.String),
  amount: Amount,
  currency: Schema.String,
  created: Timestamp,
  updated: Timestamp,
  livemode: Schema.Boolean
}).annotate({ identifier: "Operation" })
export type Operation = typeof Operation.Type

/** The operation of a PaymentIntent that has no outcome yet. */
export const PendingOperation = Schema.Struct({
  id: OperationId,
  kind: OperationKind,
  created: Timestamp
}).annotate({ identifier: "PendingOperation" })
export type PendingOperation = typeof PendingOperation.Type

/** How long a request waits for the outcome of its operation, in milliseconds. */
export const ANSWER_MILLIS = 20_000

/** The ages of an unresolved operation at which the processor is asked again, in milliseconds; then every hour. */
const LOOKS_UNRESOLVED = [30_000, 60_000, 120_000, 300_000, 900_000, 1_800_000]
/** The same since a challenge or a pending outcome. */
const LOOKS_WAITING = [60_000, 300_000, 900_000]
const HOUR = 3_600_000
const DAY = 24 * HOUR

/** The age at which a person has to decide about an unresolved operation. */
export const DECIDE_MILLIS = DAY
/** How long an operation is looked at once a day: after the first day, and before and after a person's decision. */
const DAILY_LOOKS_MILLIS = 30 * DAY

/**
 * Returns the age of an operation at its next look, in milliseconds, given its present age; null if there is none. The
 * age of a waiting operation counts from the outcome that it waits after, and that of a decided one from the decision.
 */
export const nextLook = (status: Exclude<OperationStatus, "open">, age: number): number | null => {
  if (status === "decide" || status === "final" || age >= DAY)
    return age < DAILY_LOOKS_MILLIS ? following(0, DAY, age) : null
  const looks = status === "waiting" ? LOOKS_WAITING : LOOKS_UNRESOLVED
  return looks.find((look) => look > age) ?? Math.min(following(looks.at(-1)!, HOUR, age), DAY)
}

/** Returns the first age above the present one on a grid of ages. */
const following = (first: number, step: number, age: number): number =>
  first + step * (Math.floor((age - first) / step) + 1)
