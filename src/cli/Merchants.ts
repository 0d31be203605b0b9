/** `till merchants`: the installation's merchants (semantics A7, V3). Works on a running service and on a stopped one. */
import { Console, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import * as app from "../app.ts"
import { merchantLines, newKeyLines } from "./Tables.ts"

/** Which merchant a command is about. */
export const merchantArgument = Argument.String("merchant").pipe(
  Argument.withDescription("ID of the merchant, mer_…: see till merchants list")
)
const nameArgument = Argument.String("name").pipe(Argument.withDescription("The name that payers read"))

const create = Command.make("create", { name: nameArgument }, ({ name }) =>
  Effect.flatMap(app.administer({ _tag: "CreateMerchant", name }), ({ keys, merchants }) =>
    Console.log(`${merchantLines(merchants)}\n\n${newKeyLines(keys)}`)
  )
).pipe(Command.withDescription("Create a merchant with its four API keys"))

const list = Command.make("list", {}, () =>
  Effect.flatMap(app.administer({ _tag: "ListMerchants" }), ({ merchants }) => Console.log(merchantLines(merchants)))
).pipe(Command.withDescription("List all merchants"))

const rename = Command.make("rename", { merchant: merchantArgument, name: nameArgument }, ({ merchant, name }) =>
  Effect.flatMap(app.administer({ _tag: "RenameMerchant", merchant, name }), ({ merchants }) =>
    Console.log(merchantLines(merchants))
  )
).pipe(Command.withDescription("Change a merchant's name, which payers' pages show"))

const setVersion = Command.make(
  "set-version",
  { merchant: merchantArgument, version: Argument.Literals("version", app.API_VERSIONS) },
  ({ merchant, version }) =>
    Effect.flatMap(app.administer({ _tag: "SetVersion", merchant, version }), ({ merchants }) =>
      Console.log(merchantLines(merchants))
    )
).pipe(Command.withDescription("Set the API version of requests that name none, and of events"))

export const merchants = Command.make("merchants").pipe(
  Command.withDescription("Create, list and rename merchants"),
  Command.withSubcommands([create, list, rename, setVersion])
)
