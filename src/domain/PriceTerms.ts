/**
 * The terms of a price: the parameters that determine its amount, the rules for combining them (semantics
 * prices.recurring, prices.transform_quantity, prices.tax_behavior, prices.type, prices.unit_amount,
 * prices.custom_unit_amount, prices.tiers), and the fields that the price stores, with every amount exact and in one
 * notation.
 *
 * Each rule is one small function. A missing parameter is reported before an invalid one (semantics requests.order).
 */
import { BigDecimal, Effect } from "effect"
import { AmountTooLarge, ParameterInvalid, ParameterMissing, ParametersExclusive } from "./Errors.ts"
import { AMOUNT_MAX } from "./Money.ts"
import {
  type CreatePrice,
  INTERVAL_COUNT_MAX,
  type Price,
  type PriceType,
  type Tier,
  TIER_END_RULE,
  type TierParameter
} from "./Price.ts"

/** The parameters that determine a price's amount. Null counts as absent (semantics parameters.null). */
export type PriceTermsParameters = Pick<
  CreatePrice,
  | "unit_amount"
  | "unit_amount_decimal"
  | "custom_unit_amount"
  | "type"
  | "billing_scheme"
  | "recurring"
  | "tiers_mode"
  | "tiers"
  | "transform_quantity"
>

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

/** Fails unless the terms are consistent. `within` is the parameter that contains them, e.g. `price_data`. */
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

const CAP = BigDecimal.fromBigInt(BigInt(AMOUNT_MAX))

/** Fails with `AmountTooLarge` for an amount above the cap of a payment (semantics money.limits). */
export const requireAmountsWithinCap = (
  terms: PriceTermsParameters,
  within?: string
): Effect.Effect<void, AmountTooLarge> => {
  const exceeding = amountsIn(terms).find(([, amount]) => BigDecimal.isGreaterThan(amount, CAP))
  return exceeding === undefined
    ? Effect.void
    : Effect.fail(new AmountTooLarge({ param: parameter(exceeding[0], within), max: AMOUNT_MAX }))
}

/** Returns the terms as a price stores them; they must have passed `requirePriceTerms`. */
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

/** Returns the type, which `recurring` determines: a contradicting `type` was refused (semantics prices.type). */
const typeOf = ({ recurring }: PriceTermsParameters): PriceType => (recurring == null ? "one_time" : "recurring")

const amountsIn = (terms: PriceTermsParameters): ReadonlyArray<readonly [Path, BigDecimal.BigDecimal]> => {
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
  return amounts.flatMap(([path, amount]) => (amount == null ? [] : [[path, exactly(amount)] as const]))
}

const tierOf = (tier: TierParameter): Tier => {
  const [flat_amount, flat_amount_decimal] = amountOf(tier.flat_amount, tier.flat_amount_decimal)
  const [unit_amount, unit_amount_decimal] = amountOf(tier.unit_amount, tier.unit_amount_decimal)
  const up_to = typeof tier.up_to === "number" ? tier.up_to : null
  return { up_to, flat_amount, flat_amount_decimal, unit_amount, unit_amount_decimal }
}

/** Returns an amount as an integer, if it is whole, and as a decimal (semantics prices.unit_amount). */
const amountOf = (
  amount: number | null | undefined,
  decimal: string | null | undefined
): readonly [number | null, string | null] => {
  if (amount != null) return [amount, String(amount)]
  if (decimal == null) return [null, null]
  const exact = exactly(decimal)
  const text = BigDecimal.format(exact)
  return [BigDecimal.isInteger(exact) ? Number(text) : null, text]
}

/** Formats a path as `tiers[0][up_to]`, within another parameter or at the top (semantics parameters.paths). */
const parameter = (path: Path, within?: string): string => {
  const [first, ...rest] = within === undefined ? path : [within, ...path]
  return `${first}${rest.map((key) => `[${key}]`).join("")}`
}

/** Converts an amount, an integer or a decimal string, without loss. */
const exactly = (amount: number | string): BigDecimal.BigDecimal =>
  typeof amount === "number" ? BigDecimal.fromBigInt(BigInt(amount)) : BigDecimal.fromStringUnsafe(amount)

/** The path of a parameter within the terms, by keys and indexes. */
type Path = ReadonlyArray<string | number>

/** The amounts of a tier, which must have at least one (semantics prices.tiers). */
const TIER_AMOUNTS = ["flat_amount", "flat_amount_decimal", "unit_amount", "unit_amount_decimal"] as const

/** Returns whether the price has tiers, or should have them. */
const isTiered = ({ billing_scheme }: PriceTermsParameters): boolean => billing_scheme === "tiered"

/** Returns the first missing parameter. Tiers without `tiered` are invalid instead (semantics prices.tiers). */
const missingIn = (terms: PriceTermsParameters): Path | undefined => {
  const { custom_unit_amount, recurring, tiers, tiers_mode, unit_amount, unit_amount_decimal } = terms
  const amounts = [unit_amount, unit_amount_decimal, custom_unit_amount, tiers]
  if (!isTiered(terms) && amounts.every((amount) => amount == null)) return ["unit_amount"]
  if (terms.type === "recurring" && recurring == null) return ["recurring"]
  if (!isTiered(terms)) return undefined
  if (tiers_mode == null) return ["tiers_mode"]
  if (tiers == null) return ["tiers"]
  const empty = tiers.findIndex((tier) => TIER_AMOUNTS.every((field) => tier[field] == null))
  return empty === -1 ? undefined : ["tiers", empty, "unit_amount"]
}

