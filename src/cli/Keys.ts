/** `till keys`: the merchants' API keys (semantics A7, A8). Works on a running service and on a stopped one. */
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import * as app from "../app.ts"
import { merchantArgument } from "./Merchants.ts"
import { keyLines, newKeyLines } from "./Tables.ts"

const create = Command.make(
  "create",
  {
    merchant: merchantArgument,
    type: Flag.Literals("type", ["secret", "publishable"]).pipe(
      Flag.withDefault("secret"),
      Flag.withDescription("secret by default")
    ),
    mode: Flag.Literals("mode", ["test", "live"]).pipe(
      Flag.withDefault("test"),
      Flag.withDescription("test by default")
    )
  },
  ({ merchant, mode, type }) =>
    Effect.flatMap(app.administer({ _tag: "CreateKey", merchant, type, livemode: mode === "live" }), ({ keys }) =>
      Console.log(newKeyLines(keys))
    )
).pipe(Command.withDescription("Create one more API key of a merchant"))

const list = Command.make("list", { merchant: merchantArgument.pipe(Argument.optional) }, ({ merchant }) =>
  Effect.flatMap(app.administer({ _tag: "ListKeys", merchant: Option.getOrNull(merchant) }), ({ keys }) =>
    Console.log(keyLines(keys))
  )
).pipe(Command.withDescription("List API keys, of one merchant or of all"))

const roll = Command.make(
  "roll",
  {
    key: Argument.String("key").pipe(Argument.withDescription("ID of the key, key_…: see till keys list")),
    expiresIn: Flag.Int("expires-in").pipe(
      Flag.filter(
        (seconds) => seconds >= 0 && seconds <= app.API_KEY_GRACE_SECONDS_MAX,
        () => `must be from 0 to ${app.API_KEY_GRACE_SECONDS_MAX}`
      ),
      Flag.withDefault(app.API_KEY_GRACE_SECONDS_MAX),
      Flag.withDescription(`Seconds for which the old key stays valid; ${app.API_KEY_GRACE_SECONDS_MAX} by default`)
    )
  },
  ({ expiresIn, key }) =>
    Effect.flatMap(app.administer({ _tag: "RollKey", key, expiresIn }), ({ keys }) => Console.log(newKeyLines(keys)))
).pipe(Command.withDescription("Replace an API key by a new one"))

export const keys = Command.make("keys").pipe(
  Command.withDescription("Create, list and roll API keys"),
  Command.withSubcommands([create, list, roll])
)
