/** Home: what came lately, and the way to everything else. */
import { Effect } from "effect"
import { html } from "../pages/Html.ts"
import { PAYMENT_INTENT } from "../payments/Documents.ts"
import { table } from "./components/Table.ts"
import { section } from "./components/Values.ts"
import { paymentColumns } from "./Payments.ts"
import { list } from "./Reading.ts"
import type { Show } from "./Screens.ts"
import { screen } from "./Screens.ts"

const LATELY = 8

const show: Show = Effect.fnUntraced(function* (visit) {
  const { rows } = yield* list(visit.account, PAYMENT_INTENT, { limit: LATELY })
  return {
    title: "Home",
    section: "Home",
    live: ["payment_intent"],
    content: [
      visit.person.has_password
        ? null
        : html`<p class="message">
            You came in by a link. <a href="${visit.to("/account")}">Set an email and a password</a>, and you can come
            back.
          </p>`,
      section(
        "Payments lately",
        table({
          caption: "The newest payments",
          columns: paymentColumns(visit),
          rows,
          href: ({ id }) => visit.to(`/payments/${id}`),
          empty: html`No payments yet. <a href="${visit.to("/developers")}">Developers</a> says how one is made.`
        }),
        html`<a href="${visit.to("/payments")}">All payments</a>`
      )
    ]
  }
})

export const layer = screen("", "see", show)
