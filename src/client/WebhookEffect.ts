/** Verification of webhooks for Effect programs: with the program's clock, and with redacted secrets. */
import { Clock, Effect, Redacted } from "effect"
import type { WebhookEvent } from "./WebhookEvent.ts"
import { verifyWebhook } from "./Webhook.ts"
import { type VerifyWebhookOptions, WebhookVerificationError } from "./WebhookVerification.ts"

export interface VerifyWebhookEffectOptions extends Omit<VerifyWebhookOptions, "secret" | "nowMillis"> {
  /** The endpoint's whole secret, `whsec_…`; several during the grace period of a rolled one. */
  readonly secret: Redacted.Redacted | ReadonlyArray<Redacted.Redacted>
}

/** Returns the event of a webhook; see `verifyWebhook`. Dies for invalid arguments. */
export const verifyWebhookEffect = Effect.fnUntraced(function* ({
  secret,
  ...options
}: VerifyWebhookEffectOptions): Effect.fn.Return<WebhookEvent, WebhookVerificationError> {
  const nowMillis = yield* Clock.currentTimeMillis
  const secrets = (Redacted.isRedacted(secret) ? [secret] : secret).map((one) => Redacted.value(one))
  return yield* Effect.try({
    try: () => verifyWebhook({ ...options, secret: secrets, nowMillis }),
    catch: (error) => error
  }).pipe(Effect.catch((error) => (error instanceof WebhookVerificationError ? Effect.fail(error) : Effect.die(error))))
})
