/**
 * The lifecycle of Checkout Sessions, one function per operation of its state table (semantics checkout.*).
 *
 * A session, its PaymentIntent, the charge and the customer change together, in one record per step.
 * `CheckoutSessionTransitions.ts` applies every change of the payment to the session.
 */
import { Effect, Result } from "effect"
import { addressOf, type BillingDetails, type BillingDetailsParameter } from "../../domain/Address.ts"
import { requiredOfAddress } from "../../domain/AddressFormats.ts"
import {
  type CheckoutSession,
  type ConfirmCheckoutSession,
  type CreateCheckoutSession,
  type CustomerDetails,
  type PaymentIntentData,
  SESSION_LIFETIME_SECONDS_MAX,
  SESSION_LIFETIME_SECONDS_MIN,
  SESSION_LIFETIME_SLACK_SECONDS,
  type UpdateCheckoutSession,
  type PageLanguage
} from "../../domain/CheckoutSession.ts"
import { checkoutSessionStates, stateOf } from "../../domain/CheckoutSessionStates.ts"
import type { Customer } from "../../domain/Customer.ts"
import {
  AmountTooLarge,
  type CardDeclined,
  CheckoutSessionUnexpectedState,
  ParameterInvalid,
  ParameterMissing,
  type ParametersExclusive,
  type PaymentLinkInactive,
  type OperationInProgress,
  type PaymentMethodRequired,
  type ProcessorNotConfigured,
  type ProcessorUnavailable,
  type ResourceMissing,
  type SecretKeyRequired,
  TooManyAttempts
} from "../../domain/Errors.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { mergeMetadata, updateMetadata } from "../../domain/Metadata.ts"
import { AMOUNT_MAX } from "../../domain/Money.ts"
import { secondsOf } from "../../domain/Time.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { isLive } from "../shared/AccountIds.ts"
import {
  type Cart,
  fillCart,
  findReferences,
  type LinesRefused,
  requireAcceptedCurrencies,
  requireOnePrice,
  requireOnSale,
  requireSomePrice,
  rewriteAmount,
  saveCart
} from "./CheckoutSessionLines.ts"
import {
  type CheckoutSessionDocument,
  clearTimers,
  complete,
  createCustomer,
  find,
  findExisting,
  save,
  step
} from "./CheckoutSessionTransitions.ts"
import { requireClientSecretOf } from "../shared/ClientSecrets.ts"
import { CHECKOUT_SESSION, type CustomAmount, findCustomer } from "../shared/Documents.ts"
import { emit } from "../shared/Events.ts"
import { findOfSession } from "./PaymentIntentTransitions.ts"
import * as PaymentIntents from "./PaymentIntents.ts"
import { Begun, requireNoOperation } from "./Operations.ts"
import { requireOpenLink } from "./PaymentLinkUse.ts"
import { PaymentsConfig } from "../shared/PaymentsConfig.ts"
import type { Processors } from "../processing/Processor.ts"
import { timer } from "../shared/TimerNames.ts"
import type { WithoutCardData } from "./PaymentMethods.ts"

/**
 * Opens a session, with a PaymentIntent if there is anything to pay (semantics checkout.payment_intent). If the payer
 * has to choose the amount, the first confirmation creates it (semantics checkout.custom_amount.confirm).
 */
export const create = Effect.fnUntraced(function* (
  parameters: CreateCheckoutSession
): Effect.fn.Return<CheckoutSession, LinesRefused, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  const { publicUrl } = yield* PaymentsConfig
  const created = secondsOf(transaction.now)
  const expires_at = parameters.expires_at ?? created + SESSION_LIFETIME_SECONDS_MAX
  yield* requireAcceptedCurrencies(parameters)
  yield* requireLifetime(expires_at, created)
  const references = yield* findReferences(parameters.line_items)
  const customer = parameters.customer == null ? null : yield* findCustomer(parameters.customer, "customer")
  yield* requireOnSale(references)
  yield* requireSomePrice(parameters.line_items)
  yield* requireSuccessUrl(parameters)
  yield* requireOnePrice(parameters.line_items)
  const cart = yield* fillCart(parameters.line_items, references, parameters.currency ?? null)
  yield* requireFeeWithin(cart, parameters)

  return open(transaction, publicUrl, { ...parameters, expires_at }, cart, customer)
})

