import { assert, describe, it } from "@effect/vitest"
import { intervalOf, type RatiosByStart, STARTS_MAX, STARTS_MIN, verdictOf } from "../../bench/compare/Bootstrap.ts"
import { Random } from "../support/Random.ts"

const SEED = Number(process.env["SEED"] ?? 20261123)
const SIMULATED = 200

interface Noise {
  readonly starts: number
  readonly rounds: number
  /** Standard deviations of the logarithms: one that the rounds of a start share, and one per round. */
  readonly ofStart: number
  readonly ofRound: number
}

/** Values of restarts of one commit: 6 % per start, with differences of 13 % between two at times. */
const USUAL: Noise = { starts: 6, rounds: 5, ofStart: 0.06, ofRound: 0.04 }

const normal = (random: Random): number =>
  Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next())

/** Returns measurements of two versions with a known ratio. */
const measured = (ratio: number, { ofRound, ofStart, rounds, starts }: Noise, random: Random): RatiosByStart =>
  Array.from({ length: starts }, () => {
    const luck = ofStart * normal(random)
    return Array.from({ length: rounds }, () => ratio * Math.exp(luck + ofRound * normal(random)))
  })

/** Returns the share of simulated comparisons with a property. */
const shareOf = (ratio: number, noise: Noise, holds: (interval: ReturnType<typeof intervalOf>) => boolean): number => {
  const random = new Random(SEED)
  const held = Array.from({ length: SIMULATED }, (_, i) => holds(intervalOf(measured(ratio, noise, random), i)))
  return held.filter(Boolean).length / SIMULATED
}

describe(`intervalOf, SEED=${SEED}`, () => {
  for (const noise of [USUAL, { ...USUAL, starts: STARTS_MIN }, { ...USUAL, starts: 10, ofRound: 0.1 }]) {
    it(`holds the true ratio in 95 of 100 comparisons: ${JSON.stringify(noise)}`, () => {
      for (const ratio of [1, 1.3]) {
        const share = shareOf(ratio, noise, ({ high, low }) => low <= ratio && ratio <= high)
        assert.isAtLeast(share, 0.9)
        // An interval that always holds the truth is too wide.
        assert.isAtMost(share, 0.99)
      }
    })
  }

  it("is narrow enough to see what is larger than the luck of the starts", () => {
    assert.isAtLeast(
      shareOf(1.2, USUAL, (interval) => verdictOf(interval, "higher") === "faster"),
      0.9
    )
    assert.isAtLeast(
      shareOf(1 / 1.2, USUAL, (interval) => verdictOf(interval, "higher") === "slower"),
      0.9
    )
  })

  it("takes the rounds of one start for one measurement", () => {
    const luck = [1.01, 1.02, 1.13]
    const hundredRoundsEach = luck.map((ratio) => Array.from({ length: 100 }, () => ratio))
    assert.strictEqual(verdictOf(intervalOf(hundredRoundsEach, SEED), "higher"), "no difference seen")
    const moreStarts = Array.from({ length: 18 }, (_, i) => [luck[i % 3]!])
    assert.strictEqual(verdictOf(intervalOf(moreStarts, SEED), "higher"), "faster")
  })

  it("is decided by the seed", () => {
    const starts = measured(1, { ...USUAL, starts: 12 }, new Random(SEED))
    assert.deepStrictEqual(intervalOf(starts, 7), intervalOf(starts, 7))
    assert.notDeepEqual(intervalOf(starts, 7), intervalOf(starts, 8))
  })

  it("turns round with the ratio", () => {
    const starts = measured(1.1, { ...USUAL, starts: 12 }, new Random(SEED))
    const there = intervalOf(starts, 7)
    const back = intervalOf(
      starts.map((rounds) => rounds.map((ratio) => 1 / ratio)),
      7
    )
    assert.approximately(back.ratio, 1 / there.ratio, 1e-9)
    assert.approximately(back.low, 1 / there.high, 1e-3)
    assert.approximately(back.high, 1 / there.low, 1e-3)
  })

  it("is one point where all measurements are", () => {
    const { high, low, ratio } = intervalOf([[2, 2], [2], [2]], SEED)
    for (const value of [low, ratio, high]) assert.approximately(value, 2, 1e-12)
  })

  it("is not moved by a single bad round of a start", () => {
    const starts = Array.from({ length: 5 }, () => [1, 1, 0.1, 1, 1])
    assert.strictEqual(intervalOf(starts, SEED).ratio, 1)
  })

  it("is refused where it would mean nothing", () => {
    assert.throws(() => intervalOf([[1], [1]], SEED), "No interval of 2 starts")
    assert.throws(
      () =>
        intervalOf(
          Array.from({ length: STARTS_MAX + 1 }, () => [1]),
          SEED
        ),
      "No interval of 21 starts"
    )
  })
})

describe("verdictOf", () => {
  const interval = (low: number, high: number) => ({ ratio: (low + high) / 2, low, high })

  it("needs the whole interval on one side of 1", () => {
    assert.strictEqual(verdictOf(interval(1.01, 1.2), "higher"), "faster")
    assert.strictEqual(verdictOf(interval(0.8, 0.99), "higher"), "slower")
    assert.strictEqual(verdictOf(interval(0.99, 1.2), "higher"), "no difference seen")
    assert.strictEqual(verdictOf(interval(1, 1.2), "higher"), "no difference seen")
    assert.strictEqual(verdictOf(interval(0.8, 1), "higher"), "no difference seen")
  })

  it("treats less time as better", () => {
    assert.strictEqual(verdictOf(interval(1.01, 1.2), "lower"), "slower")
    assert.strictEqual(verdictOf(interval(0.8, 0.99), "lower"), "faster")
  })
})
