/**
 * The effects of operations on their payments (semantics operations.states), by the kind of the operation and the
 * processor's word. They call the same functions as the simulator's outcomes, and say what becomes of the operation
 * (`OperationOutcomes.ts`).
 */
import { Effect, Result } from "effect"
import { DECLINE_MESSAGES } from "../../domain/Cards.ts"
import {
  type CardDeclined,
  type DomainError,
  PaymentIntentUnexpectedState,
  ProcessorRefused
} from "../../domain/Errors.ts"
import type { OperationOutcome } from "../../domain/Operation.ts"
import { latestCharge } from "../../domain/PaymentIntentInvariants.ts"
import { paymentIntentStates } from "../../domain/PaymentIntentStates.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import * as CheckoutSessions from "./CheckoutSessions.ts"
import { REFUND } from "../shared/Documents.ts"
import * as Operations from "./Operations.ts"
import type { OperationDocument } from "./Operations.ts"
import * as PaymentIntents from "./PaymentIntents.ts"
import { type Payment, save } from "./PaymentIntentTransitions.ts"
import { PaymentsConfig } from "../shared/PaymentsConfig.ts"
import type { Declined } from "../processing/Processor.ts"
import * as Refunds from "./Refunds.ts"
import type { Outcome } from "../processing/RemoteProcessor.ts"
import { timer } from "../shared/TimerNames.ts"

/** An outcome that says something. */
export type Word = Exclude<Outcome, { readonly kind: "unknown" | "in_progress" }>

/** The effect of a word on the payment. */
export type Effected =
  /** The operation has its outcome, with the answer to its request. */
  | { readonly kind: "concluded"; readonly answer: Result.Result<object, DomainError>; readonly waits?: boolean }
  /** It was not carried out, and never will be: the request's key is free. */
  | { readonly kind: "released" }
  /** The word contradicts the payment. */
  | { readonly kind: "doubtful"; readonly why: string }
  /** The word says nothing new. */
  | { readonly kind: "nothing" }

const NOTHING: Effected = { kind: "nothing" }
const doubtful = (why: string): Effected => ({ kind: "doubtful", why })
const concluded = (answer: Result.Result<object, DomainError>, waits: boolean = false): Effected => {
  return { kind: "concluded", answer, waits }
}

/** Applies a word about an operation to its payment. The operation itself stays as it is. */
export const effectOf = (
  operation: OperationDocument,
  payment: Payment,
  outcome: Word
): Effect.Effect<Effected, never, Transaction | PaymentsConfig> => {
  if (operation.hidden.cause === "reverse") return effectOfReversal(operation, payment, outcome)
  switch (operation.value.kind) {
    case "authorize":
      return effectOfAuthorization(operation, payment, outcome)
    case "capture":
      return effectOfCapture(operation, payment, outcome)
    case "void":
      return effectOfVoid(operation, payment, outcome)
    case "refund":
      return effectOfRefund(operation, payment, outcome)
  }
}

/**
 * The effect of a word about an authorization. A word counts unless another operation of the payment is out; an
 * approval always counts, because money has moved. The first row that matches applies.
 *
 * | The payment        | Word                                       | Effect                                       |
 * | ------------------ | ------------------------------------------ | -------------------------------------------- |
 * | is `processing`    | any that counts                            | that of a settlement                         |
 * | waits for the call | any                                        | that of an attempt                           |
 * | asks this payer    | any that counts, or declined during a void | that of an attempt                           |
 * | asks this payer    | any other failure                          | none: it may be the work of what is out      |
 * | was paid by this   | any failure                                | doubt                                        |
 * | has gone on        | any failure, or authenticated in vain      | none on the payment; the operation has ended |
 * | has gone on        | any other that counts                      | doubt                                        |
 * | any                | any other                                  | none: what is out decides                    |
 */
