/**
 * The request of webhooks, and its responses (spec: Events, Signature, Delivery; semantics webhooks.signature,
 * webhooks.headers, webhooks.body, webhooks.success).
 */
import { exampleOf, type JsonSchema, type JsonSchemas } from "./Examples.ts"

export interface WebhookHeader {
  readonly name: string
  readonly in: "header"
  readonly required: true
  readonly description: string
  readonly schema: JsonSchema
}

/** An operation of the receiver. */
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
    "`t=<Unix seconds>,v1=<hexadecimal>`: HMAC-SHA256, keyed with the endpoint's whole secret including `whsec_`, of " +
      "the bytes `v1=<t>.<raw body>`. In the grace period of a rolled secret there are two `v1=`, newest first; one " +
      "match suffices. Compare in constant time, and reject a `t` that differs by more than 300 seconds from now."
  ),
  header("X-Webhook-Id", { type: "string", pattern: "^evt_" }, "The event's ID, the same at every attempt."),
  header("X-Webhook-Attempt", { type: "integer", minimum: 1 }, "The number of this attempt, from 1.")
]

const DESCRIPTION =
  "Till posts each event to the webhook endpoints that are subscribed to its type. An event is delivered at least " +
  "once, possibly twice and in any order: recognize it by its `id`. The body is the same, byte for byte, at every " +
  "attempt. An event still pending when Till is upgraded lacks the new version's fields; `GET /v1/events/{id}` shows " +
  "them."

const RESPONSES = {
  "2XX": { description: "You have the event. Till waits 30 seconds for this response, and follows no redirects." },
  default: {
    description:
      "Any other response, or none: Till sends the event again, after 1 and 5 minutes, half an hour, 2, 8, 24 and 72 " +
      "hours, each counted from the previous attempt."
  }
}

/** Returns the document's webhooks by name. `schemas` are those of the document, `Event` among them. */
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
