/**
 * The number of random cases: all in `npm run test:all`, a share in `npm test`, with a minimum that meets most of the
 * cases. Counts the cases for the summary of the run.
 */

/** True in `npm run test:all`. */
export const isWhole: boolean = process.env["TILL_TESTS"] === "all"

/** `npm test` runs one case in this many. */
const SHARE = 8
const RUNS_MIN = 5

/** The runs of a property, the requests of a fuzzer or the plans of a simulation: `whole` in `npm run test:all`. */
export const runs = (whole: number, least: number = RUNS_MIN): number =>
  isWhole ? whole : Math.min(whole, Math.max(least, Math.ceil(whole / SHARE)))

let tried = 0

/** Counts runs of the current test file. */
export const countRuns = (count: number): void => void (tried += count)

/** Returns the runs since the last call. */
export const takeRuns = (): number => {
  const count = tried
  tried = 0
  return count
}