const effectOfAuthorization = Effect.fnUntraced(function* (
  operation: OperationDocument,
  payment: Payment,
  outcome: Word
): Effect.fn.Return<Effected, never, Transaction | PaymentsConfig> {
  const { pending_operation: pending, status } = payment.value
  const { id, status: state } = operation.value
  const counts = outcome.kind === "approved" || !waitsForAnother(operation, payment)
  const isFirst = state === "open" && paymentIntentStates.isAllowed("confirm", status)
  const isAsked = status === "requires_action" && payment.hidden?.remote?.waiting === id
  const hasFailed = outcome.kind === "declined" || outcome.kind === "refused" || outcome.kind === "not_executed"
  // The payer has failed, whatever becomes of the void.
  const hasFailedMeanwhile = outcome.kind === "declined" && pending?.kind === "void"
  if (counts && status === "processing") return yield* effectOfSettlement(operation, payment, outcome)
  if (isFirst) return yield* effectOfAttempt(operation, payment, outcome, "confirm")
  if (isAsked && (counts || hasFailedMeanwhile)) {
    return yield* effectOfAttempt(operation, payment, outcome, "authenticate")
  }
  if (isAsked && hasFailed) return NOTHING
  const hasApproval = operation.hidden.evidence.some((word) => word.outcome === "approved")
  const hasPaid = hasApproval && latestCharge(payment.value)?.status === "succeeded"
  if (hasFailed && hasPaid) return doubtful(`The payment is \`${status}\`.`)
  const isInVain = counts && outcome.kind === "authenticated" && state === "waiting"
  if (hasFailed || isInVain) return keepAsItWas(yield* Transaction, operation, payment, unexpected(status, "confirm"))
  return counts ? doubtful(`The payment is \`${status}\`.`) : NOTHING
})

/** True while the payment waits for the outcome of another operation. */
export const waitsForAnother = ({ value: { id } }: OperationDocument, { hidden, value }: Payment): boolean => {
  const processing = value.status === "processing" ? hidden?.remote?.waiting : null
  return (value.pending_operation?.id ?? processing ?? id) !== id
}

/** The outcome of an attempt that a request waits for, or whose payer has authenticated. */
const effectOfAttempt = Effect.fnUntraced(function* (
  operation: OperationDocument,
  payment: Payment,
  outcome: Word,
  step: "confirm" | "authenticate"
): Effect.fn.Return<Effected, never, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  const config = yield* PaymentsConfig
  const { hidden, value } = operation
  const { returnUrl } = hidden
  const { offSession } = hidden.request
  const attempted = (facts: Operations.Facts, futureUsage = hidden.futureUsage) => {
    const free = withoutPending(payment, operation, { waiting: null, ...facts })
    const made = { ...free, value: { ...free.value, setup_future_usage: futureUsage } }
    return { transaction, config, operation: step, payment: made } as const
  }
  const options = { offSession, returnUrl }
  const source = hidden.source!
  switch (outcome.kind) {
    case "approved": {
      const captureBefore = outcome.captureBefore ?? Infinity
      const approval = { kind: "approved", captureBefore: captureBefore + transaction.clockOffset } as const
      const made = attempted({ reference: outcome.reference })
      return answerOf(operation, yield* PaymentIntents.applyAuthorization(made, source, options, approval))
    }
    case "declined":
      return answerOf(operation, yield* PaymentIntents.applyAuthorization(attempted({}), source, options, outcome))
    case "challenge": {
      if (step === "authenticate") return NOTHING
      const made = attempted({ waiting: offSession ? null : value.id, ...referenceIn(outcome) })
      const answer = yield* PaymentIntents.applyAuthorization(made, source, options, { kind: "challenge" })
      return answerOf(operation, answer, !offSession)
    }
    case "pending": {
      const made = attempted({ waiting: value.id, ...referenceIn(outcome) })
      const pending = { kind: "pending", settlesAfterMillis: null } as const
      return answerOf(operation, yield* PaymentIntents.applyAuthorization(made, source, options, pending), true)
    }
    case "authenticated": {
      if (step === "confirm") return doubtful("The processor has authenticated a payer whom it had not asked.")
      const { payment: made } = attempted(referenceIn(outcome))
      return answerOf(operation, Result.succeed(PaymentIntents.passAuthentication(transaction, made)))
    }
    case "refused":
      if (step === "authenticate") return yield* declinedByFault(attempted({}), source, options)
      return keepAsItWas(transaction, operation, payment, refusal(outcome))
    case "not_executed":
      if (step === "authenticate") return yield* declinedByFault(attempted({}), source, options)
      return keepAsItWas(transaction, operation, payment, null)
    case "too_late":
    case "mismatch":
      return doubtful("The processor has concluded the payment.")
  }
})

