/** `till serve`: runs the service until it is told to stop. */
import { Effect, Layer, Logger, References } from "effect"
import { Command } from "effect/cli"
import { app } from "../app.ts"
import * as Config from "../config.ts"

/** JSON lines on standard error; standard output has what the service says to the person who starts it. */
const logging = Layer.unwrap(
  Effect.map(Config.TillConfig, ({ logLevel }) =>
    Layer.mergeAll(
      Logger.layer([Logger.withConsoleError(Logger.formatJson)]),
      Layer.succeed(References.MinimumLogLevel, logLevel)
    )
  )
)

/** Starts the service and keeps it up; a signal interrupts it and closes everything in order. */
export const serve = Command.make("serve", {}, () =>
  Layer.launch(app.pipe(Layer.provide(logging), Layer.provide(Config.layer)))
).pipe(Command.withDescription("Run the service"))
