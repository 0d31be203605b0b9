/**
 * The outcomes of operations (semantics operations.states): the state table as code. A processor's word has its effect
 * on the payment (`OperationEffects.ts`), and becomes the answer to the request that began the operation.
 *
 * - Every function reads the operation first, so an outcome that comes twice, or late, has its effect once.
 * - Nothing becomes final by a clock. A word that contradicts the payment, or another amount, changes nothing: a person
 *   decides.
 * - Money that moved although Till has said that it did not is given back, unless a person has said so.
 */
import { Effect, Option, Result } from "effect"
import type { DomainError } from "../../domain/Errors.ts"
import {
  DECIDE_MILLIS,
  nextLook,
  type Operation,
  type OperationOutcome,
  type OperationResolvedBy
} from "../../domain/Operation.ts"
import { paymentIntentStates } from "../../domain/PaymentIntentStates.ts"
import { latestCharge } from "../../domain/PaymentIntentInvariants.ts"
import { RELEASED } from "../../engine/log/Record.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { AnswerWriter } from "../shared/AnswerWriter.ts"
import { CHECKOUT_SESSION, PAYMENT_INTENT, REFUND } from "../shared/Documents.ts"
import { effectOf, refundOf, settledAside, supersede, waitsForAnother, type Word } from "./OperationEffects.ts"
import * as Operations from "./Operations.ts"
import type { OperationDocument } from "./Operations.ts"
import * as PaymentIntents from "./PaymentIntents.ts"
import { find as findPayment, type Payment, save } from "./PaymentIntentTransitions.ts"
import { PaymentsConfig } from "../shared/PaymentsConfig.ts"
import { type Processors, remoteProcessor } from "../processing/Processor.ts"
import * as Refunds from "./Refunds.ts"
import type { Outcome } from "../processing/RemoteProcessor.ts"
import { seal } from "../shared/Sealing.ts"

/** The services that outcomes need. */
export type OutcomeServices = Transaction | PaymentsConfig | Processors | AnswerWriter

/** Evidence that an operation keeps, at most. */
const EVIDENCE_MAX = 20

/** Applies a processor's word. Does nothing for an operation that is gone, or has that outcome already. */
export const conclude = Effect.fnUntraced(function* (
  id: string,
  outcome: Outcome,
  by: OperationResolvedBy
): Effect.fn.Return<void, never, OutcomeServices> {
  const found = yield* Operations.find(id)
  if (found === undefined || outcome.kind === "unknown" || outcome.kind === "in_progress") return
  if (found.value.status === "final") return yield* contradict(found, outcome, by)
  // The first call's denial comes too late: further calls may be on their way.
  if (outcome.kind === "not_executed" && by === "answer" && found.value.status !== "open") return
  const operation = noted(yield* Transaction, found, outcome, by)
  if (outcome.kind === "mismatch") return yield* doubt(operation, outcome.why)
  const difference = differenceOf(operation, outcome)
  if (difference !== undefined) return yield* doubt(operation, difference)
  const payment = yield* paymentOf(operation)
  if (outcome.kind === "approved" && isOutlived(operation, payment, by)) {
    yield* finish(settledAside(yield* Transaction, operation, payment), outcome, by)
    return yield* reverse((yield* Operations.find(id))!, yield* paymentOf(operation), outcome.reference)
  }
  const effected = yield* effectOf(operation, payment, outcome)
  switch (effected.kind) {
    case "nothing":
    case "doubtful":
      // The other operation's outcome decides what becomes of the money.
      if (by === "operator" && waitsForAnother(operation, payment)) return
      // A person's word stands, whatever the payment shows.
      if (by === "operator") return yield* finish(settledAside(yield* Transaction, operation, payment), outcome, by)
      return effected.kind === "nothing" ? undefined : yield* doubt(operation, effected.why)
    case "released":
      return yield* finish(operation, outcome, by)
    case "concluded":
      return yield* finish(operation, outcome, by, effected.answer, effected.waits)
  }
})

