/**
 * The way of a custom checkout's payer to the authentication: `GET /challenge/{cs}?client_secret=`.
 *
 * The challenge's address takes the PaymentIntent's secret, and a session does not tell it: with a publishable key, a shop's
 * page learns it from a decline at most (semantics A6, §8.28). So it sends the payer here, and this leads on. Who does not
 * have the session's secret is told nothing.
 */
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { matchesClientSecret } from "../payments/ClientSecrets.ts"
import { noticeOf } from "./CheckoutNotice.ts"
import { localeOf } from "./Money.ts"
import { NOT_FOUND, notice } from "./Notice.ts"
import { page, seeOther } from "./PageResponse.ts"
import { findSession } from "./Payers.ts"
import { queryOf, route } from "./Routing.ts"

const get = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const found = yield* findSession(id)
  if (found === undefined || !matchesClientSecret(found.session, queryOf(request).get("client_secret") ?? "")) {
    return page(notice(NOT_FOUND), { status: 404 })
  }
  const challenge = found.paymentIntent?.next_action?.redirect_to_url.url
  if (challenge !== undefined) return seeOther(challenge)
  if (found.session.status === "open") return page(notice(NOT_FOUND), { status: 404 })
  return page(notice(noticeOf({ ...found, locale: localeOf(request.headers["accept-language"]) })), { status: 410 })
})

export const layer = route("GET", "/challenge/:id", (request, { id = "" }) => get(request, id))
