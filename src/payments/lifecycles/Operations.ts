/**
 * The beginning of operations (semantics operations.*). A command that needs a processor behind a network records all
 * that the call needs, and ends. The call follows outside of the account, and `OperationOutcomes.ts` applies what it
 * brings.
 *
 * A PaymentIntent has at most one operation without an outcome, which its `pending_operation` names.
 */
import { Effect } from "effect"
import { OperationInProgress, ProcessorUnavailable } from "../../domain/Errors.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import {
  ANSWER_MILLIS,
  nextLook,
  type Operation,
  type OperationKind,
  type OperationOutcome,
  operationStates,
  type OperationStep
} from "../../domain/Operation.ts"
import type { CancellationReason, FutureUsage, PaymentIntent } from "../../domain/PaymentIntent.ts"
import { secondsOf } from "../../domain/Time.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import type { Document, Millis } from "../../engine/log/Document.ts"
import { isLive } from "../shared/AccountIds.ts"
import { OPERATION, type OperationCause, type OperationHidden, type RemotePayment } from "../shared/Documents.ts"
import { emit } from "../shared/Events.ts"
import { type Payment, save } from "./PaymentIntentTransitions.ts"
import type { PaymentSource } from "./PaymentMethods.ts"
import { Processors } from "../processing/Processor.ts"
import type { OperationRequest, RemoteProcessor } from "../processing/RemoteProcessor.ts"
import type { Sealing } from "../shared/Sealing.ts"
import { timer, timerId } from "../shared/TimerNames.ts"

/** About when a look next tries a processor that is out of order. */
const RETRY_AFTER_SECONDS = 5

export type OperationDocument = Pick<Document<Operation, OperationHidden>, "value" | "hidden">

/** The result of a command that has begun an operation instead of answering. */
export class Begun {
  readonly operation: string
  readonly #transaction: Transaction
  readonly #document: OperationDocument

  constructor(transaction: Transaction, document: OperationDocument) {
    this.operation = document.value.id
    this.#transaction = transaction
    this.#document = document
  }

  /** Notes the route of the request, which the answer has to fit. Called within the command. */
  answerOn(route: string | undefined): void {
    const { hidden, value } = this.#document
    if (route === undefined || hidden.answers === null) return
    this.#transaction.put(OPERATION, value, { ...hidden, answers: { ...hidden.answers, route } })
  }
}

export interface Beginning {
  readonly kind: OperationKind
  readonly cause: OperationCause
  readonly payment: Payment
  /** Minor units. */
  readonly amount: number
  /** The object that the answer shows. */
  readonly answerWith: NonNullable<OperationHidden["answers"]>["object"]
  /** Only of an authorization. */
  readonly authorization?: {
    readonly source: PaymentSource
    readonly authenticated: boolean
    readonly offSession: boolean
    /** Where the payer goes after a challenge; null for Till's own page. */
    readonly returnUrl: string | null
    /** Till's own address. */
    readonly publicUrl: string
    readonly futureUsage: FutureUsage | null
  }
  readonly cancellationReason?: CancellationReason | null
  readonly refund?: { readonly id: string } & NonNullable<OperationHidden["refund"]>
}

/** Fails with `OperationInProgress` while an operation of the payment has no outcome (semantics operations.one). */
export const requireNoOperation = (
  { value: { pending_operation } }: Payment,
  param: "id" | "payment_intent" = "id"
): Effect.Effect<void, OperationInProgress> =>
  pending_operation === undefined
    ? Effect.void
    : Effect.fail(new OperationInProgress({ id: pending_operation.id, param }))

