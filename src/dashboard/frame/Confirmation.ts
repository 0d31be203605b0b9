/**
 * Asks somebody who is signed in for their password again, before something that a stolen browser is not to do. The
 * page has the form that was sent in it, and sends it on together with the password: nothing is entered twice.
 */
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { Accounts } from "../../engine/Accounts.ts"
import type { Html } from "../../html/Html.ts"
import { html } from "../../html/Html.ts"
import type { FormValues } from "../../html/Forms.ts"
import { INSTALLATION } from "../../payments/AccountIds.ts"
import * as DashboardSessions from "../../payments/DashboardSessions.ts"
import { PASSWORD_FIELD as FIELD } from "../../payments/GivenUp.ts"
import { Passwords } from "../../payments/Passwords.ts"
import { fieldsOf } from "./Form.ts"
import { shell } from "./Shell.ts"
import { HELD_BACK, SignInLimits } from "./SignInLimits.ts"
import type { Visit } from "./Visit.ts"
import type { Visitor } from "./Visitors.ts"
import { originOf } from "./Visitors.ts"

export interface PasswordPage {
  readonly document: Html
  readonly status: number
}

/** Null once somebody has proved who they are, now; else the page that asks. */
export const checkPassword = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  visit: Visit,
  { document, person, session }: Visitor,
  values: FormValues
) {
  const asked = (status: number, error: string | null): PasswordPage => ({
    document: passwordPage(visit, values, error),
    status
  })
  const password = values.get(FIELD)
  if (password === undefined || !person.has_password) return asked(200, null)
  const limits = yield* SignInLimits
  const { address } = yield* originOf(request)
  const check = Effect.map(
    Passwords.use(({ ownersOf }) => ownersOf(person.email!, password, [document])),
    ([owner]) => owner
  )
  const found = yield* limits.attempt({ who: person.id, address }, check)
  if (found === HELD_BACK) return asked(429, "Too many attempts. Try again in a quarter of an hour.")
  if (found === undefined) return asked(403, "This is not your password.")
  yield* Effect.ignore(Accounts.use((accounts) => accounts.run(INSTALLATION, DashboardSessions.confirm(session.id))))
  return null
})

/** Tells whether a form comes from the page that asks, with the password. */
export const hasPassword = (values: FormValues): boolean => values.has(FIELD)

/** The page that asks, with the form that was sent in it. */
export const passwordPage = (visit: Visit, values: FormValues, error: string | null): Html => {
  if (!visit.person.has_password) {
    return shell(visit, {
      title: "Open a new link first",
      section: null,
      content: html`<p>
        This takes somebody who can prove who they are. You have no password, and the link that you came in by proves it
        for ten minutes. Open a new one, from <code>till dashboard</code> or an owner of ${visit.merchant.name}, set a
        password under <a href="${visit.to("/account")}">your account</a>, and do this again.
      </p>`
    })
  }
  const kept = [...values].filter(([name]) => name !== FIELD)
  const problem = error === null ? null : { action: "" as const, message: null, errors: { [FIELD]: error }, values }
  return shell(visit, {
    title: "Is it you?",
    section: null,
    content: html`<p>Enter your password, and it goes on.</p>
      <form method="post">
        ${kept.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}
        ${fieldsOf("confirm", problem).text({
          name: FIELD,
          label: "Password",
          type: "password",
          autocomplete: "current-password",
          required: true
        })}
        <button type="submit" class="primary">Go on</button>
      </form>`
  })
}
