/**
 * The lifecycle of Checkout Sessions (semantics §1.15, §2.3).
 *
 * A session, its PaymentIntent, the charge and the customer move together: one record per step. What the payment does to
 * the session is in `CheckoutSessionPayments.ts`, whichever way the payment was moved.
 */
import { Effect } from "effect"
import type { CheckoutSession, CustomerDetails } from "../domain/CheckoutSession.ts"
import { SESSION_LIFETIME_SECONDS_MAX } from "../domain/CheckoutSession.ts"
import { checkoutSessionStates, stateOf } from "../domain/CheckoutSessionStates.ts"
import type { Customer } from "../domain/Customer.ts"
import { CheckoutSessionUnexpectedState, ParameterInvalid } from "../domain/Errors.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import type { Metadata, MetadataParameter } from "../domain/Metadata.ts"
import { mergeMetadata, updateMetadata } from "../domain/Metadata.ts"
import { secondsOf } from "../domain/Time.ts"
import { Transaction } from "../engine/Transaction.ts"
import { isLive } from "./AccountIds.ts"
import { change, find, save } from "./CheckoutSessionChanges.ts"
import type { Cart } from "./CheckoutSessionLines.ts"
import { fillCart, findReferences, requireOnSale, saveCart } from "./CheckoutSessionLines.ts"
import type { ConfirmCheckoutSession, CreateCheckoutSession } from "./CheckoutSessionParameters.ts"
import { collectedDetails, requireComplete, requireDetails, requireLifetime } from "./CheckoutSessionParameters.ts"
import * as CheckoutSessionPayments from "./CheckoutSessionPayments.ts"
import { requireClientSecretOf } from "./ClientSecrets.ts"
import * as Customers from "./Customers.ts"
import { CHECKOUT_SESSION } from "./Documents.ts"
import { emit } from "./Events.ts"
import * as PaymentIntentChanges from "./PaymentIntentChanges.ts"
import { newPaymentIntent } from "./PaymentIntentCreation.ts"
import { requireAcceptedCurrency, requireOnePaymentMethod } from "./PaymentIntentParameters.ts"
import * as PaymentIntents from "./PaymentIntents.ts"
import * as PaymentMethods from "./PaymentMethods.ts"
import { PaymentsConfig } from "./PaymentsConfig.ts"
import { timer } from "./TimerNames.ts"

/** Opens a session, with a PaymentIntent if there is anything to pay (semantics S2). */
export const create = Effect.fnUntraced(function* (parameters: CreateCheckoutSession) {
  const transaction = yield* Transaction
  const { publicUrl } = yield* PaymentsConfig
  const created = secondsOf(transaction.now)
  const expires_at = parameters.expires_at ?? created + SESSION_LIFETIME_SECONDS_MAX
  yield* requireAcceptedCurrencies(parameters)
  yield* requireLifetime(expires_at, created)
  const metadata = mergeMetadata({}, parameters.metadata ?? null)
  const paymentMetadata = mergeMetadata({}, parameters.payment_intent_data?.metadata ?? null)
  const references = yield* findReferences(parameters.line_items)
  const customer = parameters.customer == null ? null : yield* Customers.find(parameters.customer, "customer")
  yield* requireOnSale(references)
  yield* requireComplete(parameters)
  const cart = yield* fillCart(parameters.line_items, references, parameters.currency ?? null)
  yield* requireFeeWithin(cart, parameters)

  const id = transaction.newId(PREFIXES["checkout.session"])
  const payment_intent = cart.total === 0 ? null : yield* openPayment(id, cart, paymentMetadata, parameters)
  const ui_mode = parameters.ui_mode ?? "hosted"
  const known = prefilledDetails(customer, parameters.customer_email || null)
  const session: CheckoutSession = {
    id,
    object: "checkout.session",
    mode: parameters.mode,
    status: "open",
    payment_status: "unpaid",
    ui_mode,
    customer_creation: parameters.customer_creation ?? "if_required",
    billing_address_collection: parameters.billing_address_collection ?? "auto",
    expires_at,
    metadata,
    livemode: isLive(transaction.account),
    created,
    url: ui_mode === "hosted" ? `${publicUrl}/checkout/${id}` : null,
    client_secret: ui_mode === "hosted" ? null : `${id}_secret_${transaction.newSecret(24)}`,
    success_url: parameters.success_url || null,
    cancel_url: parameters.cancel_url || null,
    customer: parameters.customer || null,
    customer_email: parameters.customer_email || null,
    ...(known !== undefined && { customer_details: known }),
    payment_intent,
    currency: cart.currency,
    amount_subtotal: cart.total,
    amount_total: cart.total,
    total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
    client_reference_id: parameters.client_reference_id || null
  }
  save(transaction, session, { collected: null, awaitsSettlement: false })
  saveCart(transaction, session, cart)
  transaction.setTimer(timer("checkout.session.expire", id, expires_at * 1000))
  return session
})

