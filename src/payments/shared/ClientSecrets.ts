/** Client secrets, each for one object in a payer's browser (semantics keys.client_secret, responses.secrets). */
import { hash, timingSafeEqual } from "node:crypto"
import { Effect } from "effect"
import { ResourceMissing, SecretKeyRequired } from "../../domain/Errors.ts"
import type { Identified } from "../../engine/log/Document.ts"
import type { Resource } from "./Documents.ts"

/** Compares in constant time. An object without a secret matches nothing. */
export const matchesClientSecret = (object: { readonly client_secret: string | null }, sent: string): boolean =>
  object.client_secret !== null &&
  timingSafeEqual(hash("sha256", object.client_secret, "buffer"), hash("sha256", sent, "buffer"))

/**
 * Checks that a request may act on an object (semantics keys.publishable, keys.client_secret). Fails with
 * `SecretKeyRequired` for a publishable key without the object's client secret, and with `ResourceMissing` for a wrong
 * secret, so the caller cannot learn whether the object exists.
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
