/** A request for a dashboard page by a signed-in person, in one of the merchant's two environments. */
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { DashboardSession, Person } from "../../domain/Person.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { makeToken } from "../../html/Forms.ts"
import { queryOf } from "../../html/Routing.ts"
import { accountOf } from "../../payments/shared/AccountIds.ts"
import type { Merchant } from "../../payments/merchants/Merchants.ts"
import { PaymentsConfig } from "../../payments/shared/PaymentsConfig.ts"
import { Processors } from "../../payments/processing/Processor.ts"
import { type DashboardPath, link, locationOf, type PageLocation, type Query } from "./Links.ts"
import { may, type Right } from "./Rights.ts"
import { zoneOf } from "./TimeZones.ts"
import type { Visitor } from "./Visitors.ts"

export type Mode = "test" | "live"

export interface Visit {
  readonly person: Person
  readonly session: DashboardSession
  readonly merchant: Merchant
  readonly mode: Mode
  readonly livemode: boolean
  /** The merchant's account in this environment. */
  readonly account: AccountId
  readonly location: PageLocation
  readonly query: URLSearchParams
  /** IANA name of the person's time zone. */
  readonly zone: string
  readonly publicUrl: string
  /** False in live mode without a card processor (semantics dashboard.live_mode). */
  readonly takesCards: boolean
  /** Whether a mail server is configured (semantics mail.off). */
  readonly sendsMail: boolean
  readonly may: (right: Right) => boolean
  /** A link within this environment: `visit.to("/payments", { status: "succeeded" })`. */
  readonly to: (path: DashboardPath, query?: Query) => string
  /** A link outside of the environments: `visit.at("/account")`. */
  readonly at: (path: DashboardPath, query?: Query) => string
  /** A link to this page with a changed query: null removes a parameter, other parameters stay. */
  readonly here: (query: Query) => string
  /** A form token: it makes the submission happen once, for this session only. `path` is as in `at`. */
  readonly token: (path: DashboardPath) => string
}

/** The subject of a form token: one action in one session. */
export const subjectOf = (session: DashboardSession, path: DashboardPath): string => `dashboard ${session.id} ${path}`

export const visitOf = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  { merchant, person, session }: Visitor,
  mode: Mode
): Effect.fn.Return<Visit, never, PaymentsConfig | Processors> {
  const config = yield* PaymentsConfig
  const processors = yield* Processors
  const location = locationOf(request)
  const query = queryOf(request)
  const livemode = mode === "live"
  const account = accountOf(merchant.id, livemode)
  const at: Visit["at"] = (path, query) => link(location, path, query)
  return {
    person,
    session,
    merchant,
    mode,
    livemode,
    account,
    query,
    zone: zoneOf(person),
    publicUrl: config.publicUrl,
    takesCards: processors.of(account) !== null,
    sendsMail: config.sendsMail,
    may: (right) => may(person.role, right),
    to: (path, query) => at(`/${mode}${path}`, query),
    at,
    token: (path) => makeToken(config, subjectOf(session, path)),
    ...locationFields(location, query)
  }
})

const locationFields = (location: PageLocation, query: URLSearchParams): Pick<Visit, "location" | "here"> => ({
  location,
  here: (changes) => link(location, location.path, { ...Object.fromEntries(query), done: null, ...changes })
})

/** The visit as if `path` had been requested: the response to a form shows the form's page. */
export const visitAt = (visit: Visit, path: DashboardPath): Visit => ({
  ...visit,
  ...locationFields({ ...visit.location, path }, visit.query)
})
