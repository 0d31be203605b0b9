/** `till serve`: runs the service until it is told to stop. */
import { Console, Effect, Layer, type LogLevel, Option, Redacted } from "effect"
import { Command, Flag, GlobalFlag } from "effect/cli"
import { flushCompileCache } from "node:module"
import * as app from "../app.ts"
import type * as Service from "../service.ts"
import * as Runners from "./Runners.ts"

/** What is heard while the service ends. */
interface Signals {
  /** Ends at the second signal. */
  readonly again: Effect.Effect<void>
  /** The end begins, whoever has asked for it. */
  readonly begin: () => void
}

/**
 * Listens to signals besides the runtime, which begins the end with the first. A database that hangs, or is slow to
 * stop, does not keep a service for good that was told to end: whoever told it would kill it. What was answered is
 * durable; the next start adopts an embedded Postgres that is left over.
 */
const heedSignals = (endMillisMax: number): Effect.Effect<Signals> =>
  Effect.sync(() => {
    const again = Promise.withResolvers<void>()
    let isEnding = false
    const begin = () => {
      if (isEnding) return
      isEnding = true
      setTimeout(() => {
        process.stderr.write("till: Not everything came to its end in time; what was answered is durable.\n")
        process.exit(1)
      }, endMillisMax).unref()
    }
    const heed = () => (isEnding ? again.resolve() : begin())
    for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, heed)
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

/** Where the generated keys of live mode went that are not printed; undefined if none is kept from printing. */
type LiveKeys = { readonly file: string; readonly problem: string | undefined } | undefined

/**
 * Keys that move money are not printed where nobody looks: the output of a service without a terminal goes into a log,
 * which others read, and which is kept. They go into a file of the data folder.
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
    ...(printed.length === 0 ? [] : ["", "These keys are shown this once; only their hashes are stored:"]),
    ...printed.map((slot) => `  ${KEY_NAMES[slot].padEnd(27)} ${Redacted.value(generated[slot]!)}`),
    ...(live === undefined ? [] : ["", liveKeysLineOf(live)])
  ]
}

const liveKeysLineOf = ({ file, problem }: NonNullable<LiveKeys>): string =>
  problem === undefined
    ? `The keys of live mode are in ${file}, for its owner alone. Put them where you keep secrets, and remove the file.`
    : `The keys of live mode are lost: ${problem} \`till keys roll\` makes new ones.`

const greetingOf = (started: Started, live: LiveKeys): string => {
  const { baseUrl, dashboardLink, dashboardRefusal, generated, isKeySet } = started
  const lines = [`Till listens on ${baseUrl}`, ...keyLinesOf(generated, live)]
  if (dashboardLink !== null) {
    lines.push(
      "",
      "The dashboard opens once with this link, for 10 minutes; `till dashboard` prints another:",
      `  ${dashboardLink}`
    )
  }
  if (dashboardRefusal !== null) lines.push("", `Nobody can sign in to the dashboard. ${dashboardRefusal}`)
  const key = generated.secretTest
  if (key !== undefined || isKeySet) {
    lines.push(
      "",
      "Try it:",
      `  curl ${baseUrl}/v1/payment_intents -u ${key === undefined ? "$TILL_SK_TEST" : Redacted.value(key)}: \\`,
      `    -H 'Content-Type: application/json' -H 'Idempotency-Key: first' \\`,
      `    -d '{"amount": 2000, "currency": "usd", "payment_method": "pm_card_visa", "confirm": true}'`
    )
  }
  return lines.join("\n")
}

/** Whoever replaces a key in the environment may think that the former one is worth nothing any more. */
const additionOf = (added: ReadonlyArray<KeySlot>): string =>
  `New from the environment: ${added.map((slot) => KEY_NAMES[slot].toLowerCase()).join("; ")}.\n` +
  "The keys that were there before stay valid: `till keys list` names them, " +
  "`till keys revoke key_…` ends one."

const greet = Effect.fnUntraced(function* (started: Started) {
  yield* Console.log(greetingOf(started, yield* keepLiveKeys(started.generated)))
  if (started.added.length > 0) yield* Console.log(`\n${additionOf(started.added)}`)
})

/** Kills this process once its event loop stands still: not before, because a start may hold it up for long. */
const watched = Effect.fnUntraced(function* (level: LogLevel.LogLevel | undefined) {
  const { hangSeconds, logLevel } = yield* Effect.provide(app.TillConfig, app.configuration)
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  app.watchEventLoop({ hangSeconds, logs: (level ?? logLevel) !== "None" }, (error) => {
    runFork(Effect.logWarning("Nothing watches over the event loop", error.message))
  })
})

/** Says that the service takes requests. */
const greeting = (
  say: (started: Started) => Effect.Effect<void>,
  level: LogLevel.LogLevel | undefined,
  { Started }: typeof Service
) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* say(yield* Started)
      yield* watched(level)
      // Where NODE_COMPILE_CACHE names a folder, Node would write to it at an orderly end only. Compiling is half of a
      // start, and a service that is killed again and again would do it each time.
      yield* Effect.sync(flushCompileCache)
    })
  )