/**
 * Takes in an operation that the processor has carried out and this installation has not begun, with the processor's
 * word (semantics operations.adopted). Returns false, and changes nothing, if the account has it, if the payment is
 * another processor's, or while another operation of the payment has no outcome.
 */
export const adopt = Effect.fnUntraced(function* (
  processor: string,
  { payment: paymentId, ...made }: Omit<Operations.Adopted, "payment"> & { readonly payment: string },
  outcome: Outcome,
  by: OperationResolvedBy
): Effect.fn.Return<boolean, never, OutcomeServices> {
  const transaction = yield* Transaction
  const payment = yield* Effect.orDie(findPayment(paymentId))
  const { remote } = payment.hidden ?? {}
  if (remote?.processor !== processor || payment.value.pending_operation !== undefined) return false
  const isKnown = made.isLost
    ? (yield* Operations.find(made.id)) !== undefined
    : remote.refunds?.includes(made.id) === true
  if (isKnown) return false
  const { value } = Operations.adopt(transaction, processor, { ...made, payment })
  Operations.lookAt(transaction, value.id, transaction.now + nextLook("waiting", 0)!)
  yield* conclude(value.id, outcome, by)
  return true
})

/** Used while a person decides: the request was answered when the operation was left to a person. */
const alreadyAnswered: AnswerWriter["Service"] = () => {
  throw new Error("An operation to decide about still has a request to answer")
}

/**
 * A person's decision (semantics operations.decide). Returns false if the operation is none to decide about, or while
 * its money's way is open: another operation is out, or the processor is out of order.
 */
export const decide = Effect.fnUntraced(function* (
  id: string,
  reference: string | null
): Effect.fn.Return<boolean, never, Exclude<OutcomeServices, AnswerWriter>> {
  const found = yield* Operations.find(id)
  if (found?.value.status !== "decide") return false
  const { amount, currency } = found.value
  const outcome: Outcome =
    reference === null
      ? { kind: "not_executed", why: "An operator has decided.", retryAfterMillis: null }
      : { kind: "approved", reference, amount, currency, captureBefore: null }
  yield* Effect.provideService(conclude(id, outcome, "operator"), AnswerWriter, alreadyAnswered)
  return (yield* Operations.find(id))?.value.status === "final"
})

/** Attends to an operation when its timer is due: the end of a request's wait, or the next look. */
export const attend = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, never, OutcomeServices> {
  const transaction = yield* Transaction
  const found = yield* Operations.find(id)
  if (found === undefined) return
  const { now } = transaction
  switch (found.value.status) {
    case "open":
      return yield* leaveUnresolved(found, "unresolved")
    case "unresolved":
      if (now - found.hidden.begunAt >= DECIDE_MILLIS) return yield* doubt(found, UNANSWERED, "unknown")
      return look(transaction, found)
    case "waiting":
    case "decide":
    case "final":
      return look(transaction, found)
  }
})

const UNANSWERED = "The processor has not answered for a day."

/** Lets the processor be asked, as of this record, and sets the time of the next look. */
const look = (transaction: Transaction, found: OperationDocument): void => {
  const at = Operations.nextLookOf(found, transaction.now)
  if (at === null) return
  Operations.move(transaction, "look", found, {}, { asks: true })
  Operations.lookAt(transaction, found.value.id, at)
}

const paymentOf = (operation: OperationDocument): Effect.Effect<Payment, never, Transaction> =>
  Effect.orDie(findPayment(operation.value.payment_intent))

/** Returns how the processor's word differs from what it was asked for; undefined if it does not. */
const differenceOf = ({ value }: OperationDocument, outcome: Outcome): string | undefined => {
  if (outcome.kind !== "approved" || value.kind === "void") return undefined
  const { amount, currency } = outcome
  return amount === value.amount && currency === value.currency
    ? undefined
    : `The processor approved ${amount} ${currency} instead of ${value.amount} ${value.currency}.`
}

