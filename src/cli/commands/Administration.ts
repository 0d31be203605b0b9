/** The commands on merchants, keys, people and runners. */
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { API_VERSIONS } from "../../domain/ApiVersionNames.ts"
import { API_KEY_GRACE_SECONDS_MAX } from "../../domain/ApiKey.ts"
import { summaryOf } from "../Summaries.ts"
import { WrongArguments } from "../WrongArguments.ts"
import { json, optional, toggle, within } from "./Flags.ts"
import { lazily } from "./Lazily.ts"
import type { administer as Administer } from "../Merchants.ts"

const administer: typeof Administer = (...args) =>
  lazily(import("../Merchants.ts"), ({ administer }) => administer(...args))

const jsonFlag = { json: json() }

export const dashboard = Command.make(
  "dashboard",
  {
    merchant: optional("merchant", "ID of the merchant, mer_…; the default merchant if omitted"),
    turnOffTwoStep: toggle(
      "turn-off-two-step",
      "Also turn the owner's two-step verification off, after the loss of app and recovery codes"
    ),
    ...jsonFlag
  },
  ({ json, merchant, turnOffTwoStep }) =>
    lazily(import("../Dashboard.ts"), ({ dashboard }) =>
      dashboard({ merchant: Option.getOrNull(merchant), turnOffTwoStep }, json)
    )
).pipe(
  Command.withShortDescription(summaryOf("dashboard")),
  Command.withDescription("Print a link that signs the merchant's owner in to the dashboard, once, within 10 minutes")
)

export const open = Command.make(
  "open",
  {
    what: Argument.String("what").pipe(
      Argument.withDefault("dashboard"),
      Argument.withDescription("dashboard, docs, or the ID of an object; the dashboard by default")
    ),
    print: toggle("print", "Print the address without opening a browser"),
    live: toggle("live", "The object is one of live mode"),
    ...jsonFlag
  },
  (options) => lazily(import("../Open.ts"), ({ open }) => open(options))
).pipe(Command.withDescription(summaryOf("open")))

export const cluster = Command.make("cluster", jsonFlag, ({ json }) =>
  lazily(import("../Cluster.ts"), ({ cluster }) => cluster(json))
).pipe(
  Command.withShortDescription(summaryOf("cluster")),
  Command.withDescription(
    "Show the runners that serve the installation together: the partitions of each, the number of records by which " +
      "its views lag behind the journal, when its locks were last confirmed, and how far its clock differs from the " +
      "database's. Everything is read from the database; no runner is contacted."
  )
)

const merchantArgument = Argument.String("merchant").pipe(
  Argument.withDescription("ID of the merchant, mer_…: see till merchants list")
)
const nameArgument = Argument.String("name").pipe(Argument.withDescription("The name that payers see"))

const createMerchant = Command.make("create", { name: nameArgument, ...jsonFlag }, ({ json, name }) =>
  administer({ _tag: "CreateMerchant", name }, "merchantWithKeys", json)
).pipe(Command.withDescription("Create a merchant with its four API keys"))

const listMerchants = Command.make("list", jsonFlag, ({ json }) =>
  administer({ _tag: "ListMerchants" }, "merchantList", json)
).pipe(Command.withDescription("List all merchants"))

const renameMerchant = Command.make(
  "rename",
  { merchant: merchantArgument, name: nameArgument, ...jsonFlag },
  ({ json, merchant, name }) => administer({ _tag: "BrandMerchant", merchant, name, brand: {} }, "merchants", json)
).pipe(Command.withDescription("Change the name that payers see"))

const brandFlags = {
  icon: optional("icon", "URL of an icon, shown in a square; http only in test mode"),
  accent: optional("accent", "Colour of buttons and links, such as #1b7f5e; text stays readable on every colour"),
  support: optional("support", "Help for payers: a URL, or mailto: and an email address"),
  terms: optional("terms", "URL of the terms of sale"),
  privacy: optional("privacy", "URL of the privacy policy")
}
type BrandSetting = keyof typeof brandFlags
const BRAND_SETTINGS = Object.keys(brandFlags) as ReadonlyArray<BrandSetting>

const brandMerchant = Command.make(
  "brand",
  {
    merchant: merchantArgument,
    name: optional("name", "The name that payers see"),
    ...brandFlags,
    clear: Flag.Literals("clear", BRAND_SETTINGS).pipe(
      Flag.atLeast(0),
      Flag.withDescription("Remove a setting; may be repeated")
    ),
    ...jsonFlag
  },
  Effect.fnUntraced(function* ({ clear, json, merchant, name, ...flags }) {
    const given = Object.entries(flags).flatMap(([setting, flag]) =>
      Option.isSome(flag) ? [[setting as BrandSetting, flag.value] as const] : []
    )
    const both = given.find(([setting]) => clear.includes(setting))
    if (both !== undefined) {
      return yield* new WrongArguments({ message: `--${both[0]} and --clear ${both[0]} exclude each other` })
    }
    const brand = Object.fromEntries([...given, ...clear.map((setting) => [setting, null] as const)])
    const command = { _tag: "BrandMerchant", merchant, brand } as const
    yield* administer(Option.isSome(name) ? { ...command, name: name.value } : command, "brands", json)
  })
).pipe(Command.withDescription("Show or change the brand that payers' pages show"))

const setVersion = Command.make(
  "set-version",
  { merchant: merchantArgument, version: Argument.Literals("version", API_VERSIONS), ...jsonFlag },
  ({ json, merchant, version }) => administer({ _tag: "SetVersion", merchant, version }, "merchants", json)
).pipe(Command.withDescription("Set the API version of events, and of requests without a version"))

export const merchants = Command.make("merchants").pipe(
  Command.withDescription(summaryOf("merchants")),
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
    ),
    name: optional("name", "A name for the key, which till keys list shows"),
    ...jsonFlag
  },
  ({ json, merchant, mode, name, type }) => {
    const named = Option.isSome(name) ? { name: name.value } : {}
    return administer({ _tag: "CreateKey", merchant, type, livemode: mode === "live", ...named }, "newKeys", json)
  }
).pipe(Command.withDescription("Create another API key for a merchant"))

const listKeys = Command.make(
  "list",
  { merchant: merchantArgument.pipe(Argument.optional), ...jsonFlag },
  ({ json, merchant }) => administer({ _tag: "ListKeys", merchant: Option.getOrNull(merchant) }, "keyList", json)
).pipe(Command.withDescription("List API keys, of one merchant or of all"))

const keyArgument = Argument.String("key").pipe(Argument.withDescription("ID of the key, key_…: see till keys list"))

const rollKey = Command.make(
  "roll",
  {
    key: keyArgument,
    expiresIn: within(
      "expires-in",
      [0, API_KEY_GRACE_SECONDS_MAX],
      API_KEY_GRACE_SECONDS_MAX,
      `Seconds for which the old key stays valid; ${API_KEY_GRACE_SECONDS_MAX} by default`
    ),
    ...jsonFlag
  },
  ({ expiresIn, json, key }) => administer({ _tag: "RollKey", key, expiresIn }, "newKeys", json)
).pipe(Command.withDescription("Replace an API key with a new one"))

const revokeKey = Command.make("revoke", { key: keyArgument, ...jsonFlag }, ({ json, key }) =>
  administer({ _tag: "RevokeKey", key }, "keys", json)
).pipe(Command.withDescription("Revoke an API key immediately"))

export const keys = Command.make("keys").pipe(
  Command.withDescription(summaryOf("keys")),
  Command.withSubcommands([createKey, listKeys, rollKey, revokeKey])
)
