/** The page of a team member: role, sessions, sign-ins and removal (semantics dashboard.team). */
import { Effect, Layer, Schema } from "effect"
import { ResourceMissing } from "../../domain/Errors.ts"
import { type DashboardSession, Role } from "../../domain/Person.ts"
import { html } from "../../html/Html.ts"
import { INSTALLATION } from "../../payments/AccountIds.ts"
import * as DashboardSessions from "../../payments/DashboardSessions.ts"
import * as People from "../../payments/People.ts"
import { dialog, form, type Problem } from "../frame/Form.ts"
import { originHtml, signInTable } from "../frame/SignIns.ts"
import { table } from "../frame/Table.ts"
import { badge, code, facts, section, time } from "../frame/Values.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"
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

const sessionTable = (visit: Visit, person: string, rows: ReadonlyArray<DashboardSession>, problem: Problem | null) =>
  table({
    caption: "Open sessions, newest first",
    columns: [
      { name: "Signed in", cell: ({ created }) => time(created) },
      { name: "From", cell: originHtml },
      { name: "Expires", cell: ({ expires_at }) => time(expires_at), wide: true },
      {
        name: "End",
        align: "end",
        cell: ({ id }) =>
          form({
            visit,
            action: `/team/${person}/end`,
            submit: id === visit.session.id ? "End this session" : "End",
            tone: "danger",
            problem,
            content: () => html`<input type="hidden" name="session" value="${id}" />`
          })
      }
    ],
    rows,
    empty: "No active sessions."
  })

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const person = yield* find(visit, id)
  const [sessions, signIns] = yield* Effect.all([sessionsOf(id), signInsOf(id, SHOWN_MAX)])
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
    aside: [badge(person.role, "plain"), html`<div class="buttons">${role} ${link} ${remove}</div>`],
    content: [
      facts([
        ["ID", code(person.id)],
        ["Email", nameOf(person)],
        ["Password", person.has_password ? "set" : "not set: sign-in by link only"],
        ["Created", time(person.created)],
        ["Actions", html`<a href="${visit.to("/team/audit", { person: id })}">Audit log</a>`]
      ]),
      section("Active sessions", sessionTable(visit, id, sessions, problem)),
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
  notice: "Session ended.",
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

export const layer = Layer.mergeAll(page(PAGE, "team", show), setRole, link, endSession, remove)
