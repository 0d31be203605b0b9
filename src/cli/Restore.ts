/** `till restore` makes an installation of a backup, up to now or to an earlier time (semantics 9.43). */
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import * as app from "../app.ts"
import * as Interruption from "./Interruption.ts"
import * as ProgressLine from "./ProgressLine.ts"

const SECONDS = /^\d{1,11}(\.\d{1,3})?$/
const ISO_8601 = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/

/** Unix milliseconds of what a person writes for a time; undefined if it is none. */
export const timeFrom = (text: string): number | undefined => {
  if (SECONDS.test(text)) return Math.round(Number(text) * 1000)
  const millis = ISO_8601.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(millis) ? undefined : millis
}

const grouped = new Intl.NumberFormat("en-US")

export const restore = Command.make(
  "restore",
  {
    folder: Argument.String("folder").pipe(Argument.withDescription("Where the backup is")),
    until: Flag.String("until").pipe(
      Flag.filterMap(
        (text) => Option.fromUndefinedOr(timeFrom(text)),
        () => "a time such as 2026-11-21T04:00:00Z, or Unix seconds"
      ),
      Flag.optional,
      Flag.withDescription("The time up to which to restore: 2026-11-21T04:00:00Z, or Unix seconds; all by default")
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
        ProgressLine.shown(work, process.stderr)
      )
      yield* Console.log(
        `Restored ${grouped.format(records)} records of ${accounts} accounts, as of ${new Date(at).toISOString()}.`
      )
      yield* Console.log(
        secretFile === null
          ? "The backup is whole. Who has made it was not checked: there was no secret here but the backup's own."
          : `The backup is whole, and was made with the secret in ${secretFile}.`
      )
    })
).pipe(
  Command.withShortDescription("Make an installation of a backup"),
  Command.withDescription(
    "Check a backup, and load it into an empty TILL_DATA_DIR or an empty database. The secret goes into TILL_DATA_DIR."
  )
)
