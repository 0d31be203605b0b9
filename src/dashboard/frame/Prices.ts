/** Prices for merchants: their terms, and the amounts for some quantities. */
import { LINE_ITEM_QUANTITY_MAX } from "../../domain/CheckoutSession.ts"
import type { Price, Tier } from "../../domain/Price.ts"
import { lineAmount } from "../../domain/PriceArithmetic.ts"
import { type Child, html, type Html } from "../../html/Html.ts"
import { plainDecimal } from "../../html/Money.ts"
import { table } from "./Table.ts"
import { facts, moneyOfDigits, money, NOTHING, section } from "./Values.ts"

/** An amount in minor units with a fraction. */
const exactMoney = (minor: string, currency: string): Html => moneyOfDigits(plainDecimal(minor, currency), currency)

const intervalOf = ({ recurring }: Price): string => {
  if (recurring === undefined) return ""
  const { interval, interval_count: count } = recurring
  return count === 1 ? ` / ${interval}` : ` every ${count} ${interval}s`
}

const amountOf = ({ currency, custom_unit_amount: custom, tiers_mode, ...price }: Price): Child => {
  if (tiers_mode !== undefined) return html`<span>Tiers, ${tiers_mode}, <abbr>${currency.toUpperCase()}</abbr></span>`
  if (custom === undefined) return exactMoney(price.unit_amount_decimal!, currency)
  const { maximum, minimum } = custom
  return html`<span
    >Payer
    chooses${minimum !== undefined && [", from ", money(minimum, currency)]}${maximum !== undefined && [", to ", money(maximum, currency)]}
    ${minimum === undefined && maximum === undefined && html`<abbr>${currency.toUpperCase()}</abbr>`}</span
  >`
}

/** `12.00 USD / month`, `50.00 USD for 12`, `Tiers, volume, USD`. */
export const priceHtml = (price: Price): Html => {
  const { transform_quantity: transform } = price
  const per = transform !== undefined && ` for ${transform.divide_by}, rounded ${transform.round}`
  return html`<span class="price">${amountOf(price)}${per}${intervalOf(price)}</span>`
}

export const PREVIEW = "preview"

const QUANTITIES_MAX = 16

/** Quantities around the ends of tiers and packages, where the amount changes its course; otherwise a few examples. */
const quantitiesOf = ({ tiers, transform_quantity: transform }: Price): ReadonlyArray<number> => {
  const ends = (tiers ?? []).flatMap(({ up_to }) => (up_to === null ? [] : [up_to]))
  const behind = ends.at(-1)
  const packages = transform === undefined ? [] : [1, 2, 10].map((count) => count * transform.divide_by)
  const plain = ends.length === 0 && packages.length === 0 ? [2, 10] : []
  const found = [
    1,
    ...plain,
    ...[...ends, ...packages].flatMap((end) => [end, end + 1]),
    ...(behind ? [2 * behind] : [])
  ]
  return [...new Set(found)]
    .filter((quantity) => quantity <= LINE_ITEM_QUANTITY_MAX)
    .toSorted((one, other) => one - other)
    .slice(0, QUANTITIES_MAX)
}

/** True if the amount is not simply the quantity times the unit price. */
const isStepped = ({ tiers, transform_quantity }: Price): boolean =>
  tiers !== undefined || transform_quantity !== undefined

/** Amounts for some quantities, by the same arithmetic as the bill. */
const quantityTable = (price: Price, name: string): Html =>
  table({
    caption: `Amounts by quantity for ${name}`,
    isCaptionSeen: true,
    columns: [
      { name: "Quantity", align: "end", cell: ({ quantity }) => String(quantity) },
      {
        name: "Amount",
        align: "end",
        cell: ({ amount }) => (amount === undefined ? "Too large for one payment" : money(amount, price.currency))
      }
    ],
    rows: quantitiesOf(price).map((quantity) => ({ quantity, amount: lineAmount(price, quantity) })),
    empty: null
  })

const tierTable = ({ currency, tiers = [] }: Price, name: string): Html => {
  const amount = (minor: string | null) => (minor === null ? NOTHING : exactMoney(minor, currency))
  const from = (index: number) => (tiers[index - 1]?.up_to ?? 0) + 1
  return table<Tier & { readonly from: number }>({
    caption: `Tiers of ${name}`,
    isCaptionSeen: true,
    columns: [
      { name: "Units", cell: ({ from, up_to }) => (up_to === null ? `${from} and more` : `${from} to ${up_to}`) },
      { name: "Per unit", align: "end", cell: ({ unit_amount_decimal }) => amount(unit_amount_decimal) },
      { name: "Flat fee", align: "end", cell: ({ flat_amount_decimal }) => amount(flat_amount_decimal) }
    ],
    rows: tiers.map((tier, index) => ({ ...tier, from: from(index) })),
    empty: null
  })
}

const customFacts = ({ currency, custom_unit_amount: custom }: Price): Html => {
  const amount = (minor: number | undefined) => (minor === undefined ? NOTHING : money(minor, currency))
  return facts([
    ["Minimum", amount(custom?.minimum)],
    ["Maximum", amount(custom?.maximum)],
    ["Suggested", amount(custom?.preset)]
  ])
}

export const pricePreview = (price: Price): Html =>
  html`<section id="${PREVIEW}" tabindex="-1">
    <header>
      <h2>Preview</h2>
      ${priceHtml(price)}
    </header>
    ${price.tiers !== undefined && tierTable(price, "this price")}
    ${price.custom_unit_amount === undefined ? quantityTable(price, "this price") : customFacts(price)}
    <p class="hint">This price is not added yet.</p>
  </section>`

/** Amounts for some quantities; null where the unit price says it all. */
export const quantitiesSection = (price: Price): Child => {
  if (!isStepped(price)) return null
  const name = price.nickname ?? price.lookup_key ?? price.id
  const tiers = price.tiers !== undefined && tierTable(price, name)
  return section(
    `Amounts for ${name}`,
    html`<div class="beside">${tiers}${quantityTable(price, name)}</div>`,
    priceHtml(price)
  )
}
