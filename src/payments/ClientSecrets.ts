/** Client secrets: what lets a payer's browser act on one object (semantics A5, T21). */
import { hash, timingSafeEqual } from "node:crypto"
import { Effect } from "effect"
import { ResourceMissing, SecretKeyRequired } from "../domain/Errors.ts"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import type { Identified } from "../engine/Document.ts"
import type { Resource } from "./Documents.ts"
import { PAYMENT_INTENT } from "./Documents.ts"

/** Compares in constant time. Nothing matches an object that has no secret. */
export const matchesClientSecret = (object: { readonly client_secret: string | null }, sent: string): boolean =>
  object.client_secret !== null &&
  timingSafeEqual(hash("sha256", object.client_secret, "buffer"), hash("sha256", sent, "buffer"))

/**
 * Checks who may act on an object (semantics A5, §8.5): a publishable key needs the client secret. Whoever sends a wrong
 * secret learns nothing, not even that the object exists.
 */
export const requireClientSecretOf = <A extends Identified & { readonly client_secret: string | null }, H>(
  kind: Resource<A, H>,
  object: A,
  sent: string | null | undefined,
  { publishableKey }: { readonly publishableKey: boolean }
): Effect.Effect<void, SecretKeyRequired | ResourceMissing> => {
  if (sent == null) return publishableKey ? Effect.fail(new SecretKeyRequired()) : Effect.void
  return matchesClientSecret(object, sent)
    ? Effect.void
    : Effect.fail(new ResourceMissing({ kind: kind.resourceKind, id: object.id, param: "id" }))
}

/**
 * Checks who may confirm (semantics A5, I-12, §8.5): a publishable key needs the client secret, and cannot confirm what
 * the merchant's server wants to confirm itself. Whoever sends a wrong secret learns nothing.
 */
export const requireClientSecret = (
  paymentIntent: PaymentIntent,
  sent: string | null | undefined,
  { publishableKey }: { readonly publishableKey: boolean }
): Effect.Effect<void, SecretKeyRequired | ResourceMissing> => {
  const isServers = publishableKey && paymentIntent.confirmation_method === "manual"
  return Effect.andThen(
    requireClientSecretOf(PAYMENT_INTENT, paymentIntent, sent, { publishableKey }),
    isServers ? Effect.fail(new SecretKeyRequired()) : Effect.void
  )
}
