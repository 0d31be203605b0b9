/** Checkout Sessions and their line items (spec: Checkout Sessions; semantics checkout.*). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import {
  CheckoutSession,
  CheckoutSessionStatus,
  ConfirmCheckoutSession,
  CreateCheckoutSession,
  LineItem,
  UpdateCheckoutSession
} from "../domain/CheckoutSession.ts"
import { PaymentLinkId } from "../domain/Identifiers.ts"
import { text } from "../domain/Text.ts"
import { commandHeaders, PublishableKey, requestHeaders } from "./Access.ts"
import { commandErrors, errors, paymentErrors } from "./Errors.ts"
import { List, listQuery, pageQuery } from "./List.ts"

const params = { id: Schema.String }

export const CheckoutSessions = HttpApiGroup.make("checkout_sessions").add(
  HttpApiEndpoint.post("create", "/v1/checkout_sessions", {
    headers: commandHeaders,
    payload: CreateCheckoutSession,
    success: CheckoutSession,
    error: commandErrors
  }),
  HttpApiEndpoint.get("list", "/v1/checkout_sessions", {
    headers: requestHeaders,
    query: {
      ...listQuery,
      status: Schema.optionalKey(CheckoutSessionStatus),
      payment_link: Schema.optionalKey(PaymentLinkId)
    },
    success: List(CheckoutSession),
    error: errors
  }),
  HttpApiEndpoint.get("retrieve", "/v1/checkout_sessions/:id", {
    headers: requestHeaders,
    params,
    query: { client_secret: Schema.optionalKey(text()) },
    success: CheckoutSession,
    error: errors
  }).annotate(PublishableKey, true),
  HttpApiEndpoint.post("update", "/v1/checkout_sessions/:id", {
    headers: commandHeaders,
    params,
    payload: UpdateCheckoutSession,
    success: CheckoutSession,
    error: commandErrors
  }),
  HttpApiEndpoint.post("confirm", "/v1/checkout_sessions/:id/confirm", {
    headers: commandHeaders,
    params,
    payload: ConfirmCheckoutSession,
    success: CheckoutSession,
    error: paymentErrors
  }).annotate(PublishableKey, true),
  HttpApiEndpoint.post("expire", "/v1/checkout_sessions/:id/expire", {
    headers: commandHeaders,
    params,
    success: CheckoutSession,
    error: commandErrors
  }),
  HttpApiEndpoint.get("line_items", "/v1/checkout_sessions/:id/line_items", {
    headers: requestHeaders,
    params,
    query: { ...pageQuery, client_secret: Schema.optionalKey(text()) },
    success: List(LineItem),
    error: errors
  })
    .annotate(PublishableKey, true)
    .annotate(OpenApi.Summary, "List the line items of a Checkout Session")
)
