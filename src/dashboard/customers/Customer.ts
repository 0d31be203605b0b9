/** The page of a customer, with payments and saved cards. */
import { Effect, Layer } from "effect"
import { type Customer, UpdateCustomer } from "../../domain/Customer.ts"
import { PAYMENT_METHODS_PER_CUSTOMER_MAX, type PaymentMethod } from "../../domain/PaymentMethod.ts"
import { type Child, html } from "../../html/Html.ts"
import * as PaymentMethodAttachments from "../../payments/lifecycles/PaymentMethodAttachments.ts"
import * as CustomerErasure from "../../payments/erasure/CustomerErasure.ts"
import * as Commands from "../../payments/lifecycles/Customers.ts"
import { CUSTOMER, PAYMENT_INTENT, PAYMENT_METHOD } from "../../payments/shared/Documents.ts"
import { requireDocument } from "../../payments/shared/ReadDocument.ts"
import { customerFields, customerIn } from "./Customers.ts"
import { dialog, type Problem } from "../frame/Form.ts"
import { cardExpiry, cardName } from "../frame/Cards.ts"
import { forDevelopers, json } from "../frame/Json.ts"
import { type Column, table } from "../frame/Table.ts"
import { code, facts, section, time } from "../frame/Values.ts"
import { pickChanged, updateWith } from "../frame/FormDecoding.ts"
import { historySection } from "../history/History.ts"
import { metadataEditor, metadataAction } from "../frame/Metadata.ts"
import { paymentColumns } from "../payments/Payments.ts"
import { listObjects } from "../frame/Queries.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

const PAYMENTS_MAX = 10

const buttons = (visit: Visit, customer: Customer, problem: Problem | null): Child =>
  visit.may("build") &&
  html`<div class="buttons">
    ${dialog("Edit", {
      visit,
      action: `/customers/${customer.id}/edit`,
      submit: "Save",
      problem,
      isEdit: true,
      content: customerFields(customer)
    })}
    ${dialog("Delete", {
      visit,
      action: `/customers/${customer.id}/delete`,
      submit: "Delete the customer",
      tone: "danger",
      problem,
      content: () =>
        html`<p class="field">This deletes the customer and all saved cards for good. The payments stay.</p>`
    })}
    ${dialog("Erase data", {
      visit,
      action: `/customers/${customer.id}/erase`,
      submit: "Erase the data",
      tone: "danger",
      problem,
      content: (fields) => [
        html`<p class="field">
          This erases name, email, phone, addresses, descriptions and metadata of the customer and of their payments,
          for good. Amounts and dates stay.
        </p>`,
        fields.text({ name: "confirmation", label: "To confirm, enter erase" })
      ]
    })}
  </div>`

const cardColumns = (visit: Visit, customer: string, problem: Problem | null): ReadonlyArray<Column<PaymentMethod>> => [
  {
    name: "Card",
    cell: ({ card }) => html`<span class="whole">${cardName(card)}</span>`
  },
  { name: "Expires", cell: ({ card }) => cardExpiry(card) },
  {
    name: "Payment method",
    wide: true,
    cell: ({ id }) => html`<a href="${visit.to(`/payment-methods/${id}`)}">${code(id)}</a>`
  },
  { name: "Created", wide: true, cell: ({ created }) => time(created) },
  ...(visit.may("build")
    ? [
        {
          name: "Action",
          align: "end" as const,
          cell: ({ id }: PaymentMethod) =>
            dialog("Remove", {
              visit,
              action: `/customers/${customer}/cards/${id}/detach`,
              submit: "Remove the card",
              tone: "danger",
              problem,
              content: () => html`<p class="field">Nobody can pay with this saved card after that.</p>`
            })
        }
      ]
    : [])
]

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const { account } = visit
  const customer = (yield* requireDocument(account, CUSTOMER, id)).value
  const labels = { customer: id }
  const payments = yield* listObjects(account, PAYMENT_INTENT, { labels, limit: PAYMENTS_MAX })
  const cards = yield* listObjects(account, PAYMENT_METHOD, { labels, limit: PAYMENT_METHODS_PER_CUSTOMER_MAX })
  return {
    title: customer.name ?? customer.email ?? customer.id,
    section: "Customers",
    back: ["/customers", "Customers"],
    live: ["customer", "payment_intent", "payment_method", "event", "delivery"],
    aside: buttons(visit, customer, problem),
    content: [
      facts([
        ["ID", code(id)],
        ["Email", customer.email && code(customer.email)],
        ["Name", customer.name],
        ["Phone", customer.phone],
        ["Description", customer.description],
        ["Created", time(customer.created)],
        ["Data", customer.erasure && (customer.erasure === "completed" ? "erased" : "being erased")]
      ]),
      metadataEditor(visit, `/customers/${id}`, customer.metadata, problem),
      section(
        "Payments",
        table({
          caption: "Payments of this customer, newest first",
          columns: paymentColumns(visit, null),
          rows: payments.rows,
          href: (payment) => visit.to(`/payments/${payment.id}`),
          empty: "No payments yet."
        }),
        payments.hasMore && html`<a href="${visit.to("/payments", { customer: id })}">All payments</a>`
      ),
      section(
        "Saved cards",
        table({
          caption: "Saved cards, newest first",
          columns: cardColumns(visit, id, problem),
          rows: cards.rows,
          empty: "No saved cards. Your website can offer to save the card when the customer pays."
        })
      ),
      yield* historySection(visit, { ids: [id, ...cards.rows.map((card) => card.id)] }),
      forDevelopers(json(visit, customer, "The customer as JSON"))
    ]
  }
})

const update = updateWith(UpdateCustomer, Commands.update)

const onPage = { right: "build", page: "/customers/:id", show } as const

const edit = action({
  ...onPage,
  name: "customer.update",
  path: "/customers/:id/edit",
  notice: "Customer updated.",
  prepare: (_, { id = "" }, values) => {
    const entered = pickChanged(values, customerIn(values))
    return Effect.succeed({ entered, command: update(id, entered) })
  }
})

const remove = action({
  ...onPage,
  name: "customer.delete",
  path: "/customers/:id/delete",
  notice: "Customer deleted.",
  prepare: (_, { id = "" }) =>
    Effect.succeed({ entered: {}, next: () => "/customers" as const, command: Commands.remove(id) })
})

const erase = action({
  ...onPage,
  name: "customer.erase",
  path: "/customers/:id/erase",
  notice: "The data is being erased.",
  prepare: ({ account }, { id = "" }, values) =>
    values.get("confirmation")?.trim().toLowerCase() === "erase"
      ? Effect.map(CustomerErasure.standingOf(account, id), (standing) => ({
          entered: {},
          command: CustomerErasure.begin(id, standing)
        }))
      : Effect.succeed(new Invalid({ confirmation: "Enter erase." }))
})

const detach = action({
  ...onPage,
  name: "payment_method.detach",
  path: "/customers/:id/cards/:card/detach",
  notice: "Card removed.",
  prepare: (_, { card = "" }) =>
    Effect.succeed({ entered: {}, subject: card, command: PaymentMethodAttachments.detach(card) })
})

const updateMetadata = metadataAction({
  ...onPage,
  name: "customer",
  kind: CUSTOMER,
  update
})

export const layer = Layer.mergeAll(page("/customers/:id", "see", show), edit, updateMetadata, remove, erase, detach)
