/**
 * The audit log (semantics dashboard.audit), newest first. An entry is in the account that the action has changed, so
 * there are two logs: the merchant's (people, keys, settings) and the environment's.
 */
import { Effect } from "effect"
import { html } from "../../html/Html.ts"
import { INSTALLATION } from "../../payments/shared/AccountIds.ts"
import * as Audit from "../../payments/team/Audit.ts"
import { filters } from "../frame/Form.ts"
import { cursorIn, pageLinks, table } from "../frame/Table.ts"
import { forDevelopers } from "../frame/Json.ts"
import { time } from "../frame/Values.ts"
import { listObjects } from "../frame/Queries.ts"
import { actionNames, page, type Show } from "../frame/Page.ts"
import { actionTitle, sentenceOf } from "./AuditSentences.ts"
import { membersOf } from "./Team.ts"
import type { Visit } from "../frame/Visit.ts"

/** The filter of the query. Invalid values are ignored. */
const readFilter = ({ query }: Visit) => {
  const [action = "", person = ""] = [query.get("action") ?? "", query.get("person") ?? ""]
  return {
    isOfEnvironment: query.get("of") === "environment",
    labels: {
      ...(actionNames().includes(action) && { action }),
      ...(/^per_[0-9A-Za-z]{1,64}$/.test(person) && { person })
    }
  }
}

const readEntries = (visit: Visit) => {
  const { isOfEnvironment, labels } = readFilter(visit)
  return listObjects(isOfEnvironment ? visit.account : INSTALLATION, Audit.AUDIT_ENTRY, {
    cursor: cursorIn(visit.query),
    labels: { ...labels, merchant_id: visit.merchant.id }
  })
}

const show: Show = Effect.fnUntraced(function* (visit) {
  const { hasMore, rows } = yield* readEntries(visit)
  const people = yield* membersOf(visit.merchant.id)
  // The first owner had no email when signing in by the first link.
  const emails = new Map(people.map(({ email, id }) => [id, email] as const))
  const isFiltered = Object.keys(readFilter(visit).labels).length > 0
  return {
    title: "Audit log",
    section: "Team",
    back: ["/team", "Team"],
    content: [
      filters(visit, "/team/audit", (fields) => [
        fields.choice({
          name: "of",
          label: "Log",
          options: [
            ["", "Team and settings"],
            ["environment", `The ${visit.mode} environment`]
          ]
        }),
        fields.choice({
          name: "person",
          label: "Person",
          options: [["", "Everyone"], ...people.map(({ email, id }) => [id, email ?? id] as const)]
        }),
        fields.choice({
          name: "action",
          label: "Action",
          options: [["", "All"], ...actionNames().map((name) => [name, actionTitle(name)] as const)]
        })
      ]),
      table({
        caption: "Actions, newest first",
        columns: [
          { name: "Time", cell: ({ created }) => time(created) },
          {
            name: "Action",
            cell: (entry) => {
              const { email, person, role } = entry
              const name = email ?? emails.get(person) ?? html`<i>A teammate without an email</i>`
              return html`<span class="sentence"
                ><a href="${visit.here({ person, after: null, before: null })}">${name}</a> (${role})
                ${sentenceOf(visit, entry)}.</span
              >`
            }
          },
          {
            name: "Details",
            wide: true,
            cell: ({ action, request }) =>
              forDevelopers(
                html`<code class="whole">${action}</code> ${request !== null && html`<code>${request}</code>`}`
              )
          }
        ],
        rows,
        empty: isFiltered ? "No actions match these filters." : "No actions yet."
      }),
      pageLinks(visit, rows, hasMore)
    ]
  }
})

export const layer = page("/team/audit", "team", show)
