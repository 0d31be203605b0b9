/** The results as a table. */
import { figure } from "../Report.ts"
import * as Table from "../Table.ts"
import type { StartResults } from "./StartBench.ts"

const rows = ({ cpuSeconds, rounds, ...seconds }: StartResults) => [
  [`Median of ${rounds} runs`, "CPU s", "s"],
  ["Node alone", figure(cpuSeconds.node), ""],
  ["till --version", figure(cpuSeconds.version), ""],
  ["till --help", figure(cpuSeconds.help), ""],
  ["a mistyped command", figure(cpuSeconds.wrong), ""],
  ["till serve, new folder: the first line", "", figure(seconds.firstLineSeconds)],
  ["till serve, new folder: accepts requests", "", figure(seconds.firstStartSeconds)],
  ["till serve again: accepts requests", "", figure(seconds.warmStartSeconds)],
  ["till listen: forwards", "", figure(seconds.listenSeconds)],
  ["till logs, nothing listens: has ended", "", figure(seconds.refusedSeconds)]
]

export const text = (results: StartResults): string => Table.textLines(rows(results)).join("\n")
export const markdown = (results: StartResults): string => Table.markdown(rows(results))
