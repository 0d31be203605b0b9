/**
 * A cluster of the embedded Postgres that is made once per run, and copied for each process that would make its own, in
 * a tenth of the time. Without a run of vitest there is no template, and processes make their own clusters.
 */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"

/** Holds the data folder with the cluster, for this process and its children. */
const VARIABLE = "TILL_TEST_CLUSTER"

/** Sets the data folder for copies; its Postgres must not run. */
export const offer = (dataFolder: string): void => void (process.env[VARIABLE] = dataFolder)

/** Copies the cluster, if there is one, into a new data folder. Files keep owner and mode. */
export const copyTo = (dataFolder: string): void => {
  const template = process.env[VARIABLE]
  if (template === undefined || !fs.existsSync(template)) return
  execFileSync("cp", ["-a", Path.join(template, "postgres"), dataFolder])
}
