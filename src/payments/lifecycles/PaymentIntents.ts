/**
 * The lifecycle of PaymentIntents, one function per operation of its state table (semantics payment_intents.*).
 *
 * Each operation checks in the same order (semantics requests.order, requests.order.references, requests.order.state):
 * the PaymentIntent, the objects it refers to, their states, then limits and exclusive parameters. An operation commits
 * all its changes or none. An operation that can be declined returns a `Result`, because a decline is committed like
 * any other outcome (semantics idempotency.stored). With a processor behind a network it returns `Begun`.
 */
import { Effect, Result } from "effect"
import { DECLINE_MESSAGES } from "../../domain/Cards.ts"
import type { Charge } from "../../domain/Charge.ts"
import {
  AmountTooLarge,
  CardDeclined,
  ParameterInvalid,
  ParameterMissing,
  ParametersExclusive,
  PaymentIntentBelongsToSession,
  OperationInProgress,
  PaymentIntentUnexpectedState,
  type PaymentLinkInactive,
  PaymentMethodRequired,
  type ProcessorNotConfigured,
  ProcessorUnavailable,
  type ResourceMissing,
  SecretKeyRequired
} from "../../domain/Errors.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { mergeMetadata, type Metadata, updateMetadata } from "../../domain/Metadata.ts"
import { AMOUNT_MAX, normalizeCurrency } from "../../domain/Money.ts"
import type {
  AuthenticationOutcome,
  CancellationReason,
  CancelPaymentIntent,
  CapturePaymentIntent,
  CaptureMethod,
  ConfirmationMethod,
  ConfirmPaymentIntent,
  CreatePaymentIntent,
  FutureUsage,
  PaymentIntent,
  UpdatePaymentIntent
} from "../../domain/PaymentIntent.ts"
import { latestCharge } from "../../domain/PaymentIntentInvariants.ts"
import type { PaymentIntentOperation } from "../../domain/PaymentIntentStates.ts"
import { secondsOf } from "../../domain/Time.ts"
import type { Millis } from "../../engine/log/Document.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { isLive, merchantIdOf } from "../shared/AccountIds.ts"
import * as PaymentMethodAttachments from "./PaymentMethodAttachments.ts"
import type { CheckoutSessionDocument } from "./CheckoutSessionTransitions.ts"
import * as CheckoutSessionTransitions from "./CheckoutSessionTransitions.ts"
import { requireClientSecretOf } from "../shared/ClientSecrets.ts"
import { findCustomer, type OperationCause, PAYMENT_INTENT, type RemotePayment } from "../shared/Documents.ts"
import { emit } from "../shared/Events.ts"
import { begin, Begun, requireNoOperation } from "./Operations.ts"
import {
  change,
  find,
  findOfSession,
  isAuthenticated,
  type Payment,
  requireAllowed,
  save,
  step
} from "./PaymentIntentTransitions.ts"
import { isLinkOpen, requireOpenLink } from "./PaymentLinkUse.ts"
import type { PaymentSource } from "./PaymentMethods.ts"
import * as PaymentMethods from "./PaymentMethods.ts"
import { PaymentsConfig, requireAcceptedCurrency } from "../shared/PaymentsConfig.ts"
import {
  type Authorization,
  type CardProcessor,
  type Declined,
  processorAtOnce,
  processorOf,
  type Processors,
  remoteProcessor,
  type Settlement
} from "../processing/Processor.ts"
import { timer, timerId } from "../shared/TimerNames.ts"
import type { WithoutCardData } from "./PaymentMethods.ts"

/** The services of an attempt: the processor, and the installation's URLs and times. */
type AttemptServices = Transaction | PaymentsConfig | Processors

/**
 * The outcome of an attempt. A processor behind a network has none yet: the command has begun an operation, whose
 * outcome the same functions apply later (`OperationOutcomes.ts`).
 */
type Attempted<A> = Result.Result<A, CardDeclined> | Begun

/** Errors for which an attempt is not recorded: nothing can be charged, or the processor did not respond. */
type AttemptError = PaymentMethodRequired | ParameterInvalid | ProcessorNotConfigured | ProcessorUnavailable

