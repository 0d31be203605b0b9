/** Goals for the cost of a runner among several, judged by the figures of one run. */
import { type Verdict, verdictOf } from "../Verdict.ts"
import { allMicros, forwardingMicros, ratioOf } from "./ClusterFigures.ts"
import type { ClusterResults } from "./ClusterResults.ts"

export const judge = (results: ClusterResults): ReadonlyArray<Verdict> => {
  const perSecond = ratioOf(results, ["one", "sole"], ({ requestsPerSecond }) => requestsPerSecond)
  const micros = ratioOf(results, ["one", "sole"], allMicros)
  const forwarding = forwardingMicros(results, allMicros)
  const goals = [
    { figure: perSecond, text: "a cluster of one: creates/s ÷ without cluster", unit: "×", bound: 0.98 },
    {
      figure: micros,
      text: "a cluster of one: CPU per create ÷ without cluster",
      unit: "×",
      bound: 1.02,
      isMaximum: true
    },
    { figure: forwarding, text: "a forwarded create: CPU beyond a local one", unit: " µs", bound: 90, isMaximum: true }
  ]
  return goals.flatMap(({ figure, ...goal }) => (figure === undefined ? [] : [verdictOf(goal, figure)]))
}