type Problem = ParameterInvalid | ParametersExclusive

/** A check of one rule, for terms without a missing parameter. `at` formats the name of a parameter. */
type Check = (terms: PriceTermsParameters, at: (...path: Path) => string) => Problem | undefined

/** The parameters that an amount chosen by the payer excludes (semantics prices.custom_unit_amount). */
const WITHOUT_CUSTOM = ["unit_amount", "unit_amount_decimal", "recurring", "tiers", "transform_quantity"] as const
const ONLY_TIERED = ["tiers_mode", "tiers"] as const
const NEVER_TIERED = ["unit_amount", "unit_amount_decimal", "transform_quantity"] as const

/** Fails for a parameter that an amount chosen by the payer excludes (semantics prices.custom_unit_amount). */
const checkCustomExcludes: Check = ({ custom_unit_amount, ...terms }, at) => {
  const other = custom_unit_amount == null ? undefined : WITHOUT_CUSTOM.find((field) => terms[field] != null)
  return other && new ParametersExclusive({ first: at("custom_unit_amount"), second: at(other) })
}

/** Fails for tiers together with a single amount (semantics prices.transform_quantity, prices.tiers). */
const checkScheme: Check = (terms, at) => {
  const fields = isTiered(terms) ? NEVER_TIERED : ONLY_TIERED
  const field = fields.find((name) => terms[name] != null)
  const rule = isTiered(terms) ? "absent if `billing_scheme` is `tiered`" : "absent unless `billing_scheme` is `tiered`"
  return field && new ParameterInvalid({ param: at(field), rule })
}

/** Fails if the integer and the decimal amount differ (semantics prices.unit_amount). */
const checkUnitAmount: Check = ({ unit_amount: amount, unit_amount_decimal: decimal }, at) =>
  amount == null || decimal == null || BigDecimal.equals(exactly(amount), exactly(decimal))
    ? undefined
    : new ParametersExclusive({ first: at("unit_amount"), second: at("unit_amount_decimal") })

/** Fails for a bound that contradicts an earlier one (semantics prices.custom_unit_amount). */
const checkCustomBounds: Check = ({ custom_unit_amount }, at) => {
  const minimum = custom_unit_amount?.minimum ?? 0
  const maximum = custom_unit_amount?.maximum ?? Infinity
  const preset = custom_unit_amount?.preset
  if (maximum < minimum) {
    return new ParameterInvalid({ param: at("custom_unit_amount", "maximum"), rule: "at least the minimum" })
  }
  if (preset == null || (preset >= minimum && preset <= maximum)) return undefined
  return new ParameterInvalid({ param: at("custom_unit_amount", "preset"), rule: "from the minimum to the maximum" })
}

/** Fails for a recurring price of type `one_time`, or with too long an interval (semantics prices.recurring). */
const checkRecurring: Check = ({ recurring, type }, at) => {
  if (recurring == null) return undefined
  if (type === "one_time") {
    return new ParameterInvalid({ param: at("recurring"), rule: "absent if `type` is `one_time`" })
  }
  const max = INTERVAL_COUNT_MAX[recurring.interval]
  if ((recurring.interval_count ?? 1) <= max) return undefined
  return new ParameterInvalid({ param: at("recurring", "interval_count"), rule: `an integer from 1 to ${max}` })
}

/** Fails unless the ends of the tiers ascend and only the last tier has none (semantics prices.tiers). */
const checkTierOrder: Check = ({ tiers }, at) => {
  const ends = (tiers ?? []).map(({ up_to }) => (typeof up_to === "number" ? up_to : Infinity))
  const wrong = ends.findIndex((end, index) => {
    if (index === ends.length - 1) return end !== Infinity
    return end === Infinity || end <= (ends[index - 1] ?? 0)
  })
  return wrong === -1 ? undefined : new ParameterInvalid({ param: at("tiers", wrong, "up_to"), rule: TIER_END_RULE })
}

/** Fails for a tier with an amount both as an integer and as a decimal (semantics prices.tiers). */
const checkTierAmounts: Check = ({ tiers }, at) => {
  for (const [index, tier] of (tiers ?? []).entries()) {
    for (const field of ["flat_amount", "unit_amount"] as const) {
      if (tier[field] == null || tier[`${field}_decimal`] == null) continue
      return new ParametersExclusive({
        first: at("tiers", index, field),
        second: at("tiers", index, `${field}_decimal`)
      })
    }
  }
  return undefined
}

const CHECKS: ReadonlyArray<Check> = [
  checkCustomExcludes,
  checkScheme,
  checkUnitAmount,
  checkCustomBounds,
  checkRecurring,
  checkTierOrder,
  checkTierAmounts
]
