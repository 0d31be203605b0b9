/** Webhook endpoints (spec: Webhook endpoints; semantics §1.16). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { MetadataParameter } from "../domain/Metadata.ts"
import { unsettable } from "../domain/Text.ts"
import { WebhookDelivery } from "../domain/WebhookDelivery.ts"
import {
  CreatedWebhookEndpoint,
  DeletedWebhookEndpoint,
  EnabledEvents,
  WebhookEndpoint,
  WebhookEndpointDescription,
  WebhookEndpointStatus,
  WebhookEndpointUrl,
  WebhookSecretGrace
} from "../domain/WebhookEndpoint.ts"
import { commandErrors, errors } from "./Errors.ts"
import { commandHeaders, requestHeaders } from "./Headers.ts"
import { List, listQuery } from "./List.ts"

export const CreateWebhookEndpoint = Schema.Struct({
  url: WebhookEndpointUrl,
  enabled_events: EnabledEvents,
  description: Schema.optionalKey(Schema.NullOr(WebhookEndpointDescription)),
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter))
}).annotate({ identifier: "CreateWebhookEndpoint" })

export const UpdateWebhookEndpoint = Schema.Struct({
  url: Schema.optionalKey(WebhookEndpointUrl),
  enabled_events: Schema.optionalKey(EnabledEvents),
  description: Schema.optionalKey(Schema.NullOr(WebhookEndpointDescription)),
  metadata: Schema.optionalKey(unsettable(MetadataParameter)),
  status: Schema.optionalKey(WebhookEndpointStatus)
}).annotate({ identifier: "UpdateWebhookEndpoint" })

/** `expires_in`: seconds for which the old secret goes on signing beside the new one; 0 unless given. */
export const RollWebhookSecret = Schema.Struct({
  expires_in: Schema.optionalKey(Schema.NullOr(WebhookSecretGrace))
}).annotate({ identifier: "RollWebhookSecret" })

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
  }),
  HttpApiEndpoint.get("deliveries", "/v1/webhook_endpoints/:id/deliveries", {
    headers: requestHeaders,
    params,
    query: listQuery,
    success: List(WebhookDelivery),
    error: errors
  }).annotate(OpenApi.Summary, "List deliveries to a webhook endpoint")
)