/**
 * True if the approval of this authorization comes when its payment has gone on without it, and has no money: a later
 * attempt took the place of a challenge and failed, or was out when the processor contradicted itself.
 */
const isOutlived = (operation: OperationDocument, payment: Payment, by: OperationResolvedBy): boolean => {
  const { hidden, value } = operation
  const { status } = payment.value
  const isAsked = status === "requires_action" && payment.hidden?.remote?.waiting === value.id
  // A person who has decided, and is contradicted, decides again.
  const isUndecided =
    value.status === "decide" && (by === "operator" || !hidden.evidence.some((word) => word.by === "operator"))
  return (
    value.kind === "authorize" &&
    (value.status === "waiting" || isUndecided) &&
    !waitsForAnother(operation, payment) &&
    status !== "processing" &&
    !isAsked &&
    latestCharge(payment.value)?.status !== "succeeded"
  )
}

// The states of the operation.

/** Writes the operation's new state, and answers its request. Without an answer the key is released. */
const finish = Effect.fnUntraced(function* (
  before: OperationDocument,
  outcome: Word,
  by: OperationResolvedBy,
  answer: Result.Result<object, DomainError> | null = null,
  waits: boolean = false
): Effect.fn.Return<void, never, OutcomeServices> {
  const transaction = yield* Transaction
  const { id, status } = before.value
  yield* answerRequest(before, answer)
  const { keyring } = yield* PaymentsConfig
  const sealedChallenge =
    outcome.kind === "challenge" && waits ? seal(Operations.challengeSealing(keyring, id), outcome.url) : null
  // A person may be wrong: the processor is asked to confirm the decision.
  const asks = by === "operator"
  const changes = {
    status: waits ? ("waiting" as const) : ("final" as const),
    outcome: shownOutcome(outcome),
    resolved_by: by,
    ...("reference" in outcome && outcome.reference !== null && { reference: outcome.reference })
  }
  Operations.move(transaction, "conclude", before, changes, { answers: null, asks, sealedChallenge })
  if (!waits) Operations.lookAt(transaction, id, asks ? transaction.now + nextLook("final", 0)! : null)
  // The same word again does not begin the looks anew.
  else if (status !== "waiting") Operations.lookAt(transaction, id, transaction.now + nextLook("waiting", 0)!)
  const { challenged } = before.hidden
  if (challenged === null) return
  const isCarriedOut = outcome.kind !== "refused" && outcome.kind !== "not_executed"
  if (before.value.kind === "authorize" && isCarriedOut) return yield* supersede(challenged)
  // The payer may have acted while this operation was out, and that counts now.
  const isStillAsked = (yield* Operations.find(challenged))?.value.status === "waiting"
  if (isStillAsked) Operations.lookAt(transaction, challenged, transaction.now)
})

const answerRequest = Effect.fnUntraced(function* (
  { hidden: { answers } }: OperationDocument,
  answer: Result.Result<object, DomainError> | null
): Effect.fn.Return<void, never, Transaction | AnswerWriter> {
  if (answers === null) return
  const transaction = yield* Transaction
  const { request, route } = answers
  if (answer === null) return transaction.answer(request, RELEASED)
  const write = yield* AnswerWriter
  transaction.answer(request, write({ apiVersion: request.apiVersion, route }, answer))
})

/**
 * Answers the request of an operation without an outcome, with the object as it is. An authorization's payment becomes
 * `processing`, and a refund reserves its amount: both may have happened.
 */
const leaveUnresolved = Effect.fnUntraced(function* (
  before: OperationDocument,
  status: "unresolved" | "decide"
): Effect.fn.Return<void, never, OutcomeServices> {
  const transaction = yield* Transaction
  const { id } = before.value
  yield* makeUncertain(before)
  const { answers, begunAt } = before.hidden
  if (answers !== null) yield* answerRequest(before, Result.succeed(yield* shownObject(before)))
  const step = status === "unresolved" ? "expire" : "doubt"
  const { now } = transaction
  Operations.move(transaction, step, before, { status }, { answers: null, asks: true })
  const age = nextLook(status, now - begunAt)!
  Operations.lookAt(transaction, id, status === "unresolved" ? begunAt + age : now + age)
})

