/** A command of `till` on the installation of a running Till, in a process of its own. */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { Effect } from "effect"
import { BenchFailure } from "./BenchFailure.ts"
import { type Installation, variablesOf } from "./Contender.ts"

const MAIN = join(import.meta.dirname, "../src/main.ts")

/** Runs a command to its end and returns its standard output; fails if it does not exit with 0. */
export const run = (
  installation: Installation,
  parameters: ReadonlyArray<string>,
  input = ""
): Effect.Effect<string, BenchFailure> =>
  Effect.callback((resume) => {
    const { command, dataFolder } = installation
    const child = spawn(command.node, [...command.options, MAIN, ...parameters], {
      cwd: dataFolder,
      env: variablesOf(installation)
    })
    let [output, errors] = ["", ""]
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()))
    child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()))
    const fail = (problem: string) =>
      resume(Effect.fail(new BenchFailure({ problem: `till ${parameters[0]}: ${problem}` })))
    child.once("error", (error) => fail(error.message))
    child.once("close", (code) => {
      if (code === 0) resume(Effect.succeed(output))
      else fail(errors.trim() || `it ended with ${code}`)
    })
    child.stdin.end(input)
    return Effect.sync(() => void child.kill("SIGKILL"))
  })
