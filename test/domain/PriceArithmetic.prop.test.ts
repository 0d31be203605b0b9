/** Line amounts against an independent reference: fractions of integers, and unit-by-unit counting where feasible. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { AMOUNT_MAX } from "../../src/domain/Money.ts"
import { DecimalAmount, type Tier, type TransformQuantity } from "../../src/domain/Price.ts"
import { lineAmount, type PriceTerms, totalAmount } from "../../src/domain/PriceArithmetic.ts"
import { priceTermsFields } from "../../src/domain/PriceTerms.ts"
import { Random, runSeed } from "../support/Random.ts"
import { countRuns } from "../support/Runs.ts"

const RUNS = 3000

/** A number as numerator and denominator, never reduced. */
class Fraction {
  readonly numerator: bigint
  readonly denominator: bigint

  constructor(numerator: bigint, denominator = 1n) {
    this.numerator = numerator
    this.denominator = denominator
  }

  static of(text: string | null): Fraction {
    const [whole = "0", fraction = ""] = (text ?? "0").split(".")
    return new Fraction(BigInt(whole + fraction), 10n ** BigInt(fraction.length))
  }

  plus(other: Fraction): Fraction {
    return new Fraction(
      this.numerator * other.denominator + other.numerator * this.denominator,
      this.denominator * other.denominator
    )
  }

  times(count: bigint): Fraction {
    return new Fraction(this.numerator * count, this.denominator)
  }

  /** Rounds up if the remainder is half of the denominator or more. */
  rounded(): bigint {
    const whole = this.numerator / this.denominator
    return (this.numerator - whole * this.denominator) * 2n >= this.denominator ? whole + 1n : whole
  }
}

/** Computes the reference: for small quantities unit by unit, for large ones from boundary to boundary. */
const referenceAmount = (terms: PriceTerms, quantity: number): bigint => {
  if (terms.billing_scheme === "tiered") {
    return (terms.tiers_mode === "volume" ? volume : quantity <= 300 ? unitByUnit : byBoundaries)(
      terms.tiers!,
      quantity
    ).rounded()
  }
  const custom = terms.custom_unit_amount
  if (custom !== undefined) return BigInt(custom.preset ?? custom.minimum ?? 0) * BigInt(quantity)
  return Fraction.of(terms.unit_amount_decimal)
    .times(BigInt(billed(quantity, terms.transform_quantity)))
    .rounded()
}

/** Returns the billed packages. The quantities are small enough for exact floating point. */
const billed = (quantity: number, transform: TransformQuantity | undefined): number => {
  if (transform === undefined) return quantity
  const remainder = quantity % transform.divide_by
  const full = (quantity - remainder) / transform.divide_by
  return transform.round === "up" && remainder > 0 ? full + 1 : full
}

const tierOf = (tiers: ReadonlyArray<Tier>, unit: number): Tier =>
  tiers.filter(({ up_to }) => up_to === null || up_to >= unit)[0]!

const volume = (tiers: ReadonlyArray<Tier>, quantity: number): Fraction => {
  const tier = tierOf(tiers, quantity)
  return Fraction.of(tier.flat_amount_decimal).plus(Fraction.of(tier.unit_amount_decimal).times(BigInt(quantity)))
}

/** Adds each unit at the price of its tier; the first unit of a tier adds the flat amount. */
const unitByUnit = (tiers: ReadonlyArray<Tier>, quantity: number): Fraction => {
  let sum = new Fraction(0n)
  const entered = new Set<Tier>()
  for (let unit = 1; unit <= quantity; unit++) {
    const tier = tierOf(tiers, unit)
    if (!entered.has(tier)) sum = sum.plus(Fraction.of(tier.flat_amount_decimal))
    entered.add(tier)
    const { denominator, numerator } = Fraction.of(tier.unit_amount_decimal)
    // One denominator per tier keeps the sum of many units small.
    sum = new Fraction(
      (sum.numerator * 10n ** 12n) / sum.denominator + (numerator * 10n ** 12n) / denominator,
      10n ** 12n
    )
  }
  return sum
}

const byBoundaries = (tiers: ReadonlyArray<Tier>, quantity: number): Fraction =>
  tiers.reduce((sum, tier, index) => {
    const from = index === 0 ? 0 : tiers[index - 1]!.up_to!
    const units = Math.min(quantity, tier.up_to ?? quantity) - from
    if (units <= 0) return sum
    return sum
      .plus(Fraction.of(tier.flat_amount_decimal))
      .plus(Fraction.of(tier.unit_amount_decimal).times(BigInt(units)))
  }, new Fraction(0n))

