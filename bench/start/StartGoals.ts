/** Goals for the start of the command `till`, judged by the figures of one run. */
import { type Verdict, verdictOf } from "../Verdict.ts"
import type { StartResults } from "./StartBench.ts"

export const judge = (results: StartResults): ReadonlyArray<Verdict> => {
  const { cpuSeconds } = results
  const most = (text: string, bound: number, figure: number) =>
    verdictOf({ text: `start: ${text}`, unit: " s", bound, isMaximum: true }, figure)
  return [
    most("CPU of till --version", 0.25, cpuSeconds.version),
    most("CPU of till --help", 0.25, cpuSeconds.help),
    most("CPU of a mistyped command", 0.25, cpuSeconds.wrong),
    most("first line of a service", 0.5, results.firstLineSeconds),
    most("first start of a service, in a new folder", 3, results.firstStartSeconds),
    most("further start of a service", 1.5, results.warmStartSeconds),
    most("till listen forwards", 0.8, results.listenSeconds),
    most("a port that refuses is reported", 1, results.refusedSeconds)
  ]
}
