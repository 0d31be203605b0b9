/**
 * `till verify` checks the journal's chain of hashes and compares the views with it; it writes nothing. `till rebuild`
 * writes the views anew from the journal.
 */
import { Console, Data, Effect } from "effect"
import { Command } from "effect/cli"
import * as app from "../app.ts"
import * as ProgressLine from "./ProgressLine.ts"

/** The journal or the views are not as they should be. */
class VerificationFailed extends Data.TaggedError("VerificationFailed")<{ readonly problems: ReadonlyArray<string> }> {
  override get message() {
    return this.problems.join("\n")
  }
}

/** Checks the installation's journal, and the views against it. */
export const verification = app.verify().pipe(
  // Every installation that was started has records.
  Effect.filterOrFail(
    ({ problems, records }) => records > 0 || problems.length > 0,
    () => new app.NothingThere()
  ),
  Effect.provide(app.maintenance)
)

/** Rebuilds the installation's views and answers of how many accounts. Nobody else may write meanwhile. */
export const reconstruction = Effect.andThen(app.requireAlone, app.rebuild).pipe(
  Effect.filterOrFail(
    (accounts) => accounts > 0,
    () => new app.NothingThere()
  ),
  Effect.provide(app.maintenance)
)

export const verify = Command.make("verify", {}, () =>
  Effect.gen(function* () {
    const { accounts, problems, records } = yield* ProgressLine.shown(verification, process.stderr)
    if (problems.length > 0) return yield* new VerificationFailed({ problems })
    yield* Console.log(`${records} records of ${accounts} accounts: the journal is whole and the views agree with it.`)
  })
).pipe(Command.withDescription("Check the journal, and the views against it"))

export const rebuild = Command.make("rebuild", {}, () =>
  Effect.flatMap(ProgressLine.shown(reconstruction, process.stderr), (accounts) =>
    Console.log(`The views of ${accounts} accounts were rebuilt from the journal.`)
  )
).pipe(Command.withDescription("Rebuild the views from the journal"))
