/**
 * The lifecycle of PaymentIntents (semantics §1.12, §2.1, §2.2).
 *
 * Each operation checks in the same order (T14, 9.10): the PaymentIntent, what it refers to, the states, then the limits
 * and what does not go together. Everything an operation does is committed at once or not at all.
 */
import { Effect } from "effect"
import type { CardDeclined } from "../domain/Errors.ts"
import { AmountTooLarge, PaymentMethodRequired, SecretKeyRequired } from "../domain/Errors.ts"
import { mergeMetadata, updateMetadata } from "../domain/Metadata.ts"
import { normalizeCurrency } from "../domain/Money.ts"
import type { AuthenticationOutcome, PaymentIntent, RequestedCancellationReason } from "../domain/PaymentIntent.ts"
import { latestCharge } from "../domain/PaymentIntentInvariants.ts"
import type { PaymentIntentOperation } from "../domain/PaymentIntentStates.ts"
import { Transaction } from "../engine/Transaction.ts"
import * as Charges from "./Charges.ts"
import * as CheckoutSessionPayments from "./CheckoutSessionPayments.ts"
import * as Customers from "./Customers.ts"
import { requireClientSecret } from "./ClientSecrets.ts"
import type { PaymentIntentHidden } from "./Documents.ts"
import { CHARGE } from "./Documents.ts"
import { emit } from "./Events.ts"
import { attempt } from "./PaymentAttempts.ts"
import { giveUp } from "./PaymentIntentCancellation.ts"
import { change, find, isAuthenticated, lasting, requireAllowed, save } from "./PaymentIntentChanges.ts"
import { newPaymentIntent } from "./PaymentIntentCreation.ts"
import type {
  ConfirmPaymentIntent,
  CreatePaymentIntent,
  PaymentMethodParameters,
  UpdatePaymentIntent
} from "./PaymentIntentParameters.ts"
import {
  requireAcceptedAmount,
  requireAcceptedCurrency,
  requireNoConfirmation,
  requireOnePaymentMethod
} from "./PaymentIntentParameters.ts"
import type { PaymentSource } from "./PaymentMethods.ts"
import * as PaymentMethods from "./PaymentMethods.ts"
import { timerId } from "./TimerNames.ts"

/** Creates a PaymentIntent and, with `confirm`, attempts it at once (semantics I-1, I-2). */
export const create = Effect.fnUntraced(function* (parameters: CreatePaymentIntent) {
  const transaction = yield* Transaction
  yield* requireAcceptedCurrency(parameters.currency)
  const metadata = mergeMetadata({}, parameters.metadata ?? null)
  if (parameters.customer) yield* Customers.find(parameters.customer, "customer")
  const sent = yield* sentSource(parameters)
  yield* requireAcceptedAmount(parameters.amount)
  if (parameters.confirm !== true) yield* requireNoConfirmation(parameters)
  yield* requireOnePaymentMethod(parameters)
  const source = sent ?? (yield* inlineSource(parameters))

  const paymentIntent = newPaymentIntent(transaction, {
    amount: parameters.amount,
    currency: normalizeCurrency(parameters.currency),
    captureMethod: parameters.capture_method ?? "automatic",
    confirmationMethod: parameters.confirmation_method ?? "automatic",
    customer: parameters.customer || null,
    paymentMethod: source?.id ?? null,
    description: parameters.description || null,
    statementDescriptor: parameters.statement_descriptor || null,
    applicationFeeAmount: null,
    metadata
  })
  save(transaction, paymentIntent)
  emit(transaction, "payment_intent.created", paymentIntent.id)
  if (parameters.confirm !== true) return paymentIntent
  return yield* runConfirmation(paymentIntent, source, { returnUrl: parameters.return_url || null, hidden: undefined })
})

