/**
 * The results of each operation besides its object: the error codes that it can return, and the events that it causes
 * (semantics payment_intents.outcomes, checkout.states, events.types). A test compares the codes with the failures of
 * the functions that carry the operations out, as the compiler infers them.
 */
import type { EmittedEventType } from "../../domain/Event.ts"

export interface Outcome {
  /** Codes that are the operation's own, besides `ALWAYS` and those of its kind. */
  readonly errors: ReadonlyArray<string>
  /** Types of the events that it causes, in their order. */
  readonly events: ReadonlyArray<EmittedEventType>
}

/** Codes that every operation can return. */
export const ALWAYS: ReadonlyArray<string> = [
  "parameter_invalid",
  "parameter_unknown",
  "authentication_failed",
  "api_key_expired",
  "secret_key_required",
  "invalid_api_version",
  "rate_limit_exceeded",
  "internal_error",
  "service_unavailable"
]

/** Codes that every POST can return, too. */
export const OF_COMMANDS: ReadonlyArray<string> = [
  "parameter_missing",
  "invalid_json",
  "unsupported_media_type",
  "request_too_large",
  "idempotency_key_in_use",
  "idempotency_key_reuse"
]

const reads = (...errors: ReadonlyArray<string>): Outcome => ({ errors, events: [] })

const LIST = reads("resource_missing", "parameters_exclusive")
const RETRIEVE = reads("resource_missing")

/** Errors of a processor behind a network. */
const REMOTE_ERRORS = ["processor_not_configured", "processor_unavailable", "operation_in_progress"]
/** Errors of card data and tokens. */
const CARD_ERRORS = ["parameters_exclusive", "card_data_refused"]
const ATTEMPT_ERRORS = [...REMOTE_ERRORS, ...CARD_ERRORS, "card_declined"]
const ATTEMPT_EVENTS: ReadonlyArray<EmittedEventType> = [
  "payment_method.attached",
  "charge.succeeded",
  "payment_intent.succeeded",
  "payment_intent.amount_capturable_updated",
  "charge.failed",
  "payment_intent.payment_failed",
  "payment_intent.requires_action",
  "charge.pending",
  "payment_intent.processing"
]

/** Events of the session, if the PaymentIntent belongs to one. */
const SESSION_EVENTS: ReadonlyArray<EmittedEventType> = ["customer.created", "checkout.session.completed"]

/** The events of timers that an advance of the clock fires. */
const TIMER_EVENTS: ReadonlyArray<EmittedEventType> = [
  "charge.expired",
  "payment_intent.canceled",
  "checkout.session.expired",
  "charge.succeeded",
  "payment_intent.succeeded",
  "charge.failed",
  "payment_intent.payment_failed",
  "checkout.session.async_payment_succeeded",
  "checkout.session.async_payment_failed",
  "refund.updated",
  "charge.refunded",
  "refund.failed",
  "charge.pending",
  "payment_intent.processing",
  "refund.created",
  "operation.unresolved",
  "operation.resolved"
]

