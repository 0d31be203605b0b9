/** Summarizes a record by its last movement of money: `Refunded 10.00 USD`, `Declined: insufficient funds`. */
import type { Charge } from "../../domain/Charge.ts"
import type { CheckoutSession } from "../../domain/CheckoutSession.ts"
import type { Customer } from "../../domain/Customer.ts"
import type { Operation } from "../../domain/Operation.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import type { PaymentMethod } from "../../domain/PaymentMethod.ts"
import type { PaymentNote } from "../../domain/PaymentNote.ts"
import type { Price } from "../../domain/Price.ts"
import type { Product } from "../../domain/Product.ts"
import type { Refund } from "../../domain/Refund.ts"
import type { HistoryEntry } from "../../engine/Accounts.ts"
import type { Document, Identified, Kind, Tombstone } from "../../engine/log/Document.ts"
import type { StoredEvent } from "../../engine/log/Events.ts"
import { parseJson } from "../../json/JsonParse.ts"
import { type Child, html } from "../../html/Html.ts"
import {
  CHARGE,
  CHECKOUT_SESSION,
  CUSTOMER,
  OPERATION,
  type OperationHidden,
  PAYMENT_INTENT,
  PAYMENT_LINK,
  PAYMENT_METHOD,
  PRICE,
  PRODUCT,
  REFUND
} from "../../payments/shared/Documents.ts"
import { PAYMENT_NOTE } from "../../payments/lifecycles/PaymentNotes.ts"
import { cardName } from "../frame/Cards.ts"
import { priceHtml } from "../frame/Prices.ts"
import { amountText, type Tone, words } from "../frame/Values.ts"
import { summarizeOperation } from "./OperationSummary.ts"

export interface RecordSummary {
  readonly id: string
  readonly headline: Child
  /** The reason, or further details. */
  readonly detail?: Child
  readonly tone?: Tone
  /** The record only asks a processor again, and may be one of many. */
  readonly isLook?: boolean
  /** The note that the record has written. */
  readonly note?: PaymentNote
}

/** Kinds whose changes are reported together as one payment. */
const MONEY: ReadonlySet<string> = new Set([CHECKOUT_SESSION, PAYMENT_INTENT, CHARGE, REFUND].map(({ name }) => name))
const isMoney = ({ kind }: Document | Tombstone): boolean => MONEY.has(kind)

const isOperation = (it: Document | Tombstone): it is Document<Operation, OperationHidden> =>
  !it.deleted && it.kind === OPERATION.name

/** A record with its events by object. */
interface Seen extends Pick<HistoryEntry, "at" | "documents"> {
  readonly events: ReadonlyMap<string, ReadonlyArray<StoredEvent>>
}

/** Summarizes a record; the first summary is its headline. */
export const summarizeRecord = (entry: HistoryEntry): ReadonlyArray<RecordSummary> => {
  const { at, documents, others } = entry
  const events = Map.groupBy(entry.events, ({ object }) => (parseJson(object) as Identified).id)
  const seen: Seen = { at, documents, events }
  const written = documents.filter(isOperation)
  // A payment that only waits for its operation has not changed otherwise.
  const isOfOperation = written.length > 0 && entry.events.every(({ type }) => type.startsWith("operation."))
  const isMoved = documents.some(isMoney) && !isOfOperation
  const money = isMoved ? summarizeMoney(seen, [...documents, ...others].filter(isMoney)) : []
  const operations = written.flatMap(({ hidden, value }) => {
    const summary = summarizeOperation(value, hidden, { isTold: isMoved, types: typesOf(seen, value.id) })
    return summary === undefined ? [] : { id: value.id, ...summary }
  })
  const things = documents.filter((it) => !isMoney(it) && !isOperation(it))
  // A new price also updates its product, without an event of the product: only the price is reported.
  const told = things.filter(({ id }) => events.has(id))
  return [...money, ...operations, ...(told.length > 0 ? told : things).map((it) => summarizeObject(seen, it))]
}

const typesOf = ({ events }: Seen, id: string): ReadonlyArray<string> => (events.get(id) ?? []).map(({ type }) => type)

