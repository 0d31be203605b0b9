/** PaymentIntents (spec: PaymentIntents; semantics payment_intents.*). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Customer, DeletedCustomer } from "../domain/Customer.ts"
import { CustomerId } from "../domain/Identifiers.ts"
import {
  CancelPaymentIntent,
  CapturePaymentIntent,
  ConfirmPaymentIntent,
  CreatePaymentIntent,
  PaymentIntent,
  UpdatePaymentIntent
} from "../domain/PaymentIntent.ts"
import { text } from "../domain/Text.ts"
import { commandHeaders, PublishableKey, requestHeaders } from "./Access.ts"
import { commandErrors, errors, paymentErrors } from "./Errors.ts"
import { List, listQuery } from "./List.ts"
import { searchQuery, SearchResult } from "./Search.ts"

/** A PaymentIntent, with the whole customer for `expand[]=customer`. */
export const ExpandablePaymentIntent = Schema.Struct({
  ...PaymentIntent.fields,
  customer: Schema.NullOr(Schema.Union([CustomerId, Customer, DeletedCustomer]))
}).annotate({ identifier: "ExpandablePaymentIntent" })

const params = { id: Schema.String }

/** Publishable keys pay a Checkout Session by confirming the session (semantics keys.publishable). */
const ONLY_AUTOMATIC =
  "It cannot confirm if `confirmation_method` is `manual`, nor the PaymentIntent of a Checkout Session."

/** The changes that a passed authentication does not cover (semantics payment_intents.authentication.terms). */
const AUTHENTICATED_TERMS =
  "If the payer has authenticated and the server has yet to confirm again (`confirmation_method: manual`), a higher " +
  "amount, another currency or another payment method voids the authentication: the next confirmation asks for a new " +
  "one."

export const PaymentIntents = HttpApiGroup.make("payment_intents").add(
  HttpApiEndpoint.post("create", "/v1/payment_intents", {
    headers: commandHeaders,
    payload: CreatePaymentIntent,
    success: PaymentIntent,
    error: paymentErrors
  }),
  HttpApiEndpoint.get("list", "/v1/payment_intents", {
    headers: requestHeaders,
    query: { ...listQuery, customer: Schema.optionalKey(CustomerId) },
    success: List(PaymentIntent),
    error: errors
  }),
  HttpApiEndpoint.get("search", "/v1/payment_intents/search", {
    headers: requestHeaders,
    query: searchQuery(`status:"succeeded" AND metadata["order_id"]:"6735"`),
    success: SearchResult(PaymentIntent),
    error: errors
  }).annotate(
    OpenApi.Description,
    "Searches by `id`, `amount`, `currency`, `status`, `created`, `customer`, `last4` (of the newest charge's card) " +
      'and `metadata["key"]`. Newest first; includes every change that was confirmed before the request.'
  ),
  HttpApiEndpoint.get("retrieve", "/v1/payment_intents/:id", {
    headers: requestHeaders,
    params,
    query: {
      "expand[]": Schema.optionalKey(Schema.Array(Schema.Literals(["customer"]))),
      client_secret: Schema.optionalKey(text())
    },
    success: ExpandablePaymentIntent,
    error: errors
  }).annotate(PublishableKey, true),
  HttpApiEndpoint.post("update", "/v1/payment_intents/:id", {
    headers: commandHeaders,
    params,
    payload: UpdatePaymentIntent,
    success: PaymentIntent,
    error: commandErrors
  }).annotate(OpenApi.Description, AUTHENTICATED_TERMS),
  HttpApiEndpoint.post("confirm", "/v1/payment_intents/:id/confirm", {
    headers: commandHeaders,
    params,
    payload: ConfirmPaymentIntent,
    success: PaymentIntent,
    error: paymentErrors
  })
    .annotate(PublishableKey, true)
    .annotate(OpenApi.Description, ONLY_AUTOMATIC),
  HttpApiEndpoint.post("capture", "/v1/payment_intents/:id/capture", {
    headers: commandHeaders,
    params,
    payload: CapturePaymentIntent,
    success: PaymentIntent,
    error: commandErrors
  }),
  HttpApiEndpoint.post("cancel", "/v1/payment_intents/:id/cancel", {
    headers: commandHeaders,
    params,
    payload: CancelPaymentIntent,
    success: PaymentIntent,
    error: commandErrors
  })
)
