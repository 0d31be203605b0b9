/** Semantics §3: every row that the service can produce so far, and whether it is kept (I9, I10). */
import { assert, describe, it } from "@effect/vitest"
import * as Domain from "../../src/domain/Errors.ts"
import { IdempotencyKeyInUse, IdempotencyKeyReuse, Unavailable } from "../../src/engine/Accounts.ts"
import type { Failure, WireError } from "../../src/http/ErrorTable.ts"
import { envelope, internalError, wireErrorOf } from "../../src/http/ErrorTable.ts"
import * as Http from "../../src/http/HttpErrors.ts"

const declined = new Domain.CardDeclined({
  declineCode: "insufficient_funds",
  message: "Your card has insufficient funds.",
  charge: "ch_1",
  paymentIntent: { id: "pi_1" } as never
})

const KEPT = true
const RELEASED = false

type Row = [
  failure: Failure,
  status: number,
  type: WireError["type"],
  code: string,
  param: string | null,
  message: string,
  kept: boolean
]

const rows: Array<Row> = [
  [
    new Domain.ParameterMissing({ param: "amount" }),
    400,
    "invalid_request_error",
    "parameter_missing",
    "amount",
    "Missing required parameter: `amount`.",
    RELEASED
  ],
  [
    new Domain.ParameterInvalid({ param: "amount", rule: "a positive integer" }),
    400,
    "invalid_request_error",
    "parameter_invalid",
    "amount",
    "The `amount` field must be a positive integer.",
    RELEASED
  ],
  [
    new Domain.ParameterUnknown({ param: "a[b]" }),
    400,
    "invalid_request_error",
    "parameter_unknown",
    "a[b]",
    "Received unknown parameter: a[b].",
    RELEASED
  ],
  [
    new Domain.ParametersExclusive({ first: "a", second: "b" }),
    400,
    "invalid_request_error",
    "parameters_exclusive",
    "b",
    "Only one of a and b may be sent.",
    RELEASED
  ],
  [
    new Http.InvalidJson(),
    400,
    "invalid_request_error",
    "invalid_json",
    null,
    "The request body is not valid JSON.",
    RELEASED
  ],
  [
    new Http.InvalidApiVersion({ version: "x" }),
    400,
    "invalid_request_error",
    "invalid_api_version",
    "X-API-Version",
    "Unknown API version 'x'.",
    RELEASED
  ],
  [
    new Http.FieldNotExpandable({ field: "x", route: "GET /y" }),
    400,
    "invalid_request_error",
    "parameter_invalid",
    "expand[]",
    "The field 'x' is not expandable on GET /y.",
    RELEASED
  ],
  [
    new Domain.AmountTooLarge({ param: "amount_to_capture", max: 5 }),
    400,
    "invalid_request_error",
    "amount_too_large",
    "amount_to_capture",
    "Amount to capture must be at most 5.",
    KEPT
  ],
  [
    new Domain.AmountTooLarge({ param: "line_items", max: 5 }),
    400,
    "invalid_request_error",
    "amount_too_large",
    "line_items",
    "The total of `line_items` must be at most 5.",
    KEPT
  ],
  [
    new Domain.AmountTooLarge({ param: "tiers[0][unit_amount]", max: 5 }),
    400,
    "invalid_request_error",
    "amount_too_large",
    "tiers[0][unit_amount]",
    "`tiers[0][unit_amount]` must be at most 5.",
    KEPT
  ],
  [
    new Domain.RefundTooLarge(),
    400,
    "invalid_request_error",
    "amount_too_large",
    "amount",
    "The refund amount exceeds the amount available to refund.",
    KEPT
  ],
  [
    new Domain.ChargeAlreadyRefunded(),
    400,
    "invalid_request_error",
    "charge_already_refunded",
    "payment_intent",
    "The charge has already been fully refunded.",
    KEPT
  ],
  [
    new Domain.PaymentIntentUnexpectedState({
      status: "succeeded",
      operation: "capture",
      allowed: ["requires_capture"],
      param: "id"
    }),
    400,
    "invalid_request_error",
    "payment_intent_unexpected_state",
    "id",
    "This PaymentIntent's status is `succeeded`; capture requires one of: requires_capture.",
    KEPT
  ],
  [
    new Domain.PaymentMethodRequired(),
    400,
    "invalid_request_error",
    "payment_intent_unexpected_state",
    "payment_method",
    "This PaymentIntent has no payment method; provide payment_method or payment_method_data.",
    KEPT
  ],
  [
    new Domain.PaymentIntentBelongsToSession({ checkoutSession: "cs_1", open: true }),
    400,
    "invalid_request_error",
    "payment_intent_unexpected_state",
    "id",
    "This PaymentIntent belongs to Checkout Session cs_1; expire the session instead.",
    KEPT
  ],
  [
    new Domain.CheckoutSessionUnexpectedState({ status: "complete", operation: "expired" }),
    400,
    "invalid_request_error",
    "checkout_session_unexpected_state",
    "id",
    "This Checkout Session's status is `complete`; only `open` sessions can be expired.",
    KEPT
  ],
  [
    new Domain.ProcessorNotConfigured(),
    400,
    "invalid_request_error",
    "processor_not_configured",
    null,
    "No payment processor is configured for live mode.",
    KEPT
  ],
  [
    new Domain.TestModeOnly(),
    400,
    "invalid_request_error",
    "test_mode_only",
    null,
    "This operation is only available in test mode.",
    RELEASED
  ],
  [
    new Http.CredentialsInvalid(),
    401,
    "authentication_error",
    "authentication_failed",
    null,
    "Invalid API key provided.",
    RELEASED
  ],
  [
    new Http.ApiKeyExpired(),
    401,
    "authentication_error",
    "api_key_expired",
    null,
    "This API key has expired.",
    RELEASED
  ],
  [declined, 402, "payment_error", "card_declined", null, "Your card has insufficient funds.", KEPT],
  [
    new Domain.SecretKeyRequired(),
    403,
    "authentication_error",
    "secret_key_required",
    null,
    "This operation requires a secret API key.",
    RELEASED
  ],
  [
    new Domain.ResourceMissing({ kind: "Customer", id: "cus_x", param: "customer" }),
    404,
    "invalid_request_error",
    "resource_missing",
    "customer",
    "No Customer found with ID 'cus_x'.",
    RELEASED
  ],
  [
    new Http.RouteNotFound({ method: "GET", path: "/v1/x" }),
    404,
    "invalid_request_error",
    "route_not_found",
    null,
    "Unrecognized request URL (GET /v1/x).",
    RELEASED
  ],
  [
    new IdempotencyKeyInUse(),
    409,
    "invalid_request_error",
    "idempotency_key_in_use",
    null,
    "A request with this idempotency key is still in progress.",
    RELEASED
  ],
  [
    new Http.UnsupportedMediaType(),
    415,
    "invalid_request_error",
    "unsupported_media_type",
    null,
    "Content-Type must be application/json.",
    RELEASED
  ],
  [
    new IdempotencyKeyReuse(),
    422,
    "invalid_request_error",
    "idempotency_key_reuse",
    null,
    "This idempotency key has already been used with different request parameters.",
    RELEASED
  ],
  [
    new Domain.PriceInactive({ id: "price_1", param: "default_price" }),
    400,
    "invalid_request_error",
    "price_inactive",
    "default_price",
    "The price 'price_1' is inactive.",
    KEPT
  ],
  [
    new Domain.ProductInactive({ id: "prod_1", param: "line_items[0][price]" }),
    400,
    "invalid_request_error",
    "product_inactive",
    "line_items[0][price]",
    "The product 'prod_1' is inactive.",
    KEPT
  ],
  [
    new Domain.LookupKeyTaken({ lookupKey: "k" }),
    400,
    "invalid_request_error",
    "resource_already_exists",
    "lookup_key",
    "A price already uses the lookup_key 'k'.",
    KEPT
  ],
  [
    new Domain.ProductHasPrices({ id: "prod_1" }),
    400,
    "invalid_request_error",
    "resource_in_use",
    "id",
    "The product 'prod_1' has prices; set active=false instead.",
    KEPT
  ],
  [
    new Domain.ProcessorUnavailable(),
    500,
    "api_error",
    "processor_unavailable",
    null,
    "The payment processor did not answer.",
    RELEASED
  ]
]

