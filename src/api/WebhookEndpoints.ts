/** Webhook endpoints (spec.md, Webhook endpoints; semantics §1.16). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { MetadataParameter } from "../domain/Metadata.ts"
import { clearable } from "../domain/Text.ts"
import {
  CreatedWebhookEndpoint,
  DeletedWebhookEndpoint,
  EnabledEvents,
  WebhookEndpoint,
  WebhookEndpointDescription,
  WebhookEndpointStatus,
  WebhookEndpointUrl
} from "../domain/WebhookEndpoint.ts"
import { commandErrors, errors } from "./Errors.ts"
import { commandHeaders, requestHeaders } from "./Headers.ts"
import { List, listQuery } from "./List.ts"

export const CreateWebhookEndpoint = Schema.Struct({
  url: WebhookEndpointUrl,
  enabled_events: EnabledEvents,
  description: Schema.optionalKey(clearable(WebhookEndpointDescription)),
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter))
}).annotate({ identifier: "CreateWebhookEndpoint" })

export const UpdateWebhookEndpoint = Schema.Struct({
  url: Schema.optionalKey(WebhookEndpointUrl),
  enabled_events: Schema.optionalKey(EnabledEvents),
  description: Schema.optionalKey(clearable(WebhookEndpointDescription)),
  metadata: Schema.optionalKey(clearable(MetadataParameter)),
  status: Schema.optionalKey(WebhookEndpointStatus)
}).annotate({ identifier: "UpdateWebhookEndpoint" })

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
  })
)
