/**
 * Opens the API to pages of other origins: shops that collect cards themselves call it from the payer's browser.
 *
 * They may call what a publishable key may call (semantics A5), and nothing else. A preflight carries no key, so it is
 * answered by its path and method; the key that was sent decides whether a page may read the answer. Answers to secret
 * keys are never readable: a key that must not be in a page does not work in one. Every origin is allowed, because a
 * request is authenticated by its headers alone: there are no cookies that a page could use in somebody's name.
 */
import { Exit } from "effect"
import { usernameOf } from "./Authentication.ts"
import type { Endpoint } from "./Endpoints.ts"
import type { Incoming } from "../server/Incoming.ts"
import { RouteTable } from "./RouteTable.ts"

/** Browsers may keep for so long what a preflight allowed, in seconds. None of them keeps it for longer. */
const MAX_AGE_SECONDS = 7200

const ALLOWED_HEADERS = "authorization, content-type, idempotency-key, x-api-version"
const READABLE = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers":
    "x-request-id, x-api-version, idempotent-replayed, original-request, retry-after, " +
    "x-ratelimit-limit, x-ratelimit-remaining"
}

export interface CrossOrigin {
  /** Gives the headers of the answer to a preflight; undefined if the request is none, or asks for what is not open. */
  readonly preflight: (incoming: Incoming) => Readonly<Record<string, string>> | undefined
  /** Gives the headers by which a page may read the answer to a request, if it may. */
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
      return wanted !== undefined && isOpen(wanted, url.split("?", 1)[0]!) ? allowed(wanted) : undefined
    },
    headersOf: ({ headers }) =>
      headers.origin !== undefined && isPublishable(headers.authorization) ? READABLE : undefined
  }
}

const allowed = (method: string): Readonly<Record<string, string>> => ({
  "access-control-allow-origin": "*",
  "access-control-allow-methods": method,
  "access-control-allow-headers": ALLOWED_HEADERS,
  "access-control-max-age": String(MAX_AGE_SECONDS)
})

/** Tells whether a publishable key was sent, valid or not: a page may know what is wrong with it. */
const isPublishable = (authorization: string | undefined): boolean =>
  usernameOf(authorization ?? "")?.startsWith("pk_") === true
