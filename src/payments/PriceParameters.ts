/**
 * What clients send to say how much a price is, and what a price keeps of it: every amount exactly as it was meant, in
 * one way of writing it.
 */
import { Effect } from "effect"
import { formatDecimal, isWhole, parseDecimal, scaledOf } from "../domain/Decimal.ts"
import type { Scaled } from "../domain/Decimal.ts"
import { AmountTooLarge, ParameterMissing } from "../domain/Errors.ts"
import { AMOUNT_MAX } from "../domain/Money.ts"
import type {
  BillingScheme,
  CustomUnitAmountParameter,
  Price,
  PriceType,
  RecurringParameter,
  Tier,
  TierParameter,
  TiersMode,
  TransformQuantity
} from "../domain/Price.ts"
import type { Path, Problem } from "./PriceRules.ts"
import { CHECKS, isTiered, missingIn, TIER_AMOUNTS } from "./PriceRules.ts"

/** Amounts in minor units. Null is the same as absent (semantics T10). */
export interface PriceTermsParameters {
  readonly unit_amount?: number | null
  readonly unit_amount_decimal?: string | null
  readonly custom_unit_amount?: CustomUnitAmountParameter | null
  readonly type?: PriceType | null
  readonly billing_scheme?: BillingScheme | null
  readonly recurring?: RecurringParameter | null
  readonly tiers_mode?: TiersMode | null
  readonly tiers?: ReadonlyArray<TierParameter> | null
  readonly transform_quantity?: TransformQuantity | null
}

/** What of a price its terms determine. */
export type PriceTermsFields = Pick<
  Price,
  | "type"
  | "billing_scheme"
  | "unit_amount"
  | "unit_amount_decimal"
  | "custom_unit_amount"
  | "recurring"
  | "tiers_mode"
  | "tiers"
  | "transform_quantity"
>

/**
 * Fails unless the terms belong together. `within` is the parameter that they are part of, e.g. `default_price_data`.
 */
export const requirePriceTerms = (
  terms: PriceTermsParameters,
  within?: string
): Effect.Effect<void, ParameterMissing | Problem> => {
  const missing = missingIn(terms)
  if (missing !== undefined) return Effect.fail(new ParameterMissing({ param: parameter(missing, within) }))
  for (const check of CHECKS) {
    const problem = check(terms, (...path) => parameter(path, within))
    if (problem !== undefined) return Effect.fail(problem)
  }
  return Effect.void
}

/** Fails for an amount above the cap of one payment (semantics N1, §8.10). */
export const requireAmountsWithinCap = (
  terms: PriceTermsParameters,
  within?: string
): Effect.Effect<void, AmountTooLarge> => {
  const max = scaledOf(AMOUNT_MAX)
  const exceeding = amountsIn(terms).find(([, amount]) => amount > max)
  return exceeding === undefined
    ? Effect.void
    : Effect.fail(new AmountTooLarge({ param: parameter(exceeding[0], within), max: AMOUNT_MAX }))
}

/** The terms as a price holds them; they must have passed `requirePriceTerms`. */
export const priceTermsFields = (terms: PriceTermsParameters): PriceTermsFields => {
  const { custom_unit_amount: custom, recurring, tiers, transform_quantity } = terms
  const [unit_amount, unit_amount_decimal] = amountOf(terms.unit_amount, terms.unit_amount_decimal)
  return {
    type: typeOf(terms),
    billing_scheme: isTiered(terms) ? "tiered" : "per_unit",
    unit_amount,
    unit_amount_decimal,
    ...(custom != null && {
      custom_unit_amount: {
        enabled: true,
        ...(custom.minimum != null && { minimum: custom.minimum }),
        ...(custom.maximum != null && { maximum: custom.maximum }),
        ...(custom.preset != null && { preset: custom.preset })
      }
    }),
    ...(recurring != null && {
      recurring: {
        interval: recurring.interval,
        interval_count: recurring.interval_count ?? 1,
        usage_type: recurring.usage_type ?? "licensed"
      }
    }),
    ...(isTiered(terms) && { tiers_mode: terms.tiers_mode!, tiers: tiers!.map(tierOf) }),
    ...(transform_quantity != null && {
      transform_quantity: { divide_by: transform_quantity.divide_by, round: transform_quantity.round }
    })
  }
}

/** `recurring` says it: a `type` that says something else was refused (semantics PR12). */
const typeOf = ({ recurring }: PriceTermsParameters): PriceType => (recurring == null ? "one_time" : "recurring")

/** Every amount with its path, in the order of the contract. */
const amountsIn = (terms: PriceTermsParameters): ReadonlyArray<readonly [Path, Scaled]> => {
  const { custom_unit_amount: custom } = terms
  const amounts: ReadonlyArray<readonly [Path, number | string | null | undefined]> = [
    [["unit_amount"], terms.unit_amount],
    [["unit_amount_decimal"], terms.unit_amount_decimal],
    ...(["minimum", "maximum", "preset"] as const).map(
      (bound) => [["custom_unit_amount", bound], custom?.[bound]] as const
    ),
    ...(terms.tiers ?? []).flatMap((tier, index) =>
      TIER_AMOUNTS.map((field) => [["tiers", index, field], tier[field]] as const)
    )
  ]
  return amounts.flatMap(([path, amount]) =>
    amount == null ? [] : [[path, typeof amount === "number" ? scaledOf(amount) : parseDecimal(amount)] as const]
  )
}

const tierOf = (tier: TierParameter): Tier => {
  const [flat_amount, flat_amount_decimal] = amountOf(tier.flat_amount, tier.flat_amount_decimal)
  const [unit_amount, unit_amount_decimal] = amountOf(tier.unit_amount, tier.unit_amount_decimal)
  const up_to = typeof tier.up_to === "number" ? tier.up_to : null
  return { up_to, flat_amount, flat_amount_decimal, unit_amount, unit_amount_decimal }
}

/** Both ways to write an amount: whole ones as integers too, others as decimals only (semantics PR13). */
const amountOf = (
  amount: number | null | undefined,
  decimal: string | null | undefined
): readonly [number | null, string | null] => {
  if (amount != null) return [amount, String(amount)]
  if (decimal == null) return [null, null]
  const scaled = parseDecimal(decimal)
  const text = formatDecimal(scaled)
  return [isWhole(scaled) ? Number(text) : null, text]
}

/** `tiers[0][up_to]`, within another parameter or at the top (semantics T8). */
const parameter = (path: Path, within?: string): string => {
  const [first, ...rest] = within === undefined ? path : [within, ...path]
  return `${first}${rest.map((key) => `[${key}]`).join("")}`
}
