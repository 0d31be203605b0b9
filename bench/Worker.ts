/**
 * A process of the bench that handles one command at a time. It shares no event loop and no garbage collector with a
 * server or the bench. Typed arrays cross the process boundary as they are.
 */
import { fork } from "node:child_process"
import { Effect } from "effect"
import { BenchFailure } from "./BenchFailure.ts"

export type WorkerAnswer = { readonly value: unknown } | { readonly failure: string }

export interface Worker {
  readonly pid: number
  /** Sends a command and waits for its answer, whose type the worker's module guarantees. */
  readonly ask: <Answer>(command: unknown) => Effect.Effect<Answer, BenchFailure>
}

/** Starts a module in a process that ends with the scope. */
export const make = (file: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => fork(file, { serialization: "advanced" })),
      (child) => Effect.sync(() => void (child.connected && child.disconnect()))
    ),
    (child): Worker => ({
      pid: child.pid!,
      ask: <Answer>(command: unknown) =>
        Effect.callback<Answer, BenchFailure>((resume) => {
          const fail = (problem: string) => resume(Effect.fail(new BenchFailure({ problem })))
          const ended = () => fail(`A process of the bench has ended: ${file}`)
          if (!child.connected) return ended()
          child.once("exit", ended)
          child.once("message", (answer: WorkerAnswer) => {
            child.off("exit", ended)
            if ("value" in answer) resume(Effect.succeed(answer.value as Answer))
            else fail(answer.failure)
          })
          child.send(command as object)
        })
    })
  )

/** The worker's side: answers every command, and ends with the bench. */
export const serve = <Command>(carryOut: (command: Command) => Promise<unknown>): void => {
  const answer = (answer: WorkerAnswer) => process.send!(answer)
  process.on("message", (command) => {
    carryOut(command as Command).then(
      (value) => answer({ value }),
      (error: unknown) => answer({ failure: error instanceof Error ? error.message : String(error) })
    )
  })
  process.on("disconnect", () => process.exit(0))
}
