/** What only test mode has: stand-ins for people and machines outside of the service (semantics I-14). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { AuthenticationOutcome, PaymentIntent } from "../domain/PaymentIntent.ts"
import { TestMode } from "./Access.ts"
import { paymentErrors } from "./Errors.ts"
import { commandHeaders } from "./Headers.ts"

/** What the payer answers. */
export const AuthenticatePaymentIntent = Schema.Struct({ outcome: AuthenticationOutcome }).annotate({
  identifier: "AuthenticatePaymentIntent"
})

export const TestHelpers = HttpApiGroup.make("test_helpers").add(
  HttpApiEndpoint.post("authenticate", "/v1/test_helpers/payment_intents/:id/authenticate", {
    headers: commandHeaders,
    params: { id: Schema.String },
    payload: AuthenticatePaymentIntent,
    success: PaymentIntent,
    error: paymentErrors
  }).annotate(TestMode, true)
)
