/**
 * The result of a comparison of two versions: a ratio, an interval that holds the true ratio with 95 % confidence, and
 * a verdict. Pure: the same measurements and the same seed give the same interval.
 *
 * The starts of the servers are the clusters. Compiled code differs from start to start, and all rounds of a start
 * share it, so many rounds of few starts are few measurements. A resample therefore draws whole starts. To draw rounds
 * within them would count the noise of rounds twice: in simulations, such intervals were up to two thirds wider and
 * held the truth in all cases instead of in 95 of 100.
 */
import { median } from "../load/Percentiles.ts"

/** Ratios this ÷ other, one per round; one list per start. All are positive. */
export type RatiosByStart = ReadonlyArray<ReadonlyArray<number>>

export interface Interval {
  /** The geometric mean over the starts of each start's median ratio. */
  readonly ratio: number
  readonly low: number
  readonly high: number
}

export type Verdict = "faster" | "slower" | "no difference seen"

const RESAMPLES = 4000

/** Two-sided 95 % quantiles of Student's t with 1, 2, 3, … degrees of freedom. */
const T_QUANTILES = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093
]
/** The 95 % quantile of the normal distribution, which a bootstrap of many clusters approaches. */
const NORMAL_QUANTILE = 1.96

/** The least number of starts for an interval of a useful width. */
export const STARTS_MIN = 3
export const STARTS_MAX = T_QUANTILES.length + 1

/**
 * Returns the factor by which the interval of few clusters is widened: their bootstrap underestimates the spread of the
 * means and treats it as known.
 */
const stretchOf = (starts: number): number =>
  (T_QUANTILES[starts - 2]! / NORMAL_QUANTILE) * Math.sqrt(starts / (starts - 1))

/** Numbers from 0 up to 1 that the seed determines (mulberry32). */
const generator = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

const mean = (values: ReadonlyArray<number>): number => values.reduce((sum, value) => sum + value, 0) / values.length

/** Returns the mean of a resample with replacement. */
const meanOfDrawn = (values: ReadonlyArray<number>, random: () => number): number => {
  let sum = 0
  for (let i = 0; i < values.length; i++) sum += values[Math.floor(random() * values.length)]!
  return sum / values.length
}

/** Returns the interval of at least `STARTS_MIN` starts, each with at least one round. */
export const intervalOf = (starts: RatiosByStart, seed: number): Interval => {
  if (starts.length < STARTS_MIN || starts.length > STARTS_MAX)
    throw new Error(`No interval of ${starts.length} starts.`)
  const random = generator(seed)
  // One round that coincides with other work on the machine does not move a median.
  const logRatios = starts.map((rounds) => Math.log(median(rounds)))
  const resampled = Float64Array.from({ length: RESAMPLES }, () => meanOfDrawn(logRatios, random)).toSorted()
  const center = mean(logRatios)
  const bound = (share: number) => {
    const quantile = resampled[Math.round(share * (RESAMPLES - 1))]!
    return Math.exp(center + (quantile - center) * stretchOf(starts.length))
  }
  // With few starts, nearly all resamples may lie on one side of the estimate, which belongs to its own interval.
  const ratio = Math.exp(center)
  return { ratio, low: Math.min(ratio, bound(0.025)), high: Math.max(ratio, bound(0.975)) }
}

/** Returns the verdict, which favours a version only if the whole interval does. */
export const verdictOf = ({ high, low }: Interval, better: "higher" | "lower"): Verdict => {
  if (low <= 1 && high >= 1) return "no difference seen"
  return low > 1 === (better === "higher") ? "faster" : "slower"
}
