/** Payers on pages: customers by name, guests by their billing details. */
import type { BillingDetails } from "../../domain/Address.ts"
import type { Customer } from "../../domain/Customer.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { type Child, html, type Html } from "../../html/Html.ts"
import { CUSTOMER } from "../../payments/shared/Documents.ts"
import { NOTHING } from "../frame/Values.ts"
import { findObjects } from "../frame/Queries.ts"
import type { Visit } from "../frame/Visit.ts"

export type Customers = ReadonlyMap<string, Customer>

interface Paid {
  readonly customer: string | null
}

export const customersOf = (account: AccountId, objects: ReadonlyArray<Paid>) =>
  findObjects(
    account,
    CUSTOMER,
    objects.flatMap(({ customer }) => customer ?? [])
  )

/** The name of a payment's payer in a file, and the email, as its list shows them. */
export const payerIn = (
  customers: Customers,
  { charges, customer: id }: Pick<PaymentIntent, "charges" | "customer">
): { readonly name: string | null; readonly email: string | null } => {
  const details = charges.data[0]?.billing_details
  const { email = null, name = null } = (id === null ? details : customers.get(id)) ?? {}
  return { name: name ?? email ?? id, email }
}

/** A link to a customer, labelled with the name, else the email, else the id. A deleted customer is shown as its id. */
export const customerLink = (visit: Visit, customers: Customers, id: string): Html => {
  const customer = customers.get(id)
  if (customer === undefined) return html`<code>${id}</code>`
  const name = customer.name ?? customer.email
  const content = name === null ? html`<code>${id}</code>` : html`<bdi>${name}</bdi>`
  return html`<a href="${visit.to(`/customers/${id}`)}">${content}</a>`
}

/** The payer: the customer, or else a guest's name or email. */
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

/** The payer of a payment, by its newest attempt. */
export const paymentPayerHtml = (visit: Visit, customers: Customers, payment: PaymentIntent): Child =>
  payerHtml(visit, customers, payment, payment.charges.data[0]?.billing_details)