/** A challenge that the processor does not know, or refuses, is a failed attempt. */
const declinedByFault = (
  made: PaymentIntents.Attempt,
  source: PaymentIntents.ChargedSource,
  options: { readonly offSession: boolean; readonly returnUrl: string | null }
): Effect.Effect<Effected, never, Transaction | PaymentsConfig> =>
  Effect.map(PaymentIntents.applyAuthorization(made, source, options, FAULT), (answer) =>
    concluded(Result.map(answer, ({ value }) => value))
  )

const FAULT: Declined = {
  kind: "declined",
  declineCode: "processing_error",
  message: DECLINE_MESSAGES.processing_error
}

/** The outcome of an attempt whose payment is `processing`. */
const effectOfSettlement = Effect.fnUntraced(function* (
  operation: OperationDocument,
  payment: Payment,
  outcome: Word
): Effect.fn.Return<Effected, never, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  const free = (facts: Operations.Facts) => withoutPending(payment, operation, { waiting: null, ...facts })
  switch (outcome.kind) {
    case "approved": {
      const captureBefore = (outcome.captureBefore ?? Infinity) + transaction.clockOffset
      const { futureUsage } = operation.hidden
      const paid = free({ reference: outcome.reference })
      const made = { ...paid, value: { ...paid.value, setup_future_usage: futureUsage } }
      return answerOf(operation, yield* PaymentIntents.applySettlement(made, { kind: "approved", captureBefore }))
    }
    case "declined":
      return answerOf(operation, yield* PaymentIntents.applySettlement(free({}), outcome))
    case "refused":
    case "not_executed":
      return answerOf(operation, yield* PaymentIntents.applySettlement(free({}), FAULT))
    case "pending": {
      const made = free({ waiting: operation.value.id, ...referenceIn(outcome) })
      save(transaction, made.value, made.hidden)
      return concluded(Result.succeed(made.value), true)
    }
    // The request was answered: no payer is there. The processor is asked to give the attempt up first.
    case "challenge":
      return NOTHING
    case "authenticated":
    case "too_late":
    case "mismatch":
      return doubtful("The payment is `processing`.")
  }
})

const effectOfCapture = Effect.fnUntraced(function* (
  operation: OperationDocument,
  payment: Payment,
  outcome: Word
): Effect.fn.Return<Effected, never, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  if (payment.value.status !== "requires_capture") return doubtful(`The payment is \`${payment.value.status}\`.`)
  switch (outcome.kind) {
    case "approved": {
      const free = withoutPending(payment, operation, {})
      return answerOf(operation, Result.succeed(PaymentIntents.applyCapture(transaction, free, operation.value.amount)))
    }
    case "too_late": {
      if (outcome.now === "succeeded") return doubtful("The processor has captured the payment otherwise.")
      const free = withoutPending(payment, operation, {})
      const { value } = PaymentIntents.giveUp(transaction, "expire_hold", free, "automatic")
      return concluded(Result.fail(unexpected(value.status, "capture")))
    }
    default:
      return withoutEffect(transaction, operation, payment, outcome)
  }
})