/** The terms of a session whose lines are known. */
export type SessionTerms = Omit<CreateCheckoutSession, "line_items" | "currency" | "expires_at"> & {
  /** Unix seconds. */
  readonly expires_at: number
  /** The payment link that the payer has followed, if there is one (semantics payment_links.sessions). */
  readonly payment_link?: string
}

/** Writes a session with its lines, its payment if the amount is known, and its timer. */
export const open = (
  transaction: Transaction,
  publicUrl: string,
  terms: SessionTerms,
  cart: Cart,
  customer: Customer | null
): CheckoutSession => {
  const paymentIntentData = {
    ...terms.payment_intent_data,
    metadata: mergeMetadata({}, terms.payment_intent_data?.metadata ?? null)
  }
  const unpaid = newSession(transaction, publicUrl, terms, cart, customer)
  const customAmount = customAmountOf(cart, paymentIntentData)
  const isPayable = cart.total > 0 && customAmount?.paymentIntentData == null
  const session = isPayable
    ? { ...unpaid, payment_intent: openPayment(transaction, unpaid, paymentIntentData) }
    : unpaid
  const hidden = { collected: null, awaitsSettlement: false, failedAttempts: 0, closedUntil: null, customAmount }
  save(transaction, session, hidden)
  saveCart(transaction, session, cart)
  transaction.setTimer(timer("checkout.session.expire", session.id, terms.expires_at * 1000))
  return session
}

const newSession = (
  transaction: Transaction,
  publicUrl: string,
  parameters: SessionTerms,
  cart: Cart,
  customer: Customer | null
): CheckoutSession => {
  const id = transaction.newId(PREFIXES["checkout.session"])
  const ui_mode = parameters.ui_mode ?? "hosted"
  const known = prefilledDetails(customer, parameters.customer_email || null)
  return {
    id,
    object: "checkout.session",
    mode: parameters.mode,
    status: "open",
    payment_status: "unpaid",
    ui_mode,
    customer_creation: parameters.customer_creation ?? "if_required",
    billing_address_collection: parameters.billing_address_collection ?? "auto",
    expires_at: parameters.expires_at,
    metadata: mergeMetadata({}, parameters.metadata ?? null),
    livemode: isLive(transaction.account),
    created: secondsOf(transaction.now),
    url: ui_mode === "hosted" ? `${publicUrl}/checkout/${id}` : null,
    client_secret: ui_mode === "hosted" ? null : `${id}_secret_${transaction.newSecret(24)}`,
    success_url: parameters.success_url || null,
    cancel_url: parameters.cancel_url || null,
    customer: parameters.customer || null,
    customer_email: parameters.customer_email || null,
    ...(known !== undefined && { customer_details: known }),
    payment_intent: null,
    currency: cart.currency,
    amount_subtotal: cart.total,
    amount_total: cart.total,
    total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
    client_reference_id: parameters.client_reference_id || null,
    ...(parameters.locale != null && { locale: parameters.locale }),
    ...(parameters.phone_number_collection != null && { phone_number_collection: parameters.phone_number_collection }),
    ...(parameters.payment_link !== undefined && { payment_link: parameters.payment_link })
  }
}

/** Changes the metadata, in any status (semantics checkout.update). Emits nothing. */
export const update = Effect.fnUntraced(function* (
  id: string,
  parameters: UpdateCheckoutSession
): Effect.fn.Return<CheckoutSession, ResourceMissing | ParameterInvalid, Transaction> {
  const transaction = yield* Transaction
  const document = yield* find(id)
  const before = document.value
  const metadata = yield* updateMetadata(before.metadata, parameters.metadata)
  return metadata === before.metadata ? before : step(transaction, "update", document, { metadata }).value
})

