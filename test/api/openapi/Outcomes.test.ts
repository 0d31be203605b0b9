/**
 * The documented errors of commands are those of the functions that carry them out: the compiler infers the functions'
 * failures, and refuses a table that lacks one or has one too many.
 */
import { assert, describe, it } from "@effect/vitest"
import type { Effect } from "effect"
import { ALWAYS, OF_COMMANDS, OUTCOMES } from "../../../src/api/openapi/Outcomes.ts"
import type { DomainError } from "../../../src/domain/Errors.ts"
import { EMITTED_EVENT_TYPES } from "../../../src/domain/Event.ts"
import { wireErrorOf } from "../../../src/http/ErrorTable.ts"
import { FAILURES } from "../../../src/pages/docs/ErrorExamples.ts"
import { EXPLANATIONS } from "../../../src/pages/docs/ErrorExplanations.ts"
import * as ApiKeys from "../../../src/payments/merchants/ApiKeys.ts"
import * as CheckoutSessions from "../../../src/payments/lifecycles/CheckoutSessions.ts"
import * as CustomerErasure from "../../../src/payments/erasure/CustomerErasure.ts"
import * as Customers from "../../../src/payments/lifecycles/Customers.ts"
import * as PaymentIntents from "../../../src/payments/lifecycles/PaymentIntents.ts"
import * as PaymentLinks from "../../../src/payments/lifecycles/PaymentLinks.ts"
import * as PaymentMethodAttachments from "../../../src/payments/lifecycles/PaymentMethodAttachments.ts"
import * as PaymentMethods from "../../../src/payments/lifecycles/PaymentMethods.ts"
import * as Prices from "../../../src/payments/lifecycles/Prices.ts"
import * as Products from "../../../src/payments/lifecycles/Products.ts"
import * as Refunds from "../../../src/payments/lifecycles/Refunds.ts"
import * as TestHelpers from "../../../src/payments/TestHelpers.ts"
import * as WebhookDeliveries from "../../../src/payments/webhooks/WebhookDeliveries.ts"
import * as WebhookEndpoints from "../../../src/payments/webhooks/WebhookEndpoints.ts"

type Tag = DomainError["_tag"]

/** The tags of a function's failures: exactly those that it is inferred to have. */
const failuresOf = <Parameters extends ReadonlyArray<never>, A, E extends { readonly _tag: Tag }, R>(
  _command: (...parameters: Parameters) => Effect.Effect<A, E, R>,
  tags: Readonly<Record<E["_tag"], true>>
): ReadonlyArray<Tag> => Object.keys(tags) as ReadonlyArray<Tag>

const ResourceMissing = true
const ParameterInvalid = true
const ParameterMissing = true
const ParametersExclusive = true
const AmountTooLarge = true
const OperationInProgress = true
const ProcessorNotConfigured = true
const ProcessorUnavailable = true
const PaymentIntentUnexpectedState = true
const PaymentMethodRequired = true

