/** The page of a team member: role, sessions, sign-ins and removal (semantics dashboard.team). */
import { Effect, Layer, Schema } from "effect"
import { ResourceMissing } from "../../domain/Errors.ts"
import { type DashboardSession, Role } from "../../domain/Person.ts"
import { html } from "../../html/Html.ts"
import { INSTALLATION } from "../../payments/shared/AccountIds.ts"
import * as DashboardSessions from "../../payments/team/DashboardSessions.ts"
import * as People from "../../payments/team/People.ts"
import * as SecondFactors from "../../payments/team/SecondFactors.ts"
import { secondFactorOf } from "../frame/Confirmation.ts"
import { dialog, form, type Problem } from "../frame/Form.ts"
import { sessionTable, signInTable } from "../frame/SignIns.ts"
import { badge, code, facts, section, time } from "../frame/Values.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"
import { invitationsSection, inviteAction, inviteDialog } from "./Invitation.ts"
import { linkPage, nameOf, ROLES, sessionsOf, signInsOf, withLink } from "./Team.ts"
import type { Visit } from "../frame/Visit.ts"
import { readInstallation } from "../frame/Visitors.ts"

const SHOWN_MAX = 25

/** Returns a person of this merchant. Fails with `ResourceMissing` for any other. */
const find = Effect.fnUntraced(function* (visit: Visit, id: string) {
  const person = (yield* readInstallation(People.PERSON, id))?.value
  return person?.merchant_id === visit.merchant.id
    ? person
    : yield* new ResourceMissing({ kind: "Person", id, param: "id" })
})

const endForm = (visit: Visit, person: string, { id }: DashboardSession, problem: Problem | null) =>
  form({
    visit,
    action: `/team/${person}/end`,
    submit: "Sign out",
    tone: "danger",
    problem,
    content: () => html`<input type="hidden" name="session" value="${id}" />`
  })

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const person = yield* find(visit, id)
  const [sessions, signIns, factor] = yield* Effect.all([sessionsOf(id), signInsOf(id, SHOWN_MAX), secondFactorOf(id)])
  const invitations = yield* invitationsSection(visit, person)
  const role = dialog("Change the role", {
    visit,
    action: `/team/${id}/role`,
    submit: "Change",
    problem,
    content: (fields) => fields.choice({ name: "role", label: "Role", value: person.role, options: ROLES })
  })
  const link = dialog("Create a sign-in link", {
    visit,
    action: `/team/${id}/link`,
    submit: "Create link",
    problem,
    content: () =>
      html`<p>The link signs in as this person once, for a first sign-in or after a forgotten password.</p>`
  })
  const turnOffTwoStep =
    factor !== undefined &&
    id !== visit.person.id &&
    dialog("Turn off two-step verification", {
      visit,
      action: `/team/${id}/two-step`,
      submit: "Turn off",
      tone: "danger",
      problem,
      content: () =>
        html`<p>
          For a person who has lost the phone and the recovery codes. Make sure that it is this person who asks.
        </p>`
    })
  const remove = dialog("Remove", {
    visit,
    action: `/team/${id}/remove`,
    submit: "Remove this person",
    tone: "danger",
    problem,
    content: () => html`<p>Their sessions end immediately. Their actions stay in the audit log.</p>`
  })
  return {
    title: person.email ?? "No email yet",
    section: "Team",
    back: ["/team", "Team"],
    aside: [
      badge(person.role, "plain"),
      html`<div class="buttons">
        ${role} ${inviteDialog(visit, person, problem)} ${link} ${turnOffTwoStep} ${remove}
      </div>`
    ],
    content: [
      facts([
        ["ID", code(person.id)],
        ["Email", nameOf(person)],
        ["Password", person.has_password ? "set" : "not set: sign-in by link only"],
        ["Two-step verification", factor === undefined ? "off" : "on"],
        ["Created", time(person.created)],
        ["Actions", html`<a href="${visit.to("/team/audit", { person: id })}">Audit log</a>`]
      ]),
      invitations,
      section(
        "Active sessions",
        sessionTable(visit, sessions, (session) => endForm(visit, id, session, problem))
      ),
      section("Sign-ins", signInTable(signIns))
    ]
  }
})

const PAGE = "/team/:id"

const common = { right: "team", page: PAGE, show, confirms: () => true } as const

const setRole = action({
  ...common,
  name: "person.set_role",
  path: `${PAGE}/role`,
  notice: "Role changed.",
  prepare: (visit, { id = "" }, values) => {
    const role = values.get("role")
    if (!Schema.is(Role)(role)) return Effect.succeed(new Invalid({ role: "Choose a role." }))
    return Effect.succeed({
      account: INSTALLATION,
      entered: { role },
      detail: role,
      command: People.setRole(visit.merchant.id, id, role)
    })
  }
})

const link = action({
  ...common,
  name: "person.link",
  path: `${PAGE}/link`,
  notice: "Link created.",
  prepare: (visit, { id = "" }) =>
    Effect.succeed({
      account: INSTALLATION,
      entered: {},
      command: Effect.flatMap(People.find(visit.merchant.id, id), ({ value }) => withLink(value)),
      next: linkPage(visit)
    })
})

const endSession = action({
  ...common,
  name: "person.end_session",
  path: `${PAGE}/end`,
  notice: "The session is signed out.",
  prepare: (visit, { id = "" }, values) => {
    const session = values.get("session") ?? ""
    return Effect.succeed({
      account: INSTALLATION,
      entered: { session },
      detail: session,
      command: Effect.flatMap(People.find(visit.merchant.id, id), ({ value }) =>
        DashboardSessions.endOwn(value, session)
      )
    })
  }
})

const turnOffTwoStep = action({
  ...common,
  name: "person.reset_two_step",
  path: `${PAGE}/two-step`,
  notice: "Two-step verification is off for this person.",
  // A person's own two-step verification takes a code to turn off.
  allows: ({ person }, { id = "" }) => Effect.succeed(id !== person.id),
  prepare: (visit, { id = "" }) =>
    Effect.succeed({
      account: INSTALLATION,
      entered: {},
      command: Effect.andThen(People.find(visit.merchant.id, id), SecondFactors.turnOff(id))
    })
})

const remove = action({
  ...common,
  name: "person.remove",
  path: `${PAGE}/remove`,
  notice: "Person removed.",
  prepare: Effect.fnUntraced(function* (visit, { id = "" }) {
    // A repeated submission finds no person and gets the stored response.
    const person = yield* readInstallation(People.PERSON, id)
    return {
      account: INSTALLATION,
      entered: {},
      detail: person?.value.email ?? null,
      command: People.remove(visit.merchant.id, id),
      next: () => "/team" as const
    }
  })
})

export const layer = Layer.mergeAll(
  page(PAGE, "team", show),
  setRole,
  inviteAction(show),
  link,
  endSession,
  turnOffTwoStep,
  remove
)
