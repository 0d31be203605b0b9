/**
 * `till verify` on the installation of a running Till: the data that a load has left must be intact. The command runs
 * in a process of its own and writes nothing.
 */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { Effect } from "effect"
import { BenchFailure } from "./BenchFailure.ts"
import { type Installation, variablesOf } from "./Contender.ts"

const MAIN = join(import.meta.dirname, "../src/main.ts")

/** Runs the verification; returns its duration, and fails if it finds anything. */
export const verify = (installation: Installation): Effect.Effect<number, BenchFailure> =>
  Effect.callback((resume) => {
    const began = performance.now()
    const { command, dataFolder } = installation
    const child = spawn(command.node, [...command.options, MAIN, "verify"], {
      cwd: dataFolder,
      env: variablesOf(installation),
      stdio: ["ignore", "ignore", "pipe"]
    })
    let errors = ""
    child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()))
    const fail = (problem: string) => resume(Effect.fail(new BenchFailure({ problem: `till verify: ${problem}` })))
    child.once("error", (error) => fail(error.message))
    child.once("close", (code) => {
      if (code === 0) resume(Effect.succeed((performance.now() - began) / 1000))
      else fail(errors.trim() || `it ended with ${code}`)
    })
    return Effect.sync(() => void child.kill("SIGKILL"))
  })