const COMMANDS: Readonly<Record<string, ReadonlyArray<Tag>>> = {
  "customers.create": [],
  "customers.update": failuresOf(Customers.update, { ResourceMissing, ParameterInvalid }),
  "customers.delete": failuresOf(Customers.remove, { ResourceMissing }),
  "customers.erase": failuresOf(CustomerErasure.begin, { CustomerHasPayment: true, ResourceMissing }),
  "products.create": failuresOf(Products.create, {
    AmountTooLarge,
    ParameterInvalid,
    ParameterMissing,
    ParametersExclusive
  }),
  "products.update": failuresOf(Products.update, { ParameterInvalid, PriceInactive: true, ResourceMissing }),
  "products.delete": failuresOf(Products.remove, { ProductHasPrices: true, ResourceMissing }),
  "prices.create": failuresOf(Prices.create, {
    AmountTooLarge,
    LookupKeyTaken: true,
    ParameterInvalid,
    ParameterMissing,
    ParametersExclusive,
    ResourceMissing
  }),
  "prices.update": failuresOf(Prices.update, { LookupKeyTaken: true, ParameterInvalid, ResourceMissing }),
  "checkout_sessions.create": failuresOf(CheckoutSessions.create, {
    AmountTooLarge,
    ParameterInvalid,
    ParameterMissing,
    ParametersExclusive,
    PriceInactive: true,
    ProductInactive: true,
    ResourceMissing
  }),
  "checkout_sessions.update": failuresOf(CheckoutSessions.update, { ParameterInvalid, ResourceMissing }),
  "checkout_sessions.confirm": failuresOf(CheckoutSessions.confirm, {
    AmountTooLarge,
    CheckoutSessionUnexpectedState: true,
    ParameterInvalid,
    ParameterMissing,
    ParametersExclusive,
    PaymentLinkInactive: true,
    PaymentMethodRequired,
    ProcessorNotConfigured,
    ProcessorUnavailable,
    ResourceMissing,
    SecretKeyRequired: true,
    TooManyAttempts: true,
    OperationInProgress
  }),
  "checkout_sessions.expire": failuresOf(CheckoutSessions.expire, {
    CheckoutSessionUnexpectedState: true,
    ResourceMissing,
    OperationInProgress,
    ProcessorNotConfigured,
    ProcessorUnavailable
  }),
  "payment_links.create": failuresOf(PaymentLinks.create, {
    AmountTooLarge,
    ParameterInvalid,
    ParameterMissing,
    ParametersExclusive,
    PriceInactive: true,
    ProductInactive: true,
    ResourceMissing
  }),
  "payment_links.update": failuresOf(PaymentLinks.update, { ParameterInvalid, ParameterMissing, ResourceMissing }),
  "payment_intents.create": failuresOf(PaymentIntents.create, {
    AmountTooLarge,
    ParameterInvalid,
    ParameterMissing,
    ParametersExclusive,
    PaymentMethodRequired,
    ProcessorNotConfigured,
    ProcessorUnavailable,
    ResourceMissing
  }),
  "payment_intents.update": failuresOf(PaymentIntents.update, {
    AmountTooLarge,
    ParameterInvalid,
    ParameterMissing,
    PaymentIntentBelongsToSession: true,
    PaymentIntentUnexpectedState,
    ResourceMissing,
    OperationInProgress
  }),
  "payment_intents.confirm": failuresOf(PaymentIntents.confirm, {
    ParameterInvalid,
    ParameterMissing,
    ParametersExclusive,
    PaymentIntentUnexpectedState,
    PaymentLinkInactive: true,
    PaymentMethodRequired,
    ProcessorNotConfigured,
    ProcessorUnavailable,
    ResourceMissing,
    SecretKeyRequired: true,
    OperationInProgress
  }),
  "payment_intents.capture": failuresOf(PaymentIntents.capture, {
    AmountTooLarge,
    PaymentIntentUnexpectedState,
    ResourceMissing,
    OperationInProgress,
    ProcessorNotConfigured,
    ProcessorUnavailable
  }),
  "payment_intents.cancel": failuresOf(PaymentIntents.cancel, {
    PaymentIntentBelongsToSession: true,
    PaymentIntentUnexpectedState,
    ResourceMissing,
    OperationInProgress,
    ProcessorNotConfigured,
    ProcessorUnavailable
  }),
  "refunds.create": failuresOf(Refunds.create, {
    ChargeAlreadyRefunded: true,
    PaymentIntentUnexpectedState,
    ProcessorNotConfigured,
    RefundTooLarge: true,
    ResourceMissing,
    OperationInProgress,
    ProcessorUnavailable
  }),
  "refunds.update": failuresOf(Refunds.update, { ParameterInvalid, ResourceMissing }),
  "payment_methods.create": failuresOf(PaymentMethods.create, { ProcessorNotConfigured }),
  "payment_methods.attach": failuresOf(PaymentMethodAttachments.attach, {
    ParameterInvalid,
    PaymentMethodTaken: true,
    ResourceMissing
  }),
  "payment_methods.detach": failuresOf(PaymentMethodAttachments.detach, { ParameterInvalid, ResourceMissing }),
  "webhook_endpoints.create": failuresOf(WebhookEndpoints.create, { ParameterInvalid }),
  "webhook_endpoints.update": failuresOf(WebhookEndpoints.update, { ParameterInvalid, ResourceMissing }),
  "webhook_endpoints.delete": failuresOf(WebhookEndpoints.remove, { ResourceMissing }),
  "webhook_endpoints.roll_secret": failuresOf(WebhookEndpoints.rollSecret, { ResourceMissing }),
  "events.resend": failuresOf(WebhookDeliveries.resend, { ParameterInvalid, ResourceMissing }),
  "api_keys.roll": failuresOf(ApiKeys.roll, { ResourceMissing }),
  "api_keys.revoke": failuresOf(ApiKeys.revoke, { ApiKeyInUse: true, ResourceMissing }),
  "test_helpers.authenticate": failuresOf(TestHelpers.authenticatePaymentIntent, {
    PaymentIntentUnexpectedState,
    ProcessorNotConfigured,
    ProcessorUnavailable,
    ResourceMissing,
    TestModeOnly: true,
    OperationInProgress
  }),
  "test_helpers.advance_clock": failuresOf(TestHelpers.advanceClock, { ParameterInvalid, TestModeOnly: true }),
  "test_helpers.delete_data": ["TestModeOnly"]
}

