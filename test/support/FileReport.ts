/** Sends the runs of each test file's properties to the report of the whole run (vitest's `setupFiles`). */
import { afterAll } from "vitest"
import { takeRuns } from "./Runs.ts"

declare module "vitest" {
  interface TaskMeta {
    /** Runs of properties in a file. */
    runs?: number
  }
}

// oxlint-disable-next-line no-empty-pattern -- vitest reads from the source of this parameter that it needs no fixtures
afterAll(({}, { file }) => {
  file.meta.runs = takeRuns()
})
