/**
 * Asks a signed-in person for the password again, and for a code if two-step verification is on, before an action that
 * must not be possible with a stolen session alone. The page carries the submitted form in hidden fields and sends it
 * again with both, so nothing has to be entered twice.
 */
import { Clock, Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { secondsOf } from "../../domain/Time.ts"
import { Accounts, Unavailable } from "../../engine/Accounts.ts"
import { html, type Html } from "../../html/Html.ts"
import type { FormValues } from "../../html/Forms.ts"
import { administerAnywhere } from "../../http/forward/Calls.ts"
import { PASSWORD_FIELD as FIELD } from "../../payments/team/GivenUp.ts"
import { Passwords } from "../../payments/team/Passwords.ts"
import { PaymentsConfig } from "../../payments/shared/PaymentsConfig.ts"
import * as SecondFactors from "../../payments/team/SecondFactors.ts"
import { type Fields, fieldsOf } from "./Form.ts"
import { shell } from "./Shell.ts"
import { HELD_BACK, SignInLimits } from "./SignInLimits.ts"
import type { Visit } from "./Visit.ts"
import { originOf, readInstallation, type Visitor } from "./Visitors.ts"

/** The form field of the code. */
const CODE_FIELD = "confirm_code"

export interface PasswordPage {
  readonly document: Html
  readonly status: number
}

/** A person's second factor; undefined without two-step verification. */
export const secondFactorOf = (person: string) =>
  readInstallation(SecondFactors.SECOND_FACTOR, SecondFactors.secondFactorId(person))

/** The field of a code, at sign-in and before an action. */
export const codeField = (fields: Fields, name: string): Html =>
  fields.text({
    name,
    label: "Code",
    autocomplete: "one-time-code",
    required: true,
    hint: "The six digits that your authenticator app shows now, or one of your recovery codes."
  })

export const CODE_USED = "This code was already used. Wait for the next one."
export const CODE_WRONG = "This code is wrong. Check the clock of your phone, or enter the next code."

/** The error beside the field of this name. */
class Refused {
  readonly field: string
  readonly message: string
  constructor(field: string, message: string) {
    this.field = field
    this.message = message
  }
}

/** Notes the confirmation, with the second step. Without it, a failure to note only means to be asked again. */
const confirmSession = Effect.fnUntraced(function* (session: string, proof: SecondFactors.Proof | null) {
  const noted = administerAnywhere({ _tag: "ConfirmSession", session, proof })
  if (proof === null) return void (yield* Effect.ignore(noted))
  return yield* noted.pipe(
    Effect.as(undefined),
    Effect.catchTag("AdministrationFailed", () => Effect.succeed(new Refused(CODE_FIELD, CODE_USED)))
  )
})

/** Returns null after a correct password, and code if one is needed, otherwise the page that asks for them. */
export const checkPassword = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  visit: Visit,
  { document, person, session }: Visitor,
  values: FormValues
) {
  const factor = yield* secondFactorOf(person.id)
  const pageWith = (status: number, refused?: Refused): PasswordPage => ({
    document: formPage(visit, values, factor !== undefined, refused),
    status
  })
  const [password, code] = [values.get(FIELD), values.get(CODE_FIELD)]
  if (password === undefined || !person.has_password) return pageWith(200)
  const limits = yield* SignInLimits
  const config = yield* PaymentsConfig
  const { address } = yield* originOf(request)
  let refused = new Refused(FIELD, "Wrong password.")
  const check = Effect.gen(function* () {
    const [owner] = yield* Passwords.use(({ ownersOf }) => ownersOf(person.email!, password, [document]))
    if (owner === undefined) return undefined
    const now = secondsOf(yield* Clock.currentTimeMillis)
    const proof = factor && SecondFactors.match(config, person.id, factor, code ?? "", now)
    const problem =
      factor !== undefined && proof === undefined
        ? new Refused(CODE_FIELD, CODE_WRONG)
        : yield* confirmSession(session.id, proof ?? null)
    if (problem === undefined) return true
    refused = problem
    return undefined
  })
  const found = yield* limits.attempt({ who: person.id, address }, check)
  if (found === HELD_BACK) return pageWith(429, new Refused(FIELD, "Too many attempts. Try again in 15 minutes."))
  return found === undefined ? pageWith(403, refused) : null
})

/** True if the form contains a password, so it comes from the password page. */
export const hasPassword = (values: FormValues): boolean => values.has(FIELD)

/** The page that asks for the password, with the submitted form in hidden fields. */
export const passwordPage = (visit: Visit, values: FormValues): Effect.Effect<Html, Unavailable, Accounts> =>
  Effect.map(secondFactorOf(visit.person.id), (factor) => formPage(visit, values, factor !== undefined))

const formPage = (visit: Visit, values: FormValues, hasFactor: boolean, refused?: Refused): Html => {
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
  const kept = [...values].filter(([name]) => name !== FIELD && name !== CODE_FIELD)
  const errors = refused === undefined ? {} : { [refused.field]: refused.message }
  const problem = refused === undefined ? null : { action: "" as const, message: null, errors, values: new Map() }
  const fields = fieldsOf("confirm", problem)
  return shell(visit, {
    title: "Confirm it's you",
    section: null,
    content: html`<p>Enter your current password${hasFactor && " and a code"} to continue.</p>
      <form method="post">
        ${kept.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}
        ${fields.text({
          name: FIELD,
          label: "Password",
          type: "password",
          autocomplete: "current-password",
          required: true
        })}
        ${hasFactor && codeField(fields, CODE_FIELD)}
        <button type="submit" class="primary">Continue</button>
      </form>`
  })
}