/**
 * Pays for the session with the payer's input (semantics checkout.confirm). A decline is stored and leaves the session
 * open.
 */
export const confirm = Effect.fnUntraced(function* (
  id: string,
  parameters: WithoutCardData<ConfirmCheckoutSession>,
  { language, publishableKey = false }: { readonly language?: PageLanguage; readonly publishableKey?: boolean } = {}
): Effect.fn.Return<
  Result.Result<CheckoutSession, CardDeclined> | Begun,
  | ResourceMissing
  | SecretKeyRequired
  | CheckoutSessionUnexpectedState
  | TooManyAttempts
  | PaymentLinkInactive
  | ParametersExclusive
  | ParameterMissing
  | ParameterInvalid
  | AmountTooLarge
  | PaymentMethodRequired
  | ProcessorNotConfigured
  | ProcessorUnavailable
  | OperationInProgress,
  Transaction | PaymentsConfig | Processors
> {
  const transaction = yield* Transaction
  const found = yield* find(id)
  const { hidden, value: session } = found
  yield* requireClientSecretOf(CHECKOUT_SESSION, session, parameters.client_secret, { publishableKey })
  const sent = yield* PaymentIntents.sentSource(parameters)
  yield* requireAllowed("confirm", session)
  yield* requireAttemptsLeft(found)
  yield* requireOpenLink(found)
  yield* PaymentIntents.requireOnePaymentMethod(parameters)
  const collected = collectedDetails(parameters.customer_details, hidden.collected ?? session.customer_details)
  yield* requireDetails(session, collected)
  yield* requireAmount(found, parameters.custom_unit_amount)
  const asked = step(transaction, "confirm", found, {}, { collected, ...(language !== undefined && { language }) })
  const document =
    parameters.custom_unit_amount == null ? asked : yield* applyChosenAmount(asked, parameters.custom_unit_amount)
  const { amount_total, payment_intent } = document.value
  if (payment_intent === null) return Result.succeed(yield* completeWithoutPayment(document))

  const payment = PaymentIntents.withAmount(yield* findOfSession(document, payment_intent), amount_total!)
  yield* requireNoOperation(payment)
  const source = yield* PaymentIntents.chosenSource(payment.value, sent, parameters)
  const billed = source && { ...source, billingDetails: completeDetails(source.billingDetails, collected) }
  const paid = yield* PaymentIntents.pay(payment, billed, parameters.return_url || null)
  return paid instanceof Begun ? paid : Result.map(paid, ({ session }) => session!.value)
})

/** Expires an open session and cancels its payment (semantics checkout.expire). */
export const expire = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<
  CheckoutSession | Begun,
  ResourceMissing | CheckoutSessionUnexpectedState | PaymentIntents.RemoteError,
  Transaction | Processors
> {
  const document = yield* find(id)
  yield* requireAllowed("expire", document.value)
  return yield* close(document)
})

/** Expires a session when its timer fires, if it is still open (semantics checkout.expire). */
export const expireWhenDue = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<void, PaymentIntents.RemoteError, Transaction | Processors> {
  const document = yield* findExisting(id)
  if (document.value.status === "open") yield* close(document)
})

/** Cancels the payment of an open session, then expires the session. */
const close = Effect.fnUntraced(function* (
  document: CheckoutSessionDocument
): Effect.fn.Return<CheckoutSession | Begun, PaymentIntents.RemoteError, Transaction | Processors> {
  const transaction = yield* Transaction
  const begun = yield* PaymentIntents.expireWithSession(document)
  return begun ?? applyExpiry(transaction, document)
})

/** Expires a session whose payment is canceled. */
export const applyExpiry = (transaction: Transaction, document: CheckoutSessionDocument): CheckoutSession => {
  const { id } = document.value
  const expired = step(transaction, "expire", document, { status: "expired", url: null }, { collected: null })
  clearTimers(transaction, document)
  emit(transaction, "checkout.session.expired", id)
  return expired.value
}

/** Fails if the state table does not allow the operation (semantics checkout.states). */
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

