/**
 * Asks a signed-in person for the password again, before an action that must not be possible with a stolen session
 * alone. The page carries the submitted form in hidden fields and sends it again with the password, so nothing has to
 * be entered twice.
 */
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { Accounts } from "../../engine/Accounts.ts"
import { html, type Html } from "../../html/Html.ts"
import type { FormValues } from "../../html/Forms.ts"
import { INSTALLATION } from "../../payments/AccountIds.ts"
import * as DashboardSessions from "../../payments/DashboardSessions.ts"
import { PASSWORD_FIELD as FIELD } from "../../payments/GivenUp.ts"
import { Passwords } from "../../payments/Passwords.ts"
import { fieldsOf } from "./Form.ts"
import { shell } from "./Shell.ts"
import { HELD_BACK, SignInLimits } from "./SignInLimits.ts"
import type { Visit } from "./Visit.ts"
import { originOf, type Visitor } from "./Visitors.ts"

export interface PasswordPage {
  readonly document: Html
  readonly status: number
}

/** Returns null after a correct password, otherwise the page that asks for it. */
export const checkPassword = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  visit: Visit,
  { document, person, session }: Visitor,
  values: FormValues
) {
  const pageWith = (status: number, error: string | null): PasswordPage => ({
    document: passwordPage(visit, values, error),
    status
  })
  const password = values.get(FIELD)
  if (password === undefined || !person.has_password) return pageWith(200, null)
  const limits = yield* SignInLimits
  const { address } = yield* originOf(request)
  const check = Effect.map(
    Passwords.use(({ ownersOf }) => ownersOf(person.email!, password, [document])),
    ([owner]) => owner
  )
  const found = yield* limits.attempt({ who: person.id, address }, check)
  if (found === HELD_BACK) return pageWith(429, "Too many attempts. Try again in 15 minutes.")
  if (found === undefined) return pageWith(403, "Wrong password.")
  yield* Effect.ignore(Accounts.use((accounts) => accounts.run(INSTALLATION, DashboardSessions.confirm(session.id))))
  return null
})

/** True if the form contains a password, so it comes from the password page. */
export const hasPassword = (values: FormValues): boolean => values.has(FIELD)

/** The page that asks for the password, with the submitted form in hidden fields. */
export const passwordPage = (visit: Visit, values: FormValues, error: string | null): Html => {
  if (!visit.person.has_password) {
    return shell(visit, {
      title: "Sign in with a new link first",
      section: null,
      content: html`<p>
        This action needs a recent sign-in. You have no password, and a sign-in link counts for 10 minutes only. Get a
        new link from <code>till dashboard</code> or from an owner of ${visit.merchant.name}, set a password under
        <a href="${visit.to("/account")}">your account</a>, and try again.
      </p>`
    })
  }
  const kept = [...values].filter(([name]) => name !== FIELD)
  const problem = error === null ? null : { action: "" as const, message: null, errors: { [FIELD]: error }, values }
  return shell(visit, {
    title: "Confirm it's you",
    section: null,
    content: html`<p>Enter your current password to continue.</p>
      <form method="post">
        ${kept.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}
        ${fieldsOf("confirm", problem).text({
          name: FIELD,
          label: "Password",
          type: "password",
          autocomplete: "current-password",
          required: true
        })}
        <button type="submit" class="primary">Continue</button>
      </form>`
  })
}
