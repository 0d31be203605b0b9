/**
 * `till merchants` and `till keys` create, list and change the installation's merchants and their keys (semantics
 * keys.cli, keys.roll, versions.default, keys.revoke), whether the service is running or not.
 */
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import * as app from "../app.ts"
import { columns, timeOf } from "./Columns.ts"
import { WrongArguments } from "./Connection.ts"

type Merchant = app.Administered["merchants"][number]
type ApiKey = app.Administered["keys"][number]

const merchantLines = (merchants: ReadonlyArray<Merchant>): string =>
  columns(merchants.map(({ api_version, created, id, name }) => [id, api_version, timeOf(created), name]))

/** Formats keys without their secrets. */
const keyLines = (keys: ReadonlyArray<ApiKey>): string =>
  columns(
    keys.map(({ created, expires_at, id, last4, merchant_id, prefix, status }) => [
      id,
      merchant_id,
      `${prefix}…${last4}`,
      timeOf(created),
      expires_at !== null && status === "rolling" ? `${status} until ${timeOf(expires_at)}` : status
    ])
  )

/** Formats new keys in full. No later command can print them. */
const newKeyLines = (keys: ReadonlyArray<ApiKey>): string => {
  const rows = keys.map(({ id, livemode, secret = "", type }) => [
    `  ${type === "secret" ? "Secret" : "Publishable"} key, ${livemode ? "live" : "test"} mode`,
    id,
    secret
  ])
  return `Shown this once; only hashes are stored:\n${columns(rows)}`
}

const administer = (command: app.Command) =>
  app.Administration.use(({ carryOut }) => carryOut(command)).pipe(Effect.provide(app.administration))

const merchantArgument = Argument.String("merchant").pipe(
  Argument.withDescription("ID of the merchant, mer_…: see till merchants list")
)
const nameArgument = Argument.String("name").pipe(Argument.withDescription("The name that payers see"))

const createMerchant = Command.make("create", { name: nameArgument }, ({ name }) =>
  Effect.flatMap(administer({ _tag: "CreateMerchant", name }), ({ keys, merchants }) =>
    Console.log(`${merchantLines(merchants)}\n\n${newKeyLines(keys)}`)
  )
).pipe(Command.withDescription("Create a merchant with its four API keys"))

const listMerchants = Command.make("list", {}, () =>
  Effect.flatMap(administer({ _tag: "ListMerchants" }), ({ merchants }) => Console.log(merchantLines(merchants)))
).pipe(Command.withDescription("List all merchants"))

const renameMerchant = Command.make(
  "rename",
  { merchant: merchantArgument, name: nameArgument },
  ({ merchant, name }) =>
    Effect.flatMap(administer({ _tag: "BrandMerchant", merchant, name, brand: {} }), ({ merchants }) =>
      Console.log(merchantLines(merchants))
    )
).pipe(Command.withDescription("Change the name that payers see"))

const brandFlag = (name: app.BrandSetting, description: string) =>
  Flag.String(name).pipe(Flag.optional, Flag.withDescription(description))

const brandFlags = {
  icon: brandFlag("icon", "URL of an icon, shown in a square; http only in test mode"),
  accent: brandFlag("accent", "Colour of buttons and links, such as #1b7f5e; text stays readable on every colour"),
  support: brandFlag("support", "Help for payers: a URL, or mailto: and an email address"),
  terms: brandFlag("terms", "URL of the terms of sale"),
  privacy: brandFlag("privacy", "URL of the privacy policy")
}

const brandLines = ({ brand, id, name }: Merchant): string =>
  columns([
    ["merchant", id],
    ["name", name],
    ...Object.entries(brand).map(([setting, value]) => [setting, value ?? "-"])
  ])

const brandMerchant = Command.make(
  "brand",
  {
    merchant: merchantArgument,
    name: Flag.String("name").pipe(Flag.optional, Flag.withDescription("The name that payers see")),
    ...brandFlags,
    clear: Flag.Literals("clear", app.BRAND_SETTING_NAMES).pipe(
      Flag.atLeast(0),
      Flag.withDescription("Remove a setting; may be repeated")
    )
  },
  Effect.fnUntraced(function* ({ clear, merchant, name, ...flags }) {
    const given = Object.entries(flags).flatMap(([setting, flag]) =>
      Option.isSome(flag) ? [[setting as app.BrandSetting, flag.value] as const] : []
    )
    const both = given.find(([setting]) => clear.includes(setting))
    if (both !== undefined) {
      return yield* new WrongArguments({ message: `--${both[0]} and --clear ${both[0]} exclude each other` })
    }
    const brand = Object.fromEntries([...given, ...clear.map((setting) => [setting, null] as const)])
    const command = { _tag: "BrandMerchant", merchant, brand } as const
    const { merchants } = yield* administer(Option.isSome(name) ? { ...command, name: name.value } : command)
    yield* Console.log(merchants.map(brandLines).join("\n"))
  })
).pipe(Command.withDescription("Show or change the brand that payers' pages show"))

const setVersion = Command.make(
  "set-version",
  { merchant: merchantArgument, version: Argument.Literals("version", app.API_VERSIONS) },
  ({ merchant, version }) =>
    Effect.flatMap(administer({ _tag: "SetVersion", merchant, version }), ({ merchants }) =>
      Console.log(merchantLines(merchants))
    )
).pipe(Command.withDescription("Set the API version of events and of requests that name no version"))

export const merchants = Command.make("merchants").pipe(
  Command.withDescription("Create, list, rename and brand merchants"),
  Command.withSubcommands([createMerchant, listMerchants, renameMerchant, brandMerchant, setVersion])
)

const createKey = Command.make(
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
    Effect.flatMap(administer({ _tag: "CreateKey", merchant, type, livemode: mode === "live" }), ({ keys }) =>
      Console.log(newKeyLines(keys))
    )
).pipe(Command.withDescription("Create another API key for a merchant"))

const listKeys = Command.make("list", { merchant: merchantArgument.pipe(Argument.optional) }, ({ merchant }) =>
  Effect.flatMap(administer({ _tag: "ListKeys", merchant: Option.getOrNull(merchant) }), ({ keys }) =>
    Console.log(keyLines(keys))
  )
).pipe(Command.withDescription("List API keys, of one merchant or of all"))

const keyArgument = Argument.String("key").pipe(Argument.withDescription("ID of the key, key_…: see till keys list"))

const rollKey = Command.make(
  "roll",
  {
    key: keyArgument,
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
    Effect.flatMap(administer({ _tag: "RollKey", key, expiresIn }), ({ keys }) => Console.log(newKeyLines(keys)))
).pipe(Command.withDescription("Replace an API key with a new one"))

const revokeKey = Command.make("revoke", { key: keyArgument }, ({ key }) =>
  Effect.flatMap(administer({ _tag: "RevokeKey", key }), ({ keys }) => Console.log(keyLines(keys)))
).pipe(Command.withDescription("Revoke an API key immediately"))

export const keys = Command.make("keys").pipe(
  Command.withDescription("Create, list, roll and revoke API keys"),
  Command.withSubcommands([createKey, listKeys, rollKey, revokeKey])
)
