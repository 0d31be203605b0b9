/**
 * A delivery is traced back to the request that caused it: the request's Idempotency-Key holds the name of the load
 * and the request's number in it, and Till's events repeat the key. Endpoints are told apart by their path.
 */

/** The path of an endpoint at the sink. */
export const pathOf = (endpoint: number): string => `/${endpoint}`

export interface Delivery {
  /** Number of the endpoint, from 0. */
  readonly endpoint: number
  readonly run: string
  /** Number of the request within its load, from 0. */
  readonly request: number
}

const PATH = /^POST \/(\d+) /
const KEY = /"idempotency_key":"bench-([0-9a-z]+)-(\d+)"/y
const KEY_START = `"idempotency_key":"bench-`

/** Reads the text of a whole request to the sink; throws if no load of the bench can have caused it. */
export const deliveryOf = (text: string): Delivery => {
  const path = PATH.exec(text)
  KEY.lastIndex = Math.max(0, text.lastIndexOf(KEY_START))
  const key = KEY.exec(text)
  if (path === null || key === null) throw new Error(`Not a delivery of the bench's:\n${text}`)
  return { endpoint: Number(path[1]), run: key[1]!, request: Number(key[2]) }
}
