/** `till serve`: runs the service until a signal stops it. */
import { Console, Effect, Layer, type LogLevel, Redacted } from "effect"
import { flushCompileCache } from "node:module"
import * as app from "../app.ts"
import type * as Service from "../service.ts"
import * as Runners from "./Runners.ts"

const log = app.logOf("cli")

/** Signals during the shutdown. */
interface Signals {
  /** Ends at the second signal. */
  readonly again: Effect.Effect<void>
  /** Begins the shutdown, for a signal or for the parent process. */
  readonly begin: () => void
}

/**
 * Handles signals besides the runtime, which begins the shutdown with the first one. Exits after `endMillisMax` even if
 * the database hangs or is slow to stop: the sender of the signal would kill the process anyway. Answered requests are
 * stored by then; the next start adopts an embedded Postgres that is left over.
 */
const handleSignals = (endMillisMax: number): Effect.Effect<Signals> =>
  Effect.sync(() => {
    const again = Promise.withResolvers<void>()
    let isEnding = false
    const begin = () => {
      if (isEnding) return
      isEnding = true
      setTimeout(() => {
        process.stderr.write("till: The shutdown took too long and was cut short. Every answered request is stored.\n")
        process.exit(1)
      }, endMillisMax).unref()
    }
    const handle = () => (isEnding ? again.resolve() : begin())
    for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, handle)
    return { again: Effect.promise(() => again.promise), begin }
  })

type Started = Service.Started["Service"]
type KeySlot = Started["added"][number]

const KEY_NAMES: Readonly<Record<KeySlot, string>> = {
  secretTest: "Secret key, test mode",
  publishableTest: "Publishable key, test mode",
  secretLive: "Secret key, live mode",
  publishableLive: "Publishable key, live mode"
}

const SLOTS = Object.keys(KEY_NAMES) as ReadonlyArray<KeySlot>
const LIVE_SLOTS: ReadonlyArray<KeySlot> = ["secretLive", "publishableLive"]

/** The file with the generated live-mode keys; undefined if the keys are printed, or none was generated. */
type LiveKeys = { readonly file: string; readonly problem: string | undefined } | undefined

/**
 * Writes live-mode keys to a file of the data folder if standard output is no terminal. Such output goes to a log,
 * which is kept and which other people read.
 */
const keepLiveKeys = Effect.fnUntraced(function* (generated: Started["generated"]): Effect.fn.Return<LiveKeys> {
  const slots = LIVE_SLOTS.filter((slot) => generated[slot] !== undefined)
  if (process.stdout.isTTY || slots.length === 0) return undefined
  const { dataFolder } = yield* Effect.orDie(Effect.provide(app.TillConfig, app.configuration))
  const text = slots.map((slot) => `${app.KEY_VARIABLES[slot]}=${Redacted.value(generated[slot]!)}\n`).join("")
  return yield* app.keepInFolder(dataFolder, "live-keys", text).pipe(
    Effect.map((file) => ({ file, problem: undefined })),
    Effect.catch(({ message }) => Effect.succeed({ file: dataFolder, problem: message }))
  )
})

const keyLinesOf = (generated: Started["generated"], live: LiveKeys): ReadonlyArray<string> => {
  const made = SLOTS.filter((slot) => generated[slot] !== undefined)
  const printed = live === undefined ? made : made.filter((slot) => !LIVE_SLOTS.includes(slot))
  return [
    ...(printed.length === 0 ? [] : ["", "These keys are shown only once; Till stores nothing but their hashes:"]),
    ...printed.map((slot) => `  ${KEY_NAMES[slot].padEnd(27)} ${Redacted.value(generated[slot]!)}`),
    ...(live === undefined ? [] : ["", liveKeysLineOf(live)])
  ]
}

const liveKeysLineOf = ({ file, problem }: NonNullable<LiveKeys>): string =>
  problem === undefined
    ? `The keys of live mode are in ${file}, which only its owner can read. Move them to your secret store, then delete the file.`
    : `The keys of live mode could not be saved: ${problem} Create new ones with \`till keys roll\`.`

const greetingOf = (started: Started, live: LiveKeys): string => {
  const { baseUrl, dashboardLink, dashboardRefusal, generated, isKeySet } = started
  const lines = [`Till listens on ${baseUrl}`, ...keyLinesOf(generated, live)]
  if (dashboardLink !== null) {
    lines.push(
      "",
      "This link opens the dashboard once, within 10 minutes; `till dashboard` prints another:",
      `  ${dashboardLink}`
    )
  }
  if (dashboardRefusal !== null) lines.push("", `Nobody can sign in to the dashboard. ${dashboardRefusal}`)
  const key = generated.secretTest
  if (key !== undefined || isKeySet) {
    lines.push(
      "",
      `Open ${baseUrl} in a browser for a checkout to try, or pay here:`,
      `  curl ${baseUrl}/v1/payment_intents -u ${key === undefined ? "$TILL_SK_TEST" : Redacted.value(key)}: \\`,
      `    -H 'Content-Type: application/json' -H 'Idempotency-Key: first' \\`,
      `    -d '{"amount": 2000, "currency": "usd", "payment_method": "pm_card_visa", "confirm": true}'`
    )
  }
  return lines.join("\n")
}

