/** `till serve`: runs the service until it is told to stop. */
import { Console, Effect, Layer, Option, Redacted } from "effect"
import { Command, GlobalFlag } from "effect/cli"
import { flushCompileCache } from "node:module"
import * as app from "../app.ts"

/**
 * Listens to signals besides the runtime, which begins the end with the first. A database that hangs, or is slow to
 * stop, does not keep a service for good that was told to end: whoever told it would kill it. What was answered is
 * durable; the next start adopts an embedded Postgres that is left over. Answers with what ends at the second signal.
 */
const heedSignals = (drainSeconds: number): Effect.Effect<Effect.Effect<void>> =>
  Effect.sync(() => {
    const again = Promise.withResolvers<void>()
    let isEnding = false
    const heed = () => {
      if (isEnding) return again.resolve()
      isEnding = true
      setTimeout(() => {
        process.stderr.write("till: Not everything came to its end in time; what was answered is durable.\n")
        process.exit(1)
      }, drainSeconds * 900).unref()
    }
    for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, heed)
    return Effect.promise(() => again.promise)
  })

type Started = app.Started["Service"]
type KeySlot = Started["added"][number]

const KEY_NAMES: Readonly<Record<KeySlot, string>> = {
  secretTest: "Secret key, test mode",
  publishableTest: "Publishable key, test mode",
  secretLive: "Secret key, live mode",
  publishableLive: "Publishable key, live mode"
}

const greetingOf = ({ baseUrl, generated, isKeySet }: Started): string => {
  const lines = [`Till listens on ${baseUrl}`]
  const slots = (Object.keys(KEY_NAMES) as Array<KeySlot>).filter((slot) => generated[slot] !== undefined)
  if (slots.length > 0) {
    lines.push("", "These keys are shown this once; only their hashes are stored:")
    for (const slot of slots) lines.push(`  ${KEY_NAMES[slot].padEnd(27)} ${Redacted.value(generated[slot]!)}`)
  }
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

const greeting = Layer.effectDiscard(
  Effect.gen(function* () {
    const started = yield* app.Started
    yield* Console.log(greetingOf(started))
    if (started.added.length > 0) yield* Console.log(`\n${additionOf(started.added)}`)
    // Where NODE_COMPILE_CACHE names a folder, Node would write to it at an orderly end only. Compiling is half of a
    // start, and a service that is killed again and again would do it each time.
    yield* Effect.sync(flushCompileCache)
  })
)

/** Runs the service until it is interrupted, and then closes everything in order. */
export const run = (options: app.ServiceOptions) => Layer.launch(Layer.provide(greeting, app.service(options)))

export const serve = Command.make("serve", {}, () =>
  Effect.gen(function* () {
    const { drainSeconds } = yield* Effect.provide(app.TillConfig, app.configuration)
    const impatience = yield* heedSignals(drainSeconds)
    return yield* run({ level: Option.getOrUndefined(yield* GlobalFlag.LogLevel), impatience })
  })
).pipe(
  Command.withShortDescription("Run the service"),
  Command.withDescription(
    "Run the service until it gets a SIGINT or SIGTERM. Its settings are environment variables, which the README " +
      "lists: PORT (4242, or 0 for one that is free), TILL_DATA_DIR (./.till), DATABASE_URL (by default a Postgres " +
      "of its own), TILL_SK_TEST and the other keys (generated, and printed once). It takes requests once it has " +
      "written where it listens. With DATABASE_URL, several may serve one database: one that is told to end says so at " +
      "/readyz, and goes on to answer until others have noticed; it is gone within TILL_DRAIN_SECONDS (10). A second " +
      "signal makes it wait for nobody."
  )
)
