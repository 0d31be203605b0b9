/** `till doctor` prints what is wrong with an installation, and how to mend it (semantics operation.doctor). */
import { Console, Effect } from "effect"
import * as app from "../app.ts"

const WIDTH = "warning".length

const lineOf = ({ level, remedy, text }: app.Finding): string =>
  `${level.padEnd(WIDTH)}  ${text}${remedy === null ? "" : `\n${" ".repeat(WIDTH)}  → ${remedy}`}`

const numberOf = (count: number, name: string): string => `${count} ${name}${count === 1 ? "" : "s"}`

const verdictOf = (problems: number, warnings: number): string => {
  if (problems === 0 && warnings === 0) return "Nothing is wrong."
  return `${problems === 0 ? "No problem" : numberOf(problems, "problem")}, ${numberOf(warnings, "warning")}.`
}

/** Prints the findings as lines or as JSON. The status is 1 if one of them is a problem. */
export const doctor = (json: boolean) =>
  Effect.flatMap(app.diagnosis, (findings) => {
    const [problems, warnings] = (["problem", "warning"] as const).map(
      (level) => findings.filter((finding) => finding.level === level).length
    ) as [number, number]
    const text = json
      ? JSON.stringify({ version: app.VERSION, problems, warnings, findings }, null, 2)
      : [...findings.map(lineOf), "", verdictOf(problems, warnings)].join("\n")
    return Effect.andThen(
      Console.log(text),
      Effect.sync(() => {
        if (problems > 0) process.exitCode = 1
      })
    )
  })
