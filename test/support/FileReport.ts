/** Sends the time of a test file to the report of the whole run (vitest's `setupFiles`). */
import { afterAll } from "vitest"
import { takeRuns } from "./Runs.ts"

declare module "vitest" {
  interface TaskMeta {
    /** Runs of properties in a file. */
    runs?: number
    /** CPU time of the file's process, imports included, in milliseconds. */
    cpuMillis?: number
  }
}

const before = process.cpuUsage()

// oxlint-disable-next-line no-empty-pattern -- vitest reads from the source of this parameter that it needs no fixtures
afterAll(({}, { file }) => {
  const { system, user } = process.cpuUsage(before)
  file.meta.runs = takeRuns()
  file.meta.cpuMillis = (system + user) / 1000
})
