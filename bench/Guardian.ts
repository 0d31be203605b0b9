/**
 * Ends everything that a bench has started, however the bench ends.
 *
 * All files of a run lie in one folder, and all of its processes work in that folder or name it on their command lines.
 * The guardian is a process that waits for the bench to end: its standard input is a pipe, whose other end the system
 * closes even when the bench is killed (SIGKILL). It then ends the processes that still work in the folder, and removes
 * the folder. It has a session of its own, so the interrupt of a terminal does not reach it.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"

/**
 * Starts a guardian for the scope and returns the run's folder, which becomes the temporary folder of this process and
 * its children.
 */
export const make = Effect.gen(function* () {
  const outside = process.env["TMPDIR"]
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "till-bench-")))),
    (folder) =>
      Effect.sync(() => {
        if (outside === undefined) delete process.env["TMPDIR"]
        else process.env["TMPDIR"] = outside
        rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
      })
  )
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(process.execPath, [join(import.meta.dirname, "GuardianProcess.ts"), folder], {
        detached: true,
        stdio: ["pipe", "ignore", "inherit"]
      })
      return { child, ended: new Promise((resolve) => child.once("exit", resolve)) }
    }),
    ({ child, ended }) =>
      Effect.promise(() => {
        child.stdin.end()
        return ended
      })
  )
  process.env["TMPDIR"] = folder
  return folder
})
