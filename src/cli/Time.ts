/** Times as a person types them. */

const SECONDS = /^\d{1,11}(\.\d{1,3})?$/
const ISO_8601 = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/

/** Parses a time that a person typed to Unix milliseconds; undefined if it is no time. */
export const timeFrom = (text: string): number | undefined => {
  if (SECONDS.test(text)) return Math.round(Number(text) * 1000)
  const millis = ISO_8601.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(millis) ? undefined : millis
}
