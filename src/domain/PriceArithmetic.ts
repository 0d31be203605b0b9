/**
 * The arithmetic of prices: it computes exactly what a quantity at a price amounts to, and rounds once, half up
 * (semantics N4 to N8). No floating point is involved anywhere.
 *
 * The result is an amount that a payment can have, or there is none: nothing is ever truncated, and no intermediate
 * value has a limit.
 */
import { BigDecimal } from "effect"
import { AMOUNT_MAX } from "./Money.ts"
import type { Price, Tier, TransformQuantity } from "./Price.ts"

/** The fields of a price that say how much it is. */
export type PriceTerms = Pick<
  Price,
  "billing_scheme" | "unit_amount_decimal" | "custom_unit_amount" | "tiers_mode" | "tiers" | "transform_quantity"
>

const CAP = BigDecimal.fromBigInt(BigInt(AMOUNT_MAX))
const ZERO = BigDecimal.fromBigInt(0n)

/**
 * Computes the minor units for a quantity (an integer from 0); undefined if one payment cannot be as much (semantics
 * N1). Where the payer chooses the amount, it is the one that the payer is shown first (N8).
 */
export const lineAmount = (terms: PriceTerms, quantity: number): number | undefined => {
  const amount = BigDecimal.round(exactAmount(terms, BigInt(quantity)), { scale: 0, mode: "half-ceil" })
  return BigDecimal.isGreaterThan(amount, CAP) ? undefined : BigDecimal.toNumberUnsafe(amount)
}

/**
 * Adds up amounts in minor units; undefined if one of them, or their sum, is more than one payment can be (semantics
 * N1).
 */
export const totalAmount = (amounts: ReadonlyArray<number | undefined>): number | undefined => {
  let total = 0
  for (const amount of amounts) {
    if (amount === undefined || total + amount > AMOUNT_MAX) return undefined
    total += amount
  }
  return total
}

const exactAmount = (terms: PriceTerms, quantity: bigint): BigDecimal.BigDecimal => {
  if (terms.billing_scheme === "tiered") {
    return (terms.tiers_mode === "volume" ? volumeAmount : graduatedAmount)(terms.tiers!, quantity)
  }
  const { custom_unit_amount: custom } = terms
  if (custom !== undefined) return times(BigDecimal.fromBigInt(BigInt(custom.preset ?? custom.minimum ?? 0)), quantity)
  return times(decimalOf(terms.unit_amount_decimal), transformed(quantity, terms.transform_quantity))
}

/** Counts the units that are billed (semantics N5). Rounded down, there can be none. */
const transformed = (quantity: bigint, transform: TransformQuantity | undefined): bigint => {
  if (transform === undefined) return quantity
  const divisor = BigInt(transform.divide_by)
  return transform.round === "up" ? (quantity + divisor - 1n) / divisor : quantity / divisor
}

/** The tier that the whole quantity falls into sets the price of every unit (semantics N6). */
const volumeAmount = (tiers: ReadonlyArray<Tier>, quantity: bigint): BigDecimal.BigDecimal => {
  const tier = tiers.find(({ up_to }) => up_to === null || quantity <= BigInt(up_to))!
  return costOf(tier, quantity)
}

/** Each tier sets the price of the units within it (semantics N7). */
const graduatedAmount = (tiers: ReadonlyArray<Tier>, quantity: bigint): BigDecimal.BigDecimal => {
  let amount = ZERO
  let previous = 0n
  for (const tier of tiers) {
    if (quantity <= previous) break
    const end = tier.up_to === null || quantity < BigInt(tier.up_to) ? quantity : BigInt(tier.up_to)
    amount = BigDecimal.sum(amount, costOf(tier, end - previous))
    previous = end
  }
  return amount
}

/** Adds the flat amount of a tier to that of its units, for each one within it. */
const costOf = (tier: Tier, units: bigint): BigDecimal.BigDecimal =>
  BigDecimal.sum(decimalOf(tier.flat_amount_decimal), times(decimalOf(tier.unit_amount_decimal), units))

const times = (amount: BigDecimal.BigDecimal, count: bigint): BigDecimal.BigDecimal =>
  BigDecimal.multiply(amount, BigDecimal.fromBigInt(count))

/** Reads an amount as prices hold it; null stands for none. */
const decimalOf = (amount: string | null): BigDecimal.BigDecimal =>
  amount === null ? ZERO : BigDecimal.fromStringUnsafe(amount)