const digits = (random: Random, length: number): string =>
  Array.from({ length }, () => String(random.integer(0, 9))).join("")

/** Generates decimals: short and long ones, whole ones, and many that end in a five, where rounding modes differ. */
const decimal = (random: Random): string => {
  const whole = String(Number(digits(random, random.integer(1, random.chance(0.1) ? 12 : 4))))
  if (random.chance(0.3)) return whole
  const fraction = random.chance(0.4) ? "5" : digits(random, random.integer(1, 12))
  return `${whole}.${fraction}`.replace(/\.?0+$/u, "")
}

const tiersOf = (random: Random): ReadonlyArray<Tier> => {
  let end = 0
  const count = random.integer(1, random.chance(0.1) ? 100 : 6)
  return Array.from({ length: count }, (_, index) => {
    end += random.integer(1, random.chance(0.2) ? 10_000 : 20)
    const flat = random.chance(0.5) ? decimal(random) : null
    const unit = flat === null || random.chance(0.7) ? decimal(random) : null
    return {
      up_to: index === count - 1 ? null : end,
      flat_amount: null,
      flat_amount_decimal: flat,
      unit_amount: null,
      unit_amount_decimal: unit
    }
  })
}

const termsOf = (random: Random): PriceTerms => {
  if (random.chance(0.6)) {
    const tiers_mode = random.pick(["graduated", "volume"] as const)
    return { billing_scheme: "tiered", unit_amount_decimal: null, tiers_mode, tiers: tiersOf(random) }
  }
  if (random.chance(0.1)) {
    const custom_unit_amount = {
      enabled: true,
      ...(random.chance(0.5) && { preset: random.integer(0, 5000) }),
      ...(random.chance(0.5) && { minimum: random.integer(0, 5000) })
    }
    return { billing_scheme: "per_unit", unit_amount_decimal: null, custom_unit_amount }
  }
  return {
    billing_scheme: "per_unit",
    unit_amount_decimal: decimal(random),
    ...(random.chance(0.5) && {
      transform_quantity: { divide_by: random.integer(1, 50), round: random.pick(["up", "down"] as const) }
    })
  }
}

const quantityOf = (random: Random, { tiers = [] }: PriceTerms): number => {
  const { up_to } = tiers.length === 0 ? { up_to: null } : random.pick(tiers)
  if (up_to !== null && random.chance(0.4)) return Math.max(1, up_to + random.integer(-1, 1))
  return random.integer(1, random.chance(0.3) ? 999_999 : 100)
}

const tier = (up_to: number | null, unit: string | null, flat: string | null = null): Tier => ({
  up_to,
  flat_amount: null,
  flat_amount_decimal: flat,
  unit_amount: null,
  unit_amount_decimal: unit
})

const perUnit = (unit: string, transform_quantity?: TransformQuantity): PriceTerms => ({
  billing_scheme: "per_unit",
  unit_amount_decimal: unit,
  ...(transform_quantity && { transform_quantity })
})

const tiered = (tiers_mode: "graduated" | "volume", tiers: ReadonlyArray<Tier>): PriceTerms => ({
  billing_scheme: "tiered",
  unit_amount_decimal: null,
  tiers_mode,
  tiers
})

