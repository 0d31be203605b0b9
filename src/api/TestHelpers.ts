/**
 * Test helpers stand in for people and machines outside of the service, and for time, in test mode (semantics I-14,
 * §6).
 */
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
      "For a PaymentIntent in `requires_action`, that of a Checkout Session too. If the card is declined after the " +
        "authentication, the answer is the 402 of the decline."
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
      "Sessions and holds expire by it, and payments and refunds settle: all that has happened when the answer comes, " +
        "unless it takes longer than 10 seconds. Webhooks of that are on their way then, as are those that waited to be " +
        "tried again. `created` is read off this clock, and an `expires_at` that you send is compared with it. It is the clock of " +
        "all who use this environment, and never goes back, except with all data."
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
      "Webhook endpoints, events and idempotency keys are data as well; API keys are not. The clock is put back. It is the " +
        "environment of one merchant: tests that run at the same time are best given a merchant each " +
        "(`till merchants create`)."
    )
)
