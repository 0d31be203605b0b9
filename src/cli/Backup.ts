/** `till backup` copies the journal and the secret into a folder, beside the running service (semantics 9.42). */
import { Console, Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import * as app from "../app.ts"
import * as Interruption from "./Interruption.ts"
import * as ProgressLine from "./ProgressLine.ts"

const grouped = new Intl.NumberFormat("en-US")

/** `2026-11-21T04:00:00.123Z` of Unix milliseconds. */
const timeOf = (millis: number): string => new Date(millis).toISOString()

export const backup = Command.make(
  "backup",
  {
    folder: Argument.String("folder").pipe(
      Argument.withDescription(
        "Where the backup goes: a new folder, or one with an earlier backup, which is gone on with"
      )
    ),
    mode: Flag.Literals("mode", app.BACKUP_MODES).pipe(
      Flag.withDefault("all"),
      Flag.withDescription("test leaves out the accounts of live mode; all by default")
    )
  },
  ({ folder, mode }) =>
    Effect.gen(function* () {
      const work = ProgressLine.shown(app.backup(folder, mode), process.stderr)
      const { accounts, added, at, bytes, records } = yield* Interruption.failing(work)
      yield* Console.log(
        `${grouped.format(added)} new records. ${folder} holds ${grouped.format(records)} of ${accounts} accounts, as of ` +
          `${timeOf(at)}, in ${grouped.format(Math.ceil(bytes / 1000))} kB; and the installation's secret.`
      )
    })
).pipe(
  Command.withShortDescription("Back the installation up"),
  Command.withDescription(
    "Copy the journal and the installation's secret into a folder, while the service runs or not. What is there " +
      "already is not copied again."
  )
)
