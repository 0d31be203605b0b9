/** What a record has left of its objects, in a line each: `payment requires action`, `attempt 43.21 USD failed`. */
import type { Charge } from "../domain/Charge.ts"
import type { CheckoutSession } from "../domain/CheckoutSession.ts"
import type { Customer } from "../domain/Customer.ts"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import type { PaymentMethod } from "../domain/PaymentMethod.ts"
import type { Price } from "../domain/Price.ts"
import type { Product } from "../domain/Product.ts"
import type { Refund } from "../domain/Refund.ts"
import type { Document, Tombstone } from "../engine/Document.ts"
import type { Child } from "../pages/Html.ts"
import { html } from "../pages/Html.ts"
import {
  CHARGE,
  CHECKOUT_SESSION,
  CUSTOMER,
  PAYMENT_INTENT,
  PAYMENT_METHOD,
  PRICE,
  PRODUCT,
  REFUND
} from "../payments/Documents.ts"
import { cardName } from "./components/Cards.ts"
import { badge, money, words } from "./components/Values.ts"
import { objectLink } from "./Objects.ts"
import type { Visit } from "./Visit.ts"

/** The objects of a record are shown in this order, and all others before them. */
const ORDER: ReadonlyArray<string> = [CHECKOUT_SESSION, PAYMENT_INTENT, CHARGE, REFUND].map(({ name }) => name)
export const inOrder = (one: Document | Tombstone, other: Document | Tombstone): number =>
  ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind)

/** `checkout.session` → `checkout session` */
const nameOfKind = (kind: string): string => words(kind.replaceAll(".", "_"))

/** What a record left of an object: `payment requires action`, `attempt 43.21 USD failed generic_decline ch_…`. */
export const stateHtml = (visit: Visit, document: Document | Tombstone, isOwn: boolean): Child =>
  html`<div>
    ${document.deleted ? [nameOfKind(document.kind), " ", badge("deleted")] : stateOfObject(document)}
    ${!isOwn && objectLink(visit, document.id)}
  </div>`

const stateOfObject = ({ kind, value }: Document): Child => {
  switch (kind) {
    case PAYMENT_INTENT.name: {
      const { last_payment_error: error, next_action, status } = value as unknown as PaymentIntent
      const failed = status === "requires_payment_method" && error !== undefined
      return html`payment ${badge(status)} ${failed && html`<code>${error.decline_code ?? error.code}</code>`}
      ${next_action !== null && "the payer is asked to authenticate"}`
    }
    case CHARGE.name: {
      const charge = value as unknown as Charge
      return html`attempt ${money(charge.amount, charge.currency)} ${badge(chargeState(charge))}
      ${charge.decline_code !== null && html`<code>${charge.decline_code}</code>`}`
    }
    case REFUND.name: {
      const { amount, currency, failure_reason, status } = value as unknown as Refund
      return html`refund ${money(amount, currency)} ${badge(status)}
      ${failure_reason !== undefined && html`<code>${failure_reason}</code>`}`
    }
    case CHECKOUT_SESSION.name: {
      const { payment_status, status } = value as unknown as CheckoutSession
      return html`checkout session ${badge(status)} ${badge(payment_status)}`
    }
    case PAYMENT_METHOD.name:
      return cardName((value as unknown as PaymentMethod).card)
    case CUSTOMER.name: {
      const { email, name } = value as unknown as Customer
      return html`customer <bdi>${name ?? email}</bdi>`
    }
    case PRODUCT.name: {
      const { active, name } = value as unknown as Product
      return html`product <bdi>${name}</bdi> ${badge(active ? "active" : "archived")}`
    }
    case PRICE.name: {
      const { active, nickname } = value as unknown as Price
      return html`price <bdi>${nickname}</bdi> ${badge(active ? "active" : "archived")}`
    }
    default:
      return nameOfKind(kind)
  }
}

/** What a charge has come to: that of a hold is `succeeded` before it is captured, and after it was given back. */
const chargeState = ({ amount_refunded, captured, refunded, released_at, status }: Charge): string => {
  if (status !== "succeeded") return status
  if (released_at !== null) return "released"
  if (!captured) return "authorized"
  return refunded ? "refunded" : amount_refunded > 0 ? "partly refunded" : status
}
