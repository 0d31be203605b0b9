/** The configuration of the lifecycles in tests. */
import { Redacted } from "effect"
import type { Key } from "../../src/domain/SecretFile.ts"
import { PUBLIC_ONLY } from "../../src/domain/WebhookHosts.ts"
import * as Keyring from "../../src/payments/shared/Keyring.ts"
import type { PaymentsConfigShape } from "../../src/payments/shared/PaymentsConfig.ts"

const keyOf = (byte: number): Key => Redacted.make(new Uint8Array(32).fill(byte))

/** Keys of some secrets, newest first, each named by a byte. The newest is in force. */
export const keyringOf = (...secrets: ReadonlyArray<number>): Keyring.KeyringShape =>
  Keyring.make(
    secrets.map((byte) => ({ print: `print ${byte}`, sealing: keyOf(byte), forms: keyOf(byte + 100) })),
    "lasting"
  )

export const paymentsConfig = (config: Partial<PaymentsConfigShape> = {}): PaymentsConfigShape => ({
  publicUrl: "https://till.example",
  authorizationHoldSeconds: 604_800,
  liveProcessor: null,
  currencies: null,
  fingerprintKey: keyOf(7),
  saltKey: keyOf(9),
  keyring: keyringOf(8),
  webhookHosts: {
    test: { httpsOnly: false, besidePublic: "any" },
    live: { httpsOnly: true, besidePublic: PUBLIC_ONLY }
  },
  sendsMail: false,
  ...config
})
