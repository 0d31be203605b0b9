/**
 * Opens the API to pages of other origins: shops that collect cards themselves call it from the payer's browser.
 *
 * They may call what a publishable key may call (semantics A5), and nothing else. A preflight carries no key, so it is
 * answered by its path and method; the key that was sent decides whether a page may read the answer. Answers to secret
 * keys are never readable: a key that must not be in a page does not work in one. Every origin is allowed, because a
 * request is authenticated by its headers alone: there are no cookies that a page could use in somebody's name.
 */
import { Effect, Exit } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpServerResponse } from "effect/http"
import { usernameOf } from "./Authentication.ts"
import type { Endpoint } from "./Endpoints.ts"
import type { RequestIds } from "./Exchange.ts"
import { begin, respond, sourceOf } from "./Exchange.ts"
import { RouteTable } from "./RouteTable.ts"

type Response = HttpServerResponse.HttpServerResponse

/** Browsers may keep for so long what a preflight allowed, in seconds. None of them keeps it for longer. */
const MAX_AGE_SECONDS = 7200

const ALLOWED_HEADERS = "authorization, content-type, idempotency-key, x-api-version"
const READABLE = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers":
    "x-request-id, x-api-version, idempotent-replayed, original-request, retry-after, " +
    "x-ratelimit-limit, x-ratelimit-remaining"
}

/** Puts the rules for pages of other origins around the answer to a request under /v1. */
export const make = (endpoints: ReadonlyArray<Endpoint>, requestIds: RequestIds["Service"]) => {
  const routes = new RouteTable(endpoints)
  const isOpen = (method: string, path: string): boolean => {
    const found = routes.find(method, path)
    if (!Exit.isSuccess(found)) return false
    const { publishableKey, withoutClientSecret } = found.value.endpoint
    return publishableKey || withoutClientSecret
  }

  return <E, R>(
    request: HttpServerRequest.HttpServerRequest,
    answer: Effect.Effect<Response, E, R>
  ): Effect.Effect<Response, E, R> => {
    const { headers } = sourceOf(request)
    if (headers.origin === undefined) return answer
    const { method, url } = request
    const wanted = method === "OPTIONS" ? headers["access-control-request-method"] : undefined
    if (wanted !== undefined && isOpen(wanted, url.split("?", 1)[0]!)) {
      return Effect.sync(() => allowed(wanted, respond(begin(request, requestIds.next()), { status: 204, body: "" })))
    }
    if (!isPublishable(headers.authorization)) return answer
    return Effect.map(answer, HttpServerResponse.setHeaders(READABLE))
  }
}

const allowed = (method: string, { headers }: Response): Response =>
  HttpServerResponse.empty({
    status: 204,
    headers: {
      ...headers,
      "access-control-allow-origin": "*",
      "access-control-allow-methods": method,
      "access-control-allow-headers": ALLOWED_HEADERS,
      "access-control-max-age": String(MAX_AGE_SECONDS)
    }
  })

/** Tells whether a publishable key was sent, valid or not: a page may know what is wrong with it. */
const isPublishable = (authorization: string | undefined): boolean =>
  usernameOf(authorization ?? "")?.startsWith("pk_") === true