/** Creates a PaymentIntent and, with `confirm`, attempts it in the same command (semantics payment_intents.create). */
export const create = Effect.fnUntraced(function* (
  parameters: WithoutCardData<CreatePaymentIntent>
): Effect.fn.Return<
  Attempted<PaymentIntent>,
  ResourceMissing | AmountTooLarge | ParameterMissing | ParametersExclusive | AttemptError,
  AttemptServices
> {
  const transaction = yield* Transaction
  yield* requireAcceptedCurrency(parameters.currency)
  const metadata = mergeMetadata({}, parameters.metadata ?? null)
  if (parameters.customer) yield* findCustomer(parameters.customer, "customer")
  const sent = yield* sentSource(parameters)
  yield* requireAcceptedAmount(parameters.amount)
  if (parameters.confirm !== true) yield* requireNoConfirmation(parameters)
  yield* requireOnePaymentMethod(parameters)
  const customer = parameters.customer || null
  const setup_future_usage = parameters.setup_future_usage ?? null
  yield* requireHolder({ customer, setup_future_usage })
  const source = sent ?? (yield* inlineSource(parameters))

  const payment = openPaymentIntent(transaction, {
    amount: parameters.amount,
    currency: normalizeCurrency(parameters.currency),
    captureMethod: parameters.capture_method ?? "automatic",
    confirmationMethod: parameters.confirmation_method ?? "automatic",
    customer,
    paymentMethod: source?.id ?? null,
    description: parameters.description || null,
    statementDescriptor: parameters.statement_descriptor || null,
    applicationFeeAmount: null,
    futureUsage: setup_future_usage,
    metadata
  })
  if (parameters.confirm !== true) return Result.succeed(payment.value)
  const options = { offSession: parameters.off_session === true }
  return shown(yield* pay(payment, source, parameters.return_url || null, options))
})

/** Changes the fields that the status still allows to change (semantics payment_intents.update). Emits nothing. */
export const update = Effect.fnUntraced(function* (
  id: string,
  parameters: UpdatePaymentIntent
): Effect.fn.Return<
  PaymentIntent,
  | ResourceMissing
  | PaymentIntentBelongsToSession
  | PaymentIntentUnexpectedState
  | ParameterInvalid
  | ParameterMissing
  | AmountTooLarge
  | OperationInProgress,
  Transaction | PaymentsConfig
> {
  const transaction = yield* Transaction
  if (parameters.currency !== undefined) yield* requireAcceptedCurrency(parameters.currency)
  const payment = yield* find(id)
  const before = payment.value
  if (parameters.customer) yield* findCustomer(parameters.customer, "customer")
  const source = yield* sentSource(parameters)

  const changesPayment = [...TERMS, "payment_method" as const].some((field) => parameters[field] !== undefined)
  if (changesPayment || UNTIL_CHARGED.some((field) => parameters[field] !== undefined)) {
    yield* requireNoOperation(payment)
  }
  if (changesPayment) {
    yield* requireNoSession(payment)
    yield* requireNoneAsked(payment)
  }
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
  const open = UNTIL_CHARGED.find((field) => parameters[field] !== undefined)
  if (open !== undefined) {
    yield* requireAllowed("update_until_charged", before, `update of \`${open}\``)
    after = change("update_until_charged", after, changedUntilCharged(after, parameters))
  }
  if (parameters.amount !== undefined) yield* requireAcceptedAmount(parameters.amount)
  yield* requireHolder(after)
  if (parameters.description !== undefined) {
    after = change("update_details", after, { description: parameters.description || null })
  }
  if (parameters.metadata !== undefined) {
    const metadata = yield* updateMetadata(after.metadata, parameters.metadata)
    after = change("update_details", after, { metadata })
  }
  if (after !== before) save(transaction, after, payment.hidden)
  return after
})

/**
 * Attempts the payment (semantics payment_intents.confirm, payment_intents.payment_method_type,
 * payment_intents.return_url, payment_intents.manual_confirmation, payment_intents.authentication).
 */
export const confirm = Effect.fnUntraced(function* (
  id: string,
  parameters: WithoutCardData<ConfirmPaymentIntent>,
  { publishableKey = false }: { readonly publishableKey?: boolean } = {}
): Effect.fn.Return<
  Attempted<PaymentIntent>,
  | ResourceMissing
  | SecretKeyRequired
  | PaymentIntentUnexpectedState
  | PaymentLinkInactive
  | ParametersExclusive
  | ParameterMissing
  | OperationInProgress
  | AttemptError,
  AttemptServices
> {
  const found = yield* find(id)
  const { session, value: paymentIntent } = found
  yield* requireClientSecretOf(PAYMENT_INTENT, paymentIntent, parameters.client_secret, { publishableKey })
  // A browser cannot confirm a payment that the merchant's server confirms itself (semantics keys.publishable,
  // payment_intents.manual_confirmation), nor one of a session, whose own confirmation checks more than a payment
  // method. Nor can it claim that the payer is absent.
  const offSession = parameters.off_session === true
  const isServers = paymentIntent.confirmation_method === "manual" || session !== undefined || offSession
  if (publishableKey && isServers) return yield* new SecretKeyRequired()
  const sent = yield* sentSource(parameters)
  yield* requireNoOperation(found)
  yield* requireAllowed("confirm", paymentIntent)
  if (session !== undefined) yield* requireOpenLink(session)
  yield* requireOnePaymentMethod(parameters)
  const setup_future_usage = parameters.setup_future_usage ?? paymentIntent.setup_future_usage
  const payment = { ...found, value: { ...paymentIntent, setup_future_usage } }
  yield* requireHolder(payment.value)
  const source = yield* chosenSource(paymentIntent, sent, parameters)
  const options = { offSession, futureUsageBefore: paymentIntent.setup_future_usage }
  return shown(yield* pay(payment, source, parameters.return_url || null, options))
})

