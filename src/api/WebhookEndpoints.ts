/** Webhook endpoints (spec: Webhook endpoints; semantics webhooks.*). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { WebhookDelivery } from "../domain/WebhookDelivery.ts"
import {
  CreatedWebhookEndpoint,
  CreateWebhookEndpoint,
  DeletedWebhookEndpoint,
  RollWebhookSecret,
  UpdateWebhookEndpoint,
  WebhookEndpoint
} from "../domain/WebhookEndpoint.ts"
import { commandErrors, errors } from "./Errors.ts"
import { commandHeaders, requestHeaders } from "./Access.ts"
import { List, listQuery, waitQuery } from "./List.ts"

const params = { id: Schema.String }

export const WebhookEndpoints = HttpApiGroup.make("webhook_endpoints").add(
  HttpApiEndpoint.post("create", "/v1/webhook_endpoints", {
    headers: commandHeaders,
    payload: CreateWebhookEndpoint,
    success: CreatedWebhookEndpoint,
    error: commandErrors
  }),
  HttpApiEndpoint.get("list", "/v1/webhook_endpoints", {
    headers: requestHeaders,
    query: listQuery,
    success: List(WebhookEndpoint),
    error: errors
  }),
  HttpApiEndpoint.get("retrieve", "/v1/webhook_endpoints/:id", {
    headers: requestHeaders,
    params,
    query: waitQuery("The response waits this many seconds until the endpoint is changed or deleted."),
    success: WebhookEndpoint,
    error: errors
  }),
  HttpApiEndpoint.post("update", "/v1/webhook_endpoints/:id", {
    headers: commandHeaders,
    params,
    payload: UpdateWebhookEndpoint,
    success: WebhookEndpoint,
    error: commandErrors
  }),
  HttpApiEndpoint.delete("delete", "/v1/webhook_endpoints/:id", {
    headers: requestHeaders,
    params,
    success: DeletedWebhookEndpoint,
    error: errors
  }),
  HttpApiEndpoint.post("roll_secret", "/v1/webhook_endpoints/:id/roll_secret", {
    headers: commandHeaders,
    params,
    payload: RollWebhookSecret,
    success: CreatedWebhookEndpoint,
    error: commandErrors
  }).annotate(OpenApi.Summary, "Roll the secret of a webhook endpoint"),
  HttpApiEndpoint.get("deliveries", "/v1/webhook_endpoints/:id/deliveries", {
    headers: requestHeaders,
    params,
    query: listQuery,
    success: List(WebhookDelivery),
    error: errors
  }).annotate(OpenApi.Summary, "List deliveries to a webhook endpoint")
)
