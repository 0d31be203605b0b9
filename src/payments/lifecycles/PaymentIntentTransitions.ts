/**
 * The step that all operations on PaymentIntents consist of: change the PaymentIntent within its state table, write it
 * with its charge, emit the events, and move the Checkout Session that it belongs to.
 *
 * Every change goes through this file, which checks the state table and the invariants: a lifecycle with a bug throws,
 * and its command commits nothing. Only this file writes a charge and its copy in the PaymentIntent, so both are always
 * equal.
 */
import { Effect } from "effect"
import type { Charge } from "../../domain/Charge.ts"
import { PaymentIntentUnexpectedState, type ResourceMissing } from "../../domain/Errors.ts"
import type { EmittedEventType } from "../../domain/Event.ts"
import {
  EMBEDDED_CHARGES_MAX,
  type EmbeddedCharges,
  type LastPaymentError,
  type PaymentIntent
} from "../../domain/PaymentIntent.ts"
import { latestCharge, violatedInvariant } from "../../domain/PaymentIntentInvariants.ts"
import { type PaymentIntentOperation, paymentIntentStates } from "../../domain/PaymentIntentStates.ts"
import type { Transaction } from "../../engine/actor/Transaction.ts"
import type { CheckoutSessionDocument } from "./CheckoutSessionTransitions.ts"
import * as CheckoutSessionTransitions from "./CheckoutSessionTransitions.ts"
import {
  CHARGE,
  findDocument,
  type PassedAuthentication,
  PAYMENT_INTENT,
  type PaymentIntentHidden
} from "../shared/Documents.ts"
import { emit, previousAttributes } from "../shared/Events.ts"
import * as Receipts from "../mail/Receipts.ts"

/** A PaymentIntent as changed by the running command, with its hidden part and the session that it pays for. */
export interface Payment {
  readonly value: PaymentIntent
  readonly hidden: PaymentIntentHidden | undefined
  readonly session: CheckoutSessionDocument | undefined
}

/** New values of fields; null for `last_payment_error` removes it (semantics responses.null). */
export type PaymentIntentChanges = Partial<Omit<PaymentIntent, "id" | "object" | "last_payment_error">> & {
  readonly last_payment_error?: LastPaymentError | null
}

export interface Step {
  readonly changes?: PaymentIntentChanges
  /** The new charge, or the latest one as changed by the step; absent if the step concerns no charge. */
  readonly charge?: Charge | undefined
  /** The passed authentication that stays valid after this step, which ends any other. */
  readonly authentication?: PassedAuthentication
  /** In order of emission. Charge events are about `charge`. */
  readonly events?: ReadonlyArray<PaymentEvent>
}

type PaymentEvent = Extract<EmittedEventType, `payment_intent.${string}` | `charge.${string}`>

type Param = "id" | "payment_intent"

/** Finds a PaymentIntent with its session. Fails with `ResourceMissing`, which names the parameter. */
export const find = Effect.fnUntraced(function* (
  id: string,
  param: Param = "id"
): Effect.fn.Return<Payment, ResourceMissing, Transaction> {
  const { hidden, value } = yield* findDocument(PAYMENT_INTENT, id, param)
  const owner = hidden?.checkoutSession
  const session = owner === undefined ? undefined : yield* CheckoutSessionTransitions.findExisting(owner)
  return { value, hidden, session }
})

/** Finds the payment of a session that has one. PaymentIntents are never deleted, so it must exist. */
export const findOfSession = (
  session: CheckoutSessionDocument,
  paymentIntentId: string
): Effect.Effect<Payment, never, Transaction> =>
  Effect.map(Effect.orDie(findDocument(PAYMENT_INTENT, paymentIntentId)), ({ hidden, value }) => ({
    value,
    hidden,
    session
  }))

/**
 * Fails with `PaymentIntentUnexpectedState` unless the state table allows the operation (semantics
 * payment_intents.states, `✗`). `words` name the operation in the message.
 */
export const requireAllowed = (
  operation: PaymentIntentOperation,
  { status }: PaymentIntent,
  words: string = operation,
  param: Param = "id"
): Effect.Effect<void, PaymentIntentUnexpectedState> => {
  if (paymentIntentStates.isAllowed(operation, status)) return Effect.void
  const allowed = paymentIntentStates.statesFor(operation)
  return Effect.fail(new PaymentIntentUnexpectedState({ status, operation: words, allowed, param }))
}

