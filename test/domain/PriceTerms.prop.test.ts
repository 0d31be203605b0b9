/**
 * Terms of prices in every combination: consistent terms make a price equal to the sent terms, with an amount for every
 * quantity; all others are refused, for a parameter that was sent or is missing.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { ParameterMissing } from "../../src/domain/Errors.ts"
import { AMOUNT_MAX } from "../../src/domain/Money.ts"
import { Price, type TierParameter } from "../../src/domain/Price.ts"
import { lineAmount } from "../../src/domain/PriceArithmetic.ts"
import {
  priceTermsFields,
  type PriceTermsParameters,
  requireAmountsWithinCap,
  requirePriceTerms
} from "../../src/domain/PriceTerms.ts"
import { Random, runSeed } from "../support/Random.ts"
import { countRuns } from "../support/Runs.ts"

const RUNS = 6000

const DECIMALS = ["0", "5", "5.0", "05", "5.5", "0.000000000001", "999999999999.5"]
const LONGEST = { day: 1095, week: 156, month: 36, year: 3 }

/** One of the choices, null, or undefined. */
const some = <A>(random: Random, probability: number, choices: ReadonlyArray<A>): A | null | undefined =>
  random.chance(probability) ? random.pick(choices) : random.pick([null, undefined])

const tierOf = (random: Random): TierParameter => ({
  up_to: random.pick([1, 2, 3, 5, 8]),
  flat_amount: some(random, 0.3, [0, 7, AMOUNT_MAX]) ?? null,
  flat_amount_decimal: some(random, 0.1, DECIMALS) ?? null,
  unit_amount: some(random, 0.6, [0, 7, AMOUNT_MAX + 1]) ?? null,
  unit_amount_decimal: some(random, 0.2, DECIMALS) ?? null
})

/** Generates tiers whose ends are more often valid than by chance. */
const tiersOf = (random: Random): ReadonlyArray<TierParameter> => {
  const tiers = Array.from({ length: random.integer(1, 4) }, () => tierOf(random))
  if (random.chance(0.1)) return tiers
  return tiers.map((tier, index) => {
    if (index < tiers.length - 1) return { ...tier, up_to: index + random.integer(1, 2) }
    const { up_to, ...open } = tier
    return up_to === 1 ? open : { ...open, up_to: random.pick(["inf", null] as const) }
  })
}

const termsOf = (random: Random): PriceTermsParameters => {
  const tiered = random.chance(0.5)
  const custom = !tiered && random.chance(0.3)
  const usual = 0.9
  const rare = 0.1
  const terms = {
    unit_amount: some(random, tiered || custom ? rare : 0.6, [0, 5, AMOUNT_MAX + 1]),
    unit_amount_decimal: some(random, tiered || custom ? rare : 0.5, DECIMALS),
    custom_unit_amount: some(random, custom ? usual : rare / 2, [
      {
        enabled: true,
        minimum: some(random, 0.5, [0, 3, 5]) ?? null,
        maximum: some(random, 0.5, [2, 5, AMOUNT_MAX + 1]) ?? null,
        preset: some(random, 0.5, [1, 4, 5]) ?? null
      }
    ]),
    type: some(random, 0.4, ["one_time", "recurring"] as const),
    billing_scheme: tiered ? ("tiered" as const) : some(random, 0.5, ["per_unit"] as const),
    recurring: some(random, custom ? rare : 0.3, [
      {
        interval: random.pick(["day", "week", "month", "year"] as const),
        interval_count: random.pick([1, 3, 4, 36, 37, 156, 157, 1095, 1096, null]),
        usage_type: random.pick(["licensed", "metered", null] as const)
      }
    ]),
    tiers_mode: some(random, tiered ? usual : rare, ["graduated", "volume"] as const),
    tiers: some(random, tiered ? usual : rare, [tiersOf(random)]),
    transform_quantity: some(random, tiered ? rare : 0.2, [
      { divide_by: random.integer(1, 5), round: random.pick(["up", "down"] as const) }
    ])
  }
  return Object.fromEntries(Object.entries(terms).filter(([, value]) => value !== undefined))
}

const areSound = (tiers: ReadonlyArray<TierParameter>): boolean =>
  tiers.every((tier, index) => {
    const last = index === tiers.length - 1
    const before = index === 0 ? 0 : Number(tiers[index - 1]!.up_to)
    const ends = last ? typeof tier.up_to !== "number" : typeof tier.up_to === "number" && tier.up_to > before
    const kinds = [tier.flat_amount, tier.flat_amount_decimal, tier.unit_amount, tier.unit_amount_decimal]
    const [flat, flatDecimal, unit, unitDecimal] = kinds.map((amount) => amount !== null)
    return ends && (flat || flatDecimal || unit || unitDecimal) && !(flat && flatDecimal) && !(unit && unitDecimal)
  })

/**
 * The rules of semantics prices.recurring, prices.transform_quantity, prices.tax_behavior, prices.type,
 * prices.unit_amount, prices.custom_unit_amount, prices.tiers, one condition each, written independently of the tested
 * code.
 */
