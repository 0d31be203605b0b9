/**
 * Nothing of a bench outlives it, however it ends.
 *
 * All that a run makes lies in one folder, and all that it starts works in there or is named by it on its command line.
 * The guardian is a process of its own that waits for the bench to end: its standard input is a pipe whose other end
 * the system closes even when the bench is killed (SIGKILL). It then ends what still works in the folder, and removes
 * that. It has a session of its own, so the interrupt of a terminal does not reach it.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"

/**
 * Sets a guardian for the scope and gives the run's folder. From then on this process and its children take that folder
 * for the system's temporary one, so that everything lands in there.
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
