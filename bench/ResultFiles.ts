/** The files that a bench writes: one per part, and one with the goals of all parts. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Verdict } from "./Verdict.ts"
import type { Machine } from "./Machine.ts"
import { verdictsMarkdown } from "./Report.ts"

export const FOLDER = join(import.meta.dirname, "results")

/** The order of the parts' goals. */
const PARTS = [
  "comparison",
  "latest",
  "webhooks",
  "overload",
  "live",
  "cluster",
  "growth",
  "dashboard",
  "budget",
  "start"
] as const
export type Part = (typeof PARTS)[number]

/** Common content of the parts' files. */
interface Kept {
  readonly at: string
  readonly machine: Machine
  readonly goals: ReadonlyArray<Verdict>
}

const put = (name: string, text: string): void => writeFileSync(join(FOLDER, name), text)

/** JSON has no infinity: an unseen figure is null there. */
const readPart = (part: Part): Kept | undefined => {
  const file = join(FOLDER, `${part}.json`)
  if (!existsSync(file)) return undefined
  const kept = JSON.parse(readFileSync(file, "utf8")) as Kept
  return { ...kept, goals: kept.goals.map((goal) => ({ ...goal, figure: goal.figure ?? Infinity })) }
}

/** Writes a part's results, and the goals of all parts again. */
export const write = (part: Part, results: Kept, others: Readonly<Record<string, string>>): ReadonlyArray<string> => {
  mkdirSync(FOLDER, { recursive: true })
  put(`${part}.json`, `${JSON.stringify(results, null, 2)}\n`)
  for (const [name, text] of Object.entries(others)) put(name, text)
  const sections = PARTS.flatMap((name) => {
    const kept = readPart(name)
    if (kept === undefined || kept.goals.length === 0) return []
    return [
      `\`${name}.json\`, ${kept.at.slice(0, 10)}, commit ${kept.machine.commit}:\n\n${verdictsMarkdown(kept.goals)}`
    ]
  })
  put("goals.md", `${sections.join("\n\n")}\n`)
  return [`${part}.json`, ...Object.keys(others), "goals.md"]
}