const makeUncertain = Effect.fnUntraced(function* (
  operation: OperationDocument
): Effect.fn.Return<void, never, OutcomeServices> {
  const transaction = yield* Transaction
  const { hidden, value } = operation
  const payment = yield* paymentOf(operation)
  if (hidden.cause === "reverse") return
  if (value.kind === "authorize") {
    const config = yield* PaymentsConfig
    const options = { offSession: hidden.request.offSession, returnUrl: hidden.returnUrl }
    const made = { transaction, config, operation: "confirm", payment } as const
    const pending = { kind: "pending", settlesAfterMillis: null } as const
    if (!paymentIntentStates.isAllowed("confirm", payment.value.status)) return
    yield* PaymentIntents.applyAuthorization(made, hidden.source!, options, pending)
  }
  if (value.kind === "refund") Refunds.applyRefund(transaction, payment, refundOf(operation), "pending")
})

/** Returns the object of an operation's answer as it is now. */
const shownObject = Effect.fnUntraced(function* ({
  hidden: { answers },
  value
}: OperationDocument): Effect.fn.Return<object, never, Transaction> {
  const transaction = yield* Transaction
  const payment = (yield* transaction.get(PAYMENT_INTENT, value.payment_intent))!
  switch (answers?.object) {
    case "refund":
      return (yield* transaction.get(REFUND, value.refund!))!.value
    case "checkout.session":
      return (yield* transaction.get(CHECKOUT_SESSION, payment.hidden!.checkoutSession!))!.value
    default:
      return payment.value
  }
})

/** Leaves an operation to a person (semantics operations.decide). */
const doubt = Effect.fnUntraced(function* (
  found: OperationDocument,
  why: string,
  kind: "mismatch" | "unknown" = "mismatch"
): Effect.fn.Return<void, never, OutcomeServices> {
  const transaction = yield* Transaction
  const { hidden, value } = found
  const { id, status } = value
  const outcome: OperationOutcome = { kind, code: null, message: why, processor_code: null }
  const changes = { outcome, resolved_by: null }
  if (status === "open") return yield* leaveUnresolved({ hidden, value: { ...value, ...changes } }, "decide")
  yield* namePending(found)
  Operations.move(transaction, "doubt", found, { ...changes, status: "decide" }, { asks: false })
  Operations.lookAt(transaction, id, transaction.now + nextLook("decide", 0)!)
})

/** Lets the payment wait for a person, unless another operation has its outcome before. */
const namePending = Effect.fnUntraced(function* (found: OperationDocument): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const payment = yield* paymentOf(found)
  const { created, id, kind } = found.value
  if (payment.value.pending_operation !== undefined || waitsForAnother(found, payment)) return
  save(transaction, { ...payment.value, pending_operation: { id, kind, created } }, payment.hidden)
})

/**
 * A word about an operation that is final: it confirms what a person has decided, or contradicts the outcome. An
 * authorization that was carried out although its payment was told otherwise is given back. A person decides about any
 * other contradiction. Only a decline contradicts the processor's own approval: it may forget, and a call that comes
 * after the approval may be refused.
 */