const changedOf = ({ events }: Seen, id: string): ReadonlyArray<string> =>
  (events.get(id) ?? []).flatMap(({ previous }) => Object.keys(previous ?? {}))

/** True if the record has created the object, judged by the creation time to the second: no event reports it. */
const isNew = ({ at }: Seen, value: object): boolean => "created" in value && value.created === Math.floor(at / 1000)

const listFields = (fields: ReadonlyArray<string>): string => fields.map(words).join(", ")

const summarizeMoney = (seen: Seen, written: ReadonlyArray<Document | Tombstone>): ReadonlyArray<RecordSummary> => {
  const of = <A extends Identified, H>(kind: Kind<A, H>): ReadonlyArray<A> =>
    written.flatMap((it) => (it.deleted || it.kind !== kind.name ? [] : [it.value as unknown as A]))
  const intents = of(PAYMENT_INTENT)
  const refunds = of(REFUND).map((refund) => summarizeRefund(seen, refund))
  const charges =
    refunds.length > 0 ? [] : of(CHARGE).flatMap((charge) => summarizeCharge(seen, charge, intents[0]) ?? [])
  const moved = [...refunds, ...charges]
  const sessions = of(CHECKOUT_SESSION).flatMap((session) => summarizeSession(seen, session) ?? [])
  const rest = moved.length > 0 || sessions.length > 0 ? [] : intents.map((intent) => summarizeIntent(seen, intent))
  const told = [...moved, ...sessions, ...rest]
  return told.length > 0 ? told : written.map((it) => summarizeObject(seen, it))
}

const summarizeRefund = (
  seen: Seen,
  { amount, currency, failure_reason, id, reason, status }: Refund
): RecordSummary => {
  const changed = changedOf(seen, id)
  const text = amountText(amount, currency)
  if (changed.length > 0 && !changed.includes("status")) {
    return { id, headline: `Refund of ${text} changed`, detail: listFields(changed) }
  }
  const detail = words(failure_reason ?? reason ?? "")
  switch (status) {
    case "succeeded":
      return { id, headline: `Refunded ${text}`, detail, tone: "good" }
    case "failed":
      return { id, headline: `Refund of ${text} failed`, detail, tone: "bad" }
    case "canceled":
      return { id, headline: `Refund of ${text} canceled`, detail }
    default:
      return { id, headline: `Refund of ${text} is pending`, detail, tone: "wait" }
  }
}

/** The outcome of a charge; undefined if the record has only changed other fields of it. */
const summarizeCharge = (seen: Seen, charge: Charge, intent: PaymentIntent | undefined): RecordSummary | undefined => {
  const { amount, amount_captured, captured, currency, decline_code, id, released_at, status } = charge
  const types = typesOf(seen, id)
  if (types.length === 0 && seen.documents.some((it) => it.id === id)) return undefined
  const text = amountText(amount, currency)
  const card = cardName(charge.payment_method_details.card)
  if (status === "failed") return { id, ...summarizeDecline(decline_code), detail: card }
  if (status === "pending") return { id, headline: `Payment of ${text} is processing`, detail: card, tone: "wait" }
  if (released_at !== null) {
    const reason = intent?.cancellation_reason ?? "automatic"
    const [headline, why] = reason === "automatic" ? ["The authorization expired", null] : ["Canceled", words(reason)]
    return { id, headline: `${headline}: ${text} was released to the payer`, detail: why, tone: "bad" }
  }
  if (!captured) return { id, headline: `Authorized ${text}, not captured yet`, detail: card, tone: "wait" }
  if (!types.includes("charge.captured"))
    return { id, headline: `Payment of ${text} succeeded`, detail: card, tone: "good" }
  const detail = amount_captured < amount && `of ${text}; the rest was released to the payer`
  return { id, headline: `Captured ${amountText(amount_captured, currency)}`, detail, tone: "good" }
}

const summarizeDecline = (code: string | null): Pick<RecordSummary, "headline" | "tone"> => ({
  headline: `Declined: ${code === null || code === "generic_decline" ? "the bank gave no reason" : words(code)}`,
  tone: "bad"
})

