/**
 * The lifecycle of refunds (semantics refunds.*).
 *
 * A refund reserves its amount on the charge in the record that creates it, and releases it in the record in which it
 * fails. Commands of one account run one after another, so concurrent refunds together never exceed the captured
 * amount.
 */
import { Effect } from "effect"
import type { Charge } from "../../domain/Charge.ts"
import {
  ChargeAlreadyRefunded,
  type ParameterInvalid,
  type PaymentIntentUnexpectedState,
  type ProcessorNotConfigured,
  RefundTooLarge,
  type ResourceMissing
} from "../../domain/Errors.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { mergeMetadata, previousMetadata, updateMetadata } from "../../domain/Metadata.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import { latestCharge } from "../../domain/PaymentIntentInvariants.ts"
import { paymentIntentStates } from "../../domain/PaymentIntentStates.ts"
import {
  type CreateRefund,
  type Refund,
  type RefundOperation,
  refundStates,
  type UpdateRefund
} from "../../domain/Refund.ts"
import { secondsOf } from "../../domain/Time.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { CHARGE, findDocument, REFUND } from "../shared/Documents.ts"
import { emit } from "../shared/Events.ts"
import { begin, type Begun, requireNoOperation } from "./Operations.ts"
import type { RemoteError } from "./PaymentIntents.ts"
import * as PaymentIntentTransitions from "./PaymentIntentTransitions.ts"
import { resolve } from "./PaymentMethods.ts"
import { processorAtOnce, type Processors, type RefundSettlement, remoteProcessor } from "../processing/Processor.ts"
import { timer } from "../shared/TimerNames.ts"

/**
 * Returns money to the payer (semantics refunds.create, refunds.effects). Emits `refund.created`, and `charge.refunded`
 * if the processor completed it immediately.
 */
export const create = Effect.fnUntraced(function* (
  parameters: CreateRefund
): Effect.fn.Return<
  Refund | Begun,
  ResourceMissing | PaymentIntentUnexpectedState | ChargeAlreadyRefunded | RefundTooLarge | RemoteError,
  Transaction | Processors
> {
  const transaction = yield* Transaction
  const metadata = mergeMetadata({}, parameters.metadata ?? null)
  const payment = yield* findPayment(parameters.payment_intent)
  yield* requireNoOperation(payment, "payment_intent")
  yield* requireRefundable(payment.value)
  const charge = latestCharge(payment.value)!
  const amount = yield* amountWithin(charge, parameters.amount ?? undefined)
  const reason = parameters.reason ?? null
  const remote = payment.hidden?.remote
  if (remote !== undefined) {
    const processor = yield* remoteProcessor(remote)
    const refund = { id: transaction.newId(PREFIXES.refund), reason, metadata }
    return yield* begin(processor, { kind: "refund", cause: "request", payment, amount, answerWith: "refund", refund })
  }

  const processor = yield* processorAtOnce
  const { token } = yield* resolve(charge.payment_method, "payment_method")
  const { settlesAfterMillis, status } = processor.refund(token)
  const id = transaction.newId(PREFIXES.refund)
  const refund = applyRefund(transaction, payment, { id, amount, reason, metadata }, status)
  if (settlesAfterMillis !== null) {
    transaction.setTimer(timer("refund.settle", id, transaction.now + settlesAfterMillis))
  }
  return refund
})

/** Creates a refund with the processor's first outcome. */
export const applyRefund = (
  transaction: Transaction,
  payment: PaymentIntentTransitions.Payment,
  { reason, ...terms }: Pick<Refund, "id" | "amount" | "metadata"> & { readonly reason: Refund["reason"] | null },
  status: "pending" | "succeeded"
): Refund => {
  const charge = latestCharge(payment.value)!
  const { amount, id, metadata } = terms
  const refund: Refund = {
    id,
    object: "refund",
    amount,
    currency: charge.currency,
    payment_intent: charge.payment_intent,
    status,
    created: secondsOf(transaction.now),
    livemode: charge.livemode,
    charge: charge.id,
    ...(reason ? { reason } : {}),
    metadata
  }
  PaymentIntentTransitions.step(transaction, "refund", payment, { charge: refunded(charge, amount) })
  transaction.put(REFUND, refund)
  emit(transaction, "refund.created", refund.id)
  if (refund.status === "succeeded") emit(transaction, "charge.refunded", charge.id)
  return refund
}

