/** The signed-in person's own account: credentials, sessions and sign-ins. */
import { Effect, Layer, Schema } from "effect"
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from "../../domain/Person.ts"
import { Email } from "../../domain/Text.ts"
import { hasLengthAtMost } from "../../domain/Length.ts"
import { html } from "../../html/Html.ts"
import { INSTALLATION } from "../../payments/AccountIds.ts"
import * as DashboardSessions from "../../payments/DashboardSessions.ts"
import { Passwords } from "../../payments/Passwords.ts"
import * as People from "../../payments/People.ts"
import { dialog, form } from "../frame/Form.ts"
import { originHtml, signInTable } from "../frame/SignIns.ts"
import { table } from "../frame/Table.ts"
import { badge, section, time } from "../frame/Values.ts"
import { keysSetting } from "../frame/Shell.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"
import { sessionsOf, signInsOf } from "./Team.ts"

const SHOWN_MAX = 20

const show: Show = Effect.fnUntraced(function* (visit, _, problem) {
  const { id } = visit.person
  const [sessions, signIns] = yield* Effect.all([sessionsOf(id), signInsOf(id, SHOWN_MAX)])
  const { email, has_password, role } = visit.person
  const credentials = form({
    visit,
    action: "/account/credentials",
    submit: has_password ? "Change" : "Set",
    problem,
    content: (fields) => [
      fields.text({ name: "email", label: "Email", type: "email", value: email ?? "", autocomplete: "username" }),
      fields.text({
        name: "password",
        label: has_password ? "New password" : "Password",
        type: "password",
        autocomplete: "new-password",
        hint: [
          `At least ${PASSWORD_LENGTH_MIN} characters. All other browsers are signed out.`,
          !has_password && " You must have signed in with a link in the last 10 minutes."
        ]
      })
    ]
  })
  return {
    title: "Your account",
    section: null,
    aside: badge(role, "plain"),
    content: [
      section(has_password ? "Email and password" : "Set an email and password", credentials),
      section(
        "Active sessions",
        table({
          caption: "Your sessions",
          columns: [
            { name: "Signed in", cell: ({ created }) => time(created) },
            { name: "From", cell: originHtml },
            { name: "Expires", cell: ({ expires_at }) => time(expires_at), wide: true },
            {
              name: "End",
              align: "end",
              cell: ({ id }) =>
                id === visit.session.id
                  ? badge("this session", "good")
                  : dialog("End", {
                      visit,
                      action: `/account/sessions/${id}/end`,
                      submit: "End this session",
                      tone: "danger",
                      problem
                    })
            }
          ],
          rows: sessions,
          empty: "None."
        })
      ),
      section("Recent sign-ins", signInTable(signIns)),
      section(
        "Keyboard shortcuts",
        html`<p class="hint">Press <kbd>?</kbd> for a list of shortcuts. This setting is stored in your browser.</p>
          ${keysSetting()}`
      )
    ]
  }
})

/** The error about a password; undefined if it is acceptable. */
const complaint = (password: string): string | undefined => {
  if (hasLengthAtMost(password, PASSWORD_LENGTH_MIN - 1)) return `Use at least ${PASSWORD_LENGTH_MIN} characters.`
  return hasLengthAtMost(password, PASSWORD_LENGTH_MAX) ? undefined : `Use at most ${PASSWORD_LENGTH_MAX} characters.`
}

const credentials = action({
  name: "person.set_credentials",
  right: "see",
  page: "/account",
  path: "/account/credentials",
  show,
  notice: "Saved. Use this email and password to sign in. All other browsers are signed out.",
  // A sign-in by link proves enough, because the password may be forgotten.
  confirms: ({ person, session }) => (person.has_password && session.means === "password" ? "again" : true),
  prepare: Effect.fnUntraced(function* ({ person, session }, _, values) {
    const [email, password] = [values.get("email") ?? "", values.get("password") ?? ""]
    const isAddress = Schema.is(Email)(email)
    const wrong = complaint(password)
    if (!isAddress || wrong !== undefined) {
      return new Invalid({
        ...(!isAddress && { email: "Enter an email address." }),
        ...(wrong !== undefined && { password: wrong })
      })
    }
    const hash = yield* Passwords.use(({ hash }) => hash({ person: person.id, email }, password))
    return {
      account: INSTALLATION,
      entered: { email },
      subject: person.id,
      command: Effect.tap(People.setCredentials(person.merchant_id, person.id, { email, password: hash }), () =>
        DashboardSessions.keepOpen(session.id)
      )
    }
  })
})

const endSession = action({
  name: "dashboard_session.end",
  right: "see",
  page: "/account",
  path: "/account/sessions/:id/end",
  show,
  notice: "Session ended.",
  prepare: (visit, { id = "" }) =>
    Effect.succeed({
      account: INSTALLATION,
      entered: {},
      // Another person's session is not found, as if there were none.
      command: DashboardSessions.endOwn(visit.person, id)
    })
})

export const layer = Layer.mergeAll(page("/account", "see", show), credentials, endSession)