/** Changes what is still open (semantics I-3). Emits nothing. */
export const update = Effect.fnUntraced(function* (id: string, parameters: UpdatePaymentIntent) {
  const transaction = yield* Transaction
  if (parameters.currency !== undefined) yield* requireAcceptedCurrency(parameters.currency)
  const { hidden, value: before } = yield* find(id)
  if (parameters.customer) yield* Customers.find(parameters.customer, "customer")
  const source = yield* sentSource(parameters)

  const changesPayment = [...TERMS, "payment_method" as const].some((field) => parameters[field] !== undefined)
  if (changesPayment) yield* CheckoutSessionPayments.requireNoSession(hidden?.checkoutSession)
  let after = before
  const term = TERMS.find((field) => parameters[field] !== undefined)
  if (term !== undefined) {
    yield* requireAllowed("update_terms", before, `update of \`${term}\``)
    after = change("update_terms", after, changedTerms(after, parameters))
  }
  if (parameters.payment_method !== undefined) {
    const operation = source === undefined ? "unset_payment_method" : "set_payment_method"
    yield* requireAllowed(operation, before, "update of `payment_method`")
    after = changePaymentMethod(operation, after, source)
  }
  if (parameters.statement_descriptor !== undefined) {
    yield* requireAllowed("update_statement_descriptor", before, "update of `statement_descriptor`")
    const statement_descriptor = parameters.statement_descriptor || null
    after = change("update_statement_descriptor", after, { statement_descriptor })
  }
  if (parameters.amount !== undefined) yield* requireAcceptedAmount(parameters.amount)
  if (parameters.description !== undefined) {
    after = change("update_details", after, { description: parameters.description || null })
  }
  if (parameters.metadata !== undefined) {
    const metadata = yield* updateMetadata(after.metadata, parameters.metadata)
    after = change("update_details", after, { metadata })
  }
  if (after !== before) save(transaction, after, hidden)
  return after
})

/** What a confirmation comes to: the PaymentIntent, or a failure that is kept. */
export type Confirmed = PaymentIntent | CardDeclined

/** Attempts the payment (semantics I-6 to I-13). A decline is returned, because it is kept. */
export const confirm = Effect.fnUntraced(function* (
  id: string,
  parameters: ConfirmPaymentIntent,
  { publishableKey = false }: { readonly publishableKey?: boolean } = {}
) {
  const { hidden, value: paymentIntent } = yield* find(id)
  yield* requireClientSecret(paymentIntent, parameters.client_secret, { publishableKey })
  // Who pays for a session goes through the session, which asks for more than a payment method.
  if (publishableKey && hidden?.checkoutSession !== undefined) return yield* new SecretKeyRequired()
  const sent = yield* sentSource(parameters)
  yield* requireAllowed("confirm", paymentIntent)
  yield* requireOnePaymentMethod(parameters)
  const source = sent ?? (yield* inlineSource(parameters)) ?? (yield* attachedSource(paymentIntent))
  return yield* runConfirmation(paymentIntent, source, {
    returnUrl: parameters.return_url || null,
    hidden
  })
})

/** Takes the held amount, or a part of it; the rest is given back (semantics I-16). */
export const capture = Effect.fnUntraced(function* (
  id: string,
  parameters: { readonly amount_to_capture?: number | null }
) {
  const transaction = yield* Transaction
  const { hidden, value: paymentIntent } = yield* find(id)
  yield* requireAllowed("capture", paymentIntent)
  const amount = parameters.amount_to_capture ?? paymentIntent.amount_capturable
  if (amount > paymentIntent.amount_capturable) {
    return yield* new AmountTooLarge({ param: "amount_to_capture", max: paymentIntent.amount_capturable })
  }
  const charge = Charges.captured(latestCharge(paymentIntent)!, amount)
  const succeeded = change("capture", paymentIntent, {
    status: "succeeded",
    amount_received: amount,
    amount_capturable: 0,
    charges: Charges.embed(paymentIntent.charges, charge)
  })
  transaction.put(CHARGE, charge)
  save(transaction, succeeded, lasting(hidden))
  transaction.clearTimer(timerId("payment_intent.expire_hold", id))
  emit(transaction, "charge.captured", charge.id)
  emit(transaction, "payment_intent.succeeded", id)
  yield* CheckoutSessionPayments.captured(hidden?.checkoutSession)
  return succeeded
})

/** Gives the payment up, and a held amount back (semantics I-4). */
export const cancel = Effect.fnUntraced(function* (
  id: string,
  parameters: { readonly cancellation_reason?: RequestedCancellationReason | null }
) {
  const document = yield* find(id)
  yield* CheckoutSessionPayments.requireNoOpenSession(document.hidden?.checkoutSession)
  yield* requireAllowed("cancel", document.value)
  return yield* giveUp("cancel", document, parameters.cancellation_reason ?? null)
})

