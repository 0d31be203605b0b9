/** The commands on operations at processors. */
import { Argument, Command, Flag } from "effect/cli"
import { summaryOf } from "../Summaries.ts"
import { json, optional, within } from "./Flags.ts"
import { lazily } from "./Lazily.ts"

const STATUSES = ["open", "unresolved", "waiting", "decide", "final"] as const
const LIMIT = 100
const LIMIT_MAX = 1000

const operation = Argument.String("operation").pipe(
  Argument.withDescription("ID of the operation, op_…: see till operations list")
)

const list = Command.make(
  "list",
  {
    merchant: Argument.String("merchant").pipe(Argument.optional, Argument.withDescription("Only those of a merchant")),
    mode: Flag.Literals("mode", ["live", "test"]).pipe(
      Flag.optional,
      Flag.withDescription("Only those of live or test")
    ),
    status: Flag.Literals("status", STATUSES).pipe(
      Flag.optional,
      Flag.withDescription(`Only those in a status: ${STATUSES.join(", ")}. By default all but final ones`)
    ),
    limit: within("limit", [1, LIMIT_MAX], LIMIT, `Operations to show at most, the newest first; ${LIMIT} by default`),
    json: json()
  },
  (flags) => lazily(import("../Operations.ts"), ({ list }) => list(flags))
).pipe(Command.withDescription("List operations without an outcome, of one merchant or of all"))

const show = Command.make("show", { operation, json: json() }, ({ json, operation }) =>
  lazily(import("../Operations.ts"), ({ show }) => show(operation, json))
).pipe(Command.withDescription("Show an operation, each word about it, and when the processor is asked next"))

const check = Command.make("check", { operation, json: json() }, ({ json, operation }) =>
  lazily(import("../Operations.ts"), ({ check }) => check(operation, json))
).pipe(Command.withDescription("Ask the processor about an operation now, and show the operation"))

const decide = Command.make(
  "decide",
  {
    operation,
    outcome: Flag.Literals("outcome", ["happened", "did-not-happen"]).pipe(
      Flag.withDescription("happened or did-not-happen, as the processor's own records have it")
    ),
    reference: optional("reference", "The processor's reference of what happened"),
    reason: Flag.String("reason").pipe(Flag.withDescription("The reason, for the audit log: 10 characters or more")),
    credentials: Flag.String("credentials").pipe(
      Flag.withDefault("-"),
      Flag.withDescription(
        'An owner\'s {"email": "…", "password": "…"}, with "code" for two-step verification, from standard input by ' +
          "default, or from a file of mode 0600"
      )
    ),
    json: json()
  },
  (flags) => lazily(import("../Operations.ts"), ({ decide }) => decide(flags))
).pipe(
  Command.withDescription(
    "Decide, as an owner, whether an operation has happened about which the processor has given no certain word"
  )
)

export const operations = Command.make("operations").pipe(
  Command.withDescription(summaryOf("operations")),
  Command.withSubcommands([list, show, check, decide])
)
