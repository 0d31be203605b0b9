/** The installation's configuration, as far as the lifecycles need it. */
import { Context, Effect } from "effect"
import { ParameterInvalid } from "../../domain/Errors.ts"
import { normalizeCurrency } from "../../domain/Money.ts"
import type { Key } from "../../domain/SecretFile.ts"
import type { WebhookHosts } from "../../domain/WebhookHosts.ts"
import type { KeyringShape } from "./Keyring.ts"

export interface PaymentsConfigShape {
  /** Base of the URLs for payers, without a trailing slash. */
  readonly publicUrl: string
  /** How long an authorization can be captured, in seconds (semantics payment_intents.holds). */
  readonly authorizationHoldSeconds: number
  /** The processor of live mode; null if there is none (semantics keys.live_processor). */
  readonly liveProcessor: "simulator" | null
  /** The currencies to accept, in lower case; null accepts any three letters (semantics money.currencies). */
  readonly currencies: ReadonlySet<string> | null
  /** HMAC key for the fingerprints of card numbers. It stays the same through every roll of the secret. */
  readonly fingerprintKey: Key
  /** HMAC key for the salts of passwords. It stays the same through every roll of the secret. */
  readonly saltKey: Key
  readonly keyring: KeyringShape
  /** The hosts that webhooks may go to (semantics webhooks.url, webhooks.test_hosts). */
  readonly webhookHosts: { readonly test: WebhookHosts; readonly live: WebhookHosts }
  /** Whether a mail server is configured (semantics mail.off). */
  readonly sendsMail: boolean
}

export class PaymentsConfig extends Context.Service<PaymentsConfig, PaymentsConfigShape>()(
  "till/payments/PaymentsConfig"
) {}

/** Fails with `ParameterInvalid` for a currency that the installation does not accept (semantics money.currencies). */
export const requireAcceptedCurrency = (
  currency: string,
  param: string = "currency"
): Effect.Effect<void, ParameterInvalid, PaymentsConfig> =>
  Effect.flatMap(PaymentsConfig, ({ currencies }) =>
    currencies === null || currencies.has(normalizeCurrency(currency))
      ? Effect.void
      : Effect.fail(new ParameterInvalid({ param, rule: "a valid three-letter ISO currency code" }))
  )