const effectOfVoid = Effect.fnUntraced(function* (
  operation: OperationDocument,
  payment: Payment,
  outcome: Word
): Effect.fn.Return<Effected, never, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  const { cancellationReason, cause } = operation.hidden
  // An adopted void may be that of a session, which ends with it.
  const isOfSession = cause === "processor" && payment.session?.value.status === "open"
  const expires = cause === "expire_session" || isOfSession
  const step = expires ? "expire_session" : cause === "expire_hold" ? cause : "cancel"
  const isOpen = paymentIntentStates.isAllowed(step, payment.value.status)
  const isReleased = outcome.kind === "approved" || (outcome.kind === "too_late" && outcome.now === "canceled")
  if (isReleased) {
    if (!isOpen) return doubtful(`The payment is \`${payment.value.status}\`.`)
    const { waiting } = payment.hidden!.remote!
    const free = withoutPending(payment, operation, { waiting: null })
    const canceled = PaymentIntents.giveUp(transaction, step, free, cancellationReason)
    if (waiting !== null) yield* supersede(waiting)
    if (!expires) return answerOf(operation, Result.succeed(canceled))
    return concluded(Result.succeed(CheckoutSessions.applyExpiry(transaction, canceled.session!)))
  }
  if (payment.value.status === "canceled") return doubtful("The payment is `canceled`.")
  switch (outcome.kind) {
    // The payer has authenticated in time. The authorization's own outcome changes the payment.
    case "too_late":
      return isOpen
        ? doubtful("The processor has captured the payment otherwise.")
        : keepAsItWas(transaction, operation, payment, unexpected(payment.value.status, "cancel"))
    default:
      return withoutEffect(transaction, operation, payment, outcome)
  }
})

/** A word by which a capture or void has not happened, or not yet. */
const withoutEffect = (
  transaction: Transaction,
  operation: OperationDocument,
  payment: Payment,
  outcome: Exclude<Word, { readonly kind: "approved" | "too_late" }>
): Effected => {
  switch (outcome.kind) {
    case "declined":
    case "refused":
      return keepAsItWas(transaction, operation, payment, refusal(outcome))
    case "not_executed":
      return keepAsItWas(transaction, operation, payment, null)
    case "pending":
      return NOTHING
    case "challenge":
    case "authenticated":
    case "mismatch":
      return likeAuthorization(operation)
  }
}

const likeAuthorization = ({ value: { kind } }: OperationDocument): Effected =>
  doubtful(`The processor has answered a ${kind} like an authorization.`)

const effectOfRefund = Effect.fnUntraced(function* (
  operation: OperationDocument,
  payment: Payment,
  outcome: Word
): Effect.fn.Return<Effected, never, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  const { value } = operation
  const free = withoutPending(payment, operation, {})
  const id = value.refund!
  const existing = yield* transaction.get(REFUND, id)
  const isApproved = outcome.kind === "approved"
  const takesAmount =
    existing === undefined ? isApproved || outcome.kind === "pending" : isApproved && existing.value.status === "failed"
  // A refund that was not begun here, or that has failed, can be more than what is left.
  if (takesAmount && !Refunds.isWithin(payment.value, value.amount)) {
    return doubtful(`The processor has refunded ${value.amount} ${value.currency}, which is more than what is left.`)
  }
  switch (outcome.kind) {
    case "approved":
      return existing === undefined
        ? concluded(Result.succeed(Refunds.applyRefund(transaction, free, refundOf(operation), "succeeded")))
        : yield* settled(existing.value, free, { status: "succeeded" })
    case "pending":
      if (existing === undefined) {
        return concluded(Result.succeed(Refunds.applyRefund(transaction, free, refundOf(operation), "pending")), true)
      }
      save(transaction, free.value, free.hidden)
      return concluded(Result.succeed(existing.value), true)
    case "declined":
    case "refused":
    case "too_late":
    case "not_executed": {
      if (existing !== undefined) {
        return yield* settled(existing.value, free, { status: "failed", failureReason: "unknown" })
      }
      if (outcome.kind === "not_executed") return keepAsItWas(transaction, operation, payment, null)
      const failure =
        outcome.kind === "too_late"
          ? new ProcessorRefused({ message: `The payment is ${outcome.now}.`, param: "payment_intent" })
          : refusal(outcome)
      return keepAsItWas(transaction, operation, payment, failure)
    }
    case "challenge":
    case "authenticated":
    case "mismatch":
      return likeAuthorization(operation)
  }
})

const settled = Effect.fnUntraced(function* (
  before: Parameters<typeof Refunds.applySettlement>[0],
  payment: Payment,
  settlement: Parameters<typeof Refunds.applySettlement>[2]
): Effect.fn.Return<Effected, never, Transaction> {
  const transaction = yield* Transaction
  save(transaction, payment.value, payment.hidden)
  yield* Refunds.applySettlement(before, payment, settlement)
  return concluded(Result.succeed((yield* transaction.get(REFUND, before.id))!.value))
})

