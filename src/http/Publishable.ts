/**
 * Publishable keys: what they have to bring along (semantics A5, §8.5), and what they get to see (A6, §8.28).
 *
 * The projection is applied to every response on its way out, replays included: the journal keeps responses in full.
 */
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import { publishable } from "../domain/PaymentIntent.ts"

/** Whether parameters, not checked yet, bring a client secret, right or wrong. */
export const hasClientSecret = (parameters: unknown): boolean =>
  typeof parameters === "object" &&
  parameters !== null &&
  typeof Object.getOwnPropertyDescriptor(parameters, "client_secret")?.value === "string"

interface Body {
  readonly object?: unknown
  readonly error?: { readonly payment_intent?: PaymentIntent }
}

/** The projection of a response's JSON. */
export const projectBody = (body: string): string => {
  const value = JSON.parse(body) as Body
  if (value.object === "payment_intent") return JSON.stringify(publishable(value as unknown as PaymentIntent))
  if (value.error?.payment_intent === undefined) return body
  return JSON.stringify({ error: { ...value.error, payment_intent: publishable(value.error.payment_intent) } })
}