/**
 * Applies the payer's response to a challenge (semantics payment_intents.authentication). A decline can follow a passed
 * authentication. The authentication fails for a payment method that was detached, or attached to another customer,
 * since the challenge (semantics payment_methods.usable), and where the payment link has taken its last payment since
 * (semantics payment_links.late).
 */
export const authenticate = Effect.fnUntraced(function* (
  id: string,
  outcome: AuthenticationOutcome
): Effect.fn.Return<
  Result.Result<PaymentIntent, CardDeclined>,
  ResourceMissing | PaymentIntentUnexpectedState | OperationInProgress | ProcessorNotConfigured | ProcessorUnavailable,
  AttemptServices
> {
  const transaction = yield* Transaction
  const payment = yield* find(id)
  const paymentIntent = payment.value
  yield* requireAllowed("authenticate", paymentIntent)
  // Only the processor that has asked the payer knows the response.
  const asking = payment.hidden?.remote?.waiting
  if (asking != null) return yield* new OperationInProgress({ id: asking, param: "id" })
  if (outcome === "failure") return Result.succeed(failAuthentication(transaction, payment, NOT_PASSED))
  const isTooLate = payment.session !== undefined && !isLinkOpen(payment.session)
  if (isTooLate) return Result.succeed(failAuthentication(transaction, payment, TOO_LATE))
  const source = (yield* attachedSource(paymentIntent))!
  const usable = yield* Effect.result(PaymentMethods.requireUsableBy(source, paymentIntent.customer))
  if (Result.isFailure(usable)) return Result.succeed(failAuthentication(transaction, payment, NOT_USABLE))
  if (paymentIntent.confirmation_method === "automatic") {
    const config = yield* PaymentsConfig
    const processor = yield* processorAtOnce
    const made = { transaction, config, operation: "authenticate", payment } as const
    const options = { authenticated: true, offSession: false, returnUrl: null }
    return Result.map(yield* perform(processor, made, source, options), ({ value }) => value)
  }
  return Result.succeed(passAuthentication(transaction, payment).value)
})

/** Outcome "authenticated": the server has to confirm again (semantics payment_intents.manual_confirmation). */
export const passAuthentication = (transaction: Transaction, payment: Payment): Payment => {
  const { amount, currency, payment_method } = payment.value
  return step(transaction, "authenticate", payment, {
    changes: { status: "requires_confirmation", next_action: null },
    authentication: { paymentMethod: payment_method!, amount, currency }
  })
}

/** Applies the outcome of a processing payment; does nothing in any other status. */
export const settle = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<void, ResourceMissing | ProcessorNotConfigured, AttemptServices> {
  const payment = yield* find(id)
  if (payment.value.status !== "processing") return
  const processor = yield* processorAtOnce
  const { token } = yield* PaymentMethods.resolve(latestCharge(payment.value)!.payment_method, "payment_method")
  yield* applySettlement(payment, processor.settle(token))
})

/** Concludes a processing payment. */
export const applySettlement = Effect.fnUntraced(function* (
  payment: Payment,
  settlement: Settlement
): Effect.fn.Return<Result.Result<Payment, CardDeclined>, never, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  const config = yield* PaymentsConfig
  const charge = latestCharge(payment.value)!
  const settled = settlement.kind === "approved" ? yield* withSavedPaymentMethod(payment, charge) : charge
  return conclude({ transaction, config, operation: "settle", payment }, settled, settlement)
})

/** Captures the held amount, or a part of it and releases the rest (semantics payment_intents.capture). */
export const capture = Effect.fnUntraced(function* (
  id: string,
  parameters: CapturePaymentIntent
): Effect.fn.Return<
  PaymentIntent | Begun,
  ResourceMissing | PaymentIntentUnexpectedState | AmountTooLarge | RemoteError,
  Transaction | Processors
> {
  const transaction = yield* Transaction
  const payment = yield* find(id)
  const paymentIntent = payment.value
  yield* requireNoOperation(payment)
  yield* requireAllowed("capture", paymentIntent)
  const amount = parameters.amount_to_capture ?? paymentIntent.amount_capturable
  if (amount > paymentIntent.amount_capturable) {
    return yield* new AmountTooLarge({ param: "amount_to_capture", max: paymentIntent.amount_capturable })
  }
  const remote = payment.hidden?.remote
  if (remote === undefined) return applyCapture(transaction, payment, amount).value
  const processor = yield* remoteProcessor(remote)
  return yield* begin(processor, { kind: "capture", cause: "request", payment, amount, answerWith: "payment_intent" })
})

