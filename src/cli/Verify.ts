/** `till verify`: checks the journal's chain of hashes and compares the views with it; writes nothing. */
import { Console, Data, Effect } from "effect"
import { Command } from "effect/cli"
import * as app from "../app.ts"

/** The journal or the views are not as they should be. */
class VerificationFailed extends Data.TaggedError("VerificationFailed")<{ readonly problems: ReadonlyArray<string> }> {
  override get message() {
    return this.problems.join("\n")
  }
}

export const verify = Command.make("verify", {}, () =>
  Effect.gen(function* () {
    const { accounts, problems, records } = yield* app.verify
    if (problems.length > 0) return yield* new VerificationFailed({ problems })
    yield* Console.log(`${records} records of ${accounts} accounts: the journal is whole and the views agree with it.`)
  })
).pipe(Command.withDescription("Check the journal, and the views against it"))