/** Completes a session with nothing to pay; the payer's details suffice (semantics checkout.payment_status). */
const completeWithoutPayment = Effect.fnUntraced(function* (
  document: CheckoutSessionDocument
): Effect.fn.Return<CheckoutSession, never, Transaction> {
  const transaction = yield* Transaction
  const withCustomer = yield* createCustomer(document, null)
  const payment = { billingDetails: null, isProcessing: false }
  return complete(transaction, withCustomer, "no_payment_required", payment).value
})

/** Opens the session's PaymentIntent and returns its id (semantics checkout.payment_intent). */
const openPayment = (
  transaction: Transaction,
  { amount_total, currency, customer, id }: CheckoutSession,
  data: PaymentIntentData
): string => {
  const terms: PaymentIntents.PaymentTerms = {
    amount: amount_total!,
    currency: currency!,
    captureMethod: data.capture_method ?? "automatic",
    confirmationMethod: "automatic",
    customer,
    paymentMethod: null,
    description: data.description || null,
    statementDescriptor: data.statement_descriptor || null,
    applicationFeeAmount: data.application_fee_amount ?? null,
    futureUsage: null,
    metadata: mergeMetadata({}, data.metadata ?? null)
  }
  return PaymentIntents.openPaymentIntent(transaction, terms, id).value.id
}

/** Returns the bounds of a chosen amount, which covers the fee; null without one (semantics checkout.custom_amount). */
const customAmountOf = ({ custom }: Cart, data: PaymentIntentData): CustomAmount | null => {
  if (custom === null) return null
  const { isOpen, line, maximum, minimum, others } = custom
  return {
    line,
    others,
    minimum: Math.max(minimum, (data.application_fee_amount ?? 0) - others),
    maximum,
    paymentIntentData: isOpen ? data : null
  }
}

/** Fails for an amount that cannot be chosen, or a missing one (semantics checkout.custom_amount). */
const requireAmount = (
  { hidden: { customAmount }, value }: CheckoutSessionDocument,
  sent: number | null | undefined
): Effect.Effect<void, ParameterMissing | ParameterInvalid | AmountTooLarge> => {
  const param = "custom_unit_amount"
  const invalid = (rule: string) => Effect.fail(new ParameterInvalid({ param, rule }))
  if (sent == null) {
    const isOpen = customAmount !== null && value.payment_intent === null
    return isOpen ? Effect.fail(new ParameterMissing({ param })) : Effect.void
  }
  if (customAmount === null) return invalid("absent where the payer has no amount to choose")
  const { maximum, minimum, others } = customAmount
  if (sent < minimum || (maximum !== null && sent > maximum)) {
    return invalid(maximum === null ? `an integer of at least ${minimum}` : `an integer from ${minimum} to ${maximum}`)
  }
  const max = AMOUNT_MAX - others
  return sent > max ? Effect.fail(new AmountTooLarge({ param, max })) : Effect.void
}

/** Applies a chosen amount, in minor units, and opens the payment if it waited for that. */
const applyChosenAmount = Effect.fnUntraced(function* (
  document: CheckoutSessionDocument,
  amount: number
): Effect.fn.Return<CheckoutSessionDocument, never, Transaction> {
  const transaction = yield* Transaction
  const customAmount = document.hidden.customAmount!
  const { line, others, paymentIntentData } = customAmount
  const total = others + amount
  const chosen: CheckoutSession = { ...document.value, amount_subtotal: total, amount_total: total }
  yield* rewriteAmount(chosen.id, line, amount)
  const payment_intent = chosen.payment_intent ?? openPayment(transaction, chosen, paymentIntentData!)
  return step(
    transaction,
    "confirm",
    document,
    { ...chosen, payment_intent },
    { customAmount: { ...customAmount, paymentIntentData: null } }
  )
})

/** Fails for a hosted session without `success_url` (semantics parameters.empty_text). */
const requireSuccessUrl = ({ success_url, ui_mode }: CreateCheckoutSession): Effect.Effect<void, ParameterMissing> =>
  (ui_mode ?? "hosted") === "hosted" && !success_url
    ? Effect.fail(new ParameterMissing({ param: "success_url" }))
    : Effect.void

