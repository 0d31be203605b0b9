/** `till rebuild`: writes the views anew from the journal. */
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { maintenance } from "../app.ts"
import * as Config from "../config.ts"
import { rebuild as rebuildViews } from "../engine/Verify.ts"

export const rebuild = Command.make("rebuild", {}, () =>
  Effect.gen(function* () {
    const accounts = yield* rebuildViews
    yield* Console.log(`The views of ${accounts} accounts were rebuilt from the journal.`)
  }).pipe(Effect.provide(maintenance), Effect.provide(Config.layer))
).pipe(Command.withDescription("Rebuild the views from the journal"))
