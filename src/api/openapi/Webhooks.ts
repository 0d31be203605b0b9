/**
 * The document describes what Till sends by itself: the request to a webhook endpoint, and what its answer means (spec:
 * Events, Signature, Delivery; semantics W5–W9).
 */
import type { JsonSchema, JsonSchemas } from "./Examples.ts"
import { exampleOf } from "./Examples.ts"

export interface WebhookHeader {
  readonly name: string
  readonly in: "header"
  readonly required: true
  readonly description: string
  readonly schema: JsonSchema
}

/** An operation of the receiver's. */
export interface Webhook {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: ReadonlyArray<string>
  readonly parameters: ReadonlyArray<WebhookHeader>
  readonly security: readonly []
  readonly requestBody: {
    readonly required: true
    readonly content: { readonly "application/json": { readonly schema: JsonSchema; readonly example: unknown } }
  }
  readonly responses: Readonly<Record<string, { readonly description: string }>>
}

const header = (name: string, schema: JsonSchema, description: string): WebhookHeader => ({
  name,
  in: "header",
  required: true,
  description,
  schema
})

const HEADERS: ReadonlyArray<WebhookHeader> = [
  header(
    "X-Signature",
    { type: "string", pattern: "^t=[0-9]+(,v1=[0-9a-f]{64})+$" },
    "`t=<Unix seconds>,v1=<hexadecimal>`: HMAC-SHA256, keyed with the endpoint's whole secret including `whsec_`, over the " +
      "bytes `v1=<t>.<raw body>`. During the grace of a rolled secret there are two `v1=`, newest first; one that matches " +
      "is enough. Compare in constant time, and reject a `t` that is more than 300 seconds from now."
  ),
  header("X-Webhook-Id", { type: "string", pattern: "^evt_" }, "The event's ID, the same at every attempt."),
  header("X-Webhook-Attempt", { type: "integer", minimum: 1 }, "The number of this attempt, from 1.")
]

const DESCRIPTION =
  "Till posts each event to the webhook endpoints that are subscribed to its type. An event comes at least once, so it can " +
  "come twice, and in any order: recognize it by its `id`. Its body is the same, byte for byte, at every attempt. One that is " +
  "still to be delivered when Till is upgraded lacks the fields that are new then; `GET /v1/events/{id}` shows them."

const RESPONSES = {
  "2XX": { description: "The event is safe with you. Till waits 30 seconds for it, and follows no redirects." },
  default: {
    description:
      "Anything else, and no answer at all: Till sends the event again, after 1 and 5 minutes, half an hour, 2, 8, 24 and 72 " +
      "hours, each counted from the attempt before."
  }
}

/** By name; `schemas` are those of the document, `Event` among them. */
export const webhooks = (schemas: JsonSchemas): Readonly<Record<string, { readonly post: Webhook }>> => {
  const schema = { $ref: "#/components/schemas/Event" }
  const content = { "application/json": { schema, example: exampleOf(schema, { schemas, requiredOnly: false }) } }
  return {
    event: {
      post: {
        operationId: "webhooks.event",
        summary: "Receive an event",
        description: DESCRIPTION,
        tags: ["webhook_endpoints"],
        parameters: HEADERS,
        security: [],
        requestBody: { required: true, content },
        responses: RESPONSES
      }
    }
  }
}
