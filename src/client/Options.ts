/** The options of a client, for all its calls. */
import type { ApiVersion } from "./Contract.ts"

export interface ClientOptions {
  /** Till's address: the part of a URL before `/v1`. */
  readonly baseUrl: string | URL
  /** The API version; by default that of the types. */
  readonly apiVersion?: ApiVersion | undefined
  /** Timeout of one attempt; 40 s by default. */
  readonly timeoutMillis?: number | undefined
  /** Maximum number of attempts after the first; 3 by default. */
  readonly retriesMax?: number | undefined
}

/** Returns the base URL. Throws for an address without `http://`, and for an empty key, as of an unset variable. */
export const baseUrlOf = (baseUrl: string | URL, apiKey: string): string => {
  const { href, protocol } = new URL(baseUrl)
  if (protocol !== "http:" && protocol !== "https:") {
    throw new TypeError(`baseUrl must begin with http:// or https://, got "${String(baseUrl)}"`)
  }
  // Callers without types can pass undefined.
  if (!(apiKey as string | undefined)) throw new TypeError("apiKey is missing")
  return href.replace(/\/$/u, "")
}
