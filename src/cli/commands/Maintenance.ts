/** The commands that check, repair, back up and restore an installation. */
import { Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { summaryOf } from "../Summaries.ts"
import { timeFrom } from "../Time.ts"
import { json } from "./Flags.ts"
import { lazily } from "./Lazily.ts"

const maintenance = () => import("../Maintenance.ts")

export const verify = Command.make("verify", { json: json() }, ({ json }) =>
  lazily(maintenance, ({ verify }) => verify(json))
).pipe(
  Command.withShortDescription(summaryOf("verify")),
  Command.withDescription(
    "Check the journal, the views against it, and that all anchored records are still in it. The service may be " +
      "running. Nothing is written."
  )
)

export const scrub = Command.make("scrub", { json: json() }, ({ json }) =>
  lazily(maintenance, ({ scrub }) => scrub(json))
).pipe(
  Command.withShortDescription(summaryOf("scrub")),
  Command.withDescription(
    "Check the same as verify, but leave the machine and the database to the service: work during a tenth of the time, " +
      "in little memory. The service does this by itself (TILL_SCRUB_DAYS)."
  )
)

export const rebuild = Command.make("rebuild", { json: json() }, ({ json }) =>
  lazily(maintenance, ({ rebuild }) => rebuild(json))
).pipe(Command.withDescription(summaryOf("rebuild")))

export const backup = Command.make(
  "backup",
  {
    folder: Argument.String("folder").pipe(
      Argument.withDescription("A new folder, or the folder of an earlier backup, which is continued")
    ),
    json: json(),
    mode: Flag.Literals("mode", ["all", "test"]).pipe(
      Flag.withDefault("all"),
      Flag.withDescription("all, or test to leave out live-mode accounts; all by default")
    )
  },
  ({ folder, json, mode }) =>
    lazily(
      () => import("../Backup.ts"),
      ({ backup }) => backup(folder, mode, json)
    )
).pipe(
  Command.withShortDescription(summaryOf("backup")),
  Command.withDescription(
    "Copy the journal and the installation's secret into a folder. The service may be running. Records that the " +
      "folder already contains are not copied again."
  )
)

export const restore = Command.make(
  "restore",
  {
    folder: Argument.String("folder").pipe(Argument.withDescription("The backup's folder")),
    json: json(),
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
  ({ folder, into, json, until }) =>
    lazily(
      () => import("../Restore.ts"),
      ({ restore }) => restore(folder, { json, into: Option.getOrUndefined(into), until: Option.getOrUndefined(until) })
    )
).pipe(
  Command.withShortDescription(summaryOf("restore")),
  Command.withDescription(
    "Check a backup and load it into an empty TILL_DATA_DIR or an empty database. The secret is written to TILL_DATA_DIR."
  )
)