describe("errors", () => {
  it.each(rows.map((row) => ({ row, name: `${row[3]}: ${row[5]}` })))("$name", ({ row }) => {
    const [failure, status, type, code, param, message, stored] = row
    const error = wireErrorOf(failure)
    assert.deepInclude(error, { status, type, code, param, message, stored })
    const body = JSON.parse(envelope(error, "https://docs.example.test"))
    assert.deepInclude(body.error, { type, code, message, param, doc_url: `https://docs.example.test/errors/${code}` })
  })

  it("repetition is announced where it helps", () => {
    assert.deepStrictEqual(wireErrorOf(new IdempotencyKeyInUse()).headers, { "retry-after": "1" })
    const unavailable = wireErrorOf(new Unavailable({ reason: "internal" }))
    assert.deepInclude(unavailable, { status: 503, type: "api_error", code: "service_unavailable", stored: RELEASED })
    assert.deepStrictEqual(unavailable.headers, { "retry-after": "1" })
    assert.notInclude(unavailable.message, "internal")
  })

  it("a decline carries its details", () => {
    const { error } = JSON.parse(envelope(wireErrorOf(declined), ""))
    assert.deepInclude(error, { decline_code: "insufficient_funds", charge: "ch_1", payment_intent: { id: "pi_1" } })
  })

  it("a defect says nothing about itself", () => {
    assert.deepInclude(internalError, { status: 500, type: "api_error", code: "internal_error", stored: RELEASED })
    assert.strictEqual(internalError.message, "An unexpected error occurred.")
  })
})
