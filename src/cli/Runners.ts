/**
 * `till serve --runners N`: one service of several processes on one machine and one port.
 *
 * The parent process accepts no requests. It chooses the port, runs the embedded Postgres if no database is configured,
 * and starts the runners, which listen on the port together: Node's cluster module gives each new connection to one of
 * them in turn. A runner that ends is restarted. A signal to the parent ends all runners in order, and then Postgres.
 * If the parent is killed, its runners end immediately and stop Postgres, because no other process would.
 *
 * Secrets pass between parent and runners over Node's channel between such processes: the URL of Postgres, and the keys
 * that the first start generates, which the parent prints once.
 */
import { Data, Deferred, Effect, Layer, type LogLevel, Redacted } from "effect"
import cluster, { type Worker } from "node:cluster"
import * as app from "../app.ts"
import type * as Service from "../service.ts"

const log = app.logOf("cli")

/** A runner did not start. The message comes from the runner. */
export class RunnerNotStarted extends Data.TaggedError("RunnerNotStarted")<{ readonly message: string }> {}

type Started = Service.Started["Service"]

type FromRunner =
  | { readonly _tag: "Settle" }
  /** The runner accepts requests. Keys that it generated are in plain text, by slot. */
  | { readonly _tag: "Started"; readonly started: object; readonly generated: Readonly<Record<string, string>> }
  /** The runner ends for a reason that an operator can mend. */
  | { readonly _tag: "Failed"; readonly message: string }

type ToRunner =
  | { readonly _tag: "Settled"; readonly settled: app.Settled; readonly databaseUrl: string | undefined }
  /** Asks the runner to shut down. */
  | { readonly _tag: "End" }
  /** Asks the runner not to wait until other processes have taken over. */
  | { readonly _tag: "Hurry" }

/** Backoff of restarts: a runner that ends soon after its start waits longer each time, up to this. */
const PAUSE_MILLIS_MAX = 30_000
const PAUSE_MILLIS_FIRST = 250
/** A runner that ran for this long resets the backoff, in milliseconds. */
const LIVED_MILLIS = 20_000

const send = (worker: Worker, message: ToRunner): void => {
  if (worker.isConnected()) worker.send(message)
}

interface Ended {
  readonly code: number | null
  readonly signal: string | null
  /** The reason that the runner gave, if any. */
  readonly message: string | undefined
}

const reasonOf = ({ code, message, signal }: Ended): string => message ?? signal ?? `code ${code}`

interface RunOptions {
  readonly settled: app.Settled
  /** Time for a runner to shut down before it is killed, in milliseconds. */
  readonly endMillisMax: number
  readonly impatience: Effect.Effect<void>
}

/** Runs one runner until it ends. Calls `onStarted` with the facts that the runner reports once it accepts requests. */
const runOne = (
  { endMillisMax, impatience, settled }: RunOptions,
  onStarted: (started: Started) => void
): Effect.Effect<Ended> =>
  Effect.scoped(
    Effect.gen(function* () {
      const ended = yield* Deferred.make<Ended>()
      let worker: Worker | undefined
      // Forked first, because finalizers run in reverse: it still works while the shutdown below waits for the runner.
      yield* Effect.forkScoped(
        Effect.andThen(
          impatience,
          Effect.sync(() => worker && send(worker, { _tag: "Hurry" }))
        )
      )
      worker = yield* Effect.acquireRelease(
        Effect.sync(() => fork(settled, ended, onStarted)),
        (forked) =>
          Effect.gen(function* () {
            send(forked, { _tag: "End" })
            yield* Effect.timeoutOption(Deferred.await(ended), endMillisMax)
            if (!forked.isDead()) forked.process.kill("SIGKILL")
            yield* Deferred.await(ended)
          })
      )
      return yield* Deferred.await(ended)
    })
  )

/** A connection's handle in Node, which may be closed more than once. */
interface Handle {
  readonly close: () => void
}

/**
 * Closes the connection that a runner was given and had not accepted when it ended: there is one at most. Node forgets
 * that connection and leaves it open, and its client would wait for ever.
 */
const closeUntaken = (worker: Worker): void => {
  const runner = worker.process
  let given: Handle | undefined
  const send = runner.send.bind(runner) as (message: unknown, handle?: Handle, ...more: Array<unknown>) => boolean
  runner.send = (message: unknown, handle?: unknown, ...more: Array<unknown>): boolean => {
    if (handle !== undefined) given = handle as Handle
    return send(message, handle as Handle, ...more)
  }
  // The runner acknowledged the connection, and Node has closed it or given it to another runner.
  runner.on("internalMessage", ({ ack }: { readonly ack?: number }) => {
    if (ack !== undefined) given = undefined
  })
  worker.once("exit", () => given?.close())
}

const fork = (settled: app.Settled, ended: Deferred.Deferred<Ended>, onStarted: (started: Started) => void): Worker => {
  const worker = cluster.fork()
  closeUntaken(worker)
  let message: string | undefined
  worker.on("message", (received: FromRunner) => {
    if (received._tag === "Settle") {
      const { databaseUrl, ...others } = settled
      send(worker, { _tag: "Settled", settled: others, databaseUrl: databaseUrl && Redacted.value(databaseUrl) })
    } else if (received._tag === "Failed") {
      message = received.message
    } else {
      const keys = Object.entries(received.generated).map(([slot, key]) => [slot, Redacted.make(key)])
      onStarted({ ...received.started, generated: Object.fromEntries(keys) } as Started)
    }
  })
  // A message to a runner that has just ended fails.
  worker.on("error", () => {})
  worker.once("exit", (code, signal) => Deferred.doneUnsafe(ended, Effect.succeed({ code, signal, message })))
  return worker
}

