/** The goal for Till's speed in relation to one earlier commit. */
import { type Verdict, verdictOf } from "../Verdict.ts"
import { intervalOf } from "./Bootstrap.ts"
import type { Compared } from "./Comparison.ts"

/** The commit at which creates were 2.6 to 3.4 times those of a transaction per request. */
export const COMMIT = "a0705d3"

const RATIO_MIN: Readonly<Record<string, number>> = {
  create: 1.5,
  "create-and-confirm": 1.4,
  checkout: 1.4,
  "checkout-confirm": 1.4,
  refund: 1.4
}

/** Returns no verdict for a comparison with another commit. */
export const judge = (compared: ReadonlyArray<Compared>, otherCommit: string, seed: number): ReadonlyArray<Verdict> => {
  if (!otherCommit.startsWith(COMMIT)) return []
  return compared.flatMap(({ scenario, starts }) => {
    const bound = RATIO_MIN[scenario.name]
    if (bound === undefined) return []
    const ratios = starts.map((pairs) => pairs.map(({ other, own }) => own.requestsPerSecond / other.requestsPerSecond))
    return [
      verdictOf({ text: `${scenario.name} ÷ commit ${COMMIT}`, unit: "×", bound }, intervalOf(ratios, seed).ratio)
    ]
  })
}