describe("lineAmount", () => {
  it(`equals an independent exact computation`, () => {
    let over = 0
    countRuns(RUNS)
    for (let run = 0; run < RUNS; run++) {
      const random = new Random(runSeed + run)
      const terms = termsOf(random)
      const quantity = quantityOf(random, terms)
      const expected = referenceAmount(terms, quantity)
      const what = `TILL_SEED=${runSeed} run ${run}: ${quantity} × ${JSON.stringify(terms)}`
      if (expected > BigInt(AMOUNT_MAX)) over++
      assert.strictEqual(
        lineAmount(terms, quantity),
        expected > BigInt(AMOUNT_MAX) ? undefined : Number(expected),
        what
      )
    }
    assert.isAbove(over, 20, "some amounts are above the cap")
    assert.isBelow(over, RUNS / 2)
  })

  it("money.rounding: rounds once, half up", () => {
    for (const [unit, quantity, amount] of [
      ["0.5", 1, 1],
      ["0.499999999999", 1, 0],
      ["0.1", 5, 1],
      ["0.1", 3, 0],
      ["0.000000000001", 999_999, 0],
      ["2.5", 1, 3],
      ["1.005", 100, 101],
      ["0.07", 100, 7],
      ["1.15", 10, 12],
      ["4.35", 100, 435]
    ] as const) {
      assert.strictEqual(lineAmount(perUnit(unit), quantity), amount, `${quantity} × ${unit}`)
    }
    // Rounding each tier separately would result in 2.
    assert.strictEqual(lineAmount(tiered("graduated", [tier(1, "0.5"), tier(null, "0.5")]), 2), 1)
  })

  it("money.per_unit: bills whole packages", () => {
    const packages = (quantity: number, round: "up" | "down") =>
      lineAmount(perUnit("100", { divide_by: 10, round }), quantity)
    assert.deepStrictEqual(
      [1, 9, 10, 11, 20].map((quantity) => packages(quantity, "up")),
      [100, 100, 100, 200, 200]
    )
    assert.deepStrictEqual(
      [1, 9, 10, 11, 20].map((quantity) => packages(quantity, "down")),
      [0, 0, 100, 100, 200]
    )
  })

  it("money.volume, money.graduated: volume prices all units by one tier, graduated each part by its own tier", () => {
    const tiers = [tier(5, "500"), tier(10, "400", "100"), tier(null, "300", "1000")]
    const amounts = (mode: "graduated" | "volume") => [1, 5, 6, 10, 11].map((q) => lineAmount(tiered(mode, tiers), q))
    assert.deepStrictEqual(amounts("volume"), [500, 2500, 2500, 4100, 4300])
    assert.deepStrictEqual(amounts("graduated"), [500, 2500, 3000, 4600, 5900])
  })

  it("checkout.custom_amount: a chosen amount is the preset, else the minimum, else nothing", () => {
    const chosen = (custom: object) =>
      lineAmount(
        { billing_scheme: "per_unit", unit_amount_decimal: null, custom_unit_amount: { enabled: true, ...custom } },
        1
      )
    assert.deepStrictEqual([chosen({ preset: 7, minimum: 3 }), chosen({ minimum: 3 }), chosen({})], [7, 3, 0])
  })

  it("money.limits: is undefined above the cap", () => {
    assert.strictEqual(lineAmount(perUnit(String(AMOUNT_MAX)), 1), AMOUNT_MAX)
    assert.strictEqual(lineAmount(perUnit(`${AMOUNT_MAX}.4`), 1), AMOUNT_MAX)
    assert.isUndefined(lineAmount(perUnit(`${AMOUNT_MAX}.5`), 1))
    assert.isUndefined(lineAmount(perUnit("999999999999.999999999999"), 999_999))
    assert.strictEqual(totalAmount([AMOUNT_MAX - 1, 1]), AMOUNT_MAX)
    assert.isUndefined(totalAmount([AMOUNT_MAX, 1]))
    assert.isUndefined(totalAmount([1, undefined]))
    assert.strictEqual(totalAmount([]), 0)
  })
})

describe("decimals", () => {
  const kept = (text: string) => priceTermsFields({ unit_amount_decimal: text })

  it("are stored without loss, in one notation", () => {
    const random = new Random(runSeed)
    countRuns(RUNS)
    for (let run = 0; run < RUNS; run++) {
      const whole = digits(random, random.integer(1, 12))
      const fraction = random.chance(0.2) ? "0".repeat(random.integer(1, 12)) : digits(random, random.integer(1, 12))
      const sent = `${whole}.${fraction}`
      assert.isTrue(Schema.is(DecimalAmount)(sent), sent)
      const { unit_amount, unit_amount_decimal: text } = kept(sent)
      const before = Fraction.of(sent)
      const after = Fraction.of(text)
      assert.strictEqual(after.numerator * before.denominator, before.numerator * after.denominator, sent)
      assert.match(text!, /^(0|[1-9]\d*)(\.\d*[1-9])?$/)
      assert.strictEqual(unit_amount, /^0+$/.test(fraction) ? Number(whole) : null, sent)
      const amount = lineAmount(perUnit(text!), 1)
      const rounded = before.rounded()
      assert.strictEqual(amount, rounded > BigInt(AMOUNT_MAX) ? undefined : Number(rounded), sent)
      assert.strictEqual(rounded - BigInt(whole), fraction[0]! >= "5" ? 1n : 0n)
    }
    assert.strictEqual(kept("007.500").unit_amount_decimal, "7.5")
    assert.strictEqual(kept("0.000").unit_amount_decimal, "0")
    assert.strictEqual(kept("100000000000").unit_amount_decimal, "100000000000")
  })

  it("prices.unit_amount: are refused in any other form", () => {
    for (const text of ["", ".5", "5.", "-1", "1e3", " 1", "1234567890123", "0.1234567890123", "١"]) {
      assert.isFalse(Schema.is(DecimalAmount)(text), text)
    }
  })
})
