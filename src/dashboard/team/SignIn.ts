/**
 * Sign-in with a password or by a link, and sign-out (semantics dashboard.links, dashboard.password_again,
 * dashboard.guessing).
 *
 * A person with two-step verification proves the second step by a code, after a password or on the page of a link: a
 * right password makes a link, whose page asks for the code (semantics dashboard.two_step).
 *
 * Signing in creates a new session and ends the browser's previous one. Response and duration do not reveal whether a
 * person exists, and a failed attempt writes nothing. Only forms sign in and out: requests that a browser or a mail
 * program sends by itself, such as opening a link, change nothing.
 */
import { Clock, Effect, Layer, Redacted } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Origin, Person } from "../../domain/Person.ts"
import { hasLengthAtMost } from "../../domain/Length.ts"
import { EMAIL_LENGTH_MAX } from "../../domain/Text.ts"
import { secondsOf } from "../../domain/Time.ts"
import { Accounts, type Unavailable } from "../../engine/Accounts.ts"
import { idempotencyKeyOf, makeToken, readForm } from "../../html/Forms.ts"
import { type Child, html, type Html } from "../../html/Html.ts"
import { seeOther } from "../../html/PageResponse.ts"
import { requireHere, queryOf } from "../../html/Routing.ts"
import { INSTALLATION } from "../../payments/shared/AccountIds.ts"
import type { OpenedSession } from "../../payments/team/DashboardSessions.ts"
import * as DashboardSessions from "../../payments/team/DashboardSessions.ts"
import { MERCHANT } from "../../payments/merchants/Merchants.ts"
import { Passwords } from "../../payments/team/Passwords.ts"
import { PaymentsConfig } from "../../payments/shared/PaymentsConfig.ts"
import * as People from "../../payments/team/People.ts"
import * as SecondFactors from "../../payments/team/SecondFactors.ts"
import { CODE_USED, CODE_WRONG, codeField, secondFactorOf } from "../frame/Confirmation.ts"
import { fieldsOf, type Problem } from "../frame/Form.ts"
import { DashboardConfig } from "../frame/DashboardConfig.ts"
import { type DashboardPath, link, locationOf, returnPathOf } from "../frame/Links.ts"
import { respond, route, signedOutPage } from "../frame/Page.ts"
import { plainPage, SIGN_OUT } from "../frame/Shell.ts"
import { HELD_BACK, SignInLimits } from "../frame/SignInLimits.ts"
import { subjectOf } from "../frame/Visit.ts"
import {
  clearSessionCookie,
  setSessionCookie,
  isSameOrigin,
  isProvenSameOrigin,
  originOf,
  readInstallation,
  visitorOf
} from "../frame/Visitors.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

/** The page after signing in, unless another one was requested. */
export const HOME: DashboardPath = "/test"

const SUBJECT = "dashboard sign-in"

const messagePage = (request: Request, title: string, status: number, content: Child): Response =>
  respond(plainPage({ title, depth: locationOf(request).depth, content }), status)

const signInOffPage = (request: Request, refusal: string): Response =>
  messagePage(request, "Sign-in is turned off", 403, html`<p>${refusal}</p>`)

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
  return messagePage(
    request,
    "Sign in",
    status,
    html`<form method="post" action="${link(locationOf(request), "/sign-in")}">
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
      ${
        config.sendsMail &&
        html`<p class="fine"><a href="${link(locationOf(request), "/forgot")}">Forgot your password?</a></p>`
      }
      <p class="fine">
        No password, or forgotten it? The operator of this installation can create a sign-in link with
        <code>till dashboard</code>.
      </p>`
  )
})

const showSignIn = Effect.fnUntraced(function* (request: Request) {
  const { refusal } = yield* DashboardConfig
  if (refusal !== null) return signInOffPage(request, refusal)
  const to = queryOf(request).get("to") ?? ""
  if ((yield* visitorOf(request)) !== undefined) {
    return seeOther(link(locationOf(request), returnPathOf(to) || HOME))
  }
  return yield* signInForm(request, { status: 200, message: null, email: "", to: returnPathOf(to) })
})