/** Changes the metadata, whatever the status (semantics S18). Emits nothing. */
export const update = Effect.fnUntraced(function* (
  id: string,
  parameters: { readonly metadata?: MetadataParameter | null | "" }
) {
  const transaction = yield* Transaction
  const { hidden, value: before } = yield* find(id)
  const metadata = yield* updateMetadata(before.metadata, parameters.metadata)
  if (metadata === before.metadata) return before
  const after = change("update", before, { metadata })
  save(transaction, after, hidden)
  return after
})

/** Pays for the session with what the payer entered (semantics S15). A decline is returned, because it is kept. */
export const confirm = Effect.fnUntraced(function* (
  id: string,
  parameters: ConfirmCheckoutSession,
  { publishableKey = false }: { readonly publishableKey?: boolean } = {}
) {
  const transaction = yield* Transaction
  const { hidden, value: session } = yield* find(id)
  yield* requireClientSecretOf(CHECKOUT_SESSION, session, parameters.client_secret, { publishableKey })
  if (parameters.payment_method) yield* PaymentMethods.resolve(parameters.payment_method, "payment_method")
  yield* requireAllowed("confirm", session)
  yield* requireOnePaymentMethod(parameters)
  const collected = collectedDetails(parameters.customer_details, hidden.collected ?? session.customer_details)
  yield* requireDetails(session, collected)
  save(transaction, session, { ...hidden, collected })
  if (session.payment_intent === null) return yield* completeWithoutPayment(id)
  const outcome: PaymentIntents.Confirmed = yield* PaymentIntents.confirm(session.payment_intent, {
    payment_method: parameters.payment_method ?? null,
    payment_method_data: parameters.payment_method_data ?? null,
    return_url: parameters.return_url ?? null
  })
  return "_tag" in outcome ? outcome : (yield* find(id)).value
})

/** Closes an open session, and gives its payment up (semantics S16). */
export const expire = Effect.fnUntraced(function* (id: string) {
  const document = yield* find(id)
  yield* requireAllowed("expire", document.value)
  return yield* CheckoutSessionPayments.expire(document)
})

/** Fails where the state table does not allow an operation (semantics §2.3). */
const requireAllowed = (
  operation: "confirm" | "expire",
  session: CheckoutSession
): Effect.Effect<void, CheckoutSessionUnexpectedState> =>
  checkoutSessionStates.isAllowed(operation, stateOf(session))
    ? Effect.void
    : Effect.fail(
        new CheckoutSessionUnexpectedState({
          status: session.status,
          operation: operation === "confirm" ? "confirmed" : "expired"
        })
      )

/** Nothing is to be paid: the payer's details are enough (semantics S8). */
const completeWithoutPayment = Effect.fnUntraced(function* (id: string) {
  yield* CheckoutSessionPayments.createCustomer(yield* find(id), null)
  const payment = { billingDetails: null, paying: false }
  return yield* CheckoutSessionPayments.complete(yield* find(id), "no_payment_required", payment)
})

/** The session's PaymentIntent; emits `payment_intent.created` (semantics S2, S19). */
const openPayment = Effect.fnUntraced(function* (
  id: string,
  cart: Cart,
  metadata: Metadata,
  parameters: CreateCheckoutSession
) {
  const transaction = yield* Transaction
  const data = parameters.payment_intent_data ?? {}
  const paymentIntent = newPaymentIntent(transaction, {
    amount: cart.total,
    currency: cart.currency,
    captureMethod: data.capture_method ?? "automatic",
    confirmationMethod: "automatic",
    customer: parameters.customer || null,
    paymentMethod: null,
    description: data.description || null,
    statementDescriptor: data.statement_descriptor || null,
    applicationFeeAmount: data.application_fee_amount ?? null,
    metadata
  })
  PaymentIntentChanges.save(transaction, paymentIntent, { checkoutSession: id })
  emit(transaction, "payment_intent.created", paymentIntent.id)
  return paymentIntent.id
})

/** Fails for a currency that the installation does not take, of a line or of all of them (semantics N2). */
const requireAcceptedCurrencies = Effect.fnUntraced(function* ({ currency, line_items }: CreateCheckoutSession) {
  for (const [index, { price_data }] of line_items.entries()) {
    const param = `line_items[${index}][price_data][currency]`
    if (price_data != null) yield* requireAcceptedCurrency(price_data.currency, param)
  }
  if (currency != null) yield* requireAcceptedCurrency(currency)
})

/** Fails for a fee above the total (semantics S19, §8.19). */
const requireFeeWithin = (
  { total }: Cart,
  { payment_intent_data }: CreateCheckoutSession
): Effect.Effect<void, ParameterInvalid> =>
  (payment_intent_data?.application_fee_amount ?? 0) <= total
    ? Effect.void
    : Effect.fail(
        new ParameterInvalid({
          param: "payment_intent_data[application_fee_amount]",
          rule: `an integer from 0 to the total of ${total}`
        })
      )

/** What the page begins with; an email of the session's own wins over the customer's (semantics S10, S11). */
const prefilledDetails = (customer: Customer | null, customerEmail: string | null): CustomerDetails | undefined => {
  const email = customerEmail ?? customer?.email ?? null
  const name = customer?.name ?? null
  const phone = customer?.phone ?? null
  return email === null && name === null && phone === null ? undefined : { email, name, phone, address: null }
}
