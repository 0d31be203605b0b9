/** The lifecycles need to know this of the installation. */
import type { Redacted } from "effect"
import { Context, Effect } from "effect"
import { ParameterInvalid } from "../domain/Errors.ts"
import { normalizeCurrency } from "../domain/Money.ts"
import type { WebhookHosts } from "../domain/WebhookHosts.ts"

export interface PaymentsConfigShape {
  /** Base of the URLs that payers are sent to, without a slash at its end. */
  readonly publicUrl: string
  /** An authorization can be captured for so many seconds (semantics I-17). */
  readonly authorizationHoldSeconds: number
  /** This processor takes cards in live mode; null if none does (semantics A10). */
  readonly liveProcessor: "simulator" | null
  /** The currencies to accept, in lower case; null accepts any three letters (semantics N2). */
  readonly currencies: ReadonlySet<string> | null
  /** Keys the fingerprints of card numbers. */
  readonly fingerprintKey: Redacted.Redacted<Uint8Array>
  /** Encrypts secrets that have to be stored, such as those that sign webhooks. 32 bytes. */
  readonly sealingKey: Redacted.Redacted<Uint8Array>
  /** Webhooks may go there (semantics W4, 9.34). */
  readonly webhookHosts: { readonly test: WebhookHosts; readonly live: WebhookHosts }
}

export class PaymentsConfig extends Context.Service<PaymentsConfig, PaymentsConfigShape>()(
  "till/payments/PaymentsConfig"
) {}

/** Fails with `ParameterInvalid` for a currency that the installation does not take (semantics N2). */
export const requireAcceptedCurrency = (
  currency: string,
  param: string = "currency"
): Effect.Effect<void, ParameterInvalid, PaymentsConfig> =>
  Effect.flatMap(PaymentsConfig, ({ currencies }) =>
    currencies === null || currencies.has(normalizeCurrency(currency))
      ? Effect.void
      : Effect.fail(new ParameterInvalid({ param, rule: "a valid three-letter ISO currency code" }))
  )