/**
 * Runs the service until it is interrupted, and then closes everything in order. It is loaded here: other commands, and
 * the process that starts several, do without.
 */
export const run = (options: Service.ServiceOptions, say = greet) =>
  Effect.flatMap(
    Effect.promise(() => import("../service.ts")),
    (service) => Layer.launch(Layer.provide(greeting(say, options.level, service), service.service(options)))
  )

/** Runs the service as one of several processes on a port, until a signal or the one that has started it ends it. */
const runAsRunner = Effect.fnUntraced(function* (level: LogLevel.LogLevel | undefined, { again, begin }: Signals) {
  const { end, hurry, settled } = yield* Runners.listen
  const { dataFolder } = yield* app.TillConfig
  let hasEnded = false
  Runners.onAbandoned(() => {
    if (!hasEnded && settled.isEmbedded === true) app.endEmbedded(dataFolder)
  })
  const service = run({ level, settled, impatience: Effect.raceFirst(again, hurry) }, Runners.sayStarted)
  yield* Effect.raceFirst(service, Effect.andThen(end, Effect.sync(begin))).pipe(
    Effect.catch((error) =>
      Effect.andThen(
        Runners.sayFailed(error),
        Effect.sync(() => (process.exitCode = 1))
      )
    ),
    Effect.ensuring(Effect.sync(() => (hasEnded = true)))
  )
  // Nothing else keeps the process.
  yield* Effect.sync(() => process.disconnect())
}, Effect.provide(app.configuration))

const RUNNERS_MAX = 64

const runners = Flag.Int("runners").pipe(
  Flag.filter(
    (count) => count >= 1 && count <= RUNNERS_MAX,
    () => `must be from 1 to ${RUNNERS_MAX}`
  ),
  Flag.withDefault(1),
  Flag.withDescription("Processes that serve the port together, about one per core; 1 by default")
)

export const serve = Command.make("serve", { runners }, (given) =>
  Effect.gen(function* () {
    const end = app.endOf(yield* Effect.provide(app.TillConfig, app.configuration))
    const level = Option.getOrUndefined(yield* GlobalFlag.LogLevel)
    // Of several processes, the one that has started the others goes last.
    const isFirst = given.runners > 1 && !Runners.isRunner
    const signals = yield* heedSignals(isFirst ? end.parentMillisMax : end.endMillisMax)
    if (Runners.isRunner) return yield* runAsRunner(level, signals)
    const impatience = signals.again
    return yield* isFirst
      ? Runners.runMany({
          runners: given.runners,
          level,
          impatience,
          greet: (started) => Effect.andThen(greet(started), Effect.orDie(watched(level)))
        })
      : run({ level, impatience })
  })
).pipe(
  Command.withShortDescription("Run the service"),
  Command.withDescription(
    "Run the service until it gets a SIGINT or SIGTERM. Its settings are environment variables, which the README " +
      "lists: PORT (4242, or 0 for one that is free), TILL_DATA_DIR (./.till), DATABASE_URL (by default a Postgres " +
      "of its own), TILL_SK_TEST and the other keys (generated, and printed once; those of live mode go to a file of " +
      "TILL_DATA_DIR where the output is no terminal). It takes requests once it has " +
      "written where it listens. With DATABASE_URL, several may serve one database: one that is told to end says so at " +
      "/readyz, and goes on to answer until others have noticed; it is gone within TILL_DRAIN_SECONDS (10). A second " +
      "signal makes it wait for nobody. --runners N serves the port with N processes of one service, also with the Postgres of " +
      "its own; one that dies is started again."
  )
)
