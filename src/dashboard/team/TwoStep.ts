/**
 * Two-step verification of the signed-in person: set-up with an authenticator app, recovery codes, turning off
 * (semantics dashboard.two_step).
 *
 * The set-up page makes a secret each time it is loaded, and stores none: the form sends it back sealed, with the first
 * code of the app.
 */
import { Effect, Layer, Redacted } from "effect"
import * as Totp from "../../domain/Totp.ts"
import { type Child, html } from "../../html/Html.ts"
import { Revealed } from "../../http/OneTimeSecrets.ts"
import { INSTALLATION } from "../../payments/shared/AccountIds.ts"
import * as DashboardSessions from "../../payments/team/DashboardSessions.ts"
import { PaymentsConfig } from "../../payments/shared/PaymentsConfig.ts"
import * as SecondFactors from "../../payments/team/SecondFactors.ts"
import { secondFactorOf } from "../frame/Confirmation.ts"
import { dialog, form, type Problem } from "../frame/Form.ts"
import { action, page, type Show } from "../frame/Page.ts"
import { qrPicture } from "../frame/QrCode.ts"
import type { PageContent } from "../frame/Shell.ts"
import { badge, code, facts, section, time } from "../frame/Values.ts"
import type { Visit } from "../frame/Visit.ts"

const PAGE = "/account/two-step"
const TITLE = "Two-step verification"
const BACK = ["/account", "Your account"] as const

/** Length of the merchant's name in the app's list. */
const NAME_LENGTH_MAX = 40

/** The secret of the form that was sent, after a mistake, or a new one. */
const secretFor = Effect.fnUntraced(function* ({ person }: Visit, problem: Problem | null) {
  const config = yield* PaymentsConfig
  const sealed = problem?.values.get("secret")
  const secret = sealed === undefined ? undefined : SecondFactors.openSecret(config, person.id, sealed)
  return secret === undefined ? SecondFactors.makeSecret(config, person.id) : { secret, sealed: sealed! }
})

const setUp = Effect.fnUntraced(function* (visit: Visit, problem: Problem | null) {
  const { sealed, secret } = yield* secretFor(visit, problem)
  const account = `${visit.merchant.name.slice(0, NAME_LENGTH_MAX).toWellFormed()}, ${visit.person.email!}`
  const text = Totp.base32(secret)
  return form({
    visit,
    action: `${PAGE}/on`,
    submit: "Turn on",
    problem,
    content: (fields) => [
      html`<ol class="steps">
        <li>
          <p>Scan this with an authenticator app on your phone, or enter the key by hand.</p>
          ${qrPicture({ text: Totp.addressOf(secret, { issuer: "Till", account }), label: "QR code for your app" })}
          <p>Key: ${code(text.replaceAll(/.{4}(?=.)/g, "$& "))}</p>
        </li>
        <li>
          <p>Enter the code that the app shows.</p>
          <input type="hidden" name="secret" value="${sealed}" />
          ${fields.text({
            name: "code",
            label: "Code",
            inputmode: "numeric",
            autocomplete: "one-time-code",
            required: true,
            hint: "Six digits. All your other browsers are signed out."
          })}
        </li>
      </ol>`
    ]
  })
})

const buttons = (visit: Visit, problem: Problem | null): Child => {
  const renew = dialog("New recovery codes", {
    visit,
    action: `${PAGE}/recovery-codes`,
    submit: "Make new codes",
    problem,
    content: () => html`<p>The old recovery codes stop working.</p>`
  })
  const off = dialog("Turn off", {
    visit,
    action: `${PAGE}/off`,
    submit: "Turn off",
    tone: "danger",
    problem,
    content: () => html`<p>Signing in then takes your password only.</p>`
  })
  return html`<div class="buttons">${renew} ${off}</div>`
}

const show: Show = Effect.fnUntraced(function* (visit, _, problem) {
  const common = { title: TITLE, section: null, back: BACK }
  const factor = yield* secondFactorOf(visit.person.id)
  if (factor !== undefined) {
    const { created, recovery_codes_left } = factor.value
    return {
      ...common,
      aside: [badge("on", "good"), buttons(visit, problem)],
      content: facts([
        ["Turned on", time(created)],
        ["Recovery codes left", `${recovery_codes_left} of ${SecondFactors.RECOVERY_CODES}`]
      ])
    }
  }
  const content = visit.person.has_password
    ? yield* setUp(visit, problem)
    : html`<p><a href="${visit.to("/account")}">Set an email and password</a> first.</p>`
  return { ...common, content }
})

/** The part of the account page. */
export const twoStepSection = Effect.fnUntraced(function* (visit: Visit) {
  const factor = yield* secondFactorOf(visit.person.id)
  const [state, link] =
    factor === undefined
      ? ["Off. Your password alone signs you in.", "Set up"]
      : [`On. ${factor.value.recovery_codes_left} of ${SecondFactors.RECOVERY_CODES} recovery codes left.`, "Change"]
  return section(TITLE, html`<p>${state}</p>`, html`<a class="button" href="${visit.to(PAGE)}">${link}</a>`)
})

/** The page with new recovery codes, which is shown once. */
const codesPage = (made: Readonly<Record<string, unknown>>): PageContent => {
  const codes = made["recovery_codes"] as ReadonlyArray<string> | undefined
  return {
    title: "Recovery codes",
    section: null,
    back: [PAGE, TITLE],
    notice: codes === undefined ? null : "Keep these codes where only you find them. They are not shown again.",
    content:
      codes === undefined
        ? html`<div class="empty">These codes were already shown. Make new ones if you do not have them.</div>`
        : section("Each code signs you in once, without your phone", html`<pre class="copy">${codes.join("\n")}</pre>`)
  }
}

/** A factor with new recovery codes, which only the first response contains. */
const reveal = ({ codes, factor }: SecondFactors.WithRecoveryCodes) =>
  new Revealed(factor, { recovery_codes: Redacted.value(codes) }, "object")

const common = { right: "see", page: PAGE, show } as const

const turnOn = action({
  ...common,
  name: "person.turn_on_two_step",
  path: `${PAGE}/on`,
  notice: "Two-step verification is on.",
  confirms: () => true,
  prepare: Effect.fnUntraced(function* (visit, _, values) {
    const config = yield* PaymentsConfig
    const { id } = visit.person
    const { sealed } = yield* secretFor(visit, { action: "", message: null, errors: {}, values })
    const entered = { code: values.get("code") ?? "", sealed }
    return {
      account: INSTALLATION,
      entered,
      subject: id,
      command: SecondFactors.turnOn(config, id, entered).pipe(
        Effect.tap(() => DashboardSessions.endOthers(visit.person, visit.session.id)),
        Effect.map(reveal)
      ),
      next: codesPage
    }
  })
})

const renewCodes = action({
  ...common,
  name: "person.renew_recovery_codes",
  path: `${PAGE}/recovery-codes`,
  notice: "Recovery codes replaced.",
  confirms: () => "again",
  prepare: ({ person: { id } }) =>
    Effect.succeed({
      account: INSTALLATION,
      entered: {},
      subject: id,
      command: Effect.map(SecondFactors.renewCodes(id), reveal),
      next: codesPage
    })
})

const turnOff = action({
  ...common,
  name: "person.turn_off_two_step",
  path: `${PAGE}/off`,
  notice: "Two-step verification is off.",
  confirms: () => "again",
  prepare: ({ person: { id } }) =>
    Effect.succeed({ account: INSTALLATION, entered: {}, subject: id, command: SecondFactors.turnOff(id) })
})

export const layer = Layer.mergeAll(page(PAGE, "see", show), turnOn, renewCodes, turnOff)
