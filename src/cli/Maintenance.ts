/**
 * `till verify` checks the journal's hash chain, compares the views with the journal, and the journal with its anchors;
 * it writes nothing. `till scrub` does the same in ten times the time. `till rebuild` recreates the views from the
 * journal.
 */
import { Console, Data, Effect } from "effect"
import * as app from "../app.ts"
import * as Interruption from "./Interruption.ts"
import * as ProgressLine from "./ProgressLine.ts"

/** The journal or the views are damaged. */
class VerificationFailed extends Data.TaggedError("VerificationFailed")<{ readonly problems: ReadonlyArray<string> }> {
  override get message() {
    return this.problems.join("\n")
  }
}

const check = (pace: "swiftly" | "gently") =>
  app.verification(pace).pipe(
    // An installation without records was never started.
    Effect.filterOrFail(
      ({ problems, records }) => records > 0 || problems.length > 0,
      () => new app.NothingThere()
    )
  )

/** Checks the installation's journal, the views against it, and the anchored records. */
export const verification = check("swiftly")

type Report = Effect.Success<typeof verification>

const anchorsOf = ({ anchored, newestAnchor }: Report): string => {
  if (newestAnchor === undefined) return "anchors were not checked, because TILL_DATA_DIR has no secret"
  if (newestAnchor === null) return "no record is anchored yet"
  return `${anchored} records are anchored, newest anchor ${newestAnchor}`
}

const report = Effect.fnUntraced(function* (report: Report, json: boolean) {
  const { accounts, anchored, erased, newestAnchor = null, problems, records } = report
  if (json) {
    yield* Console.log(JSON.stringify({ records, accounts, anchored, erased, newest_anchor: newestAnchor, problems }))
  }
  if (problems.length > 0) return yield* new VerificationFailed({ problems })
  if (json) return
  const whole = `${records} records of ${accounts} accounts: the journal is whole and the views agree with it`
  const without = erased === 0 ? "" : `; data was erased from ${erased} records`
  yield* Console.log(`${whole}; ${anchorsOf(report)}${without}.`)
})

/** Rebuilds the installation's views. Returns the number of accounts. No service may be running. */
export const reconstruction = Effect.andThen(app.requireAlone, app.rebuild).pipe(
  Effect.filterOrFail(
    (accounts) => accounts > 0,
    () => new app.NothingThere()
  ),
  Effect.provide(app.maintenance)
)

/** Runs work with a progress line. A signal makes it fail. */
const withProgress = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Interruption.failing(ProgressLine.withProgress(work, process.stderr))

/** Verifies the installation, swiftly or gently, and prints the result. */
export const verify = (json: boolean) => Effect.flatMap(withProgress(verification), (found) => report(found, json))
export const scrub = (json: boolean) => Effect.flatMap(withProgress(check("gently")), (found) => report(found, json))

/** Rebuilds the views, and prints how many. */
export const rebuild = (json: boolean) =>
  Effect.flatMap(withProgress(reconstruction), (accounts) =>
    Console.log(
      json ? JSON.stringify({ accounts }) : `The views of ${accounts} accounts were rebuilt from the journal.`
    )
  )