/** Reads a form without a session that was sent from one of these pages; undefined for any other form. */
export const readOwnForm = Effect.fnUntraced(function* (request: Request, subject: string) {
  const config = yield* PaymentsConfig
  const values = isProvenSameOrigin(config.publicUrl, request) ? yield* readForm(request) : undefined
  return idempotencyKeyOf(config, subject, values?.get("token") ?? "") === undefined ? undefined : values
})

const startSession = Effect.fnUntraced(function* (request: Request, opened: OpenedSession, to: string) {
  const before = yield* visitorOf(request)
  if (before !== undefined) {
    yield* Effect.ignore(
      Accounts.use((accounts) => accounts.run(INSTALLATION, DashboardSessions.end(before.session.id)))
    )
  }
  return yield* setSessionCookie(seeOther(link(locationOf(request), returnPathOf(to) || HOME)), opened)
})

const peopleWith = Effect.fnUntraced(function* (email: string) {
  const entry = yield* readInstallation(People.PERSON_EMAIL, People.personEmailId(email))
  const ids = Object.values(entry?.value.people ?? {})
  const people = yield* Effect.forEach(ids, (id) => readInstallation(People.PERSON, id))
  return people.filter((person) => person !== undefined)
})

const WRONG = "Wrong email or password."

const signIn = Effect.fnUntraced(function* (request: Request) {
  const { refusal } = yield* DashboardConfig
  if (refusal !== null) return signInOffPage(request, refusal)
  yield* requireHere(INSTALLATION)
  const values = yield* readOwnForm(request, SUBJECT)
  const [email, password, to] = ["email", "password", "to"].map((name) => values?.get(name) ?? "") as [
    string,
    string,
    string
  ]
  const again = (status: number, message: string) =>
    signInForm(request, { status, message, email, to: returnPathOf(to) })
  if (values === undefined) return yield* again(403, "This form was not sent from this page. Try again.")
  if (!hasLengthAtMost(email, EMAIL_LENGTH_MAX)) return yield* again(401, WRONG)
  const limits = yield* SignInLimits
  const origin = yield* originOf(request)
  const check = Effect.gen(function* () {
    const people = yield* peopleWith(email)
    const [first, ...others] = yield* Passwords.use(({ ownersOf }) => ownersOf(email, password, people))
    return first === undefined ? undefined : ([first, ...others] as const)
  })
  const found = yield* limits.attempt({ who: email, address: origin.address }, check)
  if (found === HELD_BACK) {
    return yield* again(429, "Too many attempts. Try again in 15 minutes, or sign in with a link.")
  }
  if (found === undefined) return yield* again(401, WRONG)
  const [person, ...others] = found
  const entered =
    others.length > 0
      ? chooseMerchant(request, found, to)
      : Accounts.use((accounts) => accounts.run(INSTALLATION, DashboardSessions.open(person, "password", origin))).pipe(
          Effect.flatMap((opened) => startSession(request, opened, to)),
          Effect.catchTag(["CodeNeeded", "CodeUsed"], () => askForCode(request, person, to))
        )
  // The person was removed or got another password while this one was checked.
  return yield* Effect.catchTag(entered, "ResourceMissing", () => again(401, WRONG))
})

const linkPath = (secret: string): DashboardPath => `/link/${secret}`

interface LinkForm {
  readonly button: Child
  readonly to?: string
  /** The error about the code; null for none. Absent without two-step verification: the form then has no code. */
  readonly code?: string | null
}

const linkForm = Effect.fnUntraced(function* (request: Request, secret: string, { button, code, to = "" }: LinkForm) {
  const path = linkPath(secret)
  const problem = code == null ? null : { action: "" as const, message: null, errors: { code }, values: new Map() }
  return html`<form method="post" action="${link(locationOf(request), path)}">
    <input type="hidden" name="token" value="${makeToken(yield* PaymentsConfig, path)}" />
    <input type="hidden" name="to" value="${to}" />
    ${code !== undefined && codeField(fieldsOf("link", problem), "code")}
    <button type="submit" class="primary">${button}</button>
  </form>`
})

interface CodeAsked {
  readonly secret: string
  readonly to: string
  readonly status?: number
  readonly error?: string | null
}

/** The page that asks for the second step of a sign-in. */
const codePage = Effect.fnUntraced(function* (request: Request, { error = null, secret, status = 200, to }: CodeAsked) {
  return messagePage(
    request,
    "Enter a code",
    status,
    html`${yield* linkForm(request, secret, { button: "Sign in", code: error, to })}
      <p class="fine">
        You have two-step verification on. Without your phone and your recovery codes, ask an owner or the operator of
        this installation to turn it off.
      </p>`
  )
})

