/**
 * The line items of a Checkout Session or a payment link: the prices they refer to, and their amounts, at creation and
 * after the payer has chosen an amount (semantics checkout.line_items, checkout.price_data, checkout.recurring,
 * checkout.currency, money.rounding, money.per_unit, money.volume, money.graduated, checkout.custom_amount, money.tax,
 * checkout.custom_amount.confirm, payment_links.line_items). Checks run in this order (semantics
 * requests.order.references, requests.order.state): references, their state, exclusive parameters, limits.
 */
import { Effect } from "effect"
import type { CheckoutSession, LineItem, LineItemParameter } from "../../domain/CheckoutSession.ts"
import {
  AmountTooLarge,
  ParameterInvalid,
  ParameterMissing,
  ParametersExclusive,
  PriceInactive,
  ProductInactive,
  type ResourceMissing
} from "../../domain/Errors.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { AMOUNT_MAX, normalizeCurrency } from "../../domain/Money.ts"
import type { Price } from "../../domain/Price.ts"
import { lineAmount, totalAmount } from "../../domain/PriceArithmetic.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { findDocument, LINE_ITEMS, lineItemsId, PRICE } from "../shared/Documents.ts"
import { type PaymentsConfig, requireAcceptedCurrency } from "../shared/PaymentsConfig.ts"
import {
  findPrice,
  findProduct,
  inlinePrice,
  type ProductDocument,
  rememberPrice,
  requireInlinePrice
} from "./Prices.ts"

/** A price that a line refers to, or the product of a price that is sent as data. */
interface Reference {
  readonly param: string
  readonly price: Price | null
  readonly product: ProductDocument
}

/** The references of each line: exactly one if the line is valid. */
export type References = ReadonlyArray<ReadonlyArray<Reference>>

/** Errors of lines that cannot be sold as they were sent. */
export type LinesRefused =
  | ResourceMissing
  | PriceInactive
  | ProductInactive
  | AmountTooLarge
  | ParameterMissing
  | ParameterInvalid
  | ParametersExclusive

interface Line {
  readonly price: Price
  readonly product: ProductDocument
  readonly quantity: number
  /** Whether the price was created from the line's `price_data` and is not written yet. */
  readonly isNew: boolean
}

/** Lines with their amounts and total, in minor units. */
export interface Cart {
  readonly lines: ReadonlyArray<Line>
  readonly amounts: ReadonlyArray<number>
  readonly total: number
  readonly currency: string
  /** The amount that the payer chooses, if there is one. */
  readonly custom: CustomLine | null
}

/** The line of a cart whose amount the payer chooses (semantics checkout.custom_amount). Amounts in minor units. */
export interface CustomLine {
  readonly line: number
  readonly others: number
  readonly minimum: number
  /** Null if only the cap of a payment applies. */
  readonly maximum: number | null
  /** Whether the payer has to choose: there is neither a preset nor a minimum. */
  readonly isOpen: boolean
}

/** Fails for a currency that the installation does not accept (semantics money.currencies). */
export const requireAcceptedCurrencies = Effect.fnUntraced(function* ({
  currency,
  line_items
}: {
  readonly currency?: string | null
  readonly line_items: ReadonlyArray<LineItemParameter>
}): Effect.fn.Return<void, ParameterInvalid, PaymentsConfig> {
  for (const [index, { price_data }] of line_items.entries()) {
    const param = `line_items[${index}][price_data][currency]`
    if (price_data != null) yield* requireAcceptedCurrency(price_data.currency, param)
  }
  if (currency != null) yield* requireAcceptedCurrency(currency)
})

/** Fails for a line without any price (semantics checkout.line_items). */
export const requireSomePrice = (items: ReadonlyArray<LineItemParameter>): Effect.Effect<void, ParameterMissing> => {
  const bare = items.findIndex(({ price, price_data }) => !price && price_data == null)
  return bare === -1 ? Effect.void : Effect.fail(new ParameterMissing({ param: `line_items[${bare}][price]` }))
}

/** Fails for a line with two prices (semantics checkout.line_items). */
export const requireOnePrice = (items: ReadonlyArray<LineItemParameter>): Effect.Effect<void, ParametersExclusive> => {
  const double = items.findIndex(({ price, price_data }) => price && price_data != null)
  if (double === -1) return Effect.void
  const first = `line_items[${double}][price]`
  return Effect.fail(new ParametersExclusive({ first, second: `line_items[${double}][price_data]` }))
}

/** Finds the prices and products of the lines. Fails with `ResourceMissing`, which names the line's parameter. */
export const findReferences = (
  items: ReadonlyArray<LineItemParameter>
): Effect.Effect<References, ResourceMissing, Transaction> => Effect.forEach(items, findReferencesOf)

/** Fails with `PriceInactive` or `ProductInactive` for an archived price or product (semantics checkout.line_items). */
export const requireOnSale = (references: References): Effect.Effect<void, PriceInactive | ProductInactive> => {
  for (const { param, price, product } of references.flat()) {
    if (price?.active === false) return Effect.fail(new PriceInactive({ id: price.id, param }))
    if (!product.value.active) return Effect.fail(new ProductInactive({ id: product.id, param }))
  }
  return Effect.void
}

/**
 * Creates the prices that are sent as data and computes the amounts; writes nothing. Each line must have one reference.
 * The total has to leave room for an amount that the payer has to choose.
 */
