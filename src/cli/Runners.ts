/**
 * `till serve --runners N`: one service of several processes on one machine and one port.
 *
 * The process that was started takes no request. It chooses the port, runs the embedded Postgres where there is no
 * other one, and starts the runners, which listen on the port together: node's cluster gives each new connection to one
 * of them in turn. A runner that ends is started again. A signal to this process ends all of them in order, and then
 * Postgres. If it is killed, its runners end at once and take Postgres with them, because nobody else would.
 *
 * What is secret goes to the runners and back through the channel that node has between such processes: the URL of
 * Postgres, and the keys that the first start makes, which are printed here, once.
 */
import { Data, Deferred, Effect, Layer, Redacted } from "effect"
import type { LogLevel } from "effect"
import cluster, { type Worker } from "node:cluster"
import * as app from "../app.ts"
import type * as Service from "../service.ts"

/** A runner did not start. The message is its own. */
export class RunnerNotStarted extends Data.TaggedError("RunnerNotStarted")<{ readonly message: string }> {}

type Started = Service.Started["Service"]

type FromRunner =
  | { readonly _tag: "Settle" }
  /** It takes requests. Keys that it has generated are in plain text, by what they are for. */
  | { readonly _tag: "Started"; readonly started: object; readonly generated: Readonly<Record<string, string>> }
  /** It ends for a reason that a person can mend. */
  | { readonly _tag: "Failed"; readonly message: string }

type ToRunner =
  | { readonly _tag: "Settled"; readonly settled: app.Settled; readonly databaseUrl: string | undefined }
  /** It is to end in order. */
  | { readonly _tag: "End" }
  /** And is not to wait until others do without it. */
  | { readonly _tag: "Hurry" }

/** A runner that has ended is started again at once, one that goes on to end right away after up to so long. */
const PAUSE_MILLIS_MAX = 30_000
const PAUSE_MILLIS_FIRST = 250
/** A runner that has lived for so long did not end right away, in milliseconds. */
const LIVED_MILLIS = 20_000

const tell = (worker: Worker, message: ToRunner): void => {
  if (worker.isConnected()) worker.send(message)
}

interface Ended {
  readonly code: number | null
  readonly signal: string | null
  /** Its own words, if it had any. */
  readonly message: string | undefined
}

const reasonOf = ({ code, message, signal }: Ended): string => message ?? signal ?? `code ${code}`

interface RunOptions {
  readonly settled: app.Settled
  /** A runner that is told to end is killed after so long. */
  readonly endMillisMax: number
  readonly impatience: Effect.Effect<void>
}

/** Runs one runner to its end. `onStarted` is told what it has said of its start. */
const runOne = (
  { endMillisMax, impatience, settled }: RunOptions,
  onStarted: (started: Started) => void
): Effect.Effect<Ended> =>
  Effect.scoped(
    Effect.gen(function* () {
      const ended = yield* Deferred.make<Ended>()
      let worker: Worker | undefined
      // Also while the runner is waited for: what was begun first is over last.
      yield* Effect.forkScoped(
        Effect.andThen(
          impatience,
          Effect.sync(() => worker && tell(worker, { _tag: "Hurry" }))
        )
      )
      worker = yield* Effect.acquireRelease(
        Effect.sync(() => fork(settled, ended, onStarted)),
        (forked) =>
          Effect.gen(function* () {
            tell(forked, { _tag: "End" })
            yield* Effect.timeoutOption(Deferred.await(ended), endMillisMax)
            if (!forked.isDead()) forked.process.kill("SIGKILL")
            yield* Deferred.await(ended)
          })
      )
      return yield* Deferred.await(ended)
    })
  )

/** Node's handle of a connection, which may be closed more than once. */
interface Handle {
  readonly close: () => void
}

/**
 * Closes the connection that a runner was given and has not taken, once the runner has ended: there is one at most.
 * Node forgets that connection and leaves it open, and its client would wait for ever.
 */
