/** `till serve`: runs the service until it is told to stop. */
import { Effect, Layer } from "effect"
import { Command } from "effect/cli"
import * as Config from "../config.ts"
import * as Database from "../postgres/Database.ts"

/** Starts the service and keeps it up; a signal interrupts it and closes everything in order. */
export const serve = Command.make("serve", {}, () =>
  Layer.launch(Layer.effectDiscard(started).pipe(Layer.provide(Database.layer), Layer.provide(Config.layer)))
).pipe(Command.withDescription("Run the service"))

const started = Effect.gen(function* () {
  const database = yield* Database.Database
  yield* Effect.logInfo(database.embedded?.adopted ? "Database ready (adopted)" : "Database ready")
})
