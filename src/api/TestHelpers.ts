/** Test helpers, in test mode (semantics payment_intents.authentication, test_helpers.clock). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { PaymentIntent } from "../domain/PaymentIntent.ts"
import { AdvanceTestClock, AuthenticatePaymentIntent, DeletedTestData, TestClock } from "../domain/TestHelpers.ts"
import { commandHeaders, requestHeaders, TestMode } from "./Access.ts"
import { commandErrors, errors, paymentErrors } from "./Errors.ts"

export const TestHelpers = HttpApiGroup.make("test_helpers").add(
  HttpApiEndpoint.post("authenticate", "/v1/test_helpers/payment_intents/:id/authenticate", {
    headers: commandHeaders,
    params: { id: Schema.String },
    payload: AuthenticatePaymentIntent,
    success: PaymentIntent,
    error: paymentErrors
  })
    .annotate(TestMode, true)
    .annotate(OpenApi.Summary, "Authenticate a payment in the place of its payer")
    .annotate(
      OpenApi.Description,
      "For a PaymentIntent in `requires_action`, including that of a Checkout Session. If the card is declined after " +
        "the authentication, the response is the 402 of the decline."
    ),
  HttpApiEndpoint.post("advance_clock", "/v1/test_helpers/clock/advance", {
    headers: commandHeaders,
    payload: AdvanceTestClock,
    success: TestClock,
    error: commandErrors
  })
    .annotate(TestMode, true)
    .annotate(OpenApi.Summary, "Advance the clock of the test environment")
    .annotate(
      OpenApi.Description,
      "Sessions and holds expire, and payments and refunds settle, before the response, unless this takes longer " +
        "than 10 seconds. Their webhooks, and retries that became due, are sent afterwards. `created` is read from " +
        "this clock, and an `expires_at` that you send is compared with it. All users of the environment share the " +
        "clock. It never goes back, except when all data is deleted."
    ),
  HttpApiEndpoint.delete("delete_data", "/v1/test_helpers/data", {
    headers: requestHeaders,
    success: DeletedTestData,
    error: errors
  })
    .annotate(TestMode, true)
    .annotate(OpenApi.Summary, "Delete all data of the test environment")
    .annotate(
      OpenApi.Description,
      "This includes webhook endpoints, events and idempotency keys, but not API keys. The clock is reset. The " +
        "environment belongs to one merchant: give each of several concurrent test runs a merchant of its own " +
        "(`till merchants create`)."
    )
)
