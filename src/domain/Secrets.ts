/** Removes card numbers, keys and secrets from texts before they are stored (semantics request_log.redaction). */
import { isPlain, readingOf, withoutCardNumbers } from "./Cards.ts"

export const HIDDEN = "****"

/** API keys, also base64-encoded as in an `Authorization` header; webhook secrets; client secrets; sign-in links. */
const SECRETS = /(?:[sp]k_(?:test|live)_|c2tf|cGtf|whsec_|_secret_|\/dashboard\/link\/)[0-9A-Za-z_+/=-]{4,}/gi

/** Numbers longer than a card number, whose content is unknown. */
const LONG_NUMBERS = /[0-9]{20,}/g

/** Returns whether a text certainly has nothing to remove. Cheap, and true for most texts. */
export const isClean = (text: string): boolean => isPlain(text) && text.search(SECRETS) === -1

/** Removes keys and secrets, also percent-encoded ones, as in the query of a URL. */
export const withoutSecrets = (text: string): string => {
  const reading = readingOf(text)
  const hidden = reading.replaceAll(SECRETS, HIDDEN)
  return hidden === reading ? text : hidden
}

/** Removes card numbers, keys, secrets, and the null character, which a database does not accept. */
export const clean = (text: string): string => {
  if (isClean(text)) return text
  const reading = readingOf(text)
  const cleaned = withoutCardNumbers(reading.replaceAll(SECRETS, HIDDEN).replaceAll(LONG_NUMBERS, HIDDEN))
  return (cleaned === reading ? text : cleaned).replaceAll("\0", "")
}
