/** Where payers are sent when they have paid (semantics S14), and what is said there of an authentication (I-14). */
import type { CheckoutSession } from "../domain/CheckoutSession.ts"

/** Also as it looks after some library has encoded the address. */
const PLACEHOLDER = /\{CHECKOUT_SESSION_ID\}|%7BCHECKOUT_SESSION_ID%7D/gi

/** The session's own `success_url` with its id filled in; null if it has none. */
export const successUrlOf = ({ id, success_url }: CheckoutSession): string | null =>
  success_url === null ? null : normalized(success_url.replaceAll(PLACEHOLDER, id))

/** What `return_url` is told of an authentication. */
export interface Returned {
  readonly payment_intent: string
  readonly payment_intent_client_secret: string
  readonly redirect_status: "succeeded" | "failed"
}

/** A `return_url` with what came of an authentication in its query. */
export const returnUrlOf = (returnUrl: string, returned: Returned): string => {
  const url = new URL(returnUrl)
  for (const [name, value] of Object.entries(returned)) url.searchParams.set(name, value)
  return url.href
}

/** In the form that fits into a header: other characters are encoded. */
const normalized = (url: string): string => new URL(url).href