/** Fails for an expiry outside of the lifetime, with tolerance for clocks (semantics checkout.expires_at). */
const requireLifetime = (expiresAt: number, created: number): Effect.Effect<void, ParameterInvalid> => {
  const lifetime = expiresAt - created
  return lifetime >= SESSION_LIFETIME_SECONDS_MIN - SESSION_LIFETIME_SLACK_SECONDS &&
    lifetime <= SESSION_LIFETIME_SECONDS_MAX + SESSION_LIFETIME_SLACK_SECONDS
    ? Effect.void
    : Effect.fail(
        new ParameterInvalid({ param: "expires_at", rule: "a Unix timestamp between 30 minutes and 24 hours from now" })
      )
}

/** Fails for a fee above the largest possible total (semantics checkout.payment_intent_data). */
const requireFeeWithin = (
  { custom, total }: Cart,
  { payment_intent_data }: CreateCheckoutSession
): Effect.Effect<void, ParameterInvalid> => {
  const most = custom?.isOpen ? Math.min(custom.others + (custom.maximum ?? AMOUNT_MAX), AMOUNT_MAX) : total
  return (payment_intent_data?.application_fee_amount ?? 0) <= most
    ? Effect.void
    : Effect.fail(
        new ParameterInvalid({
          param: "payment_intent_data[application_fee_amount]",
          rule: `an integer from 0 to the total of ${most}`
        })
      )
}

/** Returns the prefilled details; the session's own email precedes the customer's (semantics checkout.customer). */
const prefilledDetails = (customer: Customer | null, customerEmail: string | null): CustomerDetails | undefined => {
  const email = customerEmail ?? customer?.email ?? null
  const name = customer?.name ?? null
  const phone = customer?.phone ?? null
  return email === null && name === null && phone === null ? undefined : { email, name, phone, address: null }
}

const collectedDetails = (
  sent: BillingDetailsParameter | null | undefined,
  known: CustomerDetails | undefined
): CustomerDetails => ({
  email: sent?.email || (known?.email ?? null),
  name: sent?.name || (known?.name ?? null),
  phone: sent?.phone || (known?.phone ?? null),
  address: addressOf(sent?.address) ?? known?.address ?? null
})

/** Completes the payment method's billing details with those the payer entered (semantics charges.billing_details). */
const completeDetails = (billed: BillingDetails, collected: CustomerDetails): BillingDetails => ({
  email: billed.email ?? collected.email,
  name: billed.name ?? collected.name,
  phone: billed.phone ?? collected.phone,
  address: billed.address ?? collected.address
})

/**
 * Fails for details that the session has to collect and that are missing (semantics checkout.phone, pages.checkout,
 * pages.address).
 */
const requireDetails = (
  { billing_address_collection, phone_number_collection }: CheckoutSession,
  { address, email, phone }: CustomerDetails
): Effect.Effect<void, ParameterMissing> => {
  if (email === null) return Effect.fail(new ParameterMissing({ param: "customer_details[email]" }))
  if (phone_number_collection?.enabled === true && phone === null) {
    return Effect.fail(new ParameterMissing({ param: "customer_details[phone]" }))
  }
  const required = billing_address_collection === "required" ? requiredOfAddress(address?.country ?? null) : []
  const missing = required.find((field) => address === null || address[field] === null)
  return missing === undefined
    ? Effect.void
    : Effect.fail(new ParameterMissing({ param: `customer_details[address][${missing}]` }))
}

/** Fails during the pause after too many failed attempts (semantics checkout.attempts). */
const requireAttemptsLeft = Effect.fnUntraced(function* ({
  hidden: { closedUntil }
}: CheckoutSessionDocument): Effect.fn.Return<void, TooManyAttempts, Transaction> {
  if (closedUntil === null) return
  const { now } = yield* Transaction
  return yield* new TooManyAttempts({ retryAfterSeconds: Math.ceil((closedUntil - now) / 1000) })
})
