/** Verification of webhooks as programs use it: names are read as they were sent, on every version of Node. */
import { parseJson } from "../json/JsonParse.ts"
import type { WebhookEvent } from "./WebhookEvent.ts"
import type { VerifyWebhookOptions } from "./WebhookVerification.ts"
import { verifyWebhookWith } from "./WebhookVerification.ts"

/**
 * The event that a webhook carries.
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
 * Throws a `WebhookVerificationError` if the webhook must not be believed, and a `TypeError` if it was called wrongly.
 */
export const verifyWebhook = (options: VerifyWebhookOptions): WebhookEvent => verifyWebhookWith(parseJson, options)
