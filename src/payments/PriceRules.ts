/**
 * Which terms of a price belong together (semantics PR8 to PR16, §8.17, §8.18): one small rule each. What is missing is
 * told before what is wrong (T14).
 */
import { parseDecimal, scaledOf } from "../domain/Decimal.ts"
import { ParameterInvalid, ParametersExclusive } from "../domain/Errors.ts"
import type { RecurringInterval } from "../domain/Price.ts"
import { TIER_END_RULE } from "../domain/Price.ts"
import type { PriceTermsParameters } from "./PriceParameters.ts"

/** A parameter within the terms, by keys and indexes. */
export type Path = ReadonlyArray<string | number>

/** Three years (semantics PR8). */
const INTERVAL_COUNT_MAX: Readonly<Record<RecurringInterval, number>> = { day: 1095, week: 156, month: 36, year: 3 }

/** The amounts of a tier, of which it has one at least (semantics PR15). */
export const TIER_AMOUNTS = ["flat_amount", "flat_amount_decimal", "unit_amount", "unit_amount_decimal"] as const

/** Whether the price has tiers, or is meant to. */
export const isTiered = ({ billing_scheme }: PriceTermsParameters): boolean => billing_scheme === "tiered"

/** The first parameter that the others demand. Tiers of a price that is not tiered are wrong, not too few (PR16). */
export const missingIn = (terms: PriceTermsParameters): Path | undefined => {
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

/** What is wrong with terms that are complete. */
export type Problem = ParameterInvalid | ParametersExclusive

/** One rule, for terms of which nothing is missing. `at` names a parameter. */
type Check = (terms: PriceTermsParameters, at: (...path: Path) => string) => Problem | undefined

/** What a payer who chooses the amount leaves no room for (semantics PR14). */
const WITHOUT_CUSTOM = ["unit_amount", "unit_amount_decimal", "recurring", "tiers", "transform_quantity"] as const
const ONLY_TIERED = ["tiers_mode", "tiers"] as const
const NEVER_TIERED = ["unit_amount", "unit_amount_decimal", "transform_quantity"] as const

const checkCustomExcludes: Check = ({ custom_unit_amount, ...terms }, at) => {
  const other = custom_unit_amount == null ? undefined : WITHOUT_CUSTOM.find((field) => terms[field] != null)
  return other && new ParametersExclusive({ first: at("custom_unit_amount"), second: at(other) })
}

/** Tiers and a single amount exclude each other (semantics PR10, PR15, PR16). */
const checkScheme: Check = (terms, at) => {
  const fields = isTiered(terms) ? NEVER_TIERED : ONLY_TIERED
  const field = fields.find((name) => terms[name] != null)
  const rule = isTiered(terms) ? "absent if `billing_scheme` is `tiered`" : "absent unless `billing_scheme` is `tiered`"
  return field && new ParameterInvalid({ param: at(field), rule })
}

/** Sent twice, an amount has to be the same (semantics PR13). */
const checkUnitAmount: Check = ({ unit_amount: amount, unit_amount_decimal: decimal }, at) =>
  amount == null || decimal == null || scaledOf(amount) === parseDecimal(decimal)
    ? undefined
    : new ParametersExclusive({ first: at("unit_amount"), second: at("unit_amount_decimal") })

/** Each bound has to fit those before it (semantics §8.17). */
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

/** Semantics PR8, PR12. */
const checkRecurring: Check = ({ recurring, type }, at) => {
  if (recurring == null) return undefined
  if (type === "one_time") {
    return new ParameterInvalid({ param: at("recurring"), rule: "absent if `type` is `one_time`" })
  }
  const max = INTERVAL_COUNT_MAX[recurring.interval]
  if ((recurring.interval_count ?? 1) <= max) return undefined
  return new ParameterInvalid({ param: at("recurring", "interval_count"), rule: `an integer from 1 to ${max}` })
}

/** Tiers follow one another, and only the last has no end (semantics PR15). */
const checkTierOrder: Check = ({ tiers }, at) => {
  const ends = (tiers ?? []).map(({ up_to }) => (typeof up_to === "number" ? up_to : Infinity))
  const wrong = ends.findIndex((end, index) => {
    if (index === ends.length - 1) return end !== Infinity
    return end === Infinity || end <= (ends[index - 1] ?? 0)
  })
  return wrong === -1 ? undefined : new ParameterInvalid({ param: at("tiers", wrong, "up_to"), rule: TIER_END_RULE })
}

/** Of one kind, a tier has one amount (semantics §8.18). */
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

/** In the order in which they are made. */
export const CHECKS: ReadonlyArray<Check> = [
  checkCustomExcludes,
  checkScheme,
  checkUnitAmount,
  checkCustomBounds,
  checkRecurring,
  checkTierOrder,
  checkTierAmounts
]