const belongTogether = (terms: PriceTermsParameters): boolean => {
  const { custom_unit_amount: custom, recurring, tiers, tiers_mode, transform_quantity, type } = terms
  const has = (value: unknown): boolean => value !== undefined && value !== null
  const amounts = [terms.unit_amount, terms.unit_amount_decimal].filter(has)
  if (type === "recurring" && !has(recurring)) return false
  if (type === "one_time" && has(recurring)) return false
  if (has(recurring) && (recurring!.interval_count ?? 1) > LONGEST[recurring!.interval]) return false
  if (terms.billing_scheme === "tiered") {
    if (amounts.length > 0 || has(custom) || has(transform_quantity)) return false
    return has(tiers_mode) && has(tiers) && areSound(tiers!)
  }
  if (has(tiers) || has(tiers_mode)) return false
  if (!has(custom)) return amounts.length > 0 && new Set(amounts.map(Number)).size === 1
  if (amounts.length > 0 || has(recurring) || has(transform_quantity)) return false
  const bounds = [custom!.minimum, custom!.preset, custom!.maximum].filter(has) as Array<number>
  return bounds.every((bound, index) => index === 0 || bounds[index - 1]! <= bound)
}

/** Returns whether an amount is above the cap. Floating point suffices for the decimals of this test. */
const isAboveCap = (value: unknown): boolean => {
  if (Array.isArray(value)) return value.some(isAboveCap)
  if (typeof value === "object" && value !== null) return Object.values(value).some(isAboveCap)
  return (typeof value === "number" || (typeof value === "string" && /^\d/.test(value))) && Number(value) > AMOUNT_MAX
}

const valueAt = (terms: object, param: string): unknown =>
  param
    .replaceAll("]", "")
    .split("[")
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | null | undefined)?.[key], terms)

const asPrice = (terms: PriceTermsParameters): Price => ({
  id: "price_1",
  object: "price",
  active: true,
  product: "prod_1",
  currency: "usd",
  tax_behavior: "unspecified",
  metadata: {},
  livemode: false,
  created: 0,
  ...priceTermsFields(terms),
  lookup_key: null,
  nickname: null
})

describe("terms of prices", () => {
  it.effect(`are accepted if and only if they are consistent`, () =>
    Effect.gen(function* () {
      let accepted = 0
      countRuns(RUNS)
      for (let run = 0; run < RUNS; run++) {
        const random = new Random(runSeed + run)
        const terms = termsOf(random)
        const what = `TILL_SEED=${runSeed} run ${run}: ${JSON.stringify(terms)}`
        const refused = yield* Effect.match(requirePriceTerms(terms), {
          onSuccess: () => undefined,
          onFailure: (error) => error
        })
        assert.strictEqual(refused === undefined, belongTogether(terms), what)
        if (refused !== undefined) {
          const param = refused._tag === "ParametersExclusive" ? refused.second : refused.param!
          const value = valueAt(terms, param)
          // An end or a count can be wrong by its absence; all others are wrong by their presence.
          if (refused instanceof ParameterMissing) assert.isTrue(value == null, what)
          else if (!param.endsWith("[up_to]")) assert.isTrue(value != null, `${what}: ${param}`)
          continue
        }
        accepted++
        const capped = yield* Effect.exit(requireAmountsWithinCap(terms))
        assert.strictEqual(Exit.isSuccess(capped), !isAboveCap({ ...terms, recurring: null }), what)
        if (Exit.isFailure(capped)) continue
        const price = asPrice(terms)
        assert.isTrue(Schema.is(Price)(price), what)
        for (const quantity of [1, 2, 3, 999_999]) {
          const amount = lineAmount(price, quantity)
          assert.isTrue(amount === undefined || (Number.isSafeInteger(amount) && amount >= 0), what)
        }
        checkSaysWhatWasSent(terms, price, what)
      }
      assert.isAbove(accepted, RUNS / 10)
      assert.isBelow(accepted, RUNS)
    })
  )
})

/** Checks that a price equals the sent terms, and that sending it again results in the same price. */
const checkSaysWhatWasSent = (terms: PriceTermsParameters, price: Price, what: string): void => {
  const sent = terms.unit_amount ?? terms.unit_amount_decimal
  if (sent != null) assert.strictEqual(Number(price.unit_amount_decimal), Number(sent), what)
  assert.strictEqual(price.unit_amount === null, sent == null || !Number.isInteger(Number(sent)), what)
  assert.strictEqual(price.type, terms.recurring == null ? "one_time" : "recurring", what)
  for (const [index, tier] of (price.tiers ?? []).entries()) {
    const sentTier = terms.tiers![index]!
    assert.strictEqual(tier.up_to, typeof sentTier.up_to === "number" ? sentTier.up_to : null, what)
    for (const field of ["flat_amount", "unit_amount"] as const) {
      const amount = sentTier[field] ?? sentTier[`${field}_decimal`]
      assert.strictEqual(tier[`${field}_decimal`] === null, amount == null, what)
      if (amount != null) assert.strictEqual(Number(tier[`${field}_decimal`]), Number(amount), what)
    }
  }
  const again = priceTermsFields({
    ...price,
    tiers: price.tiers?.map((tier) => ({ ...tier, flat_amount: null, unit_amount: null })) ?? null
  })
  assert.deepStrictEqual(asPrice({ ...terms, ...again }), price, what)
}