/** Captures an amount of a held payment. */
export const applyCapture = (transaction: Transaction, payment: Payment, amount: number): Payment => {
  transaction.clearTimer(timerId("payment_intent.expire_hold", payment.value.id))
  return step(transaction, "capture", payment, {
    changes: { status: "succeeded", amount_received: amount, amount_capturable: 0 },
    charge: { ...latestCharge(payment.value)!, captured: true, amount_captured: amount },
    events: ["charge.captured", "payment_intent.succeeded"]
  })
}

/** Cancels the payment and releases a held amount (semantics payment_intents.cancel). */
export const cancel = Effect.fnUntraced(function* (
  id: string,
  parameters: CancelPaymentIntent
): Effect.fn.Return<
  PaymentIntent | Begun,
  ResourceMissing | PaymentIntentBelongsToSession | PaymentIntentUnexpectedState | RemoteError,
  Transaction | Processors
> {
  const transaction = yield* Transaction
  const payment = yield* find(id)
  yield* requireNoOperation(payment)
  yield* requireNoOpenSession(payment)
  yield* requireAllowed("cancel", payment.value)
  const cancellationReason = parameters.cancellation_reason ?? null
  const remote = openAtProcessor(payment)
  return remote === undefined
    ? giveUp(transaction, "cancel", payment, cancellationReason).value
    : yield* beginVoid(remote, payment, "cancel", "payment_intent", cancellationReason)
})

/** Returns the processor behind a network that holds an amount of the payment, or has asked its payer. */
const openAtProcessor = ({ hidden, value: { status } }: Payment): RemotePayment | undefined => {
  const remote = hidden?.remote
  if (remote === undefined) return undefined
  const isOpen = status === "requires_capture" || remote.waiting !== null || hidden?.authentication !== undefined
  return isOpen ? remote : undefined
}

/** Begins to release a payment at its processor. */
const beginVoid = Effect.fnUntraced(function* (
  remote: RemotePayment,
  payment: Payment,
  cause: Extract<OperationCause, "cancel" | "expire_hold" | "expire_session">,
  answerWith: "payment_intent" | "checkout.session",
  cancellationReason: CancellationReason | null
): Effect.fn.Return<Begun, ProcessorNotConfigured | ProcessorUnavailable, Transaction | Processors> {
  const processor = yield* remoteProcessor(remote)
  const { amount } = payment.value
  return yield* begin(processor, { kind: "void", cause, payment, amount, answerWith, cancellationReason })
})

/** Releases a held amount that was not captured in time, if one is held (semantics payment_intents.holds). */
export const expireHold = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<void, ResourceMissing | RemoteError, Transaction | Processors> {
  const transaction = yield* Transaction
  const payment = yield* find(id)
  if (payment.value.status !== "requires_capture") return
  yield* requireNoOperation(payment)
  const remote = openAtProcessor(payment)
  if (remote === undefined) giveUp(transaction, "expire_hold", payment, "automatic")
  else yield* beginVoid(remote, payment, "expire_hold", "payment_intent", "automatic")
})

/**
 * Cancels the payment of an expiring session, if it has one (semantics checkout.expire). If the processor has asked the
 * payer, the session expires after the processor has given the payment up.
 */
export const expireWithSession = Effect.fnUntraced(function* (
  session: CheckoutSessionDocument
): Effect.fn.Return<Begun | undefined, RemoteError, Transaction | Processors> {
  const { payment_intent } = session.value
  if (payment_intent === null) return undefined
  const payment = yield* findOfSession(session, payment_intent)
  yield* requireNoOperation(payment)
  const remote = openAtProcessor(payment)
  if (remote !== undefined) return yield* beginVoid(remote, payment, "expire_session", "checkout.session", "automatic")
  giveUp(yield* Transaction, "expire_session", payment, "automatic")
  return undefined
})

/** Errors of operations at a processor behind a network. */
export type RemoteError = OperationInProgress | ProcessorNotConfigured | ProcessorUnavailable

// Shared by the operations: the beginning, the attempt and the cancellation of a payment.

export interface PaymentTerms {
  /** Minor units, at least 1. */
  readonly amount: number
  readonly currency: string
  readonly captureMethod: CaptureMethod
  readonly confirmationMethod: ConfirmationMethod
  readonly customer: string | null
  readonly paymentMethod: string | null
  readonly description: string | null
  readonly statementDescriptor: string | null
  /** Minor units. Stored and shown only (semantics checkout.payment_intent_data). */
  readonly applicationFeeAmount: number | null
  /** Only with a customer (semantics payment_intents.setup_future_usage). */
  readonly futureUsage: FutureUsage | null
  readonly metadata: Metadata
}

