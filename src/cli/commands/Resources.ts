/** The commands that read and change objects through the API: `till get`, `list`, `post` and `delete`. */
import { Argument, Command } from "effect/cli"
import { type CommandName, summaryOf } from "../Summaries.ts"
import { connectionFlags, json } from "./Flags.ts"
import { lazily } from "./Lazily.ts"

const resource = Argument.String("resource").pipe(
  Argument.withDescription("The resource, as in the path: customers, payment_intents, checkout_sessions, …")
)

const command = <Name extends CommandName>(name: Name, verb: "get" | "list" | "post" | "delete", words: string) =>
  Command.make(
    name,
    {
      resource,
      words: Argument.String("words").pipe(Argument.variadic(), Argument.withDescription(words)),
      json: json("Print JSON on one line; a list as one line per object"),
      ...connectionFlags
    },
    (options) => lazily(import("../Resources.ts"), ({ runVerb }) => runVerb(verb, options))
  ).pipe(Command.withDescription(summaryOf(name)))

const FIELDS = "fields as path=value: amount=2000 metadata[order]=7"

export const get = command("get", "get", `The ID, perhaps a part of the object, and ${FIELDS}`)
export const list = command("list", "list", `Filters and limit=100 as ${FIELDS}`)
export const post = command("post", "post", `Nothing or an ID, perhaps an action, and ${FIELDS}`)
export const delete_ = command("delete", "delete", "The ID")