const contradict = Effect.fnUntraced(function* (
  found: OperationDocument,
  outcome: Word,
  by: OperationResolvedBy
): Effect.fn.Return<void, never, OutcomeServices> {
  const { hidden, value } = found
  const isOperators = value.resolved_by === "operator"
  const isSame = isConfirmed(value, outcome)
  if (isSame === undefined || (isSame && !hidden.asks)) return
  if (!isOperators && outcome.kind !== "approved" && outcome.kind !== "declined") return
  const transaction = yield* Transaction
  const operation = noted(transaction, found, outcome, by)
  if (isSame) {
    Operations.move(transaction, "confirm", operation, {}, { asks: false })
    return Operations.lookAt(transaction, value.id, null)
  }
  // The return came too late, because the money was back: its approval says the same.
  if (hidden.cause === "reverse" && !isOperators && outcome.kind === "approved") return
  const why = "The processor contradicts the outcome."
  if (isOperators || value.kind !== "authorize" || outcome.kind !== "approved") return yield* doubt(operation, why)
  const difference = differenceOf(operation, outcome)
  if (difference !== undefined) return yield* doubt(operation, difference)
  const payment = yield* paymentOf(operation)
  const isPaid = latestCharge(payment.value)?.status === "succeeded"
  if (isPaid || payment.value.pending_operation !== undefined) return yield* doubt(operation, why)
  yield* reverse(operation, payment, outcome.reference)
})

/** Returns whether a word says the same about a final operation as its outcome; undefined if it says neither. */
const isConfirmed = ({ kind, outcome }: Operation, word: Word): boolean | undefined => {
  const hasHappened = outcome!.kind === "approved"
  switch (word.kind) {
    case "approved":
      return hasHappened
    case "declined":
    case "refused":
    case "not_executed":
    // Money moves by an operation that follows.
    case "authenticated":
      return !hasHappened
    // It never will be carried out. Something else may have had the same effect.
    case "too_late":
      return !hasHappened || word.now === (kind === "void" ? "canceled" : kind === "capture" ? "succeeded" : null)
    default:
      return undefined
  }
}

/** Begins to give back money that the payment does not show. */
const reverse = Effect.fnUntraced(function* (
  operation: OperationDocument,
  payment: Payment,
  reference: string
): Effect.fn.Return<void, never, OutcomeServices> {
  const transaction = yield* Transaction
  const kind = operation.hidden.request.capture === "manual" ? ("void" as const) : ("refund" as const)
  const { amount } = operation.value
  const remote = { ...payment.hidden!.remote!, reference }
  const known = { ...payment, hidden: { ...payment.hidden, remote } }
  const beginning = { kind, cause: "reverse", payment: known, amount, answerWith: "payment_intent" } as const
  const begun = yield* Effect.option(
    Effect.flatMap(remoteProcessor(remote), (processor) => Operations.begin(processor, beginning))
  )
  if (Option.isNone(begun)) return yield* doubt(operation, "The processor contradicts the outcome.")
  const message = `Given back by ${begun.value.operation}.`
  const outcome: OperationOutcome = { ...operation.value.outcome!, kind: "approved", message }
  Operations.put(transaction, { ...operation, value: { ...operation.value, outcome } })
})

const noted = (
  { now }: Transaction,
  { hidden, value }: OperationDocument,
  outcome: Outcome,
  by: OperationResolvedBy
): OperationDocument => {
  const detail = "reference" in outcome ? outcome.reference : messageOf(outcome)
  const word = { at: now, by, outcome: outcome.kind, detail }
  const last = hidden.evidence.at(-1)
  // The same word again takes the place of the last.
  const isAgain = last?.by === by && last.outcome === outcome.kind && last.detail === detail
  const evidence = [...(isAgain ? hidden.evidence.slice(0, -1) : hidden.evidence), word].slice(-EVIDENCE_MAX)
  return { value, hidden: { ...hidden, evidence } }
}

const messageOf = (outcome: Outcome): string | null =>
  "message" in outcome ? outcome.message : "why" in outcome ? outcome.why : null

const shownOutcome = (outcome: Word): OperationOutcome => ({
  kind: outcome.kind,
  code: outcome.kind === "declined" ? outcome.declineCode : outcome.kind === "refused" ? outcome.code : null,
  message: messageOf(outcome),
  processor_code: outcome.kind === "declined" ? outcome.processorCode : null
})
