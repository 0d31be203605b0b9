/** `till serve`: runs the service until it is told to stop. */
import { Effect, Option } from "effect"
import { Command, GlobalFlag } from "effect/cli"
import * as app from "../app.ts"

/** How long the service may take to come to its end, in milliseconds. */
const END_MILLIS_MAX = 9000

/**
 * A database that hangs, or is slow to stop, does not keep a service for good that was told to end: whoever told it would
 * kill it. What was answered is durable; an embedded Postgres that is left over is adopted by the next start.
 */
const endInTime = Effect.sync(() => {
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => {
      setTimeout(() => {
        process.stderr.write("till: Not everything came to its end in time; what was answered is durable.\n")
        process.exit(1)
      }, END_MILLIS_MAX).unref()
    })
  }
})

export const serve = Command.make("serve", {}, () =>
  Effect.gen(function* () {
    yield* endInTime
    return yield* app.serve(Option.getOrUndefined(yield* GlobalFlag.LogLevel))
  })
).pipe(
  Command.withShortDescription("Run the service"),
  Command.withDescription(
    "Run the service until it gets a SIGINT or SIGTERM. Its settings are environment variables, which the README lists: " +
      "PORT (4242, or 0 for one that is free), TILL_DATA_DIR (./.till), DATABASE_URL (by default a Postgres of its own), " +
      "TILL_SK_TEST and the other keys (generated, and printed once). It takes requests once it has written where it " +
      "listens."
  )
)
