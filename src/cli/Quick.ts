/**
 * Answers that need no command: the version, the list of commands, and the correction of a mistyped command. They load
 * neither Effect nor Till, which would take ten times as long as the answer.
 */
import { COMMAND_NAMES, SUMMARIES } from "./Summaries.ts"
import { VERSION } from "../version.ts"
import { didYouMean } from "./Suggestion.ts"

export interface Answer {
  readonly stream: "stdout" | "stderr"
  readonly text: string
  readonly exitCode: number
}

const WIDTH = Math.max(...COMMAND_NAMES.map((name) => name.length))

const HELP = [
  "A payments service that you run yourself",
  "",
  "Usage: till <command> [flags]",
  ...Object.entries(SUMMARIES).flatMap(([subject, commands]) => [
    "",
    `${subject}:`,
    ...Object.entries(commands).map(([name, summary]) => `  ${name.padEnd(WIDTH)}  ${summary}`)
  ]),
  "",
  "Flags:",
  "  --help, -h      Show this, or the flags of a command: till <command> --help",
  "  --version, -v   Show the version",
  "  --log-level     Least level of messages: all, trace, debug, info, warn, error, fatal or none",
  ""
].join("\n")

/**
 * Returns the first line of a service, whose start takes a second. It is empty for other commands, and for a process
 * that another one starts.
 */
export const announcementOf = (args: ReadonlyArray<string>, isRunner: boolean): string =>
  args[0] === "serve" && !isRunner && !args.some((arg) => /^(?:--help|-h|--version|-v)$/u.test(arg))
    ? `Starting Till ${VERSION} …\n`
    : ""

/** Returns the answer to a command line; undefined if a command has to run. */
export const answerTo = ([first, ...others]: ReadonlyArray<string>): Answer | undefined => {
  const isAlone = others.length === 0
  if (isAlone && (first === "--version" || first === "-v")) {
    return { stream: "stdout", text: `till v${VERSION}\n`, exitCode: 0 }
  }
  if (first === undefined || (isAlone && (first === "--help" || first === "-h" || first === "help"))) {
    return { stream: "stdout", text: HELP, exitCode: 0 }
  }
  if (first.startsWith("-") || (COMMAND_NAMES as ReadonlyArray<string>).includes(first)) return undefined
  const suggestion = didYouMean(first, COMMAND_NAMES)
  const text = `till: there is no command ${JSON.stringify(first)}${suggestion || "; till --help lists all"}\n`
  return { stream: "stderr", text, exitCode: 1 }
}
