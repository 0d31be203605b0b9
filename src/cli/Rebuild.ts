/** `till rebuild`: writes the views anew from the journal. */
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import * as app from "../app.ts"

export const rebuild = Command.make("rebuild", {}, () =>
  Effect.flatMap(app.rebuild, (accounts) =>
    Console.log(`The views of ${accounts} accounts were rebuilt from the journal.`)
  )
).pipe(Command.withDescription("Rebuild the views from the journal"))
