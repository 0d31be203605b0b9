/**
 * The budget: the costs that a request may have, in `budget.json`. A test measures the costs and compares them. A
 * figure above the budget fails, and so does one below it: the budget is lowered with the costs, so that no later
 * change uses up the savings.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Costs, Figures } from "./Costs.ts"
import { type Kind, KINDS } from "./Requests.ts"

/** A figure may differ from its budget by this share. */
export const MARGIN = 0.03
/** Allocations depend on what the compiler has optimized, and on how a batch falls into flushes. */
export const ALLOCATION_MARGIN = 0.1

const marginOf = (name: string): number => (name === "allocated bytes" ? ALLOCATION_MARGIN : MARGIN)

const FILE = join(import.meta.dirname, "budget.json")

export const read = (): Costs => JSON.parse(readFileSync(FILE, "utf8")) as Costs

export const write = (costs: Costs): void => writeFileSync(FILE, `${JSON.stringify(costs, null, 2)}\n`)

/** Returns a line for every figure that is out of the budget. */
export const problemsOf = (costs: Costs, budget: Costs): ReadonlyArray<string> =>
  KINDS.flatMap((kind) =>
    namesOf(costs[kind], budget[kind]).flatMap((name) => problemOf(kind, name, costs[kind], budget[kind]) ?? [])
  )

/** Returns the names of the figures, in the order of the budget. */
export const namesOf = (costs: Figures, budget: Figures): ReadonlyArray<string> => [
  ...new Set([...Object.keys(budget), ...Object.keys(costs)])
]

const problemOf = (kind: Kind, name: string, costs: Figures, budget: Figures): string | undefined => {
  const [figure = 0, bound = 0] = [costs[name], budget[name]]
  const margin = marginOf(name)
  if (figure > bound * (1 + margin)) return `${kind}, ${name}: ${figure} is over the budget of ${bound}`
  if (figure < bound * (1 - margin)) return `${kind}, ${name}: ${figure} is below the budget of ${bound}: lower it`
  return undefined
}
