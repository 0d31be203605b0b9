/** The verification of webhooks for Effect programs: by the program's clock, and with secrets that no log shows. */
import { Clock, Effect, Redacted } from "effect"
import type { WebhookEvent } from "./WebhookEvent.ts"
import { verifyWebhook } from "./Webhook.ts"
import type { VerifyWebhookOptions } from "./WebhookVerification.ts"
import { WebhookVerificationError } from "./WebhookVerification.ts"

export interface VerifyWebhookEffectOptions extends Omit<VerifyWebhookOptions, "secret" | "nowMillis"> {
  /** The endpoint's secret, `whsec_…`, as a whole; several while one is being replaced. */
  readonly secret: Redacted.Redacted | ReadonlyArray<Redacted.Redacted>
}

/** The event that a webhook carries; see `verifyWebhook`. Dies if it was called wrongly. */
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
