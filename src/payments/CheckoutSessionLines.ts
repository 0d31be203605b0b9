/**
 * The lines of a Checkout Session: which prices they refer to, and what they amount to (semantics S3 to S6, N4 to N9).
 * Checks what was sent for all lines, then what they refer to, then the state of that, then the limits (T14).
 */
import { Effect } from "effect"
import type { CheckoutSession, LineItem } from "../domain/CheckoutSession.ts"
import { AmountTooLarge, ParameterInvalid, PriceInactive, ProductInactive } from "../domain/Errors.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import { AMOUNT_MAX, normalizeCurrency } from "../domain/Money.ts"
import type { Price } from "../domain/Price.ts"
import { lineAmount, totalAmount } from "../domain/PriceArithmetic.ts"
import { Transaction } from "../engine/Transaction.ts"
import type { ProductDocument } from "./Catalog.ts"
import { findPrice, findProduct, rememberPrice } from "./Catalog.ts"
import type { LineItemParameter, PriceData } from "./CheckoutSessionParameters.ts"
import { LINE_ITEMS, lineItemsId, PRICE } from "./Documents.ts"
import { requireAmountsWithinCap } from "./PriceParameters.ts"
import { inlinePrice, requireInlinePrice } from "./Prices.ts"

/** A line whose price is known. */
interface Line {
  /** The parameter that named the price, or the product of a new one. */
  readonly param: string
  readonly price: Price
  readonly product: ProductDocument
  readonly quantity: number
  /** The data that the price was made of; it is yet to be written. */
  readonly data: PriceData | null
}

/** Lines, what they add up to, and in which currency. Amounts in minor units. */
export interface Cart {
  readonly lines: ReadonlyArray<Line>
  readonly amounts: ReadonlyArray<number>
  readonly total: number
  /** In lower case. */
  readonly currency: string
}

/** Fails for `price_data` of which no price can be made. */
export const requireInlinePrices = (items: ReadonlyArray<LineItemParameter>) =>
  Effect.forEach(
    items,
    ({ price_data }, index) =>
      price_data == null ? Effect.void : requireInlinePrice(price_data, `line_items[${index}][price_data]`),
    { discard: true }
  )

/** Finds the prices of all lines, and makes those that are sent as data. Nothing is written yet. */
export const fillCart = Effect.fnUntraced(function* (
  items: ReadonlyArray<LineItemParameter>,
  currencySent: string | null
) {
  const lines = yield* Effect.forEach(items, findLine)
  const currency = currencySent === null ? lines[0]!.price.currency : normalizeCurrency(currencySent)
  // Amounts are carried over as they are: nothing is converted (semantics S6).
  if (currencySent === null && lines.some(({ price }) => price.currency !== currency)) {
    return yield* new ParameterInvalid({ param: "line_items", rule: "in one currency unless `currency` is given" })
  }
  for (const [index, { price, quantity }] of lines.entries()) {
    if (price.custom_unit_amount === undefined || quantity === 1) continue
    const rule = "1 for a price whose amount the payer chooses"
    return yield* new ParameterInvalid({ param: `line_items[${index}][quantity]`, rule })
  }
  for (const [index, line] of lines.entries()) yield* requireUsable(line, index)
  const amounts = lines.map(({ price, quantity }) => lineAmount(price, quantity))
  const total = totalAmount(amounts)
  if (total === undefined) return yield* new AmountTooLarge({ param: "line_items", max: AMOUNT_MAX })
  const cart: Cart = { lines, amounts: amounts as ReadonlyArray<number>, total, currency }
  return cart
})

/** Writes the lines of a session, and the prices that were made for them: inactive, and without an event (S4). */
export const saveCart = (transaction: Transaction, session: CheckoutSession, cart: Cart): void => {
  for (const { data, price, product } of cart.lines) {
    if (data === null) continue
    rememberPrice(transaction, product)
    transaction.put(PRICE, price)
  }
  const data = cart.lines.map(({ price, product, quantity }, index): LineItem => ({
    id: transaction.newId(PREFIXES.item),
    object: "item",
    price: price.id,
    quantity,
    amount_subtotal: cart.amounts[index]!,
    amount_total: cart.amounts[index]!,
    currency: cart.currency,
    description: product.value.name
  }))
  transaction.put(LINE_ITEMS, { id: lineItemsId(session.id), data })
}

const findLine = Effect.fnUntraced(function* (
  { price: priceId, price_data: data, quantity }: LineItemParameter,
  index: number
) {
  const transaction = yield* Transaction
  const found = { quantity: quantity ?? 1, data: data ?? null }
  if (data == null) {
    const param = `line_items[${index}][price]`
    const price = yield* findPrice(priceId!, param)
    const line: Line = { ...found, param, price, product: yield* findProduct(price.product, param) }
    return line
  }
  const param = `line_items[${index}][price_data][product]`
  const product = yield* findProduct(data.product, param)
  const price = inlinePrice(transaction, data.product, data, { active: false })
  const line: Line = { ...found, param, price, product }
  return line
})

/** Fails for what has been taken off the market, and for an amount that no price can have (semantics S3, §8.10). */
const requireUsable = Effect.fnUntraced(function* ({ data, param, price, product }: Line, index: number) {
  if (data === null && !price.active) return yield* new PriceInactive({ id: price.id, param })
  if (!product.value.active) return yield* new ProductInactive({ id: product.id, param })
  if (data !== null) yield* requireAmountsWithinCap(data, `line_items[${index}][price_data]`)
})