export const fillCart = Effect.fnUntraced(function* (
  items: ReadonlyArray<LineItemParameter>,
  references: References,
  currencySent: string | null
): Effect.fn.Return<Cart, ParameterMissing | ParameterInvalid | ParametersExclusive | AmountTooLarge, Transaction> {
  const lines = yield* Effect.forEach(items, (item, index) => fillLine(item, references[index]![0]!, index))
  const currency = currencySent === null ? lines[0]!.price.currency : normalizeCurrency(currencySent)
  // Amounts keep their number in another currency: nothing is converted (semantics checkout.currency).
  if (currencySent === null && lines.some(({ price }) => price.currency !== currency)) {
    return yield* new ParameterInvalid({ param: "line_items", rule: "in one currency unless `currency` is given" })
  }
  yield* requireSoundCustomLines(lines)
  const amounts = lines.map(({ price, quantity }) => lineAmount(price, quantity))
  const total = totalAmount(amounts)
  if (total === undefined) return yield* new AmountTooLarge({ param: "line_items", max: AMOUNT_MAX })
  const custom = customLineOf(lines, amounts as ReadonlyArray<number>, total)
  if (custom?.isOpen && total === AMOUNT_MAX) {
    return yield* new AmountTooLarge({ param: "line_items", max: AMOUNT_MAX })
  }
  return { lines, amounts: amounts as ReadonlyArray<number>, total, currency, custom }
})

/** Fails for a line of a chosen amount that is no single, positive one (semantics checkout.custom_amount). */
const requireSoundCustomLines = (lines: ReadonlyArray<Line>): Effect.Effect<void, ParameterInvalid> => {
  let hasOne = false
  for (const [index, { price, quantity }] of lines.entries()) {
    const custom = price.custom_unit_amount
    if (custom === undefined) continue
    const refuse = (field: "quantity" | "price", rule: string) =>
      Effect.fail(new ParameterInvalid({ param: `line_items[${index}][${field}]`, rule }))
    if (quantity !== 1) return refuse("quantity", "1 for a price whose amount the payer chooses")
    if (custom.maximum === 0) return refuse("price", "a price whose `custom_unit_amount[maximum]` is above 0")
    if (hasOne) return refuse("price", "the only price of the session whose amount the payer chooses")
    hasOne = true
  }
  return Effect.void
}

const customLineOf = (lines: ReadonlyArray<Line>, amounts: ReadonlyArray<number>, total: number): CustomLine | null => {
  const line = lines.findIndex(({ price }) => price.custom_unit_amount !== undefined)
  if (line === -1) return null
  const { maximum = null, minimum = 0 } = lines[line]!.price.custom_unit_amount!
  const amount = amounts[line]!
  return { line, others: total - amount, minimum: Math.max(minimum, 1), maximum, isOpen: amount === 0 }
}

/** Writes the lines and the inactive prices created for them, without events (semantics checkout.price_data). */
export const saveCart = (transaction: Transaction, session: CheckoutSession, cart: Cart): void => {
  saveNewPrices(transaction, cart)
  const data = cart.lines.map((_, index) => lineItemOf(transaction.newId(PREFIXES.item), cart, index))
  transaction.put(LINE_ITEMS, { id: lineItemsId(session.id), data })
}

/** Writes the prices that were sent as data, and returns their ids. */
export const saveNewPrices = (transaction: Transaction, { lines }: Cart): ReadonlyArray<string> => {
  const made = lines.filter(({ isNew }) => isNew)
  for (const { price, product } of made) {
    rememberPrice(transaction, product)
    transaction.put(PRICE, price)
  }
  return made.map(({ price }) => price.id)
}

export const lineItemOf = (id: string, { amounts, currency, lines }: Cart, index: number): LineItem => {
  const { price, product, quantity } = lines[index]!
  return {
    id,
    object: "item",
    price: price.id,
    quantity,
    amount_subtotal: amounts[index]!,
    amount_total: amounts[index]!,
    currency,
    description: product.value.name
  }
}

/** Writes the amount that the payer chose to its line, in minor units (semantics checkout.custom_amount). */
export const rewriteAmount = Effect.fnUntraced(function* (
  sessionId: string,
  line: number,
  amount: number
): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const { value } = yield* Effect.orDie(findDocument(LINE_ITEMS, lineItemsId(sessionId)))
  const changed = { ...value.data[line]!, amount_subtotal: amount, amount_total: amount }
  transaction.put(LINE_ITEMS, { ...value, data: value.data.with(line, changed) })
})

const findReferencesOf = Effect.fnUntraced(function* (
  { price: id, price_data: data }: LineItemParameter,
  index: number
): Effect.fn.Return<ReadonlyArray<Reference>, ResourceMissing, Transaction> {
  const references: Array<Reference> = []
  if (id != null) {
    const param = `line_items[${index}][price]`
    const price = yield* findPrice(id, param)
    references.push({ param, price, product: yield* findProduct(price.product, param) })
  }
  if (data != null) {
    const param = `line_items[${index}][price_data][product]`
    references.push({ param, price: null, product: yield* findProduct(data.product, param) })
  }
  return references
})

const fillLine = Effect.fnUntraced(function* (
  { price_data: data, quantity }: LineItemParameter,
  { price, product }: Reference,
  index: number
): Effect.fn.Return<Line, ParameterMissing | ParameterInvalid | ParametersExclusive | AmountTooLarge, Transaction> {
  const transaction = yield* Transaction
  if (data != null) yield* requireInlinePrice(data, `line_items[${index}][price_data]`)
  return {
    price: data == null ? price! : inlinePrice(transaction, product.id, data, { active: false }),
    product,
    quantity: quantity ?? 1,
    isNew: data != null
  }
})
