/** Who pays: customers by their names, and guests by what they have written. */
import type { BillingDetails } from "../../domain/Address.ts"
import type { Customer } from "../../domain/Customer.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import type { Child, Html } from "../../html/Html.ts"
import { html } from "../../html/Html.ts"
import { CUSTOMER } from "../../payments/Documents.ts"
import { NOTHING } from "../frame/Values.ts"
import { findObjects } from "../frame/Queries.ts"
import type { Visit } from "../frame/Visit.ts"

/** Customers by their ids. Those that were deleted are not among them. */
export type Customers = ReadonlyMap<string, Customer>

/** What knows its customer by the id. */
interface Paid {
  readonly customer: string | null
}

/** The customers of some objects, looked up together. */
export const customersOf = (account: AccountId, objects: ReadonlyArray<Paid>) =>
  findObjects(
    account,
    CUSTOMER,
    objects.flatMap(({ customer }) => customer ?? [])
  )

/** A customer by name or email, with a link. One that has neither has its id, and one that was deleted nothing else. */
export const customerLink = (visit: Visit, customers: Customers, id: string): Html => {
  const customer = customers.get(id)
  if (customer === undefined) return html`<code>${id}</code>`
  const name = customer.name ?? customer.email
  const content = name === null ? html`<code>${id}</code>` : html`<bdi>${name}</bdi>`
  return html`<a href="${visit.to(`/customers/${id}`)}">${content}</a>`
}

/** Whoever pays: the customer, or else the name or email of a guest. */
export const payerHtml = (
  visit: Visit,
  customers: Customers,
  { customer }: Paid,
  details: Partial<BillingDetails> = {}
): Child => {
  if (customer !== null) return customerLink(visit, customers, customer)
  const name = details.name ?? details.email
  return name == null ? NOTHING : html`<bdi>${name}</bdi>`
}

/** The payer of a payment, as whom the newest attempt names. */
export const paymentPayerHtml = (visit: Visit, customers: Customers, payment: PaymentIntent): Child =>
  payerHtml(visit, customers, payment, payment.charges.data[0]?.billing_details)
