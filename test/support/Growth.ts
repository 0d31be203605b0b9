/**
 * Tells whether a function's time grows faster than the length of the text that it is given.
 *
 * First one run with the longest text is compared with one of a sixteenth of its length, which a linear function
 * passes. Where that looks slow, each doubling of the length is measured by itself: the function is steep if each of
 * three in a row takes more than 2.5 times the time. A quadratic function takes four times the time each time. Larger
 * memory, which makes a long text dearer per character, raises the time at one or two doublings, where it begins; texts
 * that are long enough for it are doubled twice beyond the given length, to see whether the growth goes on.
 *
 * The comparison does not fail by chance:
 *
 * - Time is the shorter one of the clock's and of the processor's, so neither waiting for a processor counts nor what
 *   other threads compile. Collecting garbage does not count: its time depends on what else is in memory.
 * - The fastest of several runs counts, the runs of all lengths take turns, and a result that looks steep must do so
 *   again with more runs each time.
 * - Below the floor for the longest text nothing is compared: whatever the growth, that is fast enough.
 *
 * A function that has not ended after `LIMIT_MILLIS` is stopped, whatever it is doing, and counts as found.
 */
import { GCProfiler } from "node:v8"
import * as vm from "node:vm"

/** For twice the length. */
const GROWTH_MAX = 2.5
const DOUBLINGS = 4
const FLOOR_MILLIS = 0.1
const LIMIT_MILLIS = 20_000
/** A steep function is measured this often, with three more runs each time. */
const ATTEMPTS = 4
const RUNS_MORE = 3
/** Further runs with a text are left out once they have taken this long. */
const ENOUGH_MILLIS = 1_000
/** Shorter texts fit in memory that is there already. */
const LARGE_LENGTH = 16_384

/** Makes a text of about this length. */
export type TextOf = (length: number) => string

/** Prepares a run with a text; only the run itself is measured. */
export type Prepare = (text: string) => () => unknown

/** CPU time of this process. That of a thread alone is counted in ticks of some milliseconds. */
const cpuMillis = (): number => {
  const { system, user } = process.cpuUsage()
  return (user + system) / 1000
}

const timeOf = (run: () => unknown): number => {
  const profiler = new GCProfiler()
  profiler.start()
  const [cpu, clock] = [cpuMillis(), performance.now()]
  run()
  const passed = performance.now() - clock
  const used = cpuMillis() - cpu
  const garbageMillis = (profiler.stop()?.statistics ?? []).reduce((micros, { cost }) => micros + cost, 0) / 1000
  return Math.min(passed - garbageMillis, used)
}

/** What it calls is stopped, too, when its time is over. */
const script = new vm.Script("globalThis.measuredRun()")

/** Undefined if the run does not end. */
const timeIfItEnds = (run: () => unknown, limitMillis: number): number | undefined => {
  let time: number | undefined
  const scope = globalThis as { measuredRun?: () => void }
  scope.measuredRun = () => {
    time = timeOf(run)
  }
  try {
    script.runInThisContext({ timeout: limitMillis })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error
  }
  return time
}

/** How many times as long each doubling takes, up to the longest text, by the fastest runs. */
const growthOf = (runs: ReadonlyArray<() => unknown>): (() => ReadonlyArray<number>) => {
  const fastest = runs.map(() => Infinity)
  const spent = runs.map(() => 0)
  return () => {
    for (let turn = 0; turn < RUNS_MORE; turn++) {
      for (const [i, run] of runs.entries()) {
        if (spent[i]! > ENOUGH_MILLIS && turn > 0) continue
        const time = timeOf(run)
        fastest[i] = Math.min(fastest[i]!, time)
        spent[i]! += time
      }
    }
    return fastest.slice(1).map((time, i) => time / fastest[i]!)
  }
}

/** How many times as long each of three doublings up to a length takes, if that is steep in every attempt. */
const steepGrowth = (prepare: Prepare, textOf: TextOf, lengthMax: number): ReadonlyArray<number> | undefined => {
  const measure = growthOf([8, 4, 2, 1].map((part) => prepare(textOf(lengthMax / part))))
  let growth: ReadonlyArray<number> = []
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    growth = measure()
    if (!growth.every((times) => times > GROWTH_MAX)) return undefined
  }
  return growth
}

/** Says how the time grows, if that is too steep up to this length; undefined if it is not. */
export const steepnessOf = (
  prepare: Prepare,
  textOf: TextOf,
  lengthMax: number,
  limitMillis: number = LIMIT_MILLIS
): string | undefined => {
  const longest = prepare(textOf(lengthMax))
  const first = timeIfItEnds(longest, limitMillis)
  if (first === undefined) return `does not end within ${limitMillis / 1000} s`
  if (first <= FLOOR_MILLIS) return undefined
  const shortest = prepare(textOf(lengthMax / 2 ** DOUBLINGS))
  const short = Math.min(timeOf(shortest), timeOf(shortest))
  if (first <= short * GROWTH_MAX ** DOUBLINGS) return undefined
  if (Math.min(first, timeOf(longest)) <= short * GROWTH_MAX ** DOUBLINGS) return undefined
  const growsOn = lengthMax > LARGE_LENGTH && first < ENOUGH_MILLIS
  const growth =
    steepGrowth(prepare, textOf, lengthMax) && steepGrowth(prepare, textOf, growsOn ? lengthMax * 4 : lengthMax)
  if (growth === undefined) return undefined
  const times = growth.map((one) => one.toFixed(1)).join(", ")
  return `takes ${times} times as long when the length doubles, ${first.toFixed(1)} ms for ${lengthMax} characters`
}