/** Changes metadata, in any status. Emits `refund.updated` for a change (semantics refunds.update, events.none). */
export const update = Effect.fnUntraced(function* (
  id: string,
  parameters: UpdateRefund
): Effect.fn.Return<Refund, ResourceMissing | ParameterInvalid, Transaction> {
  const transaction = yield* Transaction
  const before = yield* find(id)
  const metadata = yield* updateMetadata(before.metadata, parameters.metadata)
  if (metadata === before.metadata) return before
  const after = change("update", before, { metadata })
  transaction.put(REFUND, after)
  emit(transaction, "refund.updated", id, { metadata: previousMetadata(before.metadata, metadata) })
  return after
})

/** Applies the simulator's final result, when the refund's timer fires (semantics refunds.status). */
export const settle = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<void, ResourceMissing | ProcessorNotConfigured, Transaction | Processors> {
  const before = yield* find(id)
  const payment = yield* findPayment(before.payment_intent)
  const { token } = yield* resolve(latestCharge(payment.value)!.payment_method, "payment_method")
  const processor = yield* processorAtOnce
  yield* applySettlement(before, payment, processor.settleRefund(token))
})

/** Applies a processor's final result (semantics refunds.effects). Does nothing if the refund has it already. */
export const applySettlement = Effect.fnUntraced(function* (
  before: Refund,
  payment: PaymentIntentTransitions.Payment,
  settlement: RefundSettlement
): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const { id } = before
  const charge = latestCharge(payment.value)!
  if (before.status === settlement.status) return

  if (settlement.status === "succeeded") {
    const { failure_reason, ...others } = before
    transaction.put(REFUND, change("settle", others, { status: "succeeded" }))
    if (before.status === "failed") {
      // It has happened after all, and takes its amount again.
      PaymentIntentTransitions.step(transaction, "refund", payment, { charge: refunded(charge, before.amount) })
    }
    // The event shows the charge, which includes the refund since its creation.
    yield* transaction.get(CHARGE, charge.id)
    emit(transaction, "refund.updated", id, {
      status: before.status,
      ...(failure_reason !== undefined && { failure_reason })
    })
    emit(transaction, "charge.refunded", charge.id)
    return
  }
  const { failureReason } = settlement
  transaction.put(REFUND, change("settle", before, { status: "failed", failure_reason: failureReason }))
  PaymentIntentTransitions.step(transaction, "refund", payment, { charge: refunded(charge, -before.amount) })
  emit(transaction, "refund.updated", id, { status: before.status, failure_reason: null })
  emit(transaction, "refund.failed", id)
})

const find = (id: string): Effect.Effect<Refund, ResourceMissing, Transaction> =>
  Effect.map(findDocument(REFUND, id), ({ value }) => value)

const findPayment = (id: string): Effect.Effect<PaymentIntentTransitions.Payment, ResourceMissing, Transaction> =>
  PaymentIntentTransitions.find(id, "payment_intent")

/** Fails unless the payment is captured; held amounts are released by canceling (semantics refunds.create). */
const requireRefundable = (paymentIntent: PaymentIntent) =>
  PaymentIntentTransitions.requireAllowed(
    "refund",
    paymentIntent,
    paymentIntent.status === "requires_capture" ? "cancel it instead: a refund" : "refund",
    "payment_intent"
  )

/** True if an amount, in minor units, is left to refund. */
export const isWithin = (paymentIntent: PaymentIntent, amount: number): boolean => {
  const charge = latestCharge(paymentIntent)
  const isRefundable = paymentIntentStates.isAllowed("refund", paymentIntent.status)
  return isRefundable && charge !== undefined && amount <= charge.amount_captured - charge.amount_refunded
}

/** Returns the amount to refund, in minor units; the remaining one by default (semantics refunds.create). */
const amountWithin = (
  charge: Charge,
  sent: number | undefined
): Effect.Effect<number, ChargeAlreadyRefunded | RefundTooLarge> => {
  const remaining = charge.amount_captured - charge.amount_refunded
  if (remaining === 0) return Effect.fail(new ChargeAlreadyRefunded())
  const amount = sent ?? remaining
  return amount > remaining ? Effect.fail(new RefundTooLarge()) : Effect.succeed(amount)
}

/** Adds an amount to the charge's refunded amount; a negative one for a failed refund (semantics refunds.effects). */
const refunded = (charge: Charge, amount: number): Charge => {
  const amount_refunded = charge.amount_refunded + amount
  return { ...charge, amount_refunded, refunded: amount_refunded === charge.amount_captured }
}

const change = (
  operation: RefundOperation,
  before: Refund,
  changes: Partial<Pick<Refund, "status" | "metadata" | "failure_reason">>
): Refund => {
  const after = { ...before, ...changes }
  refundStates.requireTransition(before.id, operation, before.status, after.status)
  return after
}
