/**
 * A sign-in link by mail for a person who has forgotten the password (semantics mail.password_resets).
 *
 * The answer is the same for every address, and does not wait for the record of the mail: neither what it says nor how
 * long it takes depends on whether a person has the address. Requests are counted like attempts to sign in, apart from
 * those, and fewer are allowed: each may cost its receiver a mail.
 */
import { Clock, Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import { hasLengthAtMost } from "../../domain/Length.ts"
import { EMAIL_LENGTH_MAX } from "../../domain/Text.ts"
import { Accounts } from "../../engine/Accounts.ts"
import { makeToken } from "../../html/Forms.ts"
import { html } from "../../html/Html.ts"
import { requireHere } from "../../html/Routing.ts"
import { INSTALLATION } from "../../payments/shared/AccountIds.ts"
import { PaymentsConfig } from "../../payments/shared/PaymentsConfig.ts"
import { resetPassword } from "../../payments/team/PeopleMails.ts"
import { DashboardConfig } from "../frame/DashboardConfig.ts"
import { fieldsOf, type Problem } from "../frame/Form.ts"
import { type DashboardPath, link, locationOf } from "../frame/Links.ts"
import { redirectToSignIn, respond, route } from "../frame/Page.ts"
import { plainPage } from "../frame/Shell.ts"
import { originOf } from "../frame/Visitors.ts"
import { ResetLimits } from "./ResetLimits.ts"
import { readOwnForm } from "./SignIn.ts"
import { logOf } from "../../engine/process/Log.ts"

const log = logOf("dashboard")

type Request = HttpServerRequest.HttpServerRequest

const FORGOT: DashboardPath = "/forgot"

const SUBJECT = "dashboard forgotten password"

const formPage = Effect.fnUntraced(function* (request: Request, status: number, message: string | null) {
  const place = locationOf(request)
  const problem: Problem = { action: "", message, errors: {}, values: new Map() }
  const fields = fieldsOf("forgot", problem)
  const content = html`<form method="post" action="${link(place, FORGOT)}">
      <input type="hidden" name="token" value="${makeToken(yield* PaymentsConfig, SUBJECT)}" />
      ${message !== null && html`<p class="message" role="alert">${message}</p>`}
      ${fields.text({ name: "email", label: "Email", type: "email", autocomplete: "username", required: true })}
      <button type="submit" class="primary">Mail me a link</button>
    </form>
    <p class="fine">
      The link signs you in, so that you can choose a new password. <a href="${link(place, "/sign-in")}">Back</a>
    </p>`
  return respond(plainPage({ title: "Forgot your password?", depth: place.depth, content }), status)
})

const sentPage = (request: Request) => {
  const place = locationOf(request)
  const content = html`<p>
      If somebody signs in with this address, a mail with a link is on its way. It works once, within an hour.
    </p>
    <p class="fine">
      No mail after a few minutes? Look in your spam folder, or ask an owner of your team.
      <a href="${link(place, "/sign-in")}">Back</a>
    </p>`
  return respond(plainPage({ title: "Check your mail", depth: place.depth, content }))
}

/** True if people can sign in and a mail server is configured. */
const isOffered = Effect.gen(function* () {
  return (yield* DashboardConfig).refusal === null && (yield* PaymentsConfig).sendsMail
})

const show = Effect.fnUntraced(function* (request: Request) {
  return (yield* isOffered) ? yield* formPage(request, 200, null) : redirectToSignIn(request)
})

const send = Effect.fnUntraced(function* (request: Request) {
  if (!(yield* isOffered)) return redirectToSignIn(request)
  yield* requireHere(INSTALLATION)
  const values = yield* readOwnForm(request, SUBJECT)
  if (values === undefined) return yield* formPage(request, 403, "This form was not sent from this page. Try again.")
  const email = (values.get("email") ?? "").trim()
  const { address } = yield* originOf(request)
  const limits = yield* ResetLimits
  if (!limits.count({ who: email, address }, yield* Clock.currentTimeMillis)) {
    return yield* formPage(request, 429, "Too many requests. Try again in 15 minutes.")
  }
  if (hasLengthAtMost(email, EMAIL_LENGTH_MAX)) {
    const config = yield* PaymentsConfig
    const command = Effect.provideService(resetPassword(email), PaymentsConfig, config)
    const record = Accounts.use((accounts) => accounts.run(INSTALLATION, command))
    yield* Effect.forkDetach(
      Effect.catch(record, (error) => log.warning("A password reset could not be recorded", error))
    )
  }
  return sentPage(request)
})

export const layer = Layer.merge(
  route("GET", "/dashboard/forgot", show),
  route("POST", "/dashboard/forgot", send)
).pipe(Layer.provide(ResetLimits.layer))