/** Writes a new PaymentIntent, with or without a Checkout Session. Emits `payment_intent.created`. */
export const openPaymentIntent = (transaction: Transaction, terms: PaymentTerms, checkoutSession?: string): Payment => {
  const id = transaction.newId(PREFIXES.payment_intent)
  const paymentIntent: PaymentIntent = {
    id,
    object: "payment_intent",
    amount: terms.amount,
    currency: terms.currency,
    status: terms.paymentMethod === null ? "requires_payment_method" : "requires_confirmation",
    created: secondsOf(transaction.now),
    livemode: isLive(transaction.account),
    amount_received: 0,
    amount_capturable: 0,
    capture_method: terms.captureMethod,
    confirmation_method: terms.confirmationMethod,
    customer: terms.customer,
    payment_method: terms.paymentMethod,
    description: terms.description,
    statement_descriptor: terms.statementDescriptor,
    application_fee_amount: terms.applicationFeeAmount,
    setup_future_usage: terms.futureUsage,
    metadata: terms.metadata,
    merchant_id: merchantIdOf(transaction.account),
    client_secret: `${id}_secret_${transaction.newSecret(24)}`,
    next_action: null,
    latest_charge: null,
    charges: { object: "list", data: [], has_more: false, url: `/v1/charges?payment_intent=${id}`, next_cursor: null },
    canceled_at: null,
    cancellation_reason: null
  }
  const hidden = save(transaction, paymentIntent, checkoutSession === undefined ? undefined : { checkoutSession })
  emit(transaction, "payment_intent.created", id)
  return { value: paymentIntent, hidden, session: undefined }
}

/**
 * Returns the payment with the amount that the payer of its session chose (semantics checkout.custom_amount). The
 * attempt that follows writes it. An authentication requested for another amount is dropped.
 */
export const withAmount = (payment: Payment, amount: number): Payment =>
  payment.value.amount === amount
    ? payment
    : { ...payment, value: change("update_terms", payment.value, changedTerms(payment.value, { amount })) }

/**
 * Confirms a payment whose status allows it: charges the payment method, or holds the amount on it. With `offSession`,
 * a challenge counts as a decline, because the payer is absent (semantics payment_intents.off_session).
 */
export const pay = Effect.fnUntraced(function* (
  payment: Payment,
  source: PaymentSource | undefined,
  returnUrl: string | null,
  {
    futureUsageBefore = payment.value.setup_future_usage,
    offSession = false
  }: { readonly futureUsageBefore?: FutureUsage | null; readonly offSession?: boolean } = {}
): Effect.fn.Return<Attempted<Payment>, AttemptError, AttemptServices> {
  if (source === undefined) return yield* new PaymentMethodRequired()
  yield* PaymentMethods.requireUsableBy(source, payment.value.customer)
  const authenticated = isAuthenticated(payment.hidden, payment.value, source.id)
  const transaction = yield* Transaction
  const config = yield* PaymentsConfig
  const processor = yield* processorOf(payment.hidden?.remote)
  yield* PaymentMethods.requireTokenOf(source, processor)
  const options = { authenticated, offSession, returnUrl }
  if (processor.kind === "at_once") {
    return yield* perform(processor, { transaction, config, operation: "confirm", payment }, source, options)
  }
  const { amount, setup_future_usage: futureUsage } = payment.value
  return yield* begin(processor, {
    kind: "authorize",
    cause: "request",
    payment: { ...payment, value: { ...payment.value, setup_future_usage: futureUsageBefore } },
    amount,
    answerWith: payment.session === undefined ? "payment_intent" : "checkout.session",
    authorization: { source, futureUsage, publicUrl: config.publicUrl, ...options }
  })
})

/** Returns the PaymentIntent of an attempt. */
const shown = (attempted: Attempted<Payment>): Attempted<PaymentIntent> =>
  attempted instanceof Begun ? attempted : Result.map(attempted, ({ value }) => value)

/** The operation that an attempt belongs to, and its payment. */
export interface Attempt {
  readonly transaction: Transaction
  readonly config: PaymentsConfig["Service"]
  readonly operation: PaymentIntentOperation
  readonly payment: Payment
}

interface AttemptOptions {
  readonly authenticated: boolean
  /** Whether the payer is absent and cannot authenticate. */
  readonly offSession: boolean
  readonly returnUrl: string | null
}

/** Charges a payment method by a processor that answers at once. */
const perform = (
  processor: CardProcessor,
  made: Attempt,
  source: PaymentSource,
  options: AttemptOptions
): Effect.Effect<Result.Result<Payment, CardDeclined>, ProcessorUnavailable, Transaction | PaymentsConfig> => {
  const { card, token } = source
  const { authenticated } = options
  const authorization = processor.authorize({ token, card, authenticated, now: made.transaction.now })
  return authorization.kind === "unavailable"
    ? Effect.fail(new ProcessorUnavailable())
    : applyAuthorization(made, source, options, authorization)
}

/** The part of a payment method that a charge shows. */
export type ChargedSource = Pick<PaymentSource, "id" | "card" | "billingDetails">

