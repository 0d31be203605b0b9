/**
 * The way in and out: with a password, by a link, and by the button on every page (semantics 9.60, 9.63, 9.64).
 *
 * Whoever comes in gets a session that nobody had before, and the one that the browser held ends. An answer says the
 * same, and takes as long, whether there is such a person or not.
 */
import { Effect, Layer } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import { Accounts } from "../engine/Accounts.ts"
import { idempotencyKeyOf, makeToken, readForm } from "../pages/Forms.ts"
import type { Child } from "../pages/Html.ts"
import { html } from "../pages/Html.ts"
import { seeOther } from "../pages/PageResponse.ts"
import { belongsTo, queryOf } from "../pages/Routing.ts"
import { INSTALLATION } from "../payments/AccountIds.ts"
import type { OpenedSession } from "../payments/DashboardSessions.ts"
import * as DashboardSessions from "../payments/DashboardSessions.ts"
import { Passwords } from "../payments/Passwords.ts"
import { PaymentsConfig } from "../payments/PaymentsConfig.ts"
import * as People from "../payments/People.ts"
import { fieldsOf } from "./components/Form.ts"
import type { Problem } from "./components/Form.ts"
import { DashboardConfig } from "./DashboardConfig.ts"
import type { DashboardPath } from "./Place.ts"
import { isReturn, link, placeOf } from "./Place.ts"
import { answer, route, signedOut } from "./Screens.ts"
import { door, SIGN_OUT } from "./Shell.ts"
import { SignInLimits } from "./SignInLimits.ts"
import { subjectOf } from "./Visit.ts"
import { forgetting, holding, isFromHere, originOf, readInstallation, visitorOf } from "./Visitors.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

/** Where people come in, unless they wanted to go elsewhere. */
export const HOME: DashboardPath = "/test"

const SUBJECT = "dashboard sign-in"

const said = (request: Request, title: string, status: number, content: Child): Response =>
  answer(door({ title, depth: placeOf(request).depth, content }), status)

const refused = (request: Request, refusal: string): Response =>
  said(request, "Nobody can sign in here", 403, html`<p>${refusal}</p>`)

interface Shown {
  readonly status: number
  readonly message: string | null
  readonly email: string
  readonly to: string
}

const signInForm = Effect.fnUntraced(function* (request: Request, { email, message, status, to }: Shown) {
  const config = yield* PaymentsConfig
  const problem: Problem = { action: "", message, errors: {}, values: new Map([["email", email]]) }
  const fields = fieldsOf("sign-in", problem)
  return said(
    request,
    "Sign in",
    status,
    html`<form method="post" action="${link(placeOf(request), "/sign-in")}">
        <input type="hidden" name="token" value="${makeToken(config, SUBJECT)}" />
        <input type="hidden" name="to" value="${to}" />
        ${message !== null && html`<p class="message" role="alert">${message}</p>`}
        ${fields.text({ name: "email", label: "Email", type: "email", autocomplete: "username", required: true })}
        ${fields.text({
          name: "password",
          label: "Password",
          type: "password",
          autocomplete: "current-password",
          required: true
        })}
        <button type="submit" class="primary">Sign in</button>
      </form>
      <p class="fine">
        No password yet, or forgotten? Whoever runs this installation gets a link from <code>till dashboard</code>.
      </p>`
  )
})

const show = Effect.fnUntraced(function* (request: Request) {
  const { refusal } = yield* DashboardConfig
  if (refusal !== null) return refused(request, refusal)
  const to = queryOf(request).get("to") ?? ""
  if ((yield* visitorOf(request)) !== undefined) {
    return seeOther(link(placeOf(request), isReturn(to) ? to : HOME))
  }
  return yield* signInForm(request, { status: 200, message: null, email: "", to: isReturn(to) ? to : "" })
})

/** Leads on in a new session. The one that the browser held before ends. */
const enter = Effect.fnUntraced(function* (request: Request, opened: OpenedSession, to: DashboardPath) {
  const before = yield* visitorOf(request)
  if (before !== undefined) {
    yield* Effect.ignore(
      Accounts.use((accounts) => accounts.run(INSTALLATION, DashboardSessions.end(before.session.id)))
    )
  }
  const place = placeOf(request)
  // A page of another site has led here. The browser would not show the cookie where it is led on to at once.
  const onward =
    request.headers["sec-fetch-site"] === "cross-site"
      ? said(
          request,
          "You are signed in",
          200,
          html`<p><a class="button primary" href="${link(place, to)}">To the dashboard</a></p>`
        )
      : seeOther(link(place, to))
  return yield* holding(onward, opened)
})