export const refundOf = ({ hidden: { refund }, value }: OperationDocument) => ({
  id: value.refund!,
  amount: value.amount,
  ...refund!
})

/** Money that was given back changes nothing on the payment. A person has to know of any other outcome. */
const effectOfReversal = Effect.fnUntraced(function* (
  operation: OperationDocument,
  payment: Payment,
  outcome: Word
): Effect.fn.Return<Effected, never, Transaction> {
  const isDone = outcome.kind === "approved" || (outcome.kind === "too_late" && outcome.now === "canceled")
  if (outcome.kind === "not_executed") return NOTHING
  if (!isDone && outcome.kind !== "pending") return doubtful("The processor does not give the money back.")
  settledAside(yield* Transaction, operation, payment)
  return concluded(Result.succeed(payment.value), !isDone)
})

/** Frees the payment of an operation that changes nothing else in it. */
export const settledAside = (
  transaction: Transaction,
  operation: OperationDocument,
  payment: Payment
): OperationDocument => {
  const free = withoutPending(payment, operation, {})
  save(transaction, free.value, free.hidden)
  return operation
}

/** Ends the challenge of an earlier authorization, which a later one or a void has ended at the processor. */
export const supersede = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const found = yield* Operations.find(id)
  if (found?.value.status !== "waiting") return
  const outcome: OperationOutcome = { kind: "superseded", code: null, message: null, processor_code: null }
  const changes = { status: "final", outcome } as const
  Operations.move(transaction, "supersede", found, changes, { asks: false, sealedChallenge: null })
  Operations.lookAt(transaction, id, null)
})

/** Returns the answer with the object that the request shows. */
const answerOf = (
  { hidden: { answers } }: OperationDocument,
  attempted: Result.Result<Payment, CardDeclined>,
  waits: boolean = false
): Effected => {
  const isOfSession = answers?.object === "checkout.session"
  return concluded(
    Result.map(attempted, ({ session, value }) => (isOfSession ? session!.value : value)),
    waits
  )
}

const refusal = (outcome: Extract<Word, { readonly kind: "refused" | "declined" }>): ProcessorRefused =>
  new ProcessorRefused({ message: outcome.message, param: outcome.kind === "refused" ? outcome.param : null })

const unexpected = (status: Payment["value"]["status"], operation: "capture" | "cancel" | "confirm") =>
  new PaymentIntentUnexpectedState({
    status,
    operation,
    allowed: paymentIntentStates.statesFor(operation),
    param: "id"
  })

/** The payment stays as it was before the operation. A timer that had begun it is set again. */
const keepAsItWas = (
  transaction: Transaction,
  operation: OperationDocument,
  payment: Payment,
  failure: DomainError | null
): Effected => {
  const free = withoutPending(payment, operation, {})
  save(transaction, free.value, free.hidden)
  const again = transaction.now + AGAIN_MILLIS
  const { session, value } = free
  const isHeld = value.status === "requires_capture"
  if (operation.hidden.cause === "expire_hold" && isHeld) {
    transaction.setTimer(timer("payment_intent.expire_hold", value.id, again))
  }
  if (operation.hidden.cause === "expire_session" && session?.value.status === "open") {
    transaction.setTimer(timer("checkout.session.expire", session.value.id, again))
  }
  return failure === null ? { kind: "released" } : concluded(Result.fail(failure))
}

/** The pause before Till tries again to release a payment whose time is over, in milliseconds. */
const AGAIN_MILLIS = 60_000

const withoutPending = (payment: Payment, { value: { id } }: OperationDocument, facts: Operations.Facts): Payment =>
  payment.value.pending_operation === undefined || payment.value.pending_operation.id === id
    ? Operations.withoutPending(payment, facts)
    : Operations.withFacts(payment, facts)

const referenceIn = ({ reference }: { readonly reference: string | null }) => (reference === null ? {} : { reference })