/** Records an operation, and names it in its PaymentIntent. The timer brings a waiting request its answer. */
export const begin = Effect.fnUntraced(function* (
  processor: RemoteProcessor,
  beginning: Beginning
): Effect.fn.Return<Begun, ProcessorUnavailable, Transaction | Processors> {
  const transaction = yield* Transaction
  if (!(yield* Processors).mayBegin(processor.id)) {
    return yield* new ProcessorUnavailable({ retryAfterSeconds: RETRY_AFTER_SECONDS })
  }
  const document = newOperation(transaction, processor, beginning)
  const { payment } = beginning
  const { created, id, kind } = document.value
  const remote = { ...(payment.hidden?.remote ?? { reference: null, waiting: null }), processor: processor.id }
  save(transaction, { ...payment.value, pending_operation: { id, kind, created } }, { ...payment.hidden, remote })
  put(transaction, document)
  transaction.setTimer(timer("operation.attend", id, transaction.now + ANSWER_MILLIS))
  return new Begun(transaction, document)
})

export interface Adopted {
  /** The operation's id at the processor: Till's own, or the reference of a refund that was made there. */
  readonly id: string
  /** True for an operation of Till's that a restore has lost. */
  readonly isLost: boolean
  readonly kind: "capture" | "void" | "refund"
  readonly payment: Payment
  /** Minor units. */
  readonly amount: number
}

/**
 * Records an operation that this installation has not begun (semantics operations.adopted), as one that waits for the
 * processor's word. The payment keeps the reference of a refund that was made at the processor, so that it counts once.
 */
export const adopt = (
  transaction: Transaction,
  processor: string,
  { amount, id, isLost, kind, payment }: Adopted
): OperationDocument => {
  const refund = { id: transaction.newId(PREFIXES.refund), reason: null, metadata: {} }
  const beginning = { kind, cause: "processor", payment, amount, answerWith: "payment_intent" } as const
  const made = newOperation(transaction, { id: processor }, kind === "refund" ? { ...beginning, refund } : beginning)
  const value: Operation = { ...made.value, status: "waiting", outcome: PENDING, ...(isLost && { id }) }
  const document = { value, hidden: { ...made.hidden, asks: false, ...(!isLost && { idAtProcessor: id }) } }
  put(transaction, document)
  if (!isLost) {
    const remote = payment.hidden!.remote!
    const refunds = [...(remote.refunds ?? []), id]
    save(transaction, payment.value, { ...payment.hidden, remote: { ...remote, refunds } })
  }
  return document
}

const PENDING: OperationOutcome = { kind: "pending", code: null, message: null, processor_code: null }

const newOperation = (
  transaction: Transaction,
  processor: Pick<RemoteProcessor, "id">,
  { amount, answerWith, authorization, cancellationReason = null, cause, kind, payment, refund }: Beginning
): OperationDocument => {
  const { hidden, value: paymentIntent } = payment
  const { now, request } = transaction
  const created = secondsOf(now)
  const reference = hidden?.remote?.reference ?? null
  const source = authorization?.source
  const id = transaction.newId(PREFIXES.operation)
  return {
    value: {
      id,
      object: "operation",
      kind,
      status: "open",
      outcome: null,
      resolved_by: null,
      payment_intent: paymentIntent.id,
      refund: refund?.id ?? null,
      processor: processor.id,
      reference,
      amount,
      currency: paymentIntent.currency,
      created,
      updated: created,
      livemode: isLive(transaction.account)
    },
    hidden: {
      cause,
      request: {
        token: source?.token ?? null,
        reference,
        capture: paymentIntent.capture_method,
        authenticated: authorization?.authenticated ?? false,
        offSession: authorization?.offSession ?? false,
        returnUrl: authorization === undefined ? null : returnPage(transaction, authorization.publicUrl, payment, id),
        customer: paymentIntent.customer,
        description: paymentIntent.description,
        descriptor: paymentIntent.statement_descriptor,
        billingDetails: source?.billingDetails ?? null,
        begunAt: transaction.startedAt
      },
      returnUrl: authorization?.returnUrl ?? null,
      source:
        source === undefined
          ? null
          : { id: source.id, card: source.card, billingDetails: source.billingDetails, customer: source.customer },
      futureUsage: authorization?.futureUsage ?? null,
      cancellationReason,
      refund: refund === undefined ? null : { reason: refund.reason, metadata: refund.metadata },
      answers:
        request === null || request.idempotencyKey === null || cause === "reverse"
          ? null
          : { request, route: null, object: answerWith },
      since: now,
      begunAt: now,
      challenged: hidden?.remote?.waiting ?? null,
      asks: true,
      announced: false,
      sealedChallenge: null,
      evidence: []
    }
  }
}

