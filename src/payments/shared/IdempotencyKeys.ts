/**
 * Separates the idempotency keys of an account by their sender (semantics idempotency.scope): servers, browsers and
 * Till's own forms share an account, and none can claim another's key. A server's key is stored as sent; the others
 * begin with a character that no header can hold.
 */
import type { ApiKeyType } from "../../domain/ApiKey.ts"

const MARK = "\u0001"
const FORM = `${MARK}form/`
const PUBLISHABLE = `${MARK}publishable/`

/** Returns the stored key of a form on one of Till's pages, which no client sent. */
export const formKey = (subject: string, nonce: string): string => `${FORM}${subject}/${nonce}`

export const requestKey = (keyType: ApiKeyType, sent: string): string =>
  keyType === "secret" ? sent : `${PUBLISHABLE}${sent}`

/** Returns the key that the client sent, from the stored key; null for a form's. */
export const sentKey = (key: string | null): string | null => {
  if (key?.startsWith(MARK) !== true) return key
  return key.startsWith(PUBLISHABLE) ? key.slice(PUBLISHABLE.length) : null
}
