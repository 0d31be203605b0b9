/** The edit form of a payment (semantics payment_intents.update): fields that its status allows to change. */
import { Effect } from "effect"
import { type PaymentIntent, UpdatePaymentIntent } from "../../domain/PaymentIntent.ts"
import { paymentIntentStates } from "../../domain/PaymentIntentStates.ts"
import { html, type Html } from "../../html/Html.ts"
import { PAYMENT_INTENT } from "../../payments/shared/Documents.ts"
import * as PaymentIntents from "../../payments/lifecycles/PaymentIntents.ts"
import { requireDocument } from "../../payments/shared/ReadDocument.ts"
import { dialog, type Problem } from "../frame/Form.ts"
import { plainAmount } from "../frame/Values.ts"
import { readAmount, pickChanged, decodeBody, readText } from "../frame/FormDecoding.ts"
import { action, Invalid, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

/** The edit form. A checkout session fixes amount and customer (semantics checkout.payment_intent). */
export const editDialog = (
  visit: Visit,
  { amount, currency, customer, description, id, statement_descriptor, status }: PaymentIntent,
  session: string | undefined,
  problem: Problem | null
): Html => {
  const hasTerms = session === undefined && paymentIntentStates.isAllowed("update_terms", status)
  const isUncharged = paymentIntentStates.isAllowed("update_until_charged", status)
  return dialog("Edit", {
    visit,
    action: `/payments/${id}/edit`,
    submit: "Save",
    problem,
    isEdit: true,
    content: (fields) => [
      fields.area({ name: "description", label: "Description", value: description ?? "", rows: 1 }),
      hasTerms && [
        fields.text({ name: "amount", label: "Amount", inputmode: "decimal", value: plainAmount(amount, currency) }),
        fields.text({ name: "customer", label: "Customer", value: customer ?? "", hint: "A customer ID." }),
        status === "requires_action" &&
          html`<p class="hint field">
            If you change the amount or the customer, the payer has to confirm again, also with their bank.
          </p>`
      ],
      isUncharged &&
        fields.text({
          name: "statement_descriptor",
          label: "Text on the card statement",
          value: statement_descriptor ?? ""
        })
    ]
  })
}

export const editAction = (show: Show) =>
  action({
    name: "payment_intent.update",
    right: "build",
    page: "/payments/:id",
    path: "/payments/:id/edit",
    show,
    notice: "Payment updated.",
    prepare: Effect.fnUntraced(function* ({ account }, { id = "" }, values) {
      const { currency } = (yield* requireDocument(account, PAYMENT_INTENT, id)).value
      const amount = readAmount(values, "amount", currency)
      if (amount instanceof Invalid) return amount
      const texts = ["description", "customer", "statement_descriptor"].map((name) => [name, readText(values, name)])
      const entered = pickChanged(values, { ...Object.fromEntries(texts), amount })
      return {
        entered,
        detail: Object.keys(entered).join(", ") || null,
        command: Effect.flatMap(decodeBody(UpdatePaymentIntent, entered), (it) => PaymentIntents.update(id, it))
      }
    })
  })