/** Asks for the second step after the right password. */
const askForCode = Effect.fnUntraced(function* (request: Request, person: People.PersonDocument, to: string) {
  const made = DashboardSessions.makeLinkAfterPassword(person)
  const secret = yield* Accounts.use((accounts) => accounts.run(INSTALLATION, made))
  return yield* codePage(request, { secret: Redacted.value(secret), to: returnPathOf(to) })
})

/** Lets a person choose between merchants where the same email and password are valid. */
const chooseMerchant = Effect.fnUntraced(function* (
  request: Request,
  people: ReadonlyArray<People.PersonDocument>,
  to: string
) {
  const made = Effect.forEach(people, DashboardSessions.makeLinkAfterPassword)
  const links = yield* Accounts.use((accounts) => accounts.run(INSTALLATION, made))
  const forms = yield* Effect.forEach(
    people,
    Effect.fnUntraced(function* ({ value: { merchant_id } }, i) {
      const { name } = (yield* readInstallation(MERCHANT, merchant_id))!.value
      return {
        name,
        form: yield* linkForm(request, Redacted.value(links[i]!), { button: html`<bdi>${name}</bdi>`, to })
      }
    })
  )
  const sorted = forms.toSorted((a, b) => a.name.localeCompare(b.name))
  return messagePage(
    request,
    "Choose a dashboard",
    200,
    html`<p>This email and password are valid for several merchants.</p>
      ${sorted.map(({ form }) => form)}`
  )
})

/** The person and merchant of a link; undefined if it has expired or was used. */
const readLink = Effect.fnUntraced(function* (secret: string) {
  const entry = yield* readInstallation(DashboardSessions.DASHBOARD_LINK, DashboardSessions.linkIdOf(secret))
  const person = entry === undefined ? undefined : yield* readInstallation(People.PERSON, entry.value.person)
  if (entry === undefined || person === undefined) return undefined
  if (!DashboardSessions.isLinkGood(entry.value, person, yield* Clock.currentTimeMillis)) return undefined
  const merchant = (yield* readInstallation(MERCHANT, person.value.merchant_id))!.value
  return { person: person.value, merchant, factor: yield* secondFactorOf(person.id) }
})

/** The page behind a link, before its button is pressed. */
const showLink = Effect.fnUntraced(function* (request: Request, secret: string) {
  const { refusal } = yield* DashboardConfig
  if (refusal !== null) return signInOffPage(request, refusal)
  yield* requireHere(INSTALLATION)
  const [found, visitor] = [yield* readLink(secret), yield* visitorOf(request)]
  if (found === undefined) return yield* invalidLinkPage(request)
  const { factor, merchant, person } = found
  const whose = ({ email, role }: Pick<Person, "email" | "role">): Html =>
    email === null
      ? html`${role}, with no email yet`
      : html`<b><bdi>${email}</bdi></b
          >, ${role}`
  return messagePage(
    request,
    `Sign in to ${merchant.name}`,
    200,
    html`<p>You are signing in as ${whose(person)}.</p>
      ${
        visitor !== undefined &&
        html`<p>
          This browser is signed in to <bdi>${visitor.merchant.name}</bdi> as ${whose(visitor.person)}. That session
          will end.
        </p>`
      }
      ${yield* linkForm(request, secret, {
        button: "Sign in",
        to: queryOf(request).get("to") ?? "",
        ...(factor !== undefined && { code: null })
      })}
      <p class="fine">The link works once. If this is not you, close this page.</p>`
  )
})

/** The page for an invalid link. A signed-in person is redirected to the dashboard. */
const invalidLinkPage = Effect.fnUntraced(function* (request: Request) {
  if ((yield* visitorOf(request)) !== undefined) return seeOther(link(locationOf(request), HOME))
  return messagePage(
    request,
    "This link is no longer valid",
    410,
    html`<p>
        A link works once, within 10 minutes (one that was mailed: within the time that the mail names), and not after
        the person's password or role has changed. Get a new one from <code>till dashboard</code> or from an owner's
        team page.
      </p>
      <p><a class="button" href="${link(locationOf(request), "/sign-in")}">Sign in with a password</a></p>`
  )
})

