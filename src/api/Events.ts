/** Events, newest first (spec: Events; semantics webhooks.resend, events.list). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Event, eventTypeFilterOf } from "../domain/Event.ts"
import { WebhookEndpointId } from "../domain/Identifiers.ts"
import { commandErrors, errors } from "./Errors.ts"
import { commandHeaders, requestHeaders } from "./Access.ts"
import { List, listQuery, waitQuery } from "./List.ts"

/** A filter for one type, or for all types with a prefix (semantics events.list). */
const TypeFilter = Schema.String.check(
  Schema.makeFilter((filter: string) => eventTypeFilterOf(filter) !== undefined, {
    rule: "an event type, or the beginning of one followed by `.*`"
  })
).annotate({ description: "One type, `charge.refunded`, or all with the same beginning, `payment_intent.*`." })

/** The body of a resend. Without an endpoint, the event goes to all that are subscribed to its type. */
export const ResendEvent = Schema.Struct({
  webhook_endpoint: Schema.optionalKey(Schema.NullOr(WebhookEndpointId))
}).annotate({ identifier: "ResendEvent" })

export const Events = HttpApiGroup.make("events").add(
  HttpApiEndpoint.get("list", "/v1/events", {
    headers: requestHeaders,
    query: {
      ...listQuery,
      type: Schema.optionalKey(TypeFilter),
      ...waitQuery(
        "If the page would be empty, the response waits this many seconds for an event. " +
          "With the newest known event in `ending_before`, a program follows the events without webhooks."
      )
    },
    success: List(Event),
    error: errors
  }),
  HttpApiEndpoint.get("retrieve", "/v1/events/:id", {
    headers: requestHeaders,
    params: { id: Schema.String },
    success: Event,
    error: errors
  }),
  HttpApiEndpoint.post("resend", "/v1/events/:id/resend", {
    headers: commandHeaders,
    params: { id: Schema.String },
    payload: ResendEvent,
    success: Event,
    error: commandErrors
  })
)
