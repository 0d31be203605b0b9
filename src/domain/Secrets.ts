/** Texts of others that are kept, without what must not be: card numbers, keys and secrets (semantics 9.66, W9). */
import { isPlain, readingOf, withoutCardNumbers } from "./Cards.ts"

/** Stands where something is not kept. */
export const HIDDEN = "****"

/** Keys, also as they stand in an `Authorization`; secrets of webhook endpoints; client secrets; sign-in links. */
const SECRETS = /(?:[sp]k_(?:test|live)_|c2tf|cGtf|whsec_|_secret_|\/dashboard\/link\/)[0-9A-Za-z_+/=-]{4,}/gi

/** No card has so many digits, and nobody can say what they hold. */
const LONG_NUMBERS = /[0-9]{20,}/g

/** Says at little cost of most texts that there is nothing of that in them. */
export const isClean = (text: string): boolean => isPlain(text) && text.search(SECRETS) === -1

/** A text without keys and secrets, also where they are percent-encoded, as in the query of a URL. */
export const withoutSecrets = (text: string): string => {
  const reading = readingOf(text)
  const hidden = reading.replaceAll(SECRETS, HIDDEN)
  return hidden === reading ? text : hidden
}

/** A text without card numbers, keys and secrets, and without what a database does not take. */
export const clean = (text: string): string => {
  if (isClean(text)) return text
  const reading = readingOf(text)
  const cleaned = withoutCardNumbers(reading.replaceAll(SECRETS, HIDDEN).replaceAll(LONG_NUMBERS, HIDDEN))
  return (cleaned === reading ? text : cleaned).replaceAll("\0", "")
}
