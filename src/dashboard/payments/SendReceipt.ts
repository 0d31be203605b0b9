/** Sends the receipt of one payment by hand (semantics mail.receipts_by_hand). */
import { Effect } from "effect"
import { isMailable } from "../../domain/Mail.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import type { Child } from "../../html/Html.ts"
import * as Receipts from "../../payments/mail/Receipts.ts"
import { dialog, type Problem } from "../frame/Form.ts"
import { mailsSection } from "../frame/Mails.ts"
import { action, Invalid, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

/** The button and its form; null for a payment without a receipt. */
export const receiptDialog = (
  visit: Visit,
  { id, status }: PaymentIntent,
  address: string | null,
  problem: Problem | null
): Child =>
  visit.sendsMail &&
  status === "succeeded" &&
  dialog("Send receipt", {
    visit,
    action: `/payments/${id}/receipt`,
    submit: "Send",
    problem,
    content: (fields) =>
      fields.text({ name: "email", label: "Email", type: "email", value: address ?? "", required: true })
  })

export const receiptsSection = (visit: Visit, id: string) =>
  mailsSection(visit, visit.account, { purpose: "receipt", subject: id, title: "Receipts" })

export const receiptAction = (show: Show) =>
  action({
    name: "receipt.send",
    right: "settle",
    page: "/payments/:id",
    path: "/payments/:id/receipt",
    show,
    notice: "The receipt is on its way.",
    prepare: ({ sendsMail }, { id = "" }, values) => {
      const email = (values.get("email") ?? "").trim()
      if (!sendsMail) return Effect.succeed(new Invalid({}, "No mail server is set up."))
      if (!isMailable(email)) return Effect.succeed(new Invalid({ email: "Enter an email address." }))
      return Effect.succeed({ entered: { email }, detail: email, command: Receipts.send(id, email) })
    }
  })
