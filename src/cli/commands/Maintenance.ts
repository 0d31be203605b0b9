/** The commands that check, repair, back up and restore an installation, and roll its secret. */
import { Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { summaryOf } from "../Summaries.ts"
import { timeFrom } from "../Time.ts"
import { json, optional } from "./Flags.ts"
import { lazily } from "./Lazily.ts"

export const doctor = Command.make("doctor", { json: json() }, ({ json }) =>
  lazily(import("../Doctor.ts"), ({ doctor }) => doctor(json))
).pipe(
  Command.withShortDescription(summaryOf("doctor")),
  Command.withDescription(
    "Check the configuration, the machine, the database and the service, and say what is wrong and how to mend it. " +
      "The service may be running. Nothing is written, and no secret is shown. The status is 1 if there is a problem."
  )
)

export const verify = Command.make("verify", { json: json() }, ({ json }) =>
  lazily(import("../Maintenance.ts"), ({ verify }) => verify(json))
).pipe(
  Command.withShortDescription(summaryOf("verify")),
  Command.withDescription(
    "Check the journal, the views against it, and that all anchored records are still in it. The service may be " +
      "running. Nothing is written."
  )
)

export const scrub = Command.make("scrub", { json: json() }, ({ json }) =>
  lazily(import("../Maintenance.ts"), ({ scrub }) => scrub(json))
).pipe(
  Command.withShortDescription(summaryOf("scrub")),
  Command.withDescription(
    "Check the same as verify, but leave the machine and the database to the service: work during a tenth of the time, " +
      "in little memory. The service does this by itself (TILL_SCRUB_DAYS)."
  )
)

export const rebuild = Command.make("rebuild", { json: json() }, ({ json }) =>
  lazily(import("../Maintenance.ts"), ({ rebuild }) => rebuild(json))
).pipe(Command.withDescription(summaryOf("rebuild")))

export const erase = Command.make(
  "erase",
  {
    id: Argument.String("id").pipe(
      Argument.withDescription("ID of the customer, cus_…, or of a person who was removed from a team, per_…")
    ),
    merchant: optional("merchant", "ID of the merchant, mer_…; not needed if there is one merchant only"),
    mode: Flag.Literals("mode", ["live", "test"]).pipe(
      Flag.withDefault("live"),
      Flag.withDescription("live or test, for a customer; live by default")
    ),
    json: json()
  },
  ({ id, json, merchant, mode }) =>
    lazily(import("../Erase.ts"), ({ erase }) => erase({ id, merchant: Option.getOrUndefined(merchant), mode, json }))
).pipe(
  Command.withShortDescription(summaryOf("erase")),
  Command.withDescription(
    "Erase a customer's names, emails, phone numbers, addresses, descriptions and metadata, and those of their payments, " +
      "from all records, events, stored responses and logs. Amounts, times, states and IDs stay. Deleted customers have " +
      "data, too. Of a person of a team, email addresses and sign-ins are erased. The service must be " +
      "running. The command waits for the end; it can be stopped, and the erasure goes on."
  )
)

export const purge = Command.make("purge", { json: json() }, ({ json }) =>
  lazily(import("../Erase.ts"), ({ purge }) => purge(json))
).pipe(
  Command.withShortDescription(summaryOf("purge")),
  Command.withDescription(
    "Write the tables of the database anew, so that its files hold nothing of what was erased, nor its write-ahead log if " +
      "the database is the embedded one. No service may be running. Takes as much free disk space as the tables."
  )
)

const secretStatus = Command.make("status", { json: json() }, ({ json }) =>
  lazily(import("../Secret.ts"), ({ status }) => status(json))
).pipe(Command.withDescription("Show whether a roll of the secret is under way, and what is left to do"))

const rollSecret = Command.make(
  "roll",
  {
    json: json(),
    to: optional("to", "Write a changed secret to this file, where TILL_SECRET_FILE cannot be written")
  },
  ({ json, to }) => lazily(import("../Secret.ts"), ({ roll }) => roll(Option.getOrUndefined(to), json))
).pipe(
  Command.withShortDescription("Take the next step of a roll of the secret"),
  Command.withDescription(
    "Take the next step of a roll of the secret. First a new secret is added to the file, which every process has to " +
      "read; then it is put in force, and the service seals everything anew; at last the old secret is removed from the " +
      "file. Each step prints what has to be done before the next one."
  )
)

export const secret = Command.make("secret").pipe(
  Command.withDescription(summaryOf("secret")),
  Command.withSubcommands([rollSecret, secretStatus])
)

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
  ({ folder, json, mode }) => lazily(import("../Backup.ts"), ({ backup }) => backup(folder, mode, json))
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
    into: optional("into", "URL of an empty database; by default DATABASE_URL, or the embedded one of TILL_DATA_DIR"),
    erasures: optional(
      "erasures",
      "A newer backup, or the file erasures.json of a data folder: people who are named there are erased again. Those " +
        "of this backup and of TILL_DATA_DIR always are"
    )
  },
  ({ erasures, folder, into, json, until }) =>
    lazily(import("../Restore.ts"), ({ restore }) =>
      restore(folder, {
        json,
        erasures: Option.getOrUndefined(erasures),
        into: Option.getOrUndefined(into),
        until: Option.getOrUndefined(until)
      })
    )
).pipe(
  Command.withShortDescription(summaryOf("restore")),
  Command.withDescription(
    "Check a backup and load it into an empty TILL_DATA_DIR or an empty database. The secret is written to TILL_DATA_DIR."
  )
)
