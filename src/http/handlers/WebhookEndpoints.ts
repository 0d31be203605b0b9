/** Webhook endpoints over HTTP (semantics webhooks.*). */
import { Effect, Redacted } from "effect"
import { LIMIT_DEFAULT } from "../../api/List.ts"
import * as Contract from "../../api/WebhookEndpoints.ts"
import type { WebhookDelivery } from "../../domain/WebhookDelivery.ts"
import { Accounts } from "../../engine/Accounts.ts"
import { WEBHOOK_ENDPOINT } from "../../payments/shared/Documents.ts"
import { requireDocument } from "../../payments/shared/ReadDocument.ts"
import { webhookDeliveryOf } from "../../payments/webhooks/WebhookDeliveries.ts"
import * as WebhookEndpoints from "../../payments/webhooks/WebhookEndpoints.ts"
import { documentJson, handlers, jsonOf } from "./Handler.ts"
import { createdOf, cursorOf, listDocuments, listJson } from "./Lists.ts"
import { Revealed } from "../OneTimeSecrets.ts"
import { readWaiting } from "../Waiting.ts"

/**
 * An endpoint with its secret. A replay shows the secret again, because losing it helps no one (semantics
 * idempotency.replay, webhooks.secret).
 */
const revealed = ({ secret, value }: WebhookEndpoints.WithSecret) =>
  new Revealed(value, { secret: Redacted.value(secret) }, "all")

export const webhookEndpoints = handlers(Contract.WebhookEndpoints, {
  create: ({ caller, payload }) => Effect.map(WebhookEndpoints.create(payload, caller.apiVersion), revealed),
  update: ({ params, payload }) => WebhookEndpoints.update(params.id, payload),
  delete: ({ params }) => WebhookEndpoints.remove(params.id),
  roll_secret: ({ params, payload }) =>
    Effect.map(WebhookEndpoints.rollSecret(params.id, { expiresIn: payload.expires_in ?? 0 }), revealed),

  list: ({ caller, path, query }) => listDocuments({ account: caller.account, path, query }, WEBHOOK_ENDPOINT),

  retrieve: Effect.fnUntraced(function* ({ caller: { account }, params, query }) {
    const read = requireDocument(account, WEBHOOK_ENDPOINT, params.id)
    if (query.wait === undefined) return documentJson(yield* read)
    const { json } = yield* read
    const isNews = (now: { readonly json: string }) => now.json !== json
    return documentJson(yield* readWaiting(query.wait, { account, kind: WEBHOOK_ENDPOINT.name, read, isNews }))
  }),

  deliveries: Effect.fnUntraced(function* ({ caller, params, path, query }) {
    const accounts = yield* Accounts
    const { id: destination } = yield* requireDocument(caller.account, WEBHOOK_ENDPOINT, params.id)
    // A delivery to another endpoint is no cursor.
    const cursor = yield* cursorOf(caller.account, query, "WebhookDelivery", (account, id) =>
      Effect.map(accounts.delivery(account, destination, id), (delivery) => delivery !== undefined)
    )
    const limit = query.limit ?? LIMIT_DEFAULT
    const { deliveries, hasMore } = yield* accounts.deliveries(caller.account, {
      destination,
      limit,
      created: createdOf(query),
      ...cursor
    })
    return listJson<WebhookDelivery>(
      deliveries.map((row) => ({ id: row.id, json: jsonOf(webhookDeliveryOf(row)) })),
      hasMore,
      path
    )
  })
})