/** Gives a held amount back that was not captured in time (semantics I-17). Does nothing if it is not held any more. */
export const expireHold = Effect.fnUntraced(function* (id: string) {
  const document = yield* find(id)
  if (document.value.status === "requires_capture") yield* giveUp("expire_hold", document, "automatic")
})

/** What the payer answered to a challenge (semantics I-12, I-14). A decline afterwards is returned: it is kept. */
export const authenticate = Effect.fnUntraced(function* (id: string, outcome: AuthenticationOutcome) {
  const transaction = yield* Transaction
  const { hidden, value: paymentIntent } = yield* find(id)
  yield* requireAllowed("authenticate", paymentIntent)
  if (outcome === "failure") return failAuthentication(transaction, paymentIntent, lasting(hidden))
  const source = (yield* attachedSource(paymentIntent))!
  if (paymentIntent.confirmation_method === "automatic") {
    const options = { operation: "authenticate", authenticated: true, returnUrl: null, hidden } as const
    return yield* attempt(paymentIntent, source, options)
  }
  const authenticated = change("authenticate", paymentIntent, { status: "requires_confirmation", next_action: null })
  const { amount, currency } = authenticated
  const authentication = { paymentMethod: source.id, amount, currency }
  save(transaction, authenticated, { ...lasting(hidden), authentication })
  return authenticated
})

/** The part of a confirmation that all ways to it share. */
const runConfirmation = Effect.fnUntraced(function* (
  paymentIntent: PaymentIntent,
  source: PaymentSource | undefined,
  { hidden, returnUrl }: { readonly returnUrl: string | null; readonly hidden: PaymentIntentHidden | undefined }
) {
  if (source === undefined) return yield* new PaymentMethodRequired()
  yield* PaymentMethods.requireUsableBy(source, paymentIntent.customer)
  return yield* attempt(paymentIntent, source, {
    operation: "confirm",
    authenticated: isAuthenticated(hidden, paymentIntent, source.id),
    returnUrl,
    hidden
  })
})

const failAuthentication = (
  transaction: Transaction,
  paymentIntent: PaymentIntent,
  hidden: PaymentIntentHidden | undefined
): PaymentIntent => {
  const failed = change("authenticate", paymentIntent, {
    status: "requires_payment_method",
    payment_method: null,
    next_action: null,
    last_payment_error: {
      type: "payment_error",
      code: "payment_intent_authentication_failure",
      message: "The customer failed authentication.",
      payment_method: paymentIntent.payment_method!
    }
  })
  save(transaction, failed, hidden)
  emit(transaction, "payment_intent.payment_failed", failed.id)
  return failed
}

const TERMS = ["amount", "currency", "customer", "capture_method"] as const

/** New terms drop a pending action: the payer was asked about other ones. */
const changedTerms = (before: PaymentIntent, { amount, capture_method, currency, customer }: UpdatePaymentIntent) => ({
  status: before.status === "requires_action" ? ("requires_confirmation" as const) : before.status,
  next_action: null,
  amount: amount ?? before.amount,
  currency: currency === undefined ? before.currency : normalizeCurrency(currency),
  customer: customer === undefined ? before.customer : customer || null,
  capture_method: capture_method ?? before.capture_method
})

const changePaymentMethod = (
  operation: PaymentIntentOperation,
  before: PaymentIntent,
  source: PaymentSource | undefined
): PaymentIntent =>
  change(operation, before, {
    status: source === undefined ? "requires_payment_method" : "requires_confirmation",
    payment_method: source?.id ?? null,
    next_action: null
  })

/** The payment method that the request names. */
const sentSource = ({ payment_method }: PaymentMethodParameters) =>
  payment_method ? PaymentMethods.resolve(payment_method, "payment_method") : Effect.undefined

/** The payment method that the request brings along. */
const inlineSource = ({ payment_method_data }: PaymentMethodParameters) =>
  payment_method_data ? PaymentMethods.createSource(payment_method_data) : Effect.undefined

/** The payment method that the PaymentIntent already has. */
const attachedSource = ({ payment_method }: PaymentIntent) =>
  payment_method === null ? Effect.undefined : PaymentMethods.resolve(payment_method, "payment_method")
