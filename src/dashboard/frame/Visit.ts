/** Somebody looks at a page of the dashboard, in one of the two environments of their merchant. */
import type { HttpServerRequest } from "effect/http"
import type { DashboardSession, Person } from "../../domain/Person.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { makeToken } from "../../html/Forms.ts"
import { queryOf } from "../../html/Routing.ts"
import { accountOf } from "../../payments/AccountIds.ts"
import type { Merchant } from "../../payments/Merchants.ts"
import type { PaymentsConfigShape } from "../../payments/PaymentsConfig.ts"
import type { DashboardPath, PageLocation, Query } from "./Links.ts"
import { link, locationOf } from "./Links.ts"
import type { Right } from "./Rights.ts"
import { may } from "./Rights.ts"
import type { Visitor } from "./Visitors.ts"

export type Mode = "test" | "live"

export interface Visit {
  readonly person: Person
  readonly session: DashboardSession
  readonly merchant: Merchant
  readonly mode: Mode
  readonly livemode: boolean
  /** The account of the merchant in this environment. */
  readonly account: AccountId
  readonly location: PageLocation
  readonly query: URLSearchParams
  readonly publicUrl: string
  readonly may: (right: Right) => boolean
  /** A link to a page of this environment: `visit.to("/payments", { status: "succeeded" })`. */
  readonly to: (path: DashboardPath, query?: Query) => string
  /** A link to a page of no environment: `visit.at("/account")`. */
  readonly at: (path: DashboardPath, query?: Query) => string
  /** A link to this page with another query. What is null goes, what is not named stays. */
  readonly here: (query: Query) => string
  /** What makes a form's submission happen once, and nobody else's. `path` is that of `at`. */
  readonly token: (path: DashboardPath) => string
}

/** What a form's token is good for: one action, in one session. */
export const subjectOf = (session: DashboardSession, path: DashboardPath): string => `dashboard ${session.id} ${path}`

export const visitOf = (
  request: HttpServerRequest.HttpServerRequest,
  { merchant, person, session }: Visitor,
  mode: Mode,
  config: PaymentsConfigShape
): Visit => {
  const location = locationOf(request)
  const query = queryOf(request)
  const livemode = mode === "live"
  const at: Visit["at"] = (path, query) => link(location, path, query)
  return {
    person,
    session,
    merchant,
    mode,
    livemode,
    account: accountOf(merchant.id, livemode),
    query,
    publicUrl: config.publicUrl,
    may: (right) => may(person.role, right),
    to: (path, query) => at(`/${mode}${path}`, query),
    at,
    token: (path) => makeToken(config, subjectOf(session, path)),
    ...locationFields(location, query)
  }
}

const locationFields = (location: PageLocation, query: URLSearchParams): Pick<Visit, "location" | "here"> => ({
  location,
  here: (changes) => link(location, location.path, { ...Object.fromEntries(query), done: null, ...changes })
})

/** The visit of a page that the answer to a form shows. Its links lead on from where the form was sent to. */
export const visitAt = (visit: Visit, path: DashboardPath): Visit => ({
  ...visit,
  ...locationFields({ ...visit.location, path }, visit.query)
})
