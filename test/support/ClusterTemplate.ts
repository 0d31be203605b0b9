/**
 * A cluster of the embedded Postgres that is made once in a run, and copied for each process that would make its own: a
 * tenth of the time. Outside a run of vitest there is none, and processes make their own.
 */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"

/** The data folder with the cluster, for this process and those that it starts. */
const VARIABLE = "TILL_TEST_CLUSTER"

/** Names a data folder, whose Postgres does not run, for copies. */
export const offer = (dataFolder: string): void => void (process.env[VARIABLE] = dataFolder)

/** Copies the cluster, if there is one, into a new data folder. Files keep their owner and mode. */
export const copyTo = (dataFolder: string): void => {
  const template = process.env[VARIABLE]
  if (template === undefined || !fs.existsSync(template)) return
  execFileSync("cp", ["-a", Path.join(template, "postgres"), dataFolder])
}
