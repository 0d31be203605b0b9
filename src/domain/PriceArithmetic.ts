/**
 * What a quantity at a price amounts to (semantics N4 to N8): computed exactly, rounded once, half up.
 *
 * The result is an amount that a payment can have, or there is none: nothing is ever truncated, and no intermediate
 * value has a limit.
 */
import type { Scaled } from "./Decimal.ts"
import { parseDecimal, roundHalfUp, scaledOf } from "./Decimal.ts"
import { AMOUNT_MAX } from "./Money.ts"
import type { Price, Tier, TransformQuantity } from "./Price.ts"

/** What of a price says how much it is. */
export type PriceTerms = Pick<
  Price,
  "billing_scheme" | "unit_amount_decimal" | "custom_unit_amount" | "tiers_mode" | "tiers" | "transform_quantity"
>

/**
 * Minor units for a quantity (an integer from 0), or undefined if that is more than one payment can be (semantics N1).
 * Where the payer chooses the amount, it is the one that the payer is shown first (N8).
 */
export const lineAmount = (terms: PriceTerms, quantity: number): number | undefined => {
  const amount = roundHalfUp(exactAmount(terms, BigInt(quantity)))
  return amount > BigInt(AMOUNT_MAX) ? undefined : Number(amount)
}

/** The sum of amounts in minor units, or undefined if one of them, or their sum, is more than one payment can be. */
export const totalAmount = (amounts: ReadonlyArray<number | undefined>): number | undefined => {
  let total = 0
  for (const amount of amounts) {
    if (amount === undefined || total + amount > AMOUNT_MAX) return undefined
    total += amount
  }
  return total
}

const exactAmount = (terms: PriceTerms, quantity: bigint): Scaled => {
  if (terms.billing_scheme === "tiered") {
    return (terms.tiers_mode === "volume" ? volumeAmount : graduatedAmount)(terms.tiers!, quantity)
  }
  const { custom_unit_amount: custom } = terms
  if (custom !== undefined) return scaledOf(custom.preset ?? custom.minimum ?? 0) * quantity
  return parseDecimal(terms.unit_amount_decimal!) * transformed(quantity, terms.transform_quantity)
}

/** The number of units that are billed (semantics N5); rounded down, it can be 0. */
const transformed = (quantity: bigint, transform: TransformQuantity | undefined): bigint => {
  if (transform === undefined) return quantity
  const divisor = BigInt(transform.divide_by)
  return transform.round === "up" ? (quantity + divisor - 1n) / divisor : quantity / divisor
}

/** The tier that the whole quantity falls into sets the price of every unit (semantics N6). */
const volumeAmount = (tiers: ReadonlyArray<Tier>, quantity: bigint): Scaled => {
  const tier = tiers.find(({ up_to }) => up_to === null || quantity <= BigInt(up_to))!
  return flatOf(tier) + unitOf(tier) * quantity
}

/** Each tier sets the price of the units within it (semantics N7). */
const graduatedAmount = (tiers: ReadonlyArray<Tier>, quantity: bigint): Scaled => {
  let amount = 0n
  let previous = 0n
  for (const tier of tiers) {
    if (quantity <= previous) break
    const end = tier.up_to === null || quantity < BigInt(tier.up_to) ? quantity : BigInt(tier.up_to)
    amount += flatOf(tier) + unitOf(tier) * (end - previous)
    previous = end
  }
  return amount
}

const flatOf = ({ flat_amount_decimal: amount }: Tier): Scaled => (amount === null ? 0n : parseDecimal(amount))
const unitOf = ({ unit_amount_decimal: amount }: Tier): Scaled => (amount === null ? 0n : parseDecimal(amount))
