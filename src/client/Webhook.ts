/** Verification of webhooks with Till's own JSON parser, which reads names correctly on every version of Node. */
import { parseJson } from "../json/JsonParse.ts"
import type { WebhookEvent } from "./WebhookEvent.ts"
import { type VerifyWebhookOptions, verifyWebhookWith } from "./WebhookVerification.ts"

/**
 * Returns the event of a webhook.
 *
 * ```ts
 * http.createServer(async (request, response) => {
 *   const body = await buffer(request)
 *   const event = verifyWebhook({ body, header: request.headers["x-signature"], secret: "whsec_…" })
 *   if (event.type === "payment_intent.succeeded") console.log(event.data.object.amount_received)
 *   response.end()
 * })
 * ```
 *
 * Throws a `WebhookVerificationError` if the webhook is not genuine, and a `TypeError` for invalid arguments.
 */
export const verifyWebhook = (options: VerifyWebhookOptions): WebhookEvent => verifyWebhookWith(parseJson, options)