const summarizeSession = (seen: Seen, session: CheckoutSession): RecordSummary | undefined => {
  const { amount_total, currency, id, status } = session
  const types = typesOf(seen, id)
  if (types.includes("checkout.session.completed")) return { id, headline: "Checkout completed", tone: "good" }
  if (types.includes("checkout.session.expired")) return { id, headline: "Checkout expired", tone: "plain" }
  if (status !== "open" || !isNew(seen, session)) return undefined
  const of = amount_total !== null && currency !== null && ` of ${amountText(amount_total, currency)}`
  return { id, headline: `Checkout${of || ""} opened` }
}

const summarizeIntent = (seen: Seen, intent: PaymentIntent): RecordSummary => {
  const { amount, cancellation_reason, currency, id, last_payment_error: error, status } = intent
  const types = typesOf(seen, id)
  if (types.includes("payment_intent.payment_failed")) {
    const code = error?.decline_code ?? null
    return error?.code === "payment_intent_authentication_failure"
      ? { id, headline: "The payer did not confirm the payment with their bank", tone: "bad" }
      : { id, ...summarizeDecline(code) }
  }
  if (types.includes("payment_intent.requires_action")) {
    return { id, headline: "Waiting for the payer to confirm with their bank", tone: "wait" }
  }
  if (types.includes("payment_intent.canceled")) {
    return { id, headline: "Canceled", detail: cancellation_reason && words(cancellation_reason), tone: "bad" }
  }
  if (types.includes("payment_intent.created"))
    return { id, headline: `Payment of ${amountText(amount, currency)} created` }
  return { id, headline: "Payment changed", detail: status === "requires_confirmation" && words(status) }
}

/** `checkout.session` → `Checkout session` */
const nameOfKind = (kind: string): string => {
  const name = words(kind.replaceAll(".", "_"))
  return name.slice(0, 1).toUpperCase() + name.slice(1)
}

/** The change of an object other than a payment. */
const summarizeObject = (seen: Seen, document: Document | Tombstone): RecordSummary => {
  const { id, kind } = document
  if (document.deleted) return { id, headline: `${nameOfKind(kind)} deleted`, tone: "bad" }
  const { value } = document
  if (kind === PAYMENT_NOTE.name) return { id, headline: "Note", note: value as unknown as PaymentNote }
  const changed = changedOf(seen, id)
  return { id, headline: [...nameOfThing(document), " ", becameOf(seen, value, changed)], detail: listFields(changed) }
}

const nameOfThing = ({ kind, value }: Document): ReadonlyArray<Child> => {
  switch (kind) {
    case PAYMENT_METHOD.name:
      return [cardName((value as unknown as PaymentMethod).card)]
    case CUSTOMER.name: {
      const { email, name } = value as unknown as Customer
      return ["Customer ", html`<bdi>${name ?? email}</bdi>`]
    }
    case PRODUCT.name:
      return ["Product ", html`<bdi>${(value as unknown as Product).name}</bdi>`]
    case PRICE.name: {
      const price = value as unknown as Price
      return ["Price ", price.nickname === null ? priceHtml(price) : html`<bdi>${price.nickname}</bdi>`]
    }
    default:
      return [nameOfKind(kind)]
  }
}

const becameOf = (
  seen: Seen,
  value: Identified & { readonly active?: boolean },
  changed: ReadonlyArray<string>
): string => {
  const types = typesOf(seen, value.id)
  const isLink = value.id.startsWith(`${PAYMENT_LINK.prefix}_`)
  // A completed checkout counts in its link, without an event of the link.
  if (isLink && types.length === 0) return "took a payment"
  if (types.includes("payment_method.attached")) return "saved"
  if (types.includes("payment_method.detached")) return "removed from the customer"
  if (changed.includes("active")) {
    if (value.active === true) return "active again"
    return isLink ? "deactivated" : "archived"
  }
  const isMade = types.length === 0 ? isNew(seen, value) : types.some((type) => type.endsWith(".created"))
  return isMade ? "created" : "changed"
}
