/** The list of operations at processors, filtered by status and kind. */
import { Effect } from "effect"
import { OperationKind, OperationStatus } from "../../domain/Operation.ts"
import { OPERATION } from "../../payments/shared/Documents.ts"
import { filters } from "../frame/Form.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import { page, type Show } from "../frame/Page.ts"
import { listObjects } from "../frame/Queries.ts"
import { cursorIn, pageLinks, table } from "../frame/Table.ts"
import { money, time } from "../frame/Values.ts"
import { operationBadge, statusName, thingOf } from "../history/OperationSummary.ts"

const show: Show = Effect.fnUntraced(function* (visit) {
  const { account, query } = visit
  const status = OperationStatus.literals.find((status) => status === query.get("status"))
  const kind = OperationKind.literals.find((kind) => kind === query.get("kind"))
  const labels = { ...(status !== undefined && { status }), ...(kind !== undefined && { kind }) }
  const { hasMore, rows } = yield* listObjects(account, OPERATION, { cursor: cursorIn(query), labels })
  const any = ["", "Any"] as const
  return {
    title: "Operations at the processor",
    section: "Payments",
    back: ["/payments", "Payments"],
    live: ["operation"],
    content: [
      filters(visit, "/operations", (fields) => [
        fields.choice({
          name: "status",
          label: "Status",
          options: [any, ...OperationStatus.literals.map((status) => [status, statusName(status)] as const)]
        }),
        fields.choice({
          name: "kind",
          label: "Kind",
          options: [any, ...OperationKind.literals.map((kind) => [kind, thingOf({ kind })] as const)]
        })
      ]),
      table({
        caption: "Operations, newest first",
        columns: [
          { name: "Amount", align: "end", cell: ({ amount, currency }) => money(amount, currency) },
          { name: "Status", cell: operationBadge },
          { name: "Asked for", cell: thingOf },
          { name: "Payment", wide: true, cell: ({ payment_intent }) => objectLink(visit, payment_intent) },
          { name: "Date", cell: ({ created }) => time(created) }
        ],
        rows,
        href: ({ id }) => visit.to(`/operations/${id}`),
        empty:
          Object.keys(labels).length === 0
            ? "No operations yet. Each request to a processor behind a network is one."
            : "No operations match these filters."
      }),
      pageLinks(visit, rows, hasMore)
    ]
  }
})

export const layer = page("/operations", "see", show)