/** Reminds an operator who replaced a key in the environment that the previous key is still valid. */
const additionOf = (added: ReadonlyArray<KeySlot>): string =>
  `New keys from the environment: ${added.map((slot) => KEY_NAMES[slot].toLowerCase()).join("; ")}.\n` +
  "The earlier keys stay valid: `till keys list` lists them, " +
  "`till keys revoke key_…` revokes one."

const greet = Effect.fnUntraced(function* (started: Started) {
  yield* Console.log(greetingOf(started, yield* keepLiveKeys(started.generated)))
  if (started.added.length > 0) yield* Console.log(`\n${additionOf(started.added)}`)
})

/**
 * Starts the watchdog that kills this process if its event loop blocks. Not before the start is over, which may block
 * it for long.
 */
const startWatchdog = Effect.fnUntraced(function* (level: LogLevel.LogLevel | undefined) {
  const { hangSeconds, logLevel } = yield* Effect.provide(app.TillConfig, app.configuration)
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  app.watchEventLoop({ hangSeconds, logs: (level ?? logLevel) !== "None" }, (error) => {
    runFork(log.warning("The event loop is not being watched", error.message))
  })
})

/** Prints the greeting once the service accepts requests, then starts the watchdog. */
const greeting = (
  onStarted: (started: Started) => Effect.Effect<void>,
  level: LogLevel.LogLevel | undefined,
  { Started }: typeof Service
) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* onStarted(yield* Started)
      yield* startWatchdog(level)
      // With NODE_COMPILE_CACHE, Node writes its cache only when the process ends in order. Compiling is half of a
      // start, and a service that is killed again and again would repeat it each time.
      yield* Effect.sync(flushCompileCache)
    })
  )

/**
 * Runs the service until it is interrupted, then closes everything in order. Imports the service here, because other
 * commands and the process that starts several runners do not need it.
 */
export const run = (options: Service.ServiceOptions, onStarted = greet) =>
  Effect.flatMap(
    Effect.promise(() => import("../service.ts")),
    (service) => Layer.launch(Layer.provide(greeting(onStarted, options.level, service), service.service(options)))
  )

/** Runs the service as one of several processes on a port, until a signal or the parent process ends it. */
const runAsRunner = Effect.fnUntraced(function* (level: LogLevel.LogLevel | undefined, { again, begin }: Signals) {
  const { end, hurry, settled } = yield* Runners.receiveOrders
  const { dataFolder } = yield* app.TillConfig
  let hasEnded = false
  Runners.onAbandoned(() => {
    if (!hasEnded && settled.isEmbedded === true) app.endEmbedded(dataFolder)
  })
  const service = run({ level, settled, impatience: Effect.raceFirst(again, hurry) }, Runners.reportStarted)
  yield* Effect.raceFirst(service, Effect.andThen(end, Effect.sync(begin))).pipe(
    Effect.catch((error) =>
      Effect.andThen(
        Runners.reportFailed(error),
        Effect.sync(() => (process.exitCode = 1))
      )
    ),
    Effect.ensuring(Effect.sync(() => (hasEnded = true)))
  )
  // The channel to the parent process is the last thing that keeps this process alive.
  yield* Effect.sync(() => process.disconnect())
}, Effect.provide(app.configuration))

/** Serves until a signal, with a number of processes. */
export const serve = Effect.fnUntraced(
  function* (runners: number, level: LogLevel.LogLevel | undefined) {
    const end = app.endOf(yield* Effect.provide(app.TillConfig, app.configuration))
    // The parent process ends after its runners.
    const isFirst = runners > 1 && !Runners.isRunner
    const signals = yield* handleSignals(isFirst ? end.parentMillisMax : end.endMillisMax)
    if (Runners.isRunner) return yield* runAsRunner(level, signals)
    const impatience = signals.again
    return yield* isFirst
      ? Runners.runMany({
          runners,
          level,
          impatience,
          greet: (started) => Effect.andThen(greet(started), Effect.orDie(startWatchdog(level)))
        })
      : run({ level, impatience })
  },
  Effect.provideService(app.Announcement, (line: string) => Console.log(line))
)
