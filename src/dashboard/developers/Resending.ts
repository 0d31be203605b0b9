/** Resends an endpoint's deliveries (semantics dashboard.resend): selected ones, or failed ones of a time window. */
import { Effect } from "effect"
import { ParameterInvalid } from "../../domain/Errors.ts"
import { Accounts, type Unavailable } from "../../engine/Accounts.ts"
import type { DeliveryRow } from "../../engine/Deliveries.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import type { FormValues } from "../../html/Forms.ts"
import { type Child, html } from "../../html/Html.ts"
import { WEBHOOK_ENDPOINT } from "../../payments/shared/Documents.ts"
import { requireDocument } from "../../payments/shared/ReadDocument.ts"
import type { Fields } from "../frame/Form.ts"
import { eventsOf, hasFailed, newestOfEvents, resendDeliveries, type TypedDelivery } from "../history/Deliveries.ts"
import { PAGE_ROWS } from "../frame/Queries.ts"
import { action, type Action, Invalid, type Show } from "../frame/Page.ts"
import { instantOf, wallText } from "../frame/TimeZones.ts"

/** Deliveries per resend. All of them are in one record. */
const AGAIN_MAX = 100
/** Deliveries that one search reads at most. */
export const LOOKED_THROUGH_MAX = 1000
const LOOK = 100

/** Reads deliveries, newest first, until `max` match. `end` is the last delivery that was read. */
export const findDeliveries = Effect.fnUntraced(function* (
  accounts: Accounts["Service"],
  { account, destination, olderThan }: { readonly account: string; readonly destination: string; olderThan?: string },
  isMeant: (row: DeliveryRow) => boolean,
  max: number
) {
  const found: Array<DeliveryRow> = []
  let end = olderThan
  for (let looked = 0; looked < LOOKED_THROUGH_MAX; looked += LOOK) {
    const { deliveries, hasMore } = yield* accounts.deliveries(account, {
      destination,
      limit: LOOK,
      ...(end !== undefined && { olderThan: end })
    })
    for (const delivery of deliveries) {
      if (isMeant(delivery)) {
        if (found.length === max) return { deliveries: found, hasMore: true, end }
        found.push(delivery)
      }
      end = delivery.id
    }
    if (!hasMore) return { deliveries: found, hasMore: false, end }
  }
  return { deliveries: found, hasMore: true, end }
})

/** The checkbox of a delivery. Its label has the time, which distinguishes deliveries of one event type. */
export const boxOf = (rows: ReadonlyArray<TypedDelivery>, zone: string) => (row: TypedDelivery) => {
  const i = rows.indexOf(row)
  const made = wallText(zone, row.delivery.created)
  return html`<input type="hidden" name="delivery[${i}]" value="${row.id}" /><label class="box"
      ><input type="checkbox" name="chosen[${i}]" value="on" aria-label="Select ${row.type} of ${made} ${zone}"
    /></label>`
}

const chosenIn = (values: FormValues): ReadonlyArray<string> =>
  Array.from({ length: PAGE_ROWS }, (_, i) =>
    values.has(`chosen[${i}]`) ? values.get(`delivery[${i}]`) : undefined
  ).filter((id) => id !== undefined)

export const windowFields =
  (zone: string) =>
  (fields: Fields): Child => [
    fields.text({ name: "from", label: `Created from (${zone})`, type: "datetime-local" }),
    fields.text({
      name: "until",
      label: `Until (${zone})`,
      type: "datetime-local",
      hint: `Up to ${AGAIN_MAX}, newest first, without events that were sent again since. Pending ones are attempted now.`
    })
  ]

const MINUTE_MILLIS = 60_000
const DAY_MILLIS = 86_400_000

/** The span of a minute or a day in a time zone, in milliseconds; undefined for other texts. */
const spanOf = (text: string, zone: string): { readonly from: number; readonly until: number } | undefined => {
  const [, day, minute] = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2})?$/.exec(text) ?? []
  const wall = Date.parse(`${day}${minute ?? "T00:00"}Z`)
  if (Number.isNaN(wall)) return undefined
  const from = instantOf(zone, wall)
  return { from, until: minute === undefined ? instantOf(zone, wall + DAY_MILLIS) : from + MINUTE_MILLIS }
}

const NOTHING_FAILED = new ParameterInvalid({
  param: "from",
  rule: "earlier than a failed delivery that was not sent again since"
})

const NO_TIME = "Enter a time such as 2026-11-25T17:30, or a day such as 2026-11-25."

/** The entered window, unbounded where a field is empty; or the error about it. */
const windowIn = (values: FormValues, zone: string) => {
  const [first, last] = [values.get("from") ?? "", values.get("until") ?? ""]
  const begin = first === "" ? { from: -Infinity } : spanOf(first, zone)
  const end = last === "" ? { until: Infinity } : spanOf(last, zone)
  if (begin === undefined) return new Invalid({ from: NO_TIME })
  if (end === undefined) return new Invalid({ until: NO_TIME })
  return { entered: { from: first, until: last }, isIn: (at: number) => at >= begin.from && at < end.until }
}

interface Meant {
  readonly entered: unknown
  readonly deliveries: ReadonlyArray<DeliveryRow>
}

/** Builds an action on the endpoint's page that resends the deliveries that `meantBy` selects. */
const resending = (
  { name, path, show }: Pick<Action, "name" | "path" | "show">,
  meantBy: (
    accounts: Accounts["Service"],
    of: { readonly account: AccountId; readonly destination: string; readonly zone: string },
    values: FormValues
  ) => Effect.Effect<Meant | Invalid, Unavailable>
) =>
  action({
    name,
    right: "build",
    page: "/webhooks/:id",
    path,
    show,
    notice: "The deliveries are being sent again.",
    prepare: Effect.fnUntraced(function* ({ account, zone }, { id = "" }, values) {
      yield* requireDocument(account, WEBHOOK_ENDPOINT, id)
      const meant = yield* meantBy(yield* Accounts, { account, destination: id, zone }, values)
      if (meant instanceof Invalid) return meant
      const { deliveries, entered } = meant
      const count = eventsOf(deliveries).length
      // The command itself refuses, so that the stored response of the form stays: a second submission finds no failed
      // delivery because the first has resent them.
      const command = count === 0 ? Effect.fail(NOTHING_FAILED) : yield* resendDeliveries(account, id, deliveries)
      return { entered, detail: count === 1 ? "1 event" : `${count} events`, command }
    })
  })

export const resendChosen = (show: Show) =>
  resending(
    { name: "webhook_endpoint.resend_chosen", path: "/webhooks/:id/resend-chosen", show },
    Effect.fnUntraced(function* (accounts, { account, destination }, values) {
      const chosen = chosenIn(values)
      const found = yield* Effect.forEach(chosen, (id) => accounts.delivery(account, destination, id), {
        concurrency: 8
      })
      const deliveries = found.filter((row) => row !== undefined)
      if (deliveries.length === 0) return new Invalid({}, "Select at least one delivery.")
      return { entered: { chosen }, deliveries }
    })
  )

export const resendFailed = (show: Show) =>
  resending(
    { name: "webhook_endpoint.resend_failed", path: "/webhooks/:id/resend", show },
    Effect.fnUntraced(function* (accounts, of, values) {
      const window = windowIn(values, of.zone)
      if (window instanceof Invalid) return window
      const isNewest = newestOfEvents()
      const isMeant = (row: DeliveryRow) => isNewest(row) && hasFailed(row) && window.isIn(row.at)
      const { deliveries } = yield* findDeliveries(accounts, of, isMeant, AGAIN_MAX)
      return { entered: window.entered, deliveries }
    })
  )