/**
 * Returns the address of Till's page to which the processor leads the payer back. Its secret is not the payment's: the
 * processor keeps the address.
 */
const returnPage = (transaction: Transaction, publicUrl: string, { value }: Payment, operation: string): string =>
  `${publicUrl}/authenticate/${value.id}/return?operation=${operation}&secret=${transaction.newSecret(SECRET_LENGTH)}`

const SECRET_LENGTH = 24

/** The encryption of the processor's page for a payer's authentication, in the operation. */
export const challengeSealing = (keyring: Sealing["keyring"], operation: string): Sealing => ({
  keyring,
  purpose: `challenge ${operation}`
})

/** Writes an operation. */
export const put = (transaction: Transaction, { hidden, value }: OperationDocument): void =>
  transaction.put(OPERATION, value, hidden)

/** Finds an operation; undefined if its account's data was deleted. */
export const find = (id: string): Effect.Effect<OperationDocument | undefined, never, Transaction> =>
  Effect.flatMap(Transaction, (transaction) => transaction.get(OPERATION, id))

/**
 * Writes an operation after a step, with the event of the step (semantics operations.events). Throws if the state table
 * forbids the transition.
 */
export const move = (
  transaction: Transaction,
  step: OperationStep,
  { hidden, value }: OperationDocument,
  changes: Partial<Operation>,
  hiddenChanges: Partial<OperationHidden> = {}
): void => {
  const { now } = transaction
  const status = changes.status ?? value.status
  operationStates.requireTransition(value.id, step, value.status, status)
  const since = status === value.status ? hidden.since : now
  const announced = status === "unresolved" || status === "decide" || (hidden.announced && status !== "final")
  put(transaction, {
    value: { ...value, ...changes, updated: secondsOf(now) },
    hidden: { ...hidden, since, ...hiddenChanges, announced }
  })
  if (announced === hidden.announced) return
  emit(transaction, announced ? "operation.unresolved" : "operation.resolved", value.id)
}

/** Returns the time of an operation's next look by the account's clock, given its present time; null for none. */
export const nextLookOf = ({ hidden, value: { status } }: OperationDocument, now: Millis): Millis | null => {
  if (status === "final" && !hidden.asks) return null
  if (status === "open") return hidden.begunAt + ANSWER_MILLIS
  const from = status === "unresolved" ? hidden.begunAt : hidden.since
  const age = nextLook(status, now - from)
  return age === null ? null : from + age
}

/** Sets the time at which an operation is looked at again, by the account's clock; null for never. */
export const lookAt = (transaction: Transaction, id: string, at: Millis | null): void => {
  if (at === null) transaction.clearTimer(timerId("operation.attend", id))
  else transaction.setTimer(timer("operation.attend", id, at))
}

/** Facts about a payment that come with an outcome. */
export type Facts = Partial<Pick<RemotePayment, "reference" | "waiting">>

export const withFacts = (payment: Payment, facts: Facts): Payment => ({
  ...payment,
  hidden: { ...payment.hidden, remote: { ...payment.hidden!.remote!, ...facts } }
})

/** Returns the payment without its pending operation, and with new facts about it. */
export const withoutPending = (payment: Payment, facts: Facts): Payment => {
  const { pending_operation: _, ...value } = payment.value
  return withFacts({ ...payment, value: value as PaymentIntent }, facts)
}

/** Returns the request for the processor, from the record. */
export const requestOf = ({ hidden, value }: OperationDocument): OperationRequest => ({
  ...hidden.request,
  id: hidden.idAtProcessor ?? value.id,
  kind: value.kind,
  payment: value.payment_intent,
  amount: value.amount,
  currency: value.currency,
  reference: value.reference
})