const closeUntaken = (worker: Worker): void => {
  const runner = worker.process
  let given: Handle | undefined
  const send = runner.send.bind(runner) as (message: unknown, handle?: Handle, ...more: Array<unknown>) => boolean
  runner.send = (message: unknown, handle?: unknown, ...more: Array<unknown>): boolean => {
    if (handle !== undefined) given = handle as Handle
    return send(message, handle as Handle, ...more)
  }
  // The runner has answered to what it was given, and node has closed it or given it to another one.
  runner.on("internalMessage", ({ ack }: { readonly ack?: number }) => {
    if (ack !== undefined) given = undefined
  })
  worker.once("exit", () => given?.close())
}

const fork = (settled: app.Settled, ended: Deferred.Deferred<Ended>, onStarted: (started: Started) => void): Worker => {
  const worker = cluster.fork()
  closeUntaken(worker)
  let message: string | undefined
  worker.on("message", (said: FromRunner) => {
    if (said._tag === "Settle") {
      const { databaseUrl, ...others } = settled
      tell(worker, { _tag: "Settled", settled: others, databaseUrl: databaseUrl && Redacted.value(databaseUrl) })
    } else if (said._tag === "Failed") {
      message = said.message
    } else {
      const keys = Object.entries(said.generated).map(([slot, key]) => [slot, Redacted.make(key)])
      onStarted({ ...said.started, generated: Object.fromEntries(keys) } as Started)
    }
  })
  // Whoever is told something may just have ended.
  worker.on("error", () => {})
  worker.once("exit", (code, signal) => Deferred.doneUnsafe(ended, Effect.succeed({ code, signal, message })))
  return worker
}

/**
 * Keeps one runner running. Fails if it ends of itself before it has ever started, as it would the next time. Whoever
 * has ended it in order wants it to be started again, and so does whoever has killed it.
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
      yield* Effect.logWarning(`A runner has ended; it is started again in ${pauseMillis} ms`, reasonOf(ended))
      yield* Effect.sleep(pauseMillis)
      pauseMillis = Math.min(pauseMillis * 2, PAUSE_MILLIS_MAX)
    }
  })

export interface RunnersOptions {
  readonly runners: number
  readonly level: LogLevel.LogLevel | undefined
  readonly impatience: Effect.Effect<void>
  /** Says what was started, to whoever has started it. */
  readonly greet: (started: Started) => Effect.Effect<void>
}

/** Runs so many runners until it is interrupted, and then ends all in order. */
export const runMany = ({ greet, impatience, level, runners }: RunnersOptions) =>
  Effect.gen(function* () {
    // By then they have ended by themselves, or have said that they did not.
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

/** Of several first starts, one has made the keys. */
const together = (starts: ReadonlyArray<Started>): Started =>
  starts.reduce((all, one) => ({
    ...all,
    generated: { ...all.generated, ...one.generated },
    added: [...all.added, ...one.added],
    dashboardLink: all.dashboardLink ?? one.dashboardLink,
    dashboardRefusal: all.dashboardRefusal ?? one.dashboardRefusal
  }))

/** What a runner is told by the process that has started it. */
export interface Told {
  readonly settled: app.Settled
  /** Ends when this process is to end. */
  readonly end: Effect.Effect<void>
  /** Ends when it is not to wait until others do without it. */
  readonly hurry: Effect.Effect<void>
}

/** Asks what is settled for this runner, and listens to what it is told from then on. */
export const listen: Effect.Effect<Told> = Effect.promise(async () => {
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

const say = (message: FromRunner): Effect.Effect<void> =>
  Effect.promise(() => new Promise((resolve) => process.send!(message, () => resolve())))

/** Tells the process that has started this runner that it takes requests. */
export const sayStarted = ({ generated, ...started }: Started): Effect.Effect<void> => {
  const keys = Object.entries(generated).map(([slot, key]) => [slot, Redacted.value(key)])
  return say({ _tag: "Started", started, generated: Object.fromEntries(keys) })
}

/** Tells it why this runner ends, which it may say to a person. */
export const sayFailed = (error: unknown): Effect.Effect<void> =>
  say({ _tag: "Failed", message: error instanceof Error ? error.message : String(error) })

/** True in a process that was started as one of several. */
export const isRunner: boolean = cluster.isWorker

/** Has something done at once if the process that has started this one is killed. After that this one ends. */
export const onAbandoned = (act: () => void): void => void cluster.worker!.once("disconnect", act)
