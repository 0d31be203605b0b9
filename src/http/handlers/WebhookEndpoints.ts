/** Webhook endpoints over HTTP (semantics §1.16). */
import { Effect, Redacted } from "effect"
import * as Contract from "../../api/WebhookEndpoints.ts"
import { WEBHOOK_ENDPOINT } from "../../payments/Documents.ts"
import * as WebhookEndpoints from "../../payments/WebhookEndpoints.ts"
import { documentJson, handlers } from "../Handlers.ts"
import { listDocuments } from "../Lists.ts"
import { readDocument } from "../Resources.ts"
import { withSecrets } from "../SealedAnswers.ts"

export const webhookEndpoints = handlers(Contract.WebhookEndpoints, {
  create: ({ caller, payload }) =>
    Effect.map(WebhookEndpoints.create(payload, caller.apiVersion), ({ secret, webhookEndpoint }) =>
      withSecrets(webhookEndpoint, { secret: Redacted.value(secret) })
    ),
  update: ({ params, payload }) => WebhookEndpoints.update(params.id, payload),
  delete: ({ params }) => WebhookEndpoints.remove(params.id),

  list: ({ caller, path, query }) =>
    listDocuments({ account: caller.account, path, query }, WEBHOOK_ENDPOINT, "WebhookEndpoint"),

  retrieve: ({ caller, params }) =>
    Effect.map(readDocument(caller.account, WEBHOOK_ENDPOINT, "WebhookEndpoint", params.id), (webhookEndpoint) =>
      documentJson(webhookEndpoint)
    )
})
