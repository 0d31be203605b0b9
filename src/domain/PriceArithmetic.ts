/**
 * The arithmetic of prices: computes the exact amount of a quantity at a price and rounds once, half up (semantics
 * money.rounding, money.per_unit, money.volume, money.graduated, checkout.custom_amount), without floating point.
 *
 * The result is undefined if a payment cannot have the amount. Nothing is truncated, and intermediate values have no
 * limit.
 */
import { BigDecimal } from "effect"
import { AMOUNT_MAX } from "./Money.ts"
import type { Price, Tier, TransformQuantity } from "./Price.ts"

export type PriceTerms = Pick<
  Price,
  "billing_scheme" | "unit_amount_decimal" | "custom_unit_amount" | "tiers_mode" | "tiers" | "transform_quantity"
>

const CAP = BigDecimal.fromBigInt(BigInt(AMOUNT_MAX))
const ZERO = BigDecimal.fromBigInt(0n)

/**
 * Computes the amount of a quantity (an integer from 0) in minor units; undefined above the cap of a payment (semantics
 * money.limits). If the payer chooses the amount, returns the one that the page shows first (semantics
 * checkout.custom_amount).
 */
export const lineAmount = (terms: PriceTerms, quantity: number): number | undefined => {
  const amount = BigDecimal.round(exactAmount(terms, BigInt(quantity)), { scale: 0, mode: "half-ceil" })
  return BigDecimal.isGreaterThan(amount, CAP) ? undefined : BigDecimal.toNumberUnsafe(amount)
}

/** Adds minor units; undefined for an undefined one, or above a payment's cap (semantics money.limits). */
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

/** Returns the billed units (semantics money.per_unit); rounded down, they can be 0. */
const transformed = (quantity: bigint, transform: TransformQuantity | undefined): bigint => {
  if (transform === undefined) return quantity
  const divisor = BigInt(transform.divide_by)
  return transform.round === "up" ? (quantity + divisor - 1n) / divisor : quantity / divisor
}

/** Prices every unit by the tier of the whole quantity (semantics money.volume). */
const volumeAmount = (tiers: ReadonlyArray<Tier>, quantity: bigint): BigDecimal.BigDecimal => {
  const tier = tiers.find(({ up_to }) => up_to === null || quantity <= BigInt(up_to))!
  return costOf(tier, quantity)
}

/** Prices the units within each tier by that tier (semantics money.graduated). */
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

/** Returns the flat amount of a tier plus its amount per unit for these units. */
const costOf = (tier: Tier, units: bigint): BigDecimal.BigDecimal =>
  BigDecimal.sum(decimalOf(tier.flat_amount_decimal), times(decimalOf(tier.unit_amount_decimal), units))

const times = (amount: BigDecimal.BigDecimal, count: bigint): BigDecimal.BigDecimal =>
  BigDecimal.multiply(amount, BigDecimal.fromBigInt(count))

/** Parses an amount of a price; null is 0. */
const decimalOf = (amount: string | null): BigDecimal.BigDecimal =>
  amount === null ? ZERO : BigDecimal.fromStringUnsafe(amount)
