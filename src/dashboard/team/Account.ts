/** The signed-in person's own account: credentials, time zone, sessions and sign-ins. */
import { Effect, Layer, Schema } from "effect"
import { type DashboardSession, PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from "../../domain/Person.ts"
import { Email } from "../../domain/Text.ts"
import { hasLengthAtMost } from "../../domain/Length.ts"
import { html, type Html } from "../../html/Html.ts"
import { INSTALLATION } from "../../payments/shared/AccountIds.ts"
import * as DashboardSessions from "../../payments/team/DashboardSessions.ts"
import { Passwords } from "../../payments/team/Passwords.ts"
import * as People from "../../payments/team/People.ts"
import { dialog, form, type Problem } from "../frame/Form.ts"
import { sessionTable, signInTable } from "../frame/SignIns.ts"
import { isTimeZone, timeZones } from "../frame/TimeZones.ts"
import { badge, section } from "../frame/Values.ts"
import type { Visit } from "../frame/Visit.ts"
import { keysSetting } from "../frame/Shell.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"
import { sessionsOf, signInsOf } from "./Team.ts"
import { twoStepSection } from "./TwoStep.ts"

const SHOWN_MAX = 20

const credentialsForm = (visit: Visit, problem: Problem | null): Html => {
  const { email, has_password } = visit.person
  return form({
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
}

const zoneForm = (visit: Visit, problem: Problem | null): Html =>
  form({
    visit,
    action: "/account/time-zone",
    submit: "Save",
    problem,
    content: (fields) =>
      fields.choice({
        name: "time_zone",
        label: "Time zone",
        value: visit.person.time_zone ?? "",
        options: [["", "Not set (UTC)"], ...timeZones().map((name) => [name, name.replaceAll("_", " ")] as const)],
        hint: "For times, days of charts and filters, and files. Until you set it, pages show your browser's time."
      })
  })

const sessionsSection = (visit: Visit, sessions: ReadonlyArray<DashboardSession>, problem: Problem | null): Html => {
  const common = { visit, tone: "danger", problem } as const
  const end = ({ id }: DashboardSession) =>
    id === visit.session.id
      ? badge("this session", "good")
      : dialog("Sign out", { ...common, action: `/account/sessions/${id}/end`, submit: "Sign out this session" })
  const endOthers = dialog("Sign out all others", {
    ...common,
    action: "/account/sessions/end-others",
    submit: "Sign out all other sessions"
  })
  return section("Active sessions", sessionTable(visit, sessions, end), sessions.length > 1 && endOthers)
}

const show: Show = Effect.fnUntraced(function* (visit, _, problem) {
  const { has_password, id, role } = visit.person
  const [sessions, signIns] = yield* Effect.all([sessionsOf(id), signInsOf(id, SHOWN_MAX)])
  return {
    title: "Your account",
    section: null,
    aside: badge(role, "plain"),
    content: [
      section(has_password ? "Email and password" : "Set an email and password", credentialsForm(visit, problem)),
      yield* twoStepSection(visit),
      html`<div id="time-zone">${section("Time zone", zoneForm(visit, problem))}</div>`,
      sessionsSection(visit, sessions, problem),
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

const onPage = { right: "see", page: "/account", show } as const

const credentials = action({
  ...onPage,
  name: "person.set_credentials",
  path: "/account/credentials",
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
  ...onPage,
  name: "dashboard_session.end",
  path: "/account/sessions/:id/end",
  notice: "The session is signed out.",
  prepare: (visit, { id = "" }) =>
    Effect.succeed({
      account: INSTALLATION,
      entered: {},
      // Another person's session is not found, as if there were none.
      command: DashboardSessions.endOwn(visit.person, id)
    })
})

const endOtherSessions = action({
  ...onPage,
  name: "dashboard_session.end_others",
  path: "/account/sessions/end-others",
  notice: "All other sessions are signed out.",
  prepare: ({ person, session }) =>
    Effect.succeed({
      account: INSTALLATION,
      entered: {},
      subject: person.id,
      command: Effect.as(DashboardSessions.endOthers(person, session.id), session)
    })
})

const setTimeZone = action({
  ...onPage,
  name: "person.set_time_zone",
  path: "/account/time-zone",
  notice: "Time zone saved.",
  prepare: ({ person }, _, values) => {
    const zone = values.get("time_zone") || null
    if (zone !== null && !isTimeZone(zone)) return Effect.succeed(new Invalid({ time_zone: "Choose a time zone." }))
    return Effect.succeed({
      account: INSTALLATION,
      entered: { zone },
      subject: person.id,
      detail: zone,
      command: People.setTimeZone(person.merchant_id, person.id, zone)
    })
  }
})

export const layer = Layer.mergeAll(
  page("/account", "see", show),
  credentials,
  endSession,
  endOtherSessions,
  setTimeZone
)
