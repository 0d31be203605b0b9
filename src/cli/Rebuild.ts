/** `till rebuild`: writes the views anew from the journal. */
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import * as app from "../app.ts"
import { NothingThere } from "./NothingThere.ts"

export const rebuild = Command.make("rebuild", {}, () =>
  Effect.gen(function* () {
    const accounts = yield* app.rebuild
    if (accounts === 0) return yield* new NothingThere()
    yield* Console.log(`The views of ${accounts} accounts were rebuilt from the journal.`)
  })
).pipe(Command.withDescription("Rebuild the views from the journal"))