/** Applies the outcome of an attempt. */
export const applyAuthorization = Effect.fnUntraced(function* (
  made: Attempt,
  source: ChargedSource,
  { offSession, returnUrl }: Pick<AttemptOptions, "offSession" | "returnUrl">,
  authorization: Exclude<Authorization, { readonly kind: "unavailable" }>
): Effect.fn.Return<Result.Result<Payment, CardDeclined>, never, Transaction | PaymentsConfig> {
  const { payment } = made
  switch (authorization.kind) {
    case "challenge":
      if (offSession) return conclude(made, pendingCharge(made, source), UNAUTHENTICATED)
      return Result.succeed(challenge(made, source, returnUrl))
    case "pending": {
      const paying = { ...made, payment: yield* withCustomer(payment, source) }
      return Result.succeed(startProcessing(paying, source, authorization.settlesAfterMillis))
    }
    case "approved": {
      const paying = { ...made, payment: yield* withCustomer(payment, source) }
      const charge = yield* withSavedPaymentMethod(paying.payment, pendingCharge(paying, source))
      return conclude(paying, charge, authorization)
    }
    case "declined":
      return conclude(made, pendingCharge(made, source), authorization)
  }
})

const UNAUTHENTICATED: Declined = {
  kind: "declined",
  declineCode: "authentication_required",
  message: DECLINE_MESSAGES.authentication_required
}

/**
 * Attaches the payment method of a successful charge to the customer, if `setup_future_usage` is set (semantics
 * payment_intents.setup_future_usage). For a built-in payment method, the charge, and so the PaymentIntent, name the
 * attached copy.
 */
const withSavedPaymentMethod = Effect.fnUntraced(function* (
  { value: { customer, setup_future_usage } }: Payment,
  charge: Charge
): Effect.fn.Return<Charge, never, Transaction | PaymentsConfig> {
  if (setup_future_usage === null || customer === null) return charge
  return { ...charge, payment_method: yield* PaymentMethodAttachments.save(charge.payment_method, customer) }
})

/** Adds the customer that the session creates when it completes (semantics checkout.customer). */
const withCustomer = Effect.fnUntraced(function* (
  payment: Payment,
  { billingDetails }: ChargedSource
): Effect.fn.Return<Payment, never, Transaction> {
  if (payment.session === undefined) return payment
  const session = yield* CheckoutSessionTransitions.createCustomer(payment.session, billingDetails)
  const { customer } = session.value
  return { ...payment, session, value: customer === null ? payment.value : { ...payment.value, customer } }
})

/** Builds the charge of a new attempt, with the PaymentIntent's metadata (semantics metadata.copies). */
const pendingCharge = (
  { payment: { value: paymentIntent }, transaction }: Attempt,
  { billingDetails, card, id }: ChargedSource
): Charge => ({
  id: transaction.newId(PREFIXES.charge),
  object: "charge",
  amount: paymentIntent.amount,
  currency: paymentIntent.currency,
  status: "pending",
  created: secondsOf(transaction.now),
  livemode: paymentIntent.livemode,
  amount_captured: 0,
  amount_refunded: 0,
  payment_intent: paymentIntent.id,
  payment_method: id,
  failure_code: null,
  failure_message: null,
  metadata: paymentIntent.metadata,
  captured: false,
  paid: false,
  refunded: false,
  released_at: null,
  customer: paymentIntent.customer,
  description: paymentIntent.description,
  merchant_id: paymentIntent.merchant_id,
  decline_code: null,
  billing_details: billingDetails,
  payment_method_details: { type: "card", card }
})

const conclude = (attempt: Attempt, charge: Charge, settlement: Settlement): Result.Result<Payment, CardDeclined> => {
  if (settlement.kind === "declined") return Result.fail(decline(attempt, charge, settlement))
  const isAutomatic = attempt.payment.value.capture_method === "automatic"
  return Result.succeed(isAutomatic ? approve(attempt, charge) : reserve(attempt, charge, settlement.captureBefore))
}

/** Outcome "approve, automatic": captures the amount. */
const approve = ({ operation, payment, transaction }: Attempt, charge: Charge): Payment => {
  const { amount } = payment.value
  return step(transaction, operation, payment, {
    changes: {
      status: "succeeded",
      payment_method: charge.payment_method,
      amount_received: amount,
      next_action: null,
      last_payment_error: null
    },
    charge: { ...charge, status: "succeeded", paid: true, captured: true, amount_captured: amount },
    events: ["charge.succeeded", "payment_intent.succeeded"]
  })
}

/** Outcome "approve, manual": holds the amount on the card until it is captured or released, or the hold expires. */
const reserve = (
  { config, operation, payment, transaction }: Attempt,
  charge: Charge,
  captureBefore: Millis = Infinity
): Payment => {
  const { amount, id } = payment.value
  const expiresAt = Math.min(transaction.now + config.authorizationHoldSeconds * 1000, captureBefore)
  transaction.setTimer(timer("payment_intent.expire_hold", id, expiresAt))
  return step(transaction, operation, payment, {
    changes: {
      status: "requires_capture",
      payment_method: charge.payment_method,
      amount_capturable: amount,
      next_action: null,
      last_payment_error: null
    },
    charge: { ...charge, status: "succeeded", paid: true },
    events: ["charge.succeeded", "payment_intent.amount_capturable_updated"]
  })
}

