/**
 * Finds functions whose time grows faster than the length of their text.
 *
 * The first check compares one run with the longest text with one of a sixteenth of its length; a linear function
 * passes. A function that looks slow is measured at each doubling of the length: it is steep if each of three doublings
 * in a row takes more than 2.5 times the time. A quadratic function takes four times the time. Larger memory, which
 * makes a long text more expensive per character, raises the time at one or two doublings; long texts are therefore
 * doubled twice beyond the given length, to see whether the growth continues.
 *
 * Three measures prevent failures by chance. Time is the shorter one of the clock's and the processor's, so that
 * neither waits nor the compilation by other threads count; garbage collection does not count, because its time depends
 * on other objects in memory. The fastest of several runs counts, the runs of all lengths take turns, and a steep
 * result must repeat with more runs each time. Below the floor for the longest text nothing is compared: such a
 * function is fast enough, whatever its growth.
 *
 * A function that runs for longer than `LIMIT_MILLIS` is stopped and counts as steep.
 */
import { GCProfiler } from "node:v8"
import * as vm from "node:vm"

/** Greatest growth of the time for twice the length. */
const GROWTH_MAX = 2.5
const DOUBLINGS = 4
const FLOOR_MILLIS = 0.1
const LIMIT_MILLIS = 20_000
/** Measurements of a steep function, with three more runs each time. */
const ATTEMPTS = 4
const RUNS_MORE = 3
/** Time after which further runs with a text are left out. */
const ENOUGH_MILLIS = 1_000
/** Shorter texts fit into memory that is already allocated. */
const LARGE_LENGTH = 16_384

/** Makes a text of about this length. */
export type TextOf = (length: number) => string

/** Prepares a run with a text; only the run is measured. */
export type Prepare = (text: string) => () => unknown

/** CPU time of this process; that of a thread has a resolution of some milliseconds only. */
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

/** The time limit also stops what the run calls. */
const script = new vm.Script("globalThis.measuredRun()")

/** Returns undefined if the run does not end. */
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

/** Returns the ratio of times for each doubling up to the longest text, by the fastest runs. */
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

/** Returns the ratios of three doublings up to a length if they are steep in every attempt. */
const steepGrowth = (prepare: Prepare, textOf: TextOf, lengthMax: number): ReadonlyArray<number> | undefined => {
  const measure = growthOf([8, 4, 2, 1].map((part) => prepare(textOf(lengthMax / part))))
  let growth: ReadonlyArray<number> = []
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    growth = measure()
    if (!growth.every((times) => times > GROWTH_MAX)) return undefined
  }
  return growth
}

/** Describes a growth that is too steep up to this length; undefined if there is none. */
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