/** Returns the PaymentIntent as changed by an operation. Throws if the state table forbids the transition. */
export const change = (
  operation: PaymentIntentOperation,
  before: PaymentIntent,
  { last_payment_error, ...changes }: PaymentIntentChanges
): PaymentIntent => {
  const status = changes.status ?? before.status
  paymentIntentStates.requireTransition(before.id, operation, before.status, status)
  if (last_payment_error === undefined) return { ...before, ...changes }
  const { last_payment_error: _, ...rest } = before
  return last_payment_error === null ? { ...rest, ...changes } : { ...rest, ...changes, last_payment_error }
}

/** Applies one step. Both documents are written before the first event, so every event shows the final state. */
export const step = (
  transaction: Transaction,
  operation: PaymentIntentOperation,
  { hidden, session, value: before }: Payment,
  { authentication, changes = {}, charge, events = [] }: Step
): Payment => {
  const changed = change(operation, before, changes)
  const after = charge === undefined ? changed : writeCharge(transaction, changed, charge)
  const kept = save(transaction, after, { ...lasting(hidden), ...(authentication !== undefined && { authentication }) })
  for (const event of events) emitEvent(transaction, event, before, after)
  const moved = session && CheckoutSessionTransitions.followPayment(transaction, session, operation, after)
  if (events.includes("payment_intent.succeeded")) Receipts.queueIfWanted(transaction, after, moved?.value)
  return { value: after, hidden: kept, session: moved }
}

/**
 * Writes the PaymentIntent with its new hidden part and returns that part. Removes an authentication that does not
 * cover the written terms, so restoring the former terms does not restore it.
 */
export const save = (
  transaction: Transaction,
  paymentIntent: PaymentIntent,
  hidden?: PaymentIntentHidden
): PaymentIntentHidden | undefined => {
  const violated = violatedInvariant(paymentIntent)
  if (violated !== undefined) throw new Error(`${paymentIntent.id} would not be sound: ${violated}`)
  const kept = isAuthenticated(hidden, paymentIntent, paymentIntent.payment_method) ? hidden : lasting(hidden)
  transaction.put(PAYMENT_INTENT, paymentIntent, kept)
  return kept
}

/** Returns whether the payer has authenticated for this charge with this payment method. */
export const isAuthenticated = (
  hidden: PaymentIntentHidden | undefined,
  { amount, currency }: PaymentIntent,
  paymentMethod: string | null
): boolean => {
  const passed = hidden?.authentication
  return (
    passed !== undefined &&
    passed.paymentMethod === paymentMethod &&
    passed.currency === currency &&
    passed.amount >= amount
  )
}

/** Returns the part of the hidden data that no step removes: the Checkout Session, and the processor's payment. */
const lasting = (hidden: PaymentIntentHidden | undefined): PaymentIntentHidden | undefined => {
  if (hidden === undefined) return undefined
  const { checkoutSession, remote } = hidden
  if (remote === undefined) return checkoutSession === undefined ? undefined : { checkoutSession }
  return checkoutSession === undefined ? { remote } : { checkoutSession, remote }
}

const writeCharge = (transaction: Transaction, paymentIntent: PaymentIntent, charge: Charge): PaymentIntent => {
  transaction.put(CHARGE, charge)
  return { ...paymentIntent, latest_charge: charge.id, charges: embed(paymentIntent.charges, charge) }
}

/** Replaces the charge in the list, or prepends it as the newest. */
const embed = (charges: EmbeddedCharges, charge: Charge): EmbeddedCharges => {
  if (charges.data.some(({ id }) => id === charge.id)) {
    return { ...charges, data: charges.data.map((embedded) => (embedded.id === charge.id ? charge : embedded)) }
  }
  const data = [charge, ...charges.data].slice(0, EMBEDDED_CHARGES_MAX)
  const has_more = charges.data.length === EMBEDDED_CHARGES_MAX
  return { ...charges, data, has_more, next_cursor: has_more ? data.at(-1)!.id : null }
}

/** Emits an event about the PaymentIntent or about its latest charge. */
const emitEvent = (
  transaction: Transaction,
  event: PaymentEvent,
  before: PaymentIntent,
  after: PaymentIntent
): void => {
  if (event === "charge.updated") {
    const charge = latestCharge(after)!
    return emit(transaction, event, charge.id, previousAttributes(latestCharge(before)!, charge))
  }
  emit(transaction, event, event.startsWith("charge.") ? after.latest_charge! : after.id)
}
