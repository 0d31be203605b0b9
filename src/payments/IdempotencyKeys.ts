/**
 * An account keeps idempotency keys apart by who sent them (semantics 9.4). Servers, browsers and Till's own forms
 * share an account, and none of them can claim another's key. A server's key is kept as it was sent, as it always was;
 * the others begin with a character that no header can hold.
 */
import type { ApiKeyType } from "./ApiKeys.ts"

const MARK = "\u0001"
const FORM = `${MARK}form/`
const PUBLISHABLE = `${MARK}publishable/`

/** Makes the key of a form on one of Till's pages, which no client has sent. */
export const formKey = (subject: string, nonce: string): string => `${FORM}${subject}/${nonce}`

/** Makes the key of a request what the account keeps. */
export const requestKey = (keyType: ApiKeyType, sent: string): string =>
  keyType === "secret" ? sent : `${PUBLISHABLE}${sent}`

/** Makes a kept key what the client has sent; null for a form's. */
export const sentKey = (key: string | null): string | null => {
  if (key?.startsWith(MARK) !== true) return key
  return key.startsWith(PUBLISHABLE) ? key.slice(PUBLISHABLE.length) : null
}