/** The outcomes by operation ID. */
export const OUTCOMES: Readonly<Record<string, Outcome>> = {
  "customers.create": { errors: [], events: ["customer.created"] },
  "customers.list": LIST,
  "customers.search": reads("parameter_missing"),
  "customers.retrieve": RETRIEVE,
  "customers.update": { errors: ["resource_missing"], events: ["customer.updated"] },
  "customers.erase": {
    errors: ["resource_missing", "customer_has_payment"],
    events: ["payment_method.detached", "payment_intent.canceled", "checkout.session.expired"]
  },
  "customers.delete": { errors: ["resource_missing"], events: ["payment_method.detached", "customer.deleted"] },
  "customers.payment_methods": LIST,
  "products.create": {
    errors: ["amount_too_large", "parameters_exclusive"],
    events: ["product.created", "price.created"]
  },
  "products.list": LIST,
  "products.retrieve": RETRIEVE,
  "products.update": { errors: ["resource_missing", "price_inactive"], events: ["product.updated"] },
  "products.delete": { errors: ["resource_missing", "resource_in_use"], events: ["product.deleted"] },
  "prices.create": {
    errors: ["resource_missing", "resource_already_exists", "amount_too_large", "parameters_exclusive"],
    events: ["price.updated", "price.created"]
  },
  "prices.list": LIST,
  "prices.retrieve": RETRIEVE,
  "prices.update": { errors: ["resource_missing", "resource_already_exists"], events: ["price.updated"] },
  "checkout_sessions.create": {
    errors: ["resource_missing", "price_inactive", "product_inactive", "amount_too_large", "parameters_exclusive"],
    events: ["payment_intent.created"]
  },
  "checkout_sessions.list": LIST,
  "checkout_sessions.retrieve": RETRIEVE,
  "checkout_sessions.update": RETRIEVE,
  "checkout_sessions.confirm": {
    errors: [
      "resource_missing",
      "checkout_session_unexpected_state",
      "payment_intent_unexpected_state",
      "payment_link_inactive",
      "amount_too_large",
      "processor_refused",
      ...ATTEMPT_ERRORS
    ],
    events: ["payment_intent.created", ...ATTEMPT_EVENTS, ...SESSION_EVENTS]
  },
  "checkout_sessions.expire": {
    errors: ["resource_missing", "checkout_session_unexpected_state", "processor_refused", ...REMOTE_ERRORS],
    events: ["payment_intent.canceled", "checkout.session.expired"]
  },
  "checkout_sessions.line_items": LIST,
  "payment_links.create": {
    errors: ["resource_missing", "price_inactive", "product_inactive", "amount_too_large", "parameters_exclusive"],
    events: ["payment_link.created"]
  },
  "payment_links.list": LIST,
  "payment_links.retrieve": RETRIEVE,
  "payment_links.update": { errors: ["resource_missing"], events: ["payment_link.updated"] },
  "payment_links.line_items": LIST,
  "payment_intents.create": {
    errors: [
      "resource_missing",
      "payment_intent_unexpected_state",
      "amount_too_large",
      ...CARD_ERRORS,
      "processor_not_configured",
      "processor_unavailable",
      "processor_refused",
      "card_declined"
    ],
    events: ["payment_intent.created", ...ATTEMPT_EVENTS]
  },
  "payment_intents.list": LIST,
  "payment_intents.search": reads("parameter_missing"),
  "payment_intents.retrieve": RETRIEVE,
  "payment_intents.update": {
    errors: ["resource_missing", "payment_intent_unexpected_state", "amount_too_large", "operation_in_progress"],
    events: []
  },
  "payment_intents.confirm": {
    errors: [
      "resource_missing",
      "payment_intent_unexpected_state",
      "payment_link_inactive",
      "processor_refused",
      ...ATTEMPT_ERRORS
    ],
    events: [...ATTEMPT_EVENTS, ...SESSION_EVENTS]
  },
  "payment_intents.capture": {
    errors: [
      "resource_missing",
      "payment_intent_unexpected_state",
      "amount_too_large",
      "processor_refused",
      ...REMOTE_ERRORS
    ],
    events: ["charge.captured", "payment_intent.succeeded"]
  },
  "payment_intents.cancel": {
    errors: ["resource_missing", "payment_intent_unexpected_state", "processor_refused", ...REMOTE_ERRORS],
    events: ["charge.updated", "payment_intent.canceled"]
  },
  "refunds.create": {
    errors: [
      "resource_missing",
      "payment_intent_unexpected_state",
      "charge_already_refunded",
      "amount_too_large",
      "processor_refused",
      ...REMOTE_ERRORS
    ],
    events: ["refund.created", "charge.refunded"]
  },
  "refunds.list": LIST,
  "refunds.retrieve": RETRIEVE,
  "refunds.update": { errors: ["resource_missing"], events: ["refund.updated"] },
  "charges.list": LIST,
  "charges.retrieve": RETRIEVE,
  "operations.list": LIST,
  "operations.retrieve": RETRIEVE,
  "payment_methods.create": reads("processor_not_configured", "processor_unavailable", ...CARD_ERRORS),
  "payment_methods.list": reads("parameter_missing", ...LIST.errors),
  "payment_methods.retrieve": RETRIEVE,
  "payment_methods.attach": { errors: ["resource_missing", "resource_in_use"], events: ["payment_method.attached"] },
  "payment_methods.detach": { errors: ["resource_missing"], events: ["payment_method.detached"] },
  "webhook_endpoints.create": reads(),
  "webhook_endpoints.list": LIST,
  "webhook_endpoints.retrieve": RETRIEVE,
  "webhook_endpoints.update": RETRIEVE,
  "webhook_endpoints.delete": RETRIEVE,
  "webhook_endpoints.roll_secret": RETRIEVE,
  "webhook_endpoints.deliveries": LIST,
  "events.list": LIST,
  "events.retrieve": RETRIEVE,
  "events.resend": RETRIEVE,
  "test_helpers.authenticate": {
    errors: [
      "resource_missing",
      "test_mode_only",
      "payment_intent_unexpected_state",
      ...REMOTE_ERRORS,
      "card_declined"
    ],
    events: [...ATTEMPT_EVENTS, ...SESSION_EVENTS]
  },
  "test_helpers.advance_clock": { errors: ["test_mode_only"], events: TIMER_EVENTS },
  "test_helpers.delete_data": reads("test_mode_only"),
  "api_keys.list": LIST,
  "api_keys.roll": RETRIEVE,
  "api_keys.revoke": reads("resource_missing", "resource_in_use"),
  "request_logs.list": reads("request_log_off", ...LIST.errors),
  "request_logs.retrieve": reads("request_log_off", "resource_missing")
}
