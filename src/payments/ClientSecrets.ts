/** Client secrets: what lets a payer's browser act on one object (semantics A5, T21). */
import { hash, timingSafeEqual } from "node:crypto"
import { Effect } from "effect"
import { ResourceMissing, SecretKeyRequired } from "../domain/Errors.ts"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"

/** Compares in constant time. */
export const matchesClientSecret = (object: { readonly client_secret: string }, sent: string): boolean =>
  timingSafeEqual(hash("sha256", object.client_secret, "buffer"), hash("sha256", sent, "buffer"))

/**
 * Checks who may confirm (semantics A5, I-12, §8.5): a publishable key needs the client secret, and cannot confirm what
 * the merchant's server wants to confirm itself. Whoever sends a wrong secret learns nothing.
 */
export const requireClientSecret = (
  paymentIntent: PaymentIntent,
  sent: string | null | undefined,
  { publishableKey }: { readonly publishableKey: boolean }
): Effect.Effect<void, SecretKeyRequired | ResourceMissing> => {
  if (sent == null) return publishableKey ? Effect.fail(new SecretKeyRequired()) : Effect.void
  if (!matchesClientSecret(paymentIntent, sent)) {
    return Effect.fail(new ResourceMissing({ kind: "PaymentIntent", id: paymentIntent.id, param: "id" }))
  }
  return publishableKey && paymentIntent.confirmation_method === "manual"
    ? Effect.fail(new SecretKeyRequired())
    : Effect.void
}