const openLink = Effect.fnUntraced(function* (request: Request, secret: string) {
  const { refusal } = yield* DashboardConfig
  if (refusal !== null) return signInOffPage(request, refusal)
  yield* requireHere(INSTALLATION)
  const values = yield* readOwnForm(request, linkPath(secret))
  if (values === undefined) {
    return messagePage(
      request,
      "You were not signed in",
      403,
      html`<p>This form was not sent from this page. Open the link again and use its button.</p>`
    )
  }
  const [to, code] = [values.get("to") ?? "", values.get("code") ?? ""]
  const origin = yield* originOf(request)
  const found = yield* readLink(secret)
  // Links cannot be guessed, so these attempts are not limited; codes can be, so those are.
  const opened =
    found?.factor === undefined || code === ""
      ? openByLink(secret, origin, null)
      : openWithCode({ ...found, factor: found.factor, code, secret, origin })
  const asked = { secret, to: returnPathOf(to) }
  return yield* opened.pipe(
    Effect.flatMap((made) =>
      "session" in made ? startSession(request, made, to) : codePage(request, { ...asked, ...made })
    ),
    Effect.catchTag("ResourceMissing", () => invalidLinkPage(request)),
    Effect.catchTag(["CodeNeeded", "CodeUsed"], () => codePage(request, asked))
  )
})

/** A session, or the status and the error of a page that asks for the code again. */
type Opening = OpenedSession | Required<Pick<CodeAsked, "status" | "error">>

const openByLink = (
  secret: string,
  origin: Origin,
  proof: SecondFactors.Proof | null
): Effect.Effect<Opening, Effect.Error<ReturnType<typeof DashboardSessions.openByLink>> | Unavailable, Accounts> =>
  Accounts.use((accounts) => accounts.run(INSTALLATION, DashboardSessions.openByLink(secret, origin, proof)))

interface CodeEntered {
  readonly person: Person
  readonly factor: SecondFactors.SecondFactorDocument
  readonly code: string
  /** The secret of the link. */
  readonly secret: string
  readonly origin: Origin
}

/** Opens a session with the code of a second factor. */
const openWithCode = Effect.fnUntraced(function* ({ code, factor, origin, person, secret }: CodeEntered) {
  const config = yield* PaymentsConfig
  const limits = yield* SignInLimits
  let error = CODE_WRONG
  const check = Effect.gen(function* () {
    const now = secondsOf(yield* Clock.currentTimeMillis)
    const proof = SecondFactors.match(config, person.id, factor, code, now)
    if (proof === undefined) return undefined
    return yield* Effect.catchTag(openByLink(secret, origin, proof), "CodeUsed", () => {
      error = CODE_USED
      return Effect.undefined
    })
  })
  const opened = yield* limits.attempt({ who: person.id, address: origin.address }, check)
  if (opened === HELD_BACK) return { status: 429, error: "Too many attempts. Try again in 15 minutes." }
  return opened ?? { status: 403, error }
})

const signOut = Effect.fnUntraced(function* (request: Request) {
  yield* requireHere(INSTALLATION)
  const config = yield* PaymentsConfig
  const visitor = yield* visitorOf(request)
  if (visitor === undefined) return signedOutPage(request)
  const values = isSameOrigin(config.publicUrl, request) ? yield* readForm(request) : undefined
  const subject = subjectOf(visitor.session, SIGN_OUT)
  if (idempotencyKeyOf(config, subject, values?.get("token") ?? "") === undefined) {
    return messagePage(request, "You are still signed in", 403, html`<p>This form was not sent from the dashboard.</p>`)
  }
  yield* Effect.ignore(
    Accounts.use((accounts) => accounts.run(INSTALLATION, DashboardSessions.end(visitor.session.id)))
  )
  return yield* clearSessionCookie(seeOther(link(locationOf(request), "/sign-in")))
})

export const layer = Layer.mergeAll(
  route("GET", "/dashboard/sign-in", showSignIn),
  route("POST", "/dashboard/sign-in", signIn),
  route("GET", "/dashboard/link/:secret", (request, { secret = "" }) => showLink(request, secret)),
  route("POST", "/dashboard/link/:secret", (request, { secret = "" }) => openLink(request, secret)),
  route("POST", "/dashboard/sign-out", signOut)
)
