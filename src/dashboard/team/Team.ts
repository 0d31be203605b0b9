/** The team (semantics dashboard.team). `Member.ts` shows one person, `AuditLog.ts` all actions. */
import { Clock, Effect, Layer, Redacted, Schema } from "effect"
import { type Person, Role } from "../../domain/Person.ts"
import { isMailable } from "../../domain/Mail.ts"
import { Email } from "../../domain/Text.ts"
import { Revealed } from "../../http/OneTimeSecrets.ts"
import { html } from "../../html/Html.ts"
import { INSTALLATION } from "../../payments/shared/AccountIds.ts"
import * as DashboardSessions from "../../payments/team/DashboardSessions.ts"
import * as People from "../../payments/team/People.ts"
import { invite } from "../../payments/team/PeopleMails.ts"
import { dialog } from "../frame/Form.ts"
import { table } from "../frame/Table.ts"
import { badge, code, facts, NOTHING, time } from "../frame/Values.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"
import { listObjects } from "../frame/Queries.ts"
import type { PageContent } from "../frame/Shell.ts"
import type { Visit } from "../frame/Visit.ts"
import { readInstallation } from "../frame/Visitors.ts"

export const membersOf = Effect.fnUntraced(function* (merchantId: string) {
  const team = yield* readInstallation(People.TEAM, People.teamId(merchantId))
  const people = yield* Effect.forEach(team?.value.people ?? [], (id) => readInstallation(People.PERSON, id))
  return people.flatMap((person) => (person === undefined ? [] : [person.value]))
})

export const signInsOf = Effect.fnUntraced(function* (person: string, limit: number) {
  return (yield* listObjects(INSTALLATION, DashboardSessions.SIGN_IN, { labels: { person }, limit })).rows
})

export const sessionsOf = Effect.fnUntraced(function* (person: string) {
  const of = yield* readInstallation(People.PERSON, person)
  if (of === undefined) return []
  const ids =
    (yield* readInstallation(DashboardSessions.SESSIONS_OF, DashboardSessions.sessionsOfId(person)))?.value.sessions ??
    []
  const sessions = yield* Effect.forEach(ids.toReversed(), (id) =>
    readInstallation(DashboardSessions.DASHBOARD_SESSION, id)
  )
  const now = yield* Clock.currentTimeMillis
  return sessions.flatMap((session) =>
    session !== undefined && DashboardSessions.isOpen(session, of, now) ? [session.value] : []
  )
})

export const nameOf = ({ email }: Pick<Person, "email">) => email ?? html`<i class="whole">no email yet</i>`

export const ROLES: ReadonlyArray<readonly [Role, string]> = [
  ["owner", "Owner: everything"],
  ["developer", "Developer: everything except the team and live keys"],
  ["support", "Support: views payments and refunds them"]
]

const show: Show = Effect.fnUntraced(function* (visit, _, problem) {
  const people = yield* membersOf(visit.merchant.id)
  const rows = yield* Effect.forEach(
    people,
    (person) => Effect.map(signInsOf(person.id, 1), ([last]) => ({ ...person, lastIn: last?.created })),
    { concurrency: 4 }
  )
  const add = dialog("Invite a teammate", {
    visit,
    action: "/team/add",
    submit: "Invite",
    tone: "primary",
    problem,
    content: (fields) => [
      fields.text({ name: "email", label: "Email", type: "email", required: true }),
      fields.choice({ name: "role", label: "Role", value: "support", options: ROLES })
    ]
  })
  return {
    title: "Team",
    section: "Team",
    aside: html`<div class="buttons"><a class="button" href="${visit.to("/team/audit")}">Audit log</a> ${add}</div>`,
    content: table({
      caption: "People who can sign in",
      columns: [
        { name: "Email", long: true, cell: nameOf },
        { name: "Role", cell: ({ role }) => badge(role, "plain") },
        { name: "You", cell: ({ id }) => (id === visit.person.id ? badge("you", "good") : null), wide: true },
        { name: "Last sign-in", cell: ({ lastIn }) => (lastIn === undefined ? NOTHING : time(lastIn)) },
        { name: "Created", cell: ({ created }) => time(created), wide: true }
      ],
      rows,
      href: ({ id }) => visit.to(`/team/${id}`),
      empty: "None."
    })
  }
})

/** A person with a new sign-in link, which only the first response contains. */
export const withLink = (person: Person) =>
  Effect.map(
    DashboardSessions.makeLink(person),
    (link) => new Revealed(person, { link: Redacted.value(link) }, "object")
  )

export const linkPage =
  (visit: Visit) =>
  (made: { readonly id?: string } & Readonly<Record<string, unknown>>): PageContent => ({
    title: "Sign-in link",
    section: "Team",
    back: [`/team/${made.id!}`, "Teammate"],
    notice:
      typeof made["link"] === "string"
        ? "Send this link to this person only. It works once, within 10 minutes, and is not shown again."
        : null,
    content:
      typeof made["link"] === "string"
        ? facts([
            ["For", nameOf({ email: (made["email"] as string | null) ?? null })],
            ["Role", badge(String(made["role"]), "plain")],
            ["Link", code(visit.publicUrl + DashboardSessions.pathOf(Redacted.make(made["link"])))]
          ])
        : html`<div class="empty">This link was already shown. Create another on the person's page.</div>`
  })

const add = action({
  name: "person.add",
  right: "team",
  page: "/team",
  path: "/team/add",
  show,
  notice: "Teammate added.",
  confirms: () => true,
  prepare: (visit, _, values) => {
    const [email, role] = [values.get("email"), values.get("role")]
    if (!Schema.is(Email)(email)) return Effect.succeed(new Invalid({ email: "Enter an email address." }))
    if (!Schema.is(Role)(role)) return Effect.succeed(new Invalid({ role: "Choose a role." }))
    if (visit.sendsMail && !isMailable(email)) {
      return Effect.succeed(new Invalid({ email: "Mail cannot be sent to this address." }))
    }
    const added = People.add(visit.merchant.id, { email, role })
    return Effect.succeed({
      account: INSTALLATION,
      entered: { email, role },
      detail: `${email}, ${role}`,
      ...(visit.sendsMail
        ? { command: Effect.tap(added, invite), next: ({ id }) => `/team/${id!}` as const }
        : { command: Effect.flatMap(added, withLink), next: linkPage(visit) })
    })
  }
})

export const layer = Layer.merge(page("/team", "team", show), add)
