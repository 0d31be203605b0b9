/** The machine of a measurement. */
import { execFileSync } from "node:child_process"
import { arch, availableParallelism, cpus, platform, release, totalmem } from "node:os"

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGigabytes: number
  readonly system: string
  readonly node: string
  readonly postgres: string
  /** Short hash; ends in `+` if the work tree has changes other than a bench's results. */
  readonly commit: string
}

const git = (...parameters: ReadonlyArray<string>): string => {
  try {
    return execFileSync("git", parameters, { cwd: import.meta.dirname, encoding: "utf8", stdio: "pipe" }).trim()
  } catch {
    return ""
  }
}

const changed = (): boolean => git("status", "--porcelain", "--", ":/", ":(top,exclude)bench/results") !== ""

export const describe = (postgres: string): Machine => ({
  cpu: cpus()[0]?.model.trim() ?? "unknown",
  cores: availableParallelism(),
  memoryGigabytes: Math.round(totalmem() / 2 ** 30),
  system: `${platform()} ${release()} ${arch()}`,
  node: process.version,
  postgres,
  commit: `${git("rev-parse", "--short", "HEAD") || "unknown"}${changed() ? "+" : ""}`
})

export const sentence = (machine: Machine): string =>
  `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGigabytes} GB; ${machine.system}; ` +
  `Node ${machine.node}, Postgres ${machine.postgres}; commit ${machine.commit}`
