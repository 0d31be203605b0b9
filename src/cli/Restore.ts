/**
 * `till restore` creates an installation from a backup, complete or up to an earlier time (semantics backups.restore).
 */
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import * as app from "../app.ts"
import * as Interruption from "./Interruption.ts"
import * as ProgressLine from "./ProgressLine.ts"

const SECONDS = /^\d{1,11}(\.\d{1,3})?$/
const ISO_8601 = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/

/** Parses a time that a person typed to Unix milliseconds; undefined if it is no time. */
export const timeFrom = (text: string): number | undefined => {
  if (SECONDS.test(text)) return Math.round(Number(text) * 1000)
  const millis = ISO_8601.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(millis) ? undefined : millis
}

const grouped = new Intl.NumberFormat("en-US")

export const restore = Command.make(
  "restore",
  {
    folder: Argument.String("folder").pipe(Argument.withDescription("The backup's folder")),
    until: Flag.String("until").pipe(
      Flag.filterMap(
        (text) => Option.fromUndefinedOr(timeFrom(text)),
        () => "a time such as 2026-11-21T04:00:00Z, or Unix seconds"
      ),
      Flag.optional,
      Flag.withDescription(
        "Restore only records up to this time: 2026-11-21T04:00:00Z, or Unix seconds; all by default"
      )
    ),
    into: Flag.String("into").pipe(
      Flag.optional,
      Flag.withDescription("URL of an empty database; by default DATABASE_URL, or the embedded one of TILL_DATA_DIR")
    )
  },
  ({ folder, into, until }) =>
    Effect.gen(function* () {
      const url = Option.isSome(into) ? yield* app.databaseUrlOf("--into", into.value) : undefined
      const work = app.restore(folder, Option.getOrUndefined(until), url)
      const { accounts, at, records, secretFile } = yield* Interruption.failing(
        ProgressLine.withProgress(work, process.stderr)
      )
      yield* Console.log(
        `Restored ${grouped.format(records)} records of ${accounts} accounts until ${new Date(at).toISOString()}.`
      )
      yield* Console.log(
        secretFile === null
          ? "The backup is complete. Its origin was not checked, because the only secret was the backup's own."
          : `The backup is complete, and was made with the secret in ${secretFile}.`
      )
    })
).pipe(
  Command.withShortDescription("Create an installation from a backup"),
  Command.withDescription(
    "Check a backup and load it into an empty TILL_DATA_DIR or an empty database. The secret is written to TILL_DATA_DIR."
  )
)
