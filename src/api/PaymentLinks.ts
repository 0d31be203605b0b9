/** Payment links and their line items (semantics payment_links.*). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { CreatePaymentLink, PaymentLink, PaymentLinkItem, UpdatePaymentLink } from "../domain/PaymentLink.ts"
import { commandHeaders, requestHeaders } from "./Access.ts"
import { commandErrors, errors } from "./Errors.ts"
import { Flag, List, listQuery, pageQuery } from "./List.ts"

const params = { id: Schema.String }

export const PaymentLinks = HttpApiGroup.make("payment_links").add(
  HttpApiEndpoint.post("create", "/v1/payment_links", {
    headers: commandHeaders,
    payload: CreatePaymentLink,
    success: PaymentLink,
    error: commandErrors
  }),
  HttpApiEndpoint.get("list", "/v1/payment_links", {
    headers: requestHeaders,
    query: { ...listQuery, active: Schema.optionalKey(Flag) },
    success: List(PaymentLink),
    error: errors
  }),
  HttpApiEndpoint.get("retrieve", "/v1/payment_links/:id", {
    headers: requestHeaders,
    params,
    success: PaymentLink,
    error: errors
  }),
  HttpApiEndpoint.post("update", "/v1/payment_links/:id", {
    headers: commandHeaders,
    params,
    payload: UpdatePaymentLink,
    success: PaymentLink,
    error: commandErrors
  }),
  HttpApiEndpoint.get("line_items", "/v1/payment_links/:id/line_items", {
    headers: requestHeaders,
    params,
    query: pageQuery,
    success: List(PaymentLinkItem),
    error: errors
  }).annotate(OpenApi.Summary, "List the line items of a payment link")
)