/**
 * Keeps one runner running. Fails if the runner exits with an error before it was ever started, because it would do so
 * again. A runner that exited in order or was killed is restarted.
 */
const keepOne = (
  options: RunOptions,
  onFirstStart: (started: Started) => void
): Effect.Effect<never, RunnerNotStarted> =>
  Effect.gen(function* () {
    let hasStarted = false
    let pauseMillis = PAUSE_MILLIS_FIRST
    for (;;) {
      const begun = performance.now()
      const ended = yield* runOne(options, (started) => {
        if (!hasStarted) onFirstStart(started)
        hasStarted = true
      })
      const isOrderly = ended.code === 0
      if (!hasStarted && !isOrderly && ended.signal === null) {
        return yield* new RunnerNotStarted({ message: reasonOf(ended) })
      }
      if (isOrderly || performance.now() - begun > LIVED_MILLIS) pauseMillis = PAUSE_MILLIS_FIRST
      yield* log.warning(`A runner has ended; it restarts in ${pauseMillis} ms`, reasonOf(ended), { cause: "runner" })
      yield* Effect.sleep(pauseMillis)
      pauseMillis = Math.min(pauseMillis * 2, PAUSE_MILLIS_MAX)
    }
  })

export interface RunnersOptions {
  readonly runners: number
  readonly level: LogLevel.LogLevel | undefined
  readonly impatience: Effect.Effect<void>
  /** Prints the facts about the started service. */
  readonly greet: (started: Started) => Effect.Effect<void>
}

/** Runs the runners until it is interrupted, then ends all in order. */
export const runMany = ({ greet, impatience, level, runners }: RunnersOptions) =>
  Effect.gen(function* () {
    // By then the runners have ended by themselves, or have reported that they did not.
    const { childMillisMax } = app.endOf(yield* app.TillConfig)
    const options = { settled: yield* app.settle(runners), endMillisMax: childMillisMax, impatience }
    const starts: Array<Started> = []
    const allStarted = yield* Deferred.make<void>()
    const one = keepOne(options, (started) => {
      if (starts.push(started) === runners) Deferred.doneUnsafe(allStarted, Effect.void)
    })
    const greeting = Effect.suspend(() => greet(together(starts)))
    yield* Effect.forkScoped(Effect.andThen(Deferred.await(allStarted), greeting))
    return yield* Effect.all(
      Array.from({ length: runners }, () => one),
      { concurrency: "unbounded" }
    )
  }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(app.logging(level), app.serveConfig)))

/** Merges the runners' facts: one of several first starts has generated the keys. */
const together = (starts: ReadonlyArray<Started>): Started =>
  starts.reduce((all, one) => ({
    ...all,
    generated: { ...all.generated, ...one.generated },
    added: [...all.added, ...one.added],
    dashboardLink: all.dashboardLink ?? one.dashboardLink,
    dashboardRefusal: all.dashboardRefusal ?? one.dashboardRefusal
  }))

/** Orders of the parent process to a runner. */
export interface Orders {
  readonly settled: app.Settled
  /** Ends when this process should shut down. */
  readonly end: Effect.Effect<void>
  /** Ends when this process should not wait until others have taken over. */
  readonly hurry: Effect.Effect<void>
}

/** Requests this runner's settings from the parent process, then receives its orders. */
export const receiveOrders: Effect.Effect<Orders> = Effect.promise(async () => {
  const settled = Promise.withResolvers<app.Settled>()
  const end = Promise.withResolvers<void>()
  const hurry = Promise.withResolvers<void>()
  process.on("message", (message: ToRunner) => {
    if (message._tag === "End") return end.resolve()
    if (message._tag === "Hurry") return hurry.resolve()
    const url = message.databaseUrl
    settled.resolve({ ...message.settled, databaseUrl: url === undefined ? undefined : Redacted.make(url) })
  })
  process.send!({ _tag: "Settle" } satisfies FromRunner)
  return {
    settled: await settled.promise,
    end: Effect.promise(() => end.promise),
    hurry: Effect.promise(() => hurry.promise)
  }
})

const report = (message: FromRunner): Effect.Effect<void> =>
  Effect.promise(() => new Promise((resolve) => process.send!(message, () => resolve())))

/** Reports to the parent process that this runner accepts requests. */
export const reportStarted = ({ generated, ...started }: Started): Effect.Effect<void> => {
  const keys = Object.entries(generated).map(([slot, key]) => [slot, Redacted.value(key)])
  return report({ _tag: "Started", started, generated: Object.fromEntries(keys) })
}

/** Reports the reason for which this runner ends; the parent process may print it. */
export const reportFailed = (error: unknown): Effect.Effect<void> =>
  report({ _tag: "Failed", message: error instanceof Error ? error.message : String(error) })

/** True in a process that was started as a runner. */
export const isRunner: boolean = cluster.isWorker

/** Calls the function when the parent process is killed, after which this process ends. */
export const onAbandoned = (act: () => void): void => void cluster.worker!.once("disconnect", act)