/** Outcome "decline": records the attempt; the payer can try another payment method. */
const decline = (
  { operation, payment, transaction }: Attempt,
  charge: Charge,
  { declineCode, message }: Declined
): CardDeclined => {
  const declined = step(transaction, operation, payment, {
    changes: {
      status: "requires_payment_method",
      payment_method: null,
      next_action: null,
      last_payment_error: {
        type: "payment_error",
        code: "card_declined",
        message,
        decline_code: declineCode,
        charge: charge.id,
        payment_method: charge.payment_method
      }
    },
    charge: {
      ...charge,
      status: "failed",
      failure_code: declineCode,
      failure_message: message,
      decline_code: declineCode
    },
    events: ["charge.failed", "payment_intent.payment_failed"]
  })
  return new CardDeclined({ declineCode, message, charge: charge.id, paymentIntent: declined.value })
}

/** Outcome "async start": the result comes with the settlement timer, or from the processor without one. */
const startProcessing = (attempt: Attempt, source: ChargedSource, settlesAfterMillis: number | null): Payment => {
  const { operation, payment, transaction } = attempt
  if (settlesAfterMillis !== null) {
    const settlesAt = transaction.now + settlesAfterMillis
    transaction.setTimer(timer("payment_intent.settle", payment.value.id, settlesAt))
  }
  return step(transaction, operation, payment, {
    changes: { status: "processing", payment_method: source.id, next_action: null },
    charge: pendingCharge(attempt, source),
    events: ["charge.pending", "payment_intent.processing"]
  })
}

/** Outcome "3DS needed": the payer authenticates before anything is charged. */
const challenge = (
  { config, operation, payment, transaction }: Attempt,
  source: ChargedSource,
  returnUrl: string | null
): Payment => {
  const { client_secret, id } = payment.value
  const url = `${config.publicUrl}/authenticate/${id}?client_secret=${client_secret}`
  return step(transaction, operation, payment, {
    changes: {
      status: "requires_action",
      payment_method: source.id,
      next_action: { type: "redirect_to_url", redirect_to_url: { url, return_url: returnUrl } }
    },
    events: ["payment_intent.requires_action"]
  })
}

const NOT_PASSED = "The customer failed authentication."
const TOO_LATE = "The payment link takes no more payments."
const NOT_USABLE = "The payment method can no longer be used for this payment."

/** Outcome "auth failed": the payer can try another payment method. */
const failAuthentication = (transaction: Transaction, payment: Payment, message: string): PaymentIntent => {
  const failed = step(transaction, "authenticate", payment, {
    changes: {
      status: "requires_payment_method",
      payment_method: null,
      next_action: null,
      last_payment_error: {
        type: "payment_error",
        code: "payment_intent_authentication_failure",
        message,
        payment_method: payment.value.payment_method!
      }
    },
    events: ["payment_intent.payment_failed"]
  })
  return failed.value
}

/** Outcome "cancel", by request or by a timer: releases a held amount. */
export const giveUp = (
  transaction: Transaction,
  operation: "cancel" | "expire_hold" | "expire_session",
  payment: Payment,
  reason: CancellationReason | null
): Payment => {
  const now = secondsOf(transaction.now)
  const isHeld = payment.value.status === "requires_capture"
  const released = operation === "expire_hold" ? ("charge.expired" as const) : ("charge.updated" as const)
  if (isHeld) transaction.clearTimer(timerId("payment_intent.expire_hold", payment.value.id))
  return step(transaction, operation, payment, {
    changes: {
      status: "canceled",
      canceled_at: now,
      cancellation_reason: reason,
      amount_capturable: 0,
      next_action: null
    },
    charge: isHeld ? { ...latestCharge(payment.value)!, released_at: now } : undefined,
    events: [...(isHeld ? [released] : []), "payment_intent.canceled"]
  })
}

// The fields that an update changes.

const TERMS = ["amount", "currency", "customer", "capture_method"] as const

/** Applies new terms. They drop a pending action, because the payer was asked about the old terms. */
const changedTerms = (before: PaymentIntent, { amount, capture_method, currency, customer }: UpdatePaymentIntent) => ({
  status: before.status === "requires_action" ? ("requires_confirmation" as const) : before.status,
  next_action: null,
  amount: amount ?? before.amount,
  currency: currency === undefined ? before.currency : normalizeCurrency(currency),
  customer: customer === undefined ? before.customer : customer || null,
  capture_method: capture_method ?? before.capture_method
})

const UNTIL_CHARGED = ["statement_descriptor", "setup_future_usage"] as const

