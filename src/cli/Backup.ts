/**
 * `till backup` copies the journal and the secret into a folder, beside the running service (semantics
 * backups.contents).
 */
import { Console, Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import * as app from "../app.ts"
import * as Interruption from "./Interruption.ts"
import * as ProgressLine from "./ProgressLine.ts"

const grouped = new Intl.NumberFormat("en-US")

/** Formats Unix milliseconds as `2026-11-21T04:00:00.123Z`. */
const timeOf = (millis: number): string => new Date(millis).toISOString()

export const backup = Command.make(
  "backup",
  {
    folder: Argument.String("folder").pipe(
      Argument.withDescription("A new folder, or the folder of an earlier backup, which is continued")
    ),
    mode: Flag.Literals("mode", app.BACKUP_MODES).pipe(
      Flag.withDefault("all"),
      Flag.withDescription("all, or test to leave out live-mode accounts; all by default")
    )
  },
  ({ folder, mode }) =>
    Effect.gen(function* () {
      const work = ProgressLine.withProgress(app.backup(folder, mode), process.stderr)
      const { accounts, added, at, bytes, records } = yield* Interruption.failing(work)
      yield* Console.log(
        `${grouped.format(added)} new records. ${folder} contains ${grouped.format(records)} records of ${accounts} ` +
          `accounts until ${timeOf(at)} (${grouped.format(Math.ceil(bytes / 1000))} kB) and the installation's secret.`
      )
    })
).pipe(
  Command.withShortDescription("Back the installation up"),
  Command.withDescription(
    "Copy the journal and the installation's secret into a folder. The service may be running. Records that the " +
      "folder already contains are not copied again."
  )
)
