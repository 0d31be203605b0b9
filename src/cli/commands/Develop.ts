/** The commands for those who develop against Till: webhooks, events, requests and fixtures. */
import { Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { TRIGGERABLE_EVENT_TYPES } from "../../domain/TriggerRecipes.ts"
import { overrideOf } from "../Overrides.ts"
import { summaryOf } from "../Summaries.ts"
import { connectionFlags, json, optional } from "./Flags.ts"
import { lazily } from "./Lazily.ts"

export const listen = Command.make(
  "listen",
  {
    forwardTo: Flag.String("forward-to").pipe(Flag.withDescription("The app's URL: http://localhost:3000/hooks")),
    events: Flag.String("events").pipe(
      Flag.withDefault("*"),
      Flag.withDescription("Event types, separated by commas; all by default")
    ),
    json: json("Print one line of JSON per webhook"),
    ...connectionFlags
  },
  (options) => lazily(import("../Listen.ts"), ({ listen }) => listen(options))
).pipe(
  Command.withShortDescription(summaryOf("listen")),
  Command.withDescription(
    "Forward webhooks of test mode to an app on this machine. They are signed with one secret per address and " +
      "merchant, which stays the same from run to run."
  )
)

const override = Flag.String("override").pipe(
  Flag.filterMap(
    (text) => Option.fromUndefinedOr(overrideOf(text)),
    () => "path=value, such as amount=5000 or metadata[order]=7"
  ),
  Flag.atLeast(0),
  Flag.withDescription(
    "Set a field of the request that creates the object: amount=5000, metadata[order]=7. May be repeated"
  )
)

export const trigger = Command.make(
  "trigger",
  {
    type: Argument.String("type").pipe(Argument.withDescription("The event's type: payment_intent.succeeded")),
    override,
    json: json("Print the event as JSON"),
    ...connectionFlags
  },
  (options) => lazily(import("../Trigger.ts"), ({ trigger }) => trigger(options))
).pipe(
  Command.withShortDescription(summaryOf("trigger")),
  Command.withDescription(
    `${summaryOf("trigger")}. charge.expired moves the clock of the test environment ahead, ` +
      `by 7 days by default; no other type does. Types: ${TRIGGERABLE_EVENT_TYPES.join(", ")}`
  )
)

const SHOWN_AT_FIRST = 10

/** How many past ones to print first, and whether to go on with new ones. */
const tailFlags = (things: string) => ({
  limit: Flag.Int("limit").pipe(
    Flag.filter(
      (limit) => limit >= 0,
      () => "a number that is not negative"
    ),
    Flag.withDefault(SHOWN_AT_FIRST),
    Flag.withDescription(`Number of past ${things} to print first; ${SHOWN_AT_FIRST} by default`)
  ),
  follow: Flag.Boolean("follow").pipe(
    Flag.withDefault(true),
    Flag.withDescription(`Print new ${things} as they arrive; --no-follow exits instead`)
  )
})

export const logs = Command.make(
  "logs",
  {
    status: optional("status", "A status, 402, or a class of statuses, 4xx"),
    method: optional("method", "GET, POST or DELETE"),
    path: optional("path", "A prefix of the path: /v1/payment_intents"),
    key: optional("key", "The ID of an API key: key_…"),
    apiVersion: optional("api-version", "The API version of the answer"),
    idempotencyKey: optional("idempotency-key", "The idempotency key"),
    object: optional("object", "The ID of an object in the path or the answer: pi_…"),
    code: optional("code", "An error code: card_declined"),
    ...tailFlags("requests"),
    json: json("Print one line of JSON per request"),
    ...connectionFlags
  },
  (options) => lazily(import("../Logs.ts"), ({ logs }) => logs(options))
).pipe(
  Command.withShortDescription(summaryOf("logs")),
  Command.withDescription(
    "Print API requests and their outcomes as they happen, without card data and secrets. A secret key of live mode " +
      "shows live requests. Requests that take longer than 10 seconds may be missing."
  )
)

export const events = Command.make(
  "events",
  {
    type: optional("type", "A type, charge.refunded, or the beginning of types, charge.*"),
    ...tailFlags("events"),
    json: json("Print one line of JSON per event"),
    ...connectionFlags
  },
  (options) => lazily(import("../Events.ts"), ({ events }) => events(options))
).pipe(
  Command.withShortDescription(summaryOf("events")),
  Command.withDescription("Print events as they happen. A secret key of live mode shows those of live mode.")
)

export const fixtures = Command.make(
  "fixtures",
  {
    file: Argument.String("file").pipe(Argument.withDescription("A JSON file: see docs/command-line.md")),
    json: json("Print the created objects as one JSON object, by name"),
    ...connectionFlags
  },
  (options) => lazily(import("../Fixtures.ts"), ({ fixtures }) => fixtures(options))
).pipe(
  Command.withShortDescription(summaryOf("fixtures")),
  Command.withDescription(
    "Create the objects that a file describes, in test mode, and print their IDs. A file that has not changed creates " +
      "nothing twice within 24 hours: the same names get the same objects."
  )
)
