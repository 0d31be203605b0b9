/** The configuration of the lifecycles in tests. */
import { Redacted } from "effect"
import { PUBLIC_ONLY } from "../../src/domain/WebhookHosts.ts"
import type { PaymentsConfigShape } from "../../src/payments/PaymentsConfig.ts"

export const paymentsConfig = (config: Partial<PaymentsConfigShape> = {}): PaymentsConfigShape => ({
  publicUrl: "https://till.example",
  authorizationHoldSeconds: 604_800,
  liveProcessor: null,
  currencies: null,
  fingerprintKey: Redacted.make(new Uint8Array(32).fill(7)),
  sealingKey: Redacted.make(new Uint8Array(32).fill(8)),
  webhookHosts: {
    test: { httpsOnly: false, besidePublic: "any" },
    live: { httpsOnly: true, besidePublic: PUBLIC_ONLY }
  },
  ...config
})