/** Commands that charge a card. A decline is a success of the function. */
const CHARGING = [
  "checkout_sessions.confirm",
  "payment_intents.create",
  "payment_intents.confirm",
  "test_helpers.authenticate"
]

/** Commands that a processor behind a network can refuse, with the operation's outcome. */
const REFUSED = [
  "checkout_sessions.confirm",
  "checkout_sessions.expire",
  "payment_intents.create",
  "payment_intents.confirm",
  "payment_intents.capture",
  "payment_intents.cancel",
  "refunds.create"
]

/** Commands with card data or a token, which the processor sees before they run. */
const TAKING_CARDS = [
  "checkout_sessions.confirm",
  "payment_intents.create",
  "payment_intents.confirm",
  "payment_methods.create"
]
const TOKEN_FAILURES = failuresOf(PaymentMethods.tokenize, {
  ParametersExclusive,
  ParameterInvalid,
  CardDataRefused: true,
  ProcessorUnavailable
})

describe("the documented errors", () => {
  it.each(Object.entries(COMMANDS))("of %s are those that it can fail with", (operationId, tags) => {
    const thrown = new Set(tags.map((tag) => wireErrorOf(FAILURES[tag]).code))
    if (CHARGING.includes(operationId)) thrown.add("card_declined")
    if (REFUSED.includes(operationId)) thrown.add("processor_refused")
    if (TAKING_CARDS.includes(operationId))
      for (const tag of TOKEN_FAILURES) thrown.add(wireErrorOf(FAILURES[tag]).code)
    const own = [...thrown].filter((code) => ![...ALWAYS, ...OF_COMMANDS].includes(code))
    assert.sameMembers([...OUTCOMES[operationId]!.errors], own)
  })

  it("all have a page, and every event is one that is emitted", () => {
    for (const [operationId, { errors, events }] of Object.entries(OUTCOMES)) {
      for (const code of [...errors, ...ALWAYS, ...OF_COMMANDS]) assert.isTrue(EXPLANATIONS.has(code), operationId)
      for (const type of events) assert.property(EMITTED_EVENT_TYPES, type, operationId)
    }
  })

  it("name an operation for every error that a command can fail with, and for every event", () => {
    const named = new Set(Object.values(OUTCOMES).flatMap(({ events }) => events))
    assert.sameMembers([...named], Object.keys(EMITTED_EVENT_TYPES))
  })
})