const personWith = Effect.fnUntraced(function* (email: string) {
  const entry = yield* readInstallation(People.PERSON_EMAIL, People.personEmailId(email))
  return entry === undefined ? undefined : yield* readInstallation(People.PERSON, entry.value.person)
})

const signIn = Effect.fnUntraced(function* (request: Request) {
  const { refusal } = yield* DashboardConfig
  if (refusal !== null) return refused(request, refusal)
  yield* belongsTo(INSTALLATION)
  const config = yield* PaymentsConfig
  const values = isFromHere(config.publicUrl, request) ? yield* readForm(request) : undefined
  const [email, password, to] = ["email", "password", "to"].map((name) => values?.get(name) ?? "") as [
    string,
    string,
    string
  ]
  const again = (status: number, message: string) =>
    signInForm(request, { status, message, email, to: isReturn(to) ? to : "" })
  if (values === undefined || idempotencyKeyOf(config, SUBJECT, values.get("token") ?? "") === undefined) {
    return yield* again(403, "This form was not sent from here, or is too old. Try again.")
  }
  const limits = yield* SignInLimits
  const origin = yield* originOf(request)
  const who = email.toLowerCase()
  if ((yield* limits.attempt(who, origin.address)) > 0) {
    return yield* again(429, "Too many attempts. Try again in a quarter of an hour, or with a link.")
  }
  const person = yield* personWith(email)
  const isRight = yield* Passwords.use(({ verify }) => verify(password, person?.hidden.password ?? null))
  const accounts = yield* Accounts
  if (person === undefined || !isRight) {
    if (person !== undefined) yield* accounts.run(INSTALLATION, DashboardSessions.refused(person.value, origin))
    yield* limits.failed(who)
    return yield* again(401, "Email or password is wrong.")
  }
  yield* limits.succeeded(who, origin.address)
  const opened = yield* accounts.run(INSTALLATION, DashboardSessions.open(person, "password", origin))
  return yield* enter(request, opened, isReturn(to) ? to : HOME)
})

/**
 * A link is used up by whoever opens it, but by no program that only looks ahead, and only where it can sign somebody
 * in. One that is of no use any more leads somebody who is signed in on.
 */
const openLink = Effect.fnUntraced(function* (request: Request, token: string) {
  const { refusal } = yield* DashboardConfig
  if (refusal !== null) return refused(request, refusal)
  const looksAhead = /prefetch|prerender/.test(`${request.headers["sec-purpose"]} ${request.headers["purpose"]}`)
  yield* belongsTo(INSTALLATION)
  if (request.method !== "GET" || looksAhead) return said(request, "Open this link to sign in", 200, null)
  const origin = yield* originOf(request)
  // A link cannot be guessed, so nobody is held back who tries one.
  const open = Accounts.use((accounts) => accounts.run(INSTALLATION, DashboardSessions.openByLink(token, origin)))
  return yield* open.pipe(
    Effect.flatMap((opened) => enter(request, opened, HOME)),
    Effect.catchTag("ResourceMissing", () =>
      Effect.map(visitorOf(request), (visitor) =>
        visitor !== undefined
          ? seeOther(link(placeOf(request), HOME))
          : said(
              request,
              "This link is of no use any more",
              410,
              html`<p>A link signs in once, within ten minutes. <code>till dashboard</code> prints another.</p>
                <p><a class="button" href="${link(placeOf(request), "/sign-in")}">Sign in with a password</a></p>`
            )
      )
    )
  )
})

const signOut = Effect.fnUntraced(function* (request: Request) {
  yield* belongsTo(INSTALLATION)
  const config = yield* PaymentsConfig
  const visitor = yield* visitorOf(request)
  if (visitor === undefined) return signedOut(request)
  const values = isFromHere(config.publicUrl, request) ? yield* readForm(request) : undefined
  const subject = subjectOf(visitor.session, SIGN_OUT)
  if (idempotencyKeyOf(config, subject, values?.get("token") ?? "") === undefined) {
    return said(request, "You are still signed in", 403, html`<p>This form was not sent from here.</p>`)
  }
  yield* Effect.ignore(
    Accounts.use((accounts) => accounts.run(INSTALLATION, DashboardSessions.end(visitor.session.id)))
  )
  return yield* forgetting(seeOther(link(placeOf(request), "/sign-in")))
})

export const layer = Layer.mergeAll(
  route("GET", "/dashboard/sign-in", show),
  route("POST", "/dashboard/sign-in", signIn),
  route("GET", "/dashboard/link/:token", (request, { token = "" }) => openLink(request, token)),
  route("POST", "/dashboard/sign-out", signOut)
)
