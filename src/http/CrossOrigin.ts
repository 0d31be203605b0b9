/**
 * Opens the API to pages of other origins: shops with their own card form call it from the payer's browser.
 *
 * A page may call what a publishable key may call (semantics keys.publishable), and nothing else. A preflight has no
 * key, so its path and method decide; the key that was sent decides whether a page may read the answer. Answers to
 * secret keys are never readable: a key that must not be in a page does not work in one. Every origin is allowed,
 * because requests are authenticated by their headers alone: there are no cookies by which a page could act for a
 * signed-in person.
 */
import { Exit } from "effect"
import { usernameOf } from "./Authentication.ts"
import type { Endpoint } from "./Endpoints.ts"
import type { Incoming } from "../server/Incoming.ts"
import { RouteTable } from "./RouteTable.ts"

/** How long browsers may cache a preflight's answer, in seconds. No browser caches it for longer. */
const MAX_AGE_SECONDS = 7200

const ALLOWED_HEADERS = "authorization, content-type, idempotency-key, x-api-version"
const READABLE = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers":
    "x-request-id, x-api-version, idempotent-replayed, original-request, retry-after, " +
    "x-ratelimit-limit, x-ratelimit-remaining"
}

export interface CrossOrigin {
  /**
   * Returns the headers of the answer to a preflight; undefined for any other request, and for a call that is not open.
   */
  readonly preflight: (incoming: Incoming) => Readonly<Record<string, string>> | undefined
  /** Returns the headers by which a page may read the answer; undefined if it may not. */
  readonly headersOf: (incoming: Incoming) => Readonly<Record<string, string>> | undefined
}

/** Makes the rules for pages of other origins. */
export const make = (endpoints: ReadonlyArray<Endpoint>): CrossOrigin => {
  const routes = new RouteTable(endpoints)
  const isOpen = (method: string, path: string): boolean => {
    const found = routes.find(method, path)
    if (!Exit.isSuccess(found)) return false
    const { publishableKey, withoutClientSecret } = found.value.endpoint
    return publishableKey || withoutClientSecret
  }

  return {
    preflight: ({ headers, method, url }) => {
      if (method !== "OPTIONS" || headers.origin === undefined) return undefined
      const wanted = headers["access-control-request-method"]
      return wanted !== undefined && isOpen(wanted, url.split("?", 1)[0]!) ? preflightHeadersOf(wanted) : undefined
    },
    headersOf: ({ headers }) =>
      headers.origin !== undefined && isPublishable(headers.authorization) ? READABLE : undefined
  }
}

const preflightHeadersOf = (method: string): Readonly<Record<string, string>> => ({
  "access-control-allow-origin": "*",
  "access-control-allow-methods": method,
  "access-control-allow-headers": ALLOWED_HEADERS,
  "access-control-max-age": String(MAX_AGE_SECONDS)
})

/** True if a publishable key was sent, valid or not: a page may read the error. */
const isPublishable = (authorization: string | undefined): boolean =>
  usernameOf(authorization ?? "")?.startsWith("pk_") === true
