/** The receipt of a payment, in the language of its Checkout Session (semantics mail.receipts). */
import { Effect } from "effect"
import type { CheckoutSession, LineItem, PageLanguage } from "../domain/CheckoutSession.ts"
import { latestCharge } from "../domain/PaymentIntentInvariants.ts"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import type { AccountId, Document } from "../engine/log/Document.ts"
import { brandOf } from "../html/Brand.ts"
import { brandName } from "../html/CardBrands.ts"
import { formatAmount } from "../html/Money.ts"
import { Translation } from "../html/Translation.ts"
import {
  CHECKOUT_SESSION,
  type CheckoutSessionHidden,
  LINE_ITEMS,
  lineItemsId,
  PAYMENT_INTENT
} from "../payments/shared/Documents.ts"
import type { Merchant } from "../payments/merchants/Merchants.ts"
import { readDocument } from "../payments/shared/ReadDocument.ts"
import { type Letter, PLAIN } from "./Letter.ts"

/** A payment with the order that it pays for. */
interface Order {
  readonly payment: PaymentIntent
  readonly session: CheckoutSession | undefined
  readonly language: PageLanguage
  readonly lines: ReadonlyArray<LineItem>
}

/** The language of the session's pages, in which the payer saw them. */
const languageOf = (checkout: Document<CheckoutSession, CheckoutSessionHidden> | undefined): PageLanguage => {
  const locale = checkout?.value.locale ?? "auto"
  return locale === "auto" ? (checkout?.hidden.language ?? "en") : locale
}

const read = Effect.fnUntraced(function* (account: AccountId, id: string) {
  const payment = yield* readDocument(account, PAYMENT_INTENT, id)
  if (payment === undefined) return undefined
  const owner = payment.hidden?.checkoutSession
  const checkout = owner === undefined ? undefined : yield* readDocument(account, CHECKOUT_SESSION, owner)
  const lines = owner === undefined ? undefined : yield* readDocument(account, LINE_ITEMS, lineItemsId(owner))
  const order: Order = {
    payment: payment.value,
    session: checkout?.value,
    language: languageOf(checkout),
    lines: lines?.value.data ?? []
  }
  return order
})

const rowsOf = ({ lines, payment, session }: Order, translation: Translation): Letter["rows"] => {
  const { amount_received, currency, description } = payment
  const amount = (minor: number) => formatAmount(minor, currency, translation.moneyLocale)
  const sum = [translation.text("order.total"), amount(amount_received)] as const
  // After a partial capture, the lines do not add up to what was paid.
  if (session?.amount_total !== amount_received) return description === null ? [sum] : [[description, ""], sum]
  const rows = lines.map(({ amount_total, description, quantity }) => {
    const name = quantity === 1 ? description : `${description} × ${quantity}`
    return [name, amount(amount_total)] as const
  })
  return [...rows, sum]
}

const factsOf = ({ payment }: Order, translation: Translation): Letter["facts"] => {
  const charge = latestCharge(payment)
  const day = new Intl.DateTimeFormat(translation.locale, { dateStyle: "long", timeZone: "UTC" })
  const { brand, last4 } = charge?.payment_method_details.card ?? { brand: "", last4: "" }
  return [
    [translation.text("receipt.date"), day.format((charge?.created ?? payment.created) * 1000)],
    ...(charge === undefined
      ? []
      : [
          [
            translation.text("card.title"),
            `${brandName(brand, translation.text("card.unknown"))} •••• ${last4}`
          ] as const
        ]),
    [translation.text("receipt.number"), payment.id]
  ]
}

const LINKS = ["support", "terms", "privacy"] as const
const MAILTO = "mailto:"

/** The receipt; undefined if there is no such payment. */
export const compose = Effect.fnUntraced(function* (account: AccountId, id: string, merchant: Merchant) {
  const order = yield* read(account, id)
  if (order === undefined) return undefined
  const { language, payment } = order
  const translation = new Translation(language, language)
  const brand = brandOf(merchant, payment.livemode)
  const amount = (minor: number) => formatAmount(minor, payment.currency, translation.moneyLocale)
  const refunded = latestCharge(payment)?.amount_refunded ?? 0
  const names = { merchant: merchant.name }
  const { support } = brand
  const letter: Letter = {
    ...PLAIN,
    translation,
    sender: merchant.name,
    replyTo: support?.startsWith(MAILTO) === true ? decodeURIComponent(new URL(support).pathname) : null,
    subject: translation.text("receipt.subject", names),
    title: translation.text("receipt.title"),
    warning: payment.livemode ? null : `${translation.text("test.title")}: ${translation.text("test.text")}`,
    paragraphs: [
      translation.text("receipt.paid", { ...names, amount: amount(payment.amount_received) }),
      ...(refunded > 0 ? [translation.text("refunded.text", { ...names, amount: amount(refunded) })] : [])
    ],
    rows: rowsOf(order, translation),
    facts: factsOf(order, translation),
    notes: [translation.text("receipt.contact", names)],
    links: LINKS.flatMap((setting) => {
      const url = brand[setting]
      return url === null ? [] : [[translation.text(`brand.${setting}`), url] as const]
    }),
    accent: brand.accent
  }
  return letter
})
