/** The costs of requests as a table: a row for each figure, a column for each kind of request. */
import { figure } from "../Report.ts"
import * as Table from "../Table.ts"
import { namesOf } from "./Budget.ts"
import type { BudgetResults } from "./BudgetBench.ts"
import type { Costs } from "./Costs.ts"
import { type Kind, KINDS } from "./Requests.ts"

type Cells = (kind: Kind) => string

const row = (title: string, cell: Cells): ReadonlyArray<string> => [title, ...KINDS.map(cell)]

/** Shows a figure, with its budget in brackets where they differ. */
const against = (value: number, bound: number): string => (value === bound ? `${value}` : `${value} (${bound})`)

const rows = ({ costs, cpu }: BudgetResults, budget: Costs): ReadonlyArray<ReadonlyArray<string>> => {
  const names = [...new Set(KINDS.flatMap((kind) => namesOf(costs[kind], budget[kind])))]
  return [
    row("figure (budget)", (kind) => kind),
    ...names.map((name) => row(name, (kind) => against(costs[kind][name] ?? 0, budget[kind][name] ?? 0))),
    row("CPU of Till ÷ echo", (kind) => figure(cpu[kind].till)),
    row("CPU of Postgres ÷ echo", (kind) => figure(cpu[kind].postgres))
  ]
}

export const text = (results: BudgetResults, budget: Costs): string => Table.textLines(rows(results, budget)).join("\n")

export const markdown = (results: BudgetResults, budget: Costs): string => Table.markdown(rows(results, budget))
