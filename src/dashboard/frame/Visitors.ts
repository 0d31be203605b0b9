/**
 * Finds out who is in front of the dashboard, by the cookie that the browser shows (semantics 9.60, 9.63).
 *
 * The cookie is for this host, for nothing that another site's page does, and out of reach of scripts. Over https it
 * has the prefix `__Host-`, by which browsers see to it that nobody else can set it. They take that for secure
 * connections only, so over http, which is for this machine, its name has the port instead: cookies do not tell ports
 * apart, and two installations on one machine would sign their people out of one another.
 */
import { Clock, Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpServerResponse } from "effect/http"
import { textOfHeader } from "../../domain/HeaderText.ts"
import type { DashboardSession, Origin, Person } from "../../domain/Person.ts"
import type { Identified, Kind } from "../../engine/log/Document.ts"
import { sourceOf } from "../../http/RequestContext.ts"
import { clientAddressOf } from "../../server/ClientAddress.ts"
import { remoteAddressOf } from "../../http/forward/ForwardPage.ts"
import { HttpConfig } from "../../server/HttpConfig.ts"
import { INSTALLATION } from "../../payments/AccountIds.ts"
import type { OpenedSession } from "../../payments/DashboardSessions.ts"
import { DASHBOARD_SESSION, isGood, SESSION_SECONDS } from "../../payments/DashboardSessions.ts"
import type { Merchant } from "../../payments/Merchants.ts"
import { MERCHANT } from "../../payments/Merchants.ts"
import { PaymentsConfig } from "../../payments/PaymentsConfig.ts"
import type { PersonDocument } from "../../payments/People.ts"
import { PERSON } from "../../payments/People.ts"
import { readDocument } from "../../payments/ReadDocument.ts"
import { Redacted } from "effect"

/** Somebody who is signed in. */
export interface Visitor {
  readonly session: DashboardSession
  readonly person: Person
  readonly merchant: Merchant
  /** The person, with what only the server knows. */
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

/** The value that a browser holds: a session's id, and its secret. */
const HELD = /^(dse_[0-9A-Za-z]{24})\.([0-9A-Za-z]{32})$/

/** The visitor behind a request; undefined if nobody is signed in. Fails with `Unavailable` if that cannot be known. */
export const visitorOf = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const { publicUrl } = yield* PaymentsConfig
  const held = HELD.exec(request.cookies[cookieOf(publicUrl).name] ?? "")
  return held === null ? undefined : yield* visitorIn(held[1]!, held[2]!)
})

/** The visitor in a session. */
const visitorIn = Effect.fnUntraced(function* (id: string, secret: string) {
  const session = yield* readInstallation(DASHBOARD_SESSION, id)
  const document = session === undefined ? undefined : yield* readInstallation(PERSON, session.value.person)
  if (session === undefined || document === undefined) return undefined
  if (!isGood(session, document, secret, yield* Clock.currentTimeMillis)) return undefined
  const merchant = (yield* readInstallation(MERCHANT, document.value.merchant_id))!.value
  const visitor: Visitor = { session: session.value, person: document.value, merchant, document }
  return visitor
})

/** Has the browser hold a session from now on. */
export const setSessionCookie = Effect.fnUntraced(function* (
  response: HttpServerResponse.HttpServerResponse,
  { secret, session }: OpenedSession
) {
  const { name, secure } = cookieOf((yield* PaymentsConfig).publicUrl)
  const value = `${session.id}.${Redacted.value(secret)}`
  const terms = { httpOnly: true, path: "/", sameSite: "strict", secure, maxAge: SESSION_SECONDS * 1000 } as const
  return HttpServerResponse.setCookieUnsafe(response, name, value, terms)
})

/** Has the browser forget its session. */
export const clearSessionCookie = Effect.fnUntraced(function* (response: HttpServerResponse.HttpServerResponse) {
  const { name, secure } = cookieOf((yield* PaymentsConfig).publicUrl)
  const terms = { httpOnly: true, path: "/", sameSite: "strict", secure, maxAge: 0 } as const
  return HttpServerResponse.setCookieUnsafe(response, name, "", terms)
})

const AGENT_LENGTH_MAX = 200

/** Where a request comes from. */
export const originOf = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const { trustedProxies } = yield* HttpConfig
  const { headers } = sourceOf(request)
  const address = clientAddressOf(trustedProxies)({ headers, remoteAddress: remoteAddressOf(request) })
  const agent = textOfHeader(headers["user-agent"] ?? "")
    .slice(0, AGENT_LENGTH_MAX)
    .replaceAll(/\p{Cc}/gu, "")
    .toWellFormed()
  const origin: Origin = { address, agent }
  return origin
})

/**
 * Tells whether a form can have been sent by one of the dashboard's own pages. Browsers say with each form from where
 * it comes. Whoever does not is no browser, or an old one, and has to have the form's token, as everybody has to.
 */
export const isSameOrigin = (publicUrl: string, { headers }: HttpServerRequest.HttpServerRequest): boolean => {
  const { host, origin, "sec-fetch-site": site } = headers
  if (site !== undefined && site !== "same-origin") return false
  if (origin === undefined) return true
  return origin === new URL(publicUrl).origin || URL.parse(origin)?.host === host
}

/**
 * The same for a form of somebody who has no session: its token is anybody's, and binds it to no browser, so the
 * browser has to say where the form comes from. All have done so since 2020.
 */
export const isProvenSameOrigin = (publicUrl: string, request: HttpServerRequest.HttpServerRequest): boolean => {
  const { origin, "sec-fetch-site": site } = request.headers
  return (origin !== undefined || site !== undefined) && isSameOrigin(publicUrl, request)
}
