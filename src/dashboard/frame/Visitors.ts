/**
 * Identifies the visitor by the session cookie (semantics dashboard.sessions, dashboard.browser).
 *
 * The cookie is host-only, `SameSite=Strict` and `HttpOnly`. Over https its name has the prefix `__Host-`, so that no
 * other host can set it. Browsers accept this prefix over https only. Over http, which serves this machine only, the
 * name contains the port: cookies do not distinguish ports, and two installations on one machine would end each other's
 * sessions.
 */
import { Clock, Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { textOfHeader } from "../../domain/HeaderText.ts"
import type { DashboardSession, Origin, Person } from "../../domain/Person.ts"
import type { Identified, Kind } from "../../engine/log/Document.ts"
import { sourceOf } from "../../http/RequestContext.ts"
import { senderOf } from "../../html/Sender.ts"
import { INSTALLATION } from "../../payments/shared/AccountIds.ts"
import {
  DASHBOARD_SESSION,
  isGood,
  type OpenedSession,
  SESSION_SECONDS
} from "../../payments/team/DashboardSessions.ts"
import { MERCHANT, type Merchant } from "../../payments/merchants/Merchants.ts"
import { PaymentsConfig } from "../../payments/shared/PaymentsConfig.ts"
import { PERSON, type PersonDocument } from "../../payments/team/People.ts"
import { readDocument } from "../../payments/shared/ReadDocument.ts"
import { Redacted } from "effect"

export interface Visitor {
  readonly session: DashboardSession
  readonly person: Person
  readonly merchant: Merchant
  readonly document: PersonDocument
}

/** Reads one of the installation's documents; undefined if there is none of this kind. */
export const readInstallation = <A extends Identified, H>(kind: Kind<A, H>, id: string) =>
  readDocument(INSTALLATION, kind, id)

interface CookieTerms {
  readonly name: string
  readonly secure: boolean
}

const cookieOf = (publicUrl: string): CookieTerms => {
  const { port, protocol } = new URL(publicUrl)
  return protocol === "https:"
    ? { name: "__Host-till_dashboard", secure: true }
    : { name: `till_dashboard_${port === "" ? "80" : port}`, secure: false }
}

/** The cookie's value: session id and secret. */
const HELD = /^(dse_[0-9A-Za-z]{24})\.([0-9A-Za-z]{32})$/

/** Returns the request's visitor; undefined without a valid session. */
export const visitorOf = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const { publicUrl } = yield* PaymentsConfig
  const held = HELD.exec(request.cookies[cookieOf(publicUrl).name] ?? "")
  return held === null ? undefined : yield* visitorIn(held[1]!, held[2]!)
})

const visitorIn = Effect.fnUntraced(function* (id: string, secret: string) {
  const session = yield* readInstallation(DASHBOARD_SESSION, id)
  const document = session === undefined ? undefined : yield* readInstallation(PERSON, session.value.person)
  if (session === undefined || document === undefined) return undefined
  if (!isGood(session, document, secret, yield* Clock.currentTimeMillis)) return undefined
  const merchant = (yield* readInstallation(MERCHANT, document.value.merchant_id))!.value
  const visitor: Visitor = { session: session.value, person: document.value, merchant, document }
  return visitor
})

export const setSessionCookie = Effect.fnUntraced(function* (
  response: HttpServerResponse.HttpServerResponse,
  { secret, session }: OpenedSession
) {
  const { name, secure } = cookieOf((yield* PaymentsConfig).publicUrl)
  const value = `${session.id}.${Redacted.value(secret)}`
  const terms = { httpOnly: true, path: "/", sameSite: "strict", secure, maxAge: SESSION_SECONDS * 1000 } as const
  return HttpServerResponse.setCookieUnsafe(response, name, value, terms)
})

export const clearSessionCookie = Effect.fnUntraced(function* (response: HttpServerResponse.HttpServerResponse) {
  const { name, secure } = cookieOf((yield* PaymentsConfig).publicUrl)
  const terms = { httpOnly: true, path: "/", sameSite: "strict", secure, maxAge: 0 } as const
  return HttpServerResponse.setCookieUnsafe(response, name, "", terms)
})

const AGENT_LENGTH_MAX = 200

export const originOf = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const address = yield* senderOf(request)
  const agent = textOfHeader(sourceOf(request).headers["user-agent"] ?? "")
    .slice(0, AGENT_LENGTH_MAX)
    .replaceAll(/\p{Cc}/gu, "")
    .toWellFormed()
  const origin: Origin = { address, agent }
  return origin
})

/** False if a form's headers show another site. Old browsers send none: there the token has to suffice. */
export const isSameOrigin = (publicUrl: string, { headers }: HttpServerRequest.HttpServerRequest): boolean => {
  const { host, origin, "sec-fetch-site": site } = headers
  if (site !== undefined && site !== "same-origin") return false
  if (origin === undefined) return true
  return origin === new URL(publicUrl).origin || URL.parse(origin)?.host === host
}

/**
 * True if the browser's headers prove that a form comes from this site. Forms without a session need this: their token
 * is not bound to a browser. All browsers have sent these headers since 2020.
 */
export const isProvenSameOrigin = (publicUrl: string, request: HttpServerRequest.HttpServerRequest): boolean => {
  const { origin, "sec-fetch-site": site } = request.headers
  return (origin !== undefined || site !== undefined) && isSameOrigin(publicUrl, request)
}
