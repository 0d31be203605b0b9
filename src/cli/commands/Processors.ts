/** The commands on processors: their configuration, and the check of a gateway of one's own. */
import { Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CREDENTIALS_GRACE_SECONDS_MAX } from "../../domain/Processor.ts"
import { summaryOf } from "../Summaries.ts"
import { json, optional, within } from "./Flags.ts"
import { lazily } from "./Lazily.ts"

const checkGateway = Command.make(
  "check",
  {
    url: Argument.String("url").pipe(Argument.withDescription("The gateway's URL, https:// or on this machine")),
    secretFile: Flag.String("secret-file").pipe(
      Flag.withDescription("A file of mode 0600 with the gateway's secret, whsec_…; - reads standard input")
    ),
    restart: optional("restart", "A shell command that kills the gateway, starts it again and ends"),
    json: json()
  },
  (flags) => lazily(import("../GatewayCheck.ts"), ({ gatewayCheck }) => gatewayCheck(flags))
).pipe(
  Command.withDescription(
    "Try the rules of Till's gateway protocol at a gateway in test mode, with payments by its test tokens, and name " +
      "each rule that it breaks. Exits with 1 if one is broken. Nothing of a Till installation is used."
  )
)

export const processor = Command.make("processor").pipe(
  Command.withDescription(summaryOf("processor")),
  Command.withSubcommands([checkGateway])
)

const processorArgument = Argument.String("processor").pipe(
  Argument.withDescription("ID of the processor, prc_…: see till processors list")
)
const CREDENTIALS = 'JSON, {"secret": "whsec_…"}, from standard input with -, or from a file of mode 0600'

const add = Command.make(
  "add",
  {
    merchant: Argument.String("merchant").pipe(
      Argument.withDescription("ID of the merchant, mer_…: see till merchants list")
    ),
    mode: Flag.Literals("mode", ["live", "test"]).pipe(Flag.withDescription("live or test")),
    kind: Flag.Literals("kind", ["http"]).pipe(
      Flag.withDescription("http: a gateway that speaks Till's protocol, see docs/guide/gateways.md")
    ),
    url: Flag.String("url").pipe(Flag.withDescription("The gateway's URL, https:// or on this machine")),
    credentials: Flag.String("credentials").pipe(Flag.withDescription(CREDENTIALS)),
    json: json()
  },
  (flags) => lazily(import("../Processors.ts"), ({ add }) => add(flags))
).pipe(Command.withDescription("Let a merchant's new payments of a mode go through a processor, after a check of it"))

const list = Command.make(
  "list",
  {
    merchant: Argument.String("merchant").pipe(Argument.optional, Argument.withDescription("Only those of a merchant")),
    json: json()
  },
  ({ json, merchant }) =>
    lazily(import("../Processors.ts"), ({ administer }) =>
      administer({ _tag: "ListProcessors", merchant: Option.getOrNull(merchant) }, "list", json)
    )
).pipe(Command.withDescription("List processors, of one merchant or of all"))

const show = Command.make("show", { processor: processorArgument, json: json() }, ({ json, processor }) =>
  lazily(import("../Processors.ts"), ({ administer }) => administer({ _tag: "ShowProcessor", processor }, "one", json))
).pipe(Command.withDescription("Show a processor, without its credentials"))

const update = Command.make(
  "update",
  {
    processor: processorArgument,
    url: optional("url", "Another URL"),
    credentials: optional("credentials", CREDENTIALS),
    expiresIn: within(
      "expires-in",
      [0, CREDENTIALS_GRACE_SECONDS_MAX],
      CREDENTIALS_GRACE_SECONDS_MAX,
      `Seconds for which the secret before is valid, too; ${CREDENTIALS_GRACE_SECONDS_MAX} by default`
    ),
    json: json()
  },
  (flags) => lazily(import("../Processors.ts"), ({ update }) => update(flags))
).pipe(Command.withDescription("Change a processor's URL or credentials, after a check of them"))

const step = (name: "pause" | "resume" | "retire", description: string) =>
  Command.make(name, { processor: processorArgument, json: json() }, ({ json, processor }) =>
    lazily(import("../Processors.ts"), ({ administer }) =>
      administer({ _tag: "TakeProcessor", processor, step: name }, "one", json)
    )
  ).pipe(Command.withDescription(description))

const check = Command.make("check", { processor: processorArgument, json: json() }, ({ json, processor }) =>
  lazily(import("../Processors.ts"), ({ administer }) => administer({ _tag: "CheckProcessor", processor }, "one", json))
).pipe(Command.withDescription("Check that a processor answers in its mode, and keep its description of itself"))

const reconcile = Command.make(
  "reconcile",
  {
    processor: processorArgument,
    since: optional(
      "since",
      "Compare operations from this time on: 2026-11-24T22:00:00Z, or Unix seconds. By default from an hour before " +
        "the backup that was restored, or from a day ago"
    ),
    json: json()
  },
  (flags) => lazily(import("../Processors.ts"), ({ reconcile }) => reconcile(flags))
).pipe(
  Command.withDescription(
    "Compare the operations of an installation, after its restore, with those of a processor, and take in what can " +
      "be. Exits with 1 if something is left for a person"
  )
)

export const processors = Command.make("processors").pipe(
  Command.withDescription(summaryOf("processors")),
  Command.withSubcommands([
    add,
    list,
    show,
    update,
    step("pause", "Begin nothing with a processor, and refuse its merchant's payments, until it is resumed"),
    step("resume", "Let a paused or retiring processor take new payments again"),
    step("retire", "Let a processor finish its payments and take no new ones, so that another can be added"),
    check,
    reconcile
  ])
)
