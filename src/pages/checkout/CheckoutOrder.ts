/**
 * The order on a checkout page: items and costs (semantics pages.checkout, pages.order), beside the form. On phones,
 * where the order is above the form, the lines are folded; more than eight lines are folded everywhere. Folding works
 * without a script and by keyboard.
 *
 * Names and amounts are from the session's lines, as of its creation. Images and descriptions are the product's current
 * ones, so a correction also reaches open pages.
 */
import { cancelUrlOf, type CheckoutSession, type LineItem } from "../../domain/CheckoutSession.ts"
import type { Price } from "../../domain/Price.ts"
import type { Product } from "../../domain/Product.ts"
import { type Brand, iconHtml } from "../../html/Brand.ts"
import { type Child, html, type Html } from "../../html/Html.ts"
import { pictureHtml, pictureOf } from "../../html/Images.ts"
import { formatAmount, formatDecimal } from "../../html/Money.ts"
import type { Translation } from "../../html/Translation.ts"

/** Price and product of a line; null if deleted. */
export interface Goods {
  readonly price: Price | null
  readonly product: Product | null
}

/** The shown prices while the payer chooses an amount. The page's script updates them. */
export interface ChosenPrices {
  /** Index of the line. */
  readonly index: number
  /** The amount of the line, and the total. */
  readonly line: string
  readonly total: string
}

/** The fields of a session, or of a payment link before there is a session. */
type Ordered = Pick<CheckoutSession, "id" | "cancel_url" | "currency" | "amount_subtotal" | "amount_total">

/** A line of a session or of a payment link. */
type Line = Omit<LineItem, "id">

export interface Order {
  readonly session: Ordered
  readonly lines: ReadonlyArray<Line>
  /** One for each line. */
  readonly goods: ReadonlyArray<Goods>
  readonly merchant: string
  readonly brand: Brand
  /** True if a short order is unfolded on phones, too, because the page has little else. */
  readonly isUnfolded?: boolean
  /** Null if the payer does not choose an amount. */
  readonly chosen: ChosenPrices | null
  readonly translation: Translation
}

/** Longer amounts get a smaller font, to fit a phone's line. */
const LARGE_CHARACTERS_MAX = 12
/** More lines than this are folded on desktop too. */
const OPEN_LINES_MAX = 8
/** Shown part of a description. It may have 5000 characters, and a session a hundred lines. */
const DESCRIPTION_CHARACTERS_MAX = 160

/** Images of the order; null for a line without one. */
export const picturesOf = (goods: ReadonlyArray<Goods>): ReadonlyArray<string | null> =>
  goods.map(({ product }) => pictureOf(product?.images[0]))

export const order = ({ isUnfolded = false, lines, ...of }: Order): Html => {
  const { brand, chosen, goods, merchant, session, translation } = of
  const amount = (minor: number) => formatAmount(minor, session.currency!, translation.moneyLocale)
  const total = chosen?.total ?? amount(session.amount_total!)
  const subtotal = chosen?.total ?? amount(session.amount_subtotal!)
  const follows = chosen !== null && html`data-amount="total"`
  const long = total.length > LARGE_CHARACTERS_MAX && html`class="long"`
  const items = lines.map((line, index) =>
    lineItem(line, goods[index], session.currency!, translation, chosen?.index === index ? chosen.line : null)
  )
  const back = cancelUrlOf(session)
  const isLong = lines.length > OPEN_LINES_MAX
  return html`<section class="summary" aria-labelledby="merchant">
    ${
      back !== null &&
      html`<a class="back" href="${back}" rel="noreferrer"
        ><span class="arrow" aria-hidden="true">←</span> ${translation.text("checkout.back", { merchant })}</a
      >`
    }
    <h1 id="merchant">${iconHtml(brand)}<bdi>${merchant}</bdi></h1>
    <p class="total">
      <span class="label">${translation.text("order.total_due")}</span> <strong ${follows} ${long}>${total}</strong>
    </p>
    <details class="order${isLong && " folded"}" ${isUnfolded && !isLong && html`open=""`}>
      <summary>
        <span class="label"
          >${translation.text("order.total")} <span aria-hidden="true">·</span>
          <span class="closed">${translation.text("order.show")}</span
          ><span class="opened">${translation.text("order.hide")}</span> (${countIn(lines.length, translation)})</span
        >
        <strong ${follows} ${long}>${total}</strong>
      </summary>
      <ul class="lines">
        ${items}
      </ul>
      ${lines.length > 1 && sum(translation.text("order.subtotal"), subtotal, follows, "part")}
      ${sum(translation.text("order.total_due"), total, follows)}
    </details>
  </section>`
}

const sum = (label: string, amount: string, follows: Child, kind: "part" | "whole" = "whole"): Html =>
  html`<p class="sum ${kind}"><span>${label}</span> <span ${follows}>${amount}</span></p>`

const lineItem = (
  line: Line,
  goods: Goods | undefined,
  currency: string,
  translation: Translation,
  chosen: string | null
): Html => {
  const { price = null, product = null } = goods ?? {}
  const picture = pictureOf(product?.images[0])
  return html`<li>
    ${picture !== null && pictureHtml(picture, "picture")}
    <span class="what"
      ><bdi>${line.description}</bdi> ${details(line, price, currency, translation)}
      ${product?.description != null && html`<small><bdi>${shortened(product.description)}</bdi></small>`}</span
    >
    ${
      chosen === null
        ? html`<span class="price">${formatAmount(line.amount_total, currency, translation.moneyLocale)}</span>`
        : html`<span class="price" data-amount="line">${chosen}</span>`
    }
  </li>`
}

/** Quantity, unit price and interval of a line. */
const details = ({ quantity }: Line, price: Price | null, currency: string, translation: Translation): Child => [
  quantity > 1 && html`<small>${countOf(quantity, price, currency, translation)}</small> `,
  price?.recurring !== undefined && html`<small>${periodOf(price.recurring, translation)}</small>`
]

const countIn = (count: number, { moneyLocale }: Translation): string =>
  new Intl.NumberFormat(moneyLocale).format(count)

/** `3 × $12.00` if every unit costs the same. */
const countOf = (quantity: number, price: Price | null, currency: string, translation: Translation): string => {
  const count = countIn(quantity, translation)
  if (price?.unit_amount_decimal == null || price.transform_quantity !== undefined) {
    return translation.text("order.quantity", { count })
  }
  return `${count} × ${formatDecimal(price.unit_amount_decimal, currency, translation.moneyLocale)}`
}

/** The period of a recurring price, which is charged once only (semantics checkout.recurring). */
const periodOf = (
  { interval, interval_count: count }: NonNullable<Price["recurring"]>,
  translation: Translation
): string => {
  const period = new Intl.NumberFormat(translation.locale, { style: "unit", unit: interval, unitDisplay: "long" })
  return translation.text("order.period", { period: period.format(count) })
}

/** The beginning of a text, cut between words if possible. */
const shortened = (text: string): string => {
  const characters = Array.from(text.slice(0, 2 * DESCRIPTION_CHARACTERS_MAX + 2))
  if (characters.length <= DESCRIPTION_CHARACTERS_MAX) return text
  const beginning = characters.slice(0, DESCRIPTION_CHARACTERS_MAX).join("")
  return `${beginning.replace(/(?<=\S)\s+\S*$/u, "")}…`
}
