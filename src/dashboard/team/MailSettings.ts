/** Mail to payers: whether every payer of a live payment gets a receipt (semantics mail.receipts). */
import { Effect, Layer } from "effect"
import { html } from "../../html/Html.ts"
import { accountOf } from "../../payments/shared/AccountIds.ts"
import * as Receipts from "../../payments/mail/Receipts.ts"
import { readDocument } from "../../payments/shared/ReadDocument.ts"
import { form } from "../frame/Form.ts"
import { action, page, type Show } from "../frame/Page.ts"
import { section } from "../frame/Values.ts"
import type { Visit } from "../frame/Visit.ts"

/** Receipts are about live payments, in whichever environment the page is open. */
const liveAccount = ({ merchant }: Visit) => accountOf(merchant.id, true)

const show: Show = Effect.fnUntraced(function* (visit, _, problem) {
  const settings = yield* readDocument(liveAccount(visit), Receipts.MAIL_SETTINGS, Receipts.MAIL_SETTINGS_ID)
  return {
    title: "Mail",
    section: "Developers",
    back: ["/developers", "Developers"],
    content: section(
      "Receipts",
      visit.sendsMail
        ? form({
            visit,
            action: "/developers/mail/set",
            submit: "Save",
            problem,
            content: (fields) =>
              fields.choice({
                name: "receipts",
                label: "Receipts for live payments",
                value: settings?.value.receipts === true ? "on" : "off",
                options: [
                  ["off", "Off: send single ones by hand"],
                  ["on", "On: to every payer with an email"]
                ],
                hint: "Receipts have your brand, and the language in which the payer saw the checkout page."
              })
          })
        : html`<p class="empty">
            No mail server is set up. Set <code>TILL_SMTP_URL</code> and <code>TILL_MAIL_FROM</code>, and start Till
            again.
          </p>`
    )
  }
})

const set = action({
  name: "merchant.receipts",
  right: "build",
  page: "/developers/mail",
  path: "/developers/mail/set",
  show,
  notice: "Saved.",
  prepare: (visit, _, values) => {
    const receipts = values.get("receipts") === "on"
    return Effect.succeed({
      account: liveAccount(visit),
      entered: { receipts },
      subject: visit.merchant.id,
      detail: receipts ? "on" : "off",
      command: Receipts.setReceipts(receipts)
    })
  }
})

export const layer = Layer.merge(page("/developers/mail", "build", show), set)