const changedUntilCharged = (
  before: PaymentIntent,
  { setup_future_usage, statement_descriptor }: UpdatePaymentIntent
) => ({
  statement_descriptor: statement_descriptor === undefined ? before.statement_descriptor : statement_descriptor || null,
  setup_future_usage: setup_future_usage === undefined ? before.setup_future_usage : setup_future_usage
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

// The payment method of an attempt: named by the request, sent inline, or attached to the PaymentIntent.

type PaymentMethodParameters = Pick<WithoutCardData<ConfirmPaymentIntent>, "payment_method" | "payment_method_data">

/** Finds the payment method that the request names, if any. Fails with `ResourceMissing`. */
export const sentSource = ({
  payment_method
}: Pick<PaymentMethodParameters, "payment_method">): Effect.Effect<
  PaymentSource | undefined,
  ResourceMissing,
  Transaction
> => (payment_method ? PaymentMethods.resolve(payment_method, "payment_method") : Effect.undefined)

/** Returns the payment method to charge: that of the request, else the inline one, else the PaymentIntent's. */
export const chosenSource = Effect.fnUntraced(function* (
  paymentIntent: PaymentIntent,
  sent: PaymentSource | undefined,
  parameters: PaymentMethodParameters
): Effect.fn.Return<PaymentSource | undefined, ResourceMissing | ProcessorNotConfigured, Transaction> {
  return sent ?? (yield* inlineSource(parameters)) ?? (yield* attachedSource(paymentIntent))
})

const inlineSource = ({
  payment_method_data
}: PaymentMethodParameters): Effect.Effect<PaymentSource | undefined, ProcessorNotConfigured, Transaction> =>
  payment_method_data ? PaymentMethods.createSource(payment_method_data) : Effect.undefined

const attachedSource = ({
  payment_method
}: PaymentIntent): Effect.Effect<PaymentSource | undefined, ResourceMissing, Transaction> =>
  payment_method === null ? Effect.undefined : PaymentMethods.resolve(payment_method, "payment_method")

// Checks that schemas cannot express.

/** Fails with `ParametersExclusive` for two payment methods (semantics payment_intents.confirm). */
export const requireOnePaymentMethod = ({
  payment_method,
  payment_method_data
}: PaymentMethodParameters): Effect.Effect<void, ParametersExclusive> =>
  payment_method && payment_method_data
    ? Effect.fail(new ParametersExclusive({ first: "payment_method", second: "payment_method_data" }))
    : Effect.void

const CONFIRMATION_ONLY = ["payment_method_data", "payment_method_type", "return_url", "off_session"] as const

/** Fails for parameters that would be ignored without `confirm` (semantics payment_intents.create). */
const requireNoConfirmation = (
  parameters: WithoutCardData<CreatePaymentIntent>
): Effect.Effect<void, ParameterInvalid> => {
  const param = CONFIRMATION_ONLY.find((field) => parameters[field] != null)
  return param === undefined
    ? Effect.void
    : Effect.fail(new ParameterInvalid({ param, rule: "absent unless `confirm` is true" }))
}

/** Fails if a payment method is to be attached and there is no customer (semantics payment_methods.attach). */
const requireHolder = ({
  customer,
  setup_future_usage
}: Pick<PaymentIntent, "customer" | "setup_future_usage">): Effect.Effect<void, ParameterMissing> =>
  setup_future_usage !== null && customer === null
    ? Effect.fail(new ParameterMissing({ param: "customer" }))
    : Effect.void

/** Fails above the cap of one payment (semantics money.limits). */
const requireAcceptedAmount = (amount: number): Effect.Effect<void, AmountTooLarge> =>
  amount > AMOUNT_MAX ? Effect.fail(new AmountTooLarge({ param: "amount", max: AMOUNT_MAX })) : Effect.void

/** Fails for a payment of a session, whose payer has seen the terms (semantics checkout.payment_intent). */
const requireNoSession = ({ session }: Payment): Effect.Effect<void, PaymentIntentBelongsToSession> => {
  if (session === undefined) return Effect.void
  const { id, status } = session.value
  return Effect.fail(new PaymentIntentBelongsToSession({ checkoutSession: id, open: status === "open" }))
}

/**
 * Fails for a payment whose payer the processor has asked, and who may just be agreeing to the present terms (semantics
 * operations.terms).
 */
const requireNoneAsked = ({ hidden, value: { status } }: Payment): Effect.Effect<void, PaymentIntentUnexpectedState> =>
  hidden?.remote?.waiting == null || status !== "requires_action"
    ? Effect.void
    : Effect.fail(
        new PaymentIntentUnexpectedState({
          status,
          operation: "update at this processor",
          allowed: ["requires_payment_method", "requires_confirmation"],
          param: "id"
        })
      )

/** Fails while the session can be expired instead, that is, while it is open (semantics checkout.payment_intent). */
const requireNoOpenSession = (payment: Payment): Effect.Effect<void, PaymentIntentBelongsToSession> =>
  payment.session?.value.status === "open" ? requireNoSession(payment) : Effect.void
