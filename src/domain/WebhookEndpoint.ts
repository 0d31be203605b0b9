/** Webhook endpoints (spec: Webhook endpoint; semantics webhooks.*). */
import { Effect, Schema } from "effect"
import { ParameterInvalid } from "./Errors.ts"
import { EVENT_TYPES } from "./Event.ts"
import { MerchantId, WebhookEndpointId } from "./Identifiers.ts"
import { Metadata, MetadataParameter } from "./Metadata.ts"
import { literalAddressOf } from "./PublicAddress.ts"
import { text, unsettable, WebUrl } from "./Text.ts"
import { Timestamp } from "./Time.ts"
import { mayDial, type WebhookHosts } from "./WebhookHosts.ts"

/** Subscribes to every event, reserved types included. */
export const ALL_EVENTS = "*"

export const EnabledEvent = Schema.Literals([...EVENT_TYPES, ALL_EVENTS]).annotate({
  rule: `an event type or \`${ALL_EVENTS}\``
})

/** The events that an endpoint subscribes to (semantics webhooks.enabled_events). */
export const EnabledEvents = Schema.Array(EnabledEvent)
  .check(
    Schema.makeFilter(
      (events: ReadonlyArray<string>) =>
        events.length > 0 && (!events.includes(ALL_EVENTS) || events.every((event) => event === ALL_EVENTS))
    )
  )
  .annotate({ rule: `a list of at least one event type, or of \`${ALL_EVENTS}\` alone` })
export type EnabledEvents = typeof EnabledEvents.Type

export const WebhookEndpointStatus = Schema.Literals(["enabled", "disabled"])
export type WebhookEndpointStatus = typeof WebhookEndpointStatus.Type

/** A URL without credentials: readers of the endpoint would see them, and signatures authenticate webhooks instead. */
export const WebhookEndpointUrl = WebUrl.check(
  Schema.makeFilter((url: string) => {
    const parsed = URL.parse(url)
    return parsed?.username === "" && parsed.password === ""
  })
).annotate({ rule: "an absolute http or https URL without credentials" })
export const WebhookEndpointDescription = text()

/** `created` is in Unix seconds. */
export const WebhookEndpoint = Schema.Struct({
  id: WebhookEndpointId,
  object: Schema.Literal("webhook_endpoint"),
  url: Schema.String,
  enabled_events: Schema.Array(EnabledEvent),
  status: WebhookEndpointStatus,
  description: Schema.NullOr(Schema.String),
  metadata: Metadata,
  created: Timestamp,
  livemode: Schema.Boolean,
  merchant_id: MerchantId,
  api_version: Schema.String
}).annotate({ identifier: "WebhookEndpoint" })
export type WebhookEndpoint = typeof WebhookEndpoint.Type

/** The longest grace period of a rolled secret, in seconds (semantics time.wall). */
export const WEBHOOK_SECRET_GRACE_SECONDS_MAX = 86_400

/** The grace period in which a rolled secret also signs, in seconds. */
export const WebhookSecretGrace = Schema.Int.check(
  Schema.isBetween({ minimum: 0, maximum: WEBHOOK_SECRET_GRACE_SECONDS_MAX })
).annotate({ rule: `an integer from 0 to ${WEBHOOK_SECRET_GRACE_SECONDS_MAX}` })

/** An endpoint with its secret, as only its creation and a roll return it (semantics webhooks.secret). */
export const CreatedWebhookEndpoint = Schema.Struct({
  ...WebhookEndpoint.fields,
  secret: Schema.String.check(Schema.isPattern(/^whsec_[0-9A-Za-z]{32}$/u))
}).annotate({ identifier: "CreatedWebhookEndpoint" })
export type CreatedWebhookEndpoint = typeof CreatedWebhookEndpoint.Type

/** The object that the API returns for a deleted endpoint (semantics webhooks.endpoints). */
export const DeletedWebhookEndpoint = Schema.Struct({
  id: WebhookEndpointId,
  object: Schema.Literal("webhook_endpoint"),
  deleted: Schema.Literal(true),
  livemode: Schema.Boolean
}).annotate({ identifier: "DeletedWebhookEndpoint" })
export type DeletedWebhookEndpoint = typeof DeletedWebhookEndpoint.Type

/** The body of a creation. Null and "" count as absent (semantics parameters.null, parameters.empty_text). */
export const CreateWebhookEndpoint = Schema.Struct({
  url: WebhookEndpointUrl,
  enabled_events: EnabledEvents,
  description: Schema.optionalKey(Schema.NullOr(WebhookEndpointDescription)),
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter))
}).annotate({ identifier: "CreateWebhookEndpoint" })
export type CreateWebhookEndpoint = typeof CreateWebhookEndpoint.Type

/** The body of an update. Null and "" unset the description and the metadata. */
export const UpdateWebhookEndpoint = Schema.Struct({
  url: Schema.optionalKey(WebhookEndpointUrl),
  enabled_events: Schema.optionalKey(EnabledEvents),
  description: Schema.optionalKey(Schema.NullOr(WebhookEndpointDescription)),
  metadata: Schema.optionalKey(unsettable(MetadataParameter)),
  status: Schema.optionalKey(WebhookEndpointStatus)
}).annotate({ identifier: "UpdateWebhookEndpoint" })
export type UpdateWebhookEndpoint = typeof UpdateWebhookEndpoint.Type

/** The body of a roll. The old secret also signs for `expires_in` seconds; 0 by default. */
export const RollWebhookSecret = Schema.Struct({
  expires_in: Schema.optionalKey(Schema.NullOr(WebhookSecretGrace))
}).annotate({ identifier: "RollWebhookSecret" })

/**
 * Fails with `ParameterInvalid` for a URL that webhooks may not go to (semantics webhooks.url, webhooks.test_hosts). In
 * live mode, it must be https. A host name is not resolved here; every attempt checks its addresses (semantics
 * webhooks.url).
 */
export const requireAcceptedUrl = (
  url: string,
  { hosts, livemode }: { readonly hosts: WebhookHosts; readonly livemode: boolean }
): Effect.Effect<void, ParameterInvalid> => {
  const parsed = new URL(url)
  if (hosts.httpsOnly && parsed.protocol !== "https:") {
    return Effect.fail(new ParameterInvalid({ param: "url", rule: "an https URL in live mode" }))
  }
  const address = literalAddressOf(parsed)
  if (address === undefined || mayDial(hosts, address, address)) return Effect.void
  const rule = livemode
    ? "a URL with a public address in live mode"
    : "a URL with a public address, or with one that this installation allows by TILL_WEBHOOK_TEST_HOSTS"
  return Effect.fail(new ParameterInvalid({ param: "url", rule }))
}
