/** Lengths of texts, in Unicode code points (semantics parameters.lengths). Loads no schemas, for the client. */

/** The longest `Idempotency-Key` (semantics idempotency.required). */
export const IDEMPOTENCY_KEY_LENGTH_MAX = 255

/** Returns whether a string has at most `max` code points; code units are only an upper bound. */
export const hasLengthAtMost = (value: string, max: number): boolean => {
  if (value.length <= max) return true
  if (value.length > 2 * max) return false
  let length = 0
  for (const _ of value) length++
  return length <= max
}
