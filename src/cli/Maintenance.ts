/**
 * `till verify` checks the journal's chain of hashes, compares the views with it, and the journal with its anchors; it
 * writes nothing. `till scrub` does the same in ten times the time. `till rebuild` writes the views anew from the
 * journal.
 */
import { Console, Data, Effect } from "effect"
import { Command } from "effect/cli"
import * as app from "../app.ts"
import * as Interruption from "./Interruption.ts"
import * as ProgressLine from "./ProgressLine.ts"

/** The journal or the views are not as they should be. */
class VerificationFailed extends Data.TaggedError("VerificationFailed")<{ readonly problems: ReadonlyArray<string> }> {
  override get message() {
    return this.problems.join("\n")
  }
}

const checked = (pace: "swiftly" | "gently") =>
  app.verification(pace).pipe(
    // Every installation that was started has records.
    Effect.filterOrFail(
      ({ problems, records }) => records > 0 || problems.length > 0,
      () => new app.NothingThere()
    )
  )

/** Checks the installation's journal, the views against it, and what is anchored of it. */
export const verification = checked("swiftly")

type Report = Effect.Success<typeof verification>

const anchorsOf = ({ anchored, newestAnchor }: Report): string => {
  if (newestAnchor === undefined) return "anchors were not checked, because TILL_DATA_DIR has no secret"
  if (newestAnchor === null) return "none is anchored yet"
  return `${anchored} records are anchored, newest anchor ${newestAnchor}`
}

const report = Effect.fnUntraced(function* (report: Report) {
  const { accounts, problems, records } = report
  if (problems.length > 0) return yield* new VerificationFailed({ problems })
  const whole = `${records} records of ${accounts} accounts: the journal is whole and the views agree with it`
  yield* Console.log(`${whole}; ${anchorsOf(report)}.`)
})

/** Rebuilds the installation's views and answers of how many accounts. Nobody else may write meanwhile. */
export const reconstruction = Effect.andThen(app.requireAlone, app.rebuild).pipe(
  Effect.filterOrFail(
    (accounts) => accounts > 0,
    () => new app.NothingThere()
  ),
  Effect.provide(app.maintenance)
)

/** Shows how far the work is. Ended by a signal, it has found out nothing. */
const shown = <A, E, R>(work: Effect.Effect<A, E, R>) => Interruption.failing(ProgressLine.shown(work, process.stderr))

export const verify = Command.make("verify", {}, () => Effect.flatMap(shown(verification), report)).pipe(
  Command.withShortDescription("Check the journal, and the views against it"),
  Command.withDescription(
    "Check the journal, the views against it, and that it still has what was anchored of it, whether the service runs " +
      "or not. It writes nothing."
  )
)

export const scrub = Command.make("scrub", {}, () => Effect.flatMap(shown(checked("gently")), report)).pipe(
  Command.withShortDescription("Check the same as verify, gently"),
  Command.withDescription(
    "Check the same as verify does, and leave the machine and the database to the service: it works for a tenth of the " +
      "time, in little memory. The service does this by itself (TILL_SCRUB_DAYS)."
  )
)

export const rebuild = Command.make("rebuild", {}, () =>
  Effect.flatMap(shown(reconstruction), (accounts) =>
    Console.log(`The views of ${accounts} accounts were rebuilt from the journal.`)
  )
).pipe(Command.withDescription("Rebuild the views from the journal"))
