/**
 * Commands with which the operator changes merchants and their keys (semantics keys.cli, keys.roll, versions.default,
 * keys.revoke). Any process can send them to the process that owns the installation's account.
 */
import { Effect, Record, Redacted, Schema } from "effect"
import { ApiKeyGrace, ApiKeyType, NewApiKey } from "../domain/ApiKey.ts"
import { ApiVersion } from "../domain/ApiVersion.ts"
import { BRAND_SETTINGS, type BrandSetting } from "../domain/Brand.ts"
import { Role } from "../domain/Person.ts"
import { ruleOf } from "../domain/Rule.ts"
import { hasLengthAtMost } from "../domain/Length.ts"
import { Accounts, type AccountsShape, runOnce, Unavailable } from "../engine/Accounts.ts"
import type { Document, Identified, Kind, Labels } from "../engine/log/Document.ts"
import type { Transaction } from "../engine/actor/Transaction.ts"
import { INSTALLATION } from "./AccountIds.ts"
import * as ApiKeys from "./ApiKeys.ts"
import * as Audit from "./Audit.ts"
import * as DashboardSessions from "./DashboardSessions.ts"
import * as Merchants from "./Merchants.ts"
import { readDocument } from "./ReadDocument.ts"
import { keepPrint } from "./Sealing.ts"

const KeysBySlot = Schema.Struct({
  secretTest: Schema.optionalKey(Schema.String),
  publishableTest: Schema.optionalKey(Schema.String),
  secretLive: Schema.optionalKey(Schema.String),
  publishableLive: Schema.optionalKey(Schema.String)
})

export const Command = Schema.Union([
  Schema.TaggedStruct("CreateMerchant", { name: Schema.String }),
  Schema.TaggedStruct("ListMerchants", {}),
  Schema.TaggedStruct("BrandMerchant", {
    merchant: Schema.String,
    name: Schema.optionalKey(Schema.String),
    /** Null removes a setting; an absent setting keeps its value. */
    brand: Schema.Struct({
      icon: Schema.optionalKey(Schema.NullOr(Schema.String)),
      accent: Schema.optionalKey(Schema.NullOr(Schema.String)),
      support: Schema.optionalKey(Schema.NullOr(Schema.String)),
      terms: Schema.optionalKey(Schema.NullOr(Schema.String)),
      privacy: Schema.optionalKey(Schema.NullOr(Schema.String))
    })
  }),
  Schema.TaggedStruct("SetVersion", { merchant: Schema.String, version: ApiVersion }),
  Schema.TaggedStruct("LinkToDashboard", {
    /** Null stands for the default merchant. */
    merchant: Schema.NullOr(Schema.String)
  }),
  Schema.TaggedStruct("CreateKey", {
    merchant: Schema.String,
    type: ApiKeyType,
    livemode: Schema.Boolean,
    name: Schema.optionalKey(Schema.String)
  }),
  Schema.TaggedStruct("ListKeys", { merchant: Schema.NullOr(Schema.String) }),
  Schema.TaggedStruct("RollKey", { key: Schema.String, expiresIn: ApiKeyGrace }),
  Schema.TaggedStruct("RevokeKey", { key: Schema.String }),
  /** Not a CLI command: sent once before an environment is wiped, because a wipe's record holds nothing else. */
  Schema.TaggedStruct("Audit", {
    person: Schema.Struct({
      id: Schema.String,
      email: Schema.NullOr(Schema.String),
      role: Role,
      merchant_id: Schema.String
    }),
    entry: Schema.Struct({
      action: Schema.String,
      subject: Schema.NullOr(Schema.String),
      detail: Schema.NullOr(Schema.String)
    }),
    request: Schema.Struct({
      id: Schema.String,
      idempotencyKey: Schema.String,
      fingerprint: Schema.String,
      apiVersion: Schema.String
    })
  }),
  /** Not a CLI command: a starting process sends it. */
  Schema.TaggedStruct("EnsureDefault", {
    print: Schema.String,
    given: KeysBySlot
  })
])
export type Command = typeof Command.Type

const Ensured = Schema.Union([
  Schema.TaggedStruct("Ensured", {
    /** Keys that were generated now. Only this answer contains them. */
    generated: KeysBySlot,
    /** Slots of the given keys that were new to the installation. */
    added: Schema.Array(Merchants.ApiKeySlot),
    /** Path that signs the first owner in to the dashboard once; null unless the merchant was made now. */
    link: Schema.NullOr(Schema.String)
  }),
  Schema.TaggedStruct("ForeignSecret", {}),
  Schema.TaggedStruct("ApiKeyTaken", { slot: Merchants.ApiKeySlot })
])
export type Ensured = typeof Ensured.Type

/** Merchants and keys that a command made or found, oldest first. Only the first answer contains a key's `secret`. */
export const Administered = Schema.Struct({
  merchants: Schema.Array(Merchants.Merchant),
  keys: Schema.Array(NewApiKey),
  ensured: Schema.optionalKey(Ensured),
  /** Signs the merchant's first owner in to the dashboard once. A path; the serving process adds the address. */
  link: Schema.optionalKey(Schema.String)
})
export type Administered = typeof Administered.Type

/** A command names something that does not exist. */
export class AdministrationFailed extends Schema.TaggedError<AdministrationFailed>()("AdministrationFailed", {
  message: Schema.String
}) {}

/** Runs a command. All requests that arrive after its response see the change. */
export const administer = (
  command: Command
): Effect.Effect<Administered, AdministrationFailed | Unavailable, Accounts> =>
  Effect.flatMap(Accounts, (accounts) => {
    switch (command._tag) {
      case "CreateMerchant":
        return accounts.run(INSTALLATION, createMerchant(command.name))
      case "ListMerchants":
        return Effect.map(readAll(Merchants.MERCHANT), (merchants) => ({ merchants, keys: [] }))
      case "BrandMerchant":
        return accounts.run(INSTALLATION, brandMerchant(command))
      case "SetVersion":
        return accounts.run(INSTALLATION, setVersion(command.merchant, command.version))
      case "LinkToDashboard":
        return accounts.run(INSTALLATION, linkToDashboard(command.merchant))
      case "CreateKey":
        return accounts.run(INSTALLATION, createKey(command))
      case "ListKeys":
        return listKeys(command.merchant)
      case "RollKey":
        return accounts.run(INSTALLATION, rollKey(command.key, command.expiresIn))
      case "RevokeKey":
        return accounts.run(INSTALLATION, revokeKey(command.key))
      case "Audit":
        return audit(accounts, command)
      case "EnsureDefault":
        return Effect.map(ensure(accounts, command), (ensured) => ({ merchants: [], keys: [], ensured }))
    }
  })

const revealKey = ({ secret, value }: ApiKeys.IssuedApiKey): NewApiKey => ({ ...value, secret: Redacted.value(secret) })

type CommandReturn<R> = Effect.fn.Return<Administered, AdministrationFailed, R>

const createMerchant = Effect.fnUntraced(function* (name: string): CommandReturn<Transaction> {
  yield* requireName(name)
  const merchant = yield* Merchants.create(name)
  const keys = yield* Effect.forEach(Object.values(Merchants.API_KEY_SLOTS), (use) => ApiKeys.issue(merchant.id, use))
  return { merchants: [merchant], keys: keys.map(revealKey) }
})

const brandMerchant = Effect.fnUntraced(function* ({
  brand,
  merchant: id,
  name
}: Command & { readonly _tag: "BrandMerchant" }): CommandReturn<Transaction> {
  if (name !== undefined) yield* requireName(name)
  for (const [setting, value] of Object.entries(brand)) {
    if (value !== null) yield* requireSetting(setting as BrandSetting, value)
  }
  const accent = brand.accent?.toLowerCase()
  const merchant = yield* Merchants.changeAppearance(id, {
    ...brand,
    ...(accent !== undefined && { accent }),
    ...(name !== undefined && { name })
  })
  return merchant === undefined ? yield* noMerchant(id) : { merchants: [merchant], keys: [] }
})

/** Returns the rule that a brand setting violates; undefined if pages can show the value. */
export const settingComplaint = (setting: BrandSetting, value: string): string | undefined => {
  const schema = BRAND_SETTINGS[setting]
  return Schema.is(schema)(value) && !/\p{Cc}/u.test(value) ? undefined : ruleOf(schema)
}

const requireSetting = (setting: BrandSetting, value: string) => {
  const rule = settingComplaint(setting, value)
  return rule === undefined
    ? Effect.void
    : Effect.fail(new AdministrationFailed({ message: `The brand's ${setting} must be ${rule}.` }))
}

const setVersion = Effect.fnUntraced(function* (id: string, version: ApiVersion): CommandReturn<Transaction> {
  const merchant = yield* Merchants.setVersion(id, version)
  return merchant === undefined ? yield* noMerchant(id) : { merchants: [merchant], keys: [] }
})

const linkToDashboard = Effect.fnUntraced(function* (merchant: string | null): CommandReturn<Transaction> {
  const id = merchant ?? (yield* Merchants.findDefault)
  if (id === undefined)
    return yield* new AdministrationFailed({ message: "There is no merchant yet: start Till first." })
  const link = yield* Effect.mapError(DashboardSessions.makeOwnersLink(id), () => noMerchant(id))
  return { merchants: [], keys: [], link: DashboardSessions.pathOf(link) }
})

const createKey = Effect.fnUntraced(function* ({
  livemode,
  merchant,
  name,
  type
}: Command & { readonly _tag: "CreateKey" }): CommandReturn<Transaction> {
  if (name !== undefined) yield* requireName(name, "key")
  if ((yield* Merchants.find(merchant)) === undefined) return yield* noMerchant(merchant)
  return { merchants: [], keys: [revealKey(yield* ApiKeys.issue(merchant, { type, livemode, name }))] }
})

const rollKey = (id: string, expiresIn: number) =>
  ApiKeys.roll(id, { expiresIn }).pipe(
    Effect.map((rolled): Administered => ({ merchants: [], keys: [revealKey(rolled)] })),
    Effect.mapError(() => noApiKey(id))
  )

const revokeKey = (id: string) =>
  ApiKeys.revoke(id).pipe(
    Effect.map((revoked): Administered => ({ merchants: [], keys: [revoked] })),
    Effect.mapError(() => noApiKey(id))
  )

const ensureWithLink = Effect.fnUntraced(function* (given: Merchants.ApiKeys) {
  const ensured = yield* Merchants.ensureDefault(given)
  if (!ensured.isFirst) return { ...ensured, link: null }
  const link = yield* Effect.orDie(DashboardSessions.makeOwnersLink(ensured.merchant.id))
  return { ...ensured, link: DashboardSessions.pathOf(link) }
})

/** Writes an entry of the audit log in its own record. Another command's idempotency key is a bug. */
const audit = (
  accounts: AccountsShape,
  { entry, person, request }: Command & { readonly _tag: "Audit" }
): Effect.Effect<Administered, AdministrationFailed | Unavailable> => {
  const command = () => Effect.as(Audit.record(person, entry), { kept: { status: 200, body: "{}" }, replayOf: null })
  return runOnce(accounts, INSTALLATION, request, command).pipe(
    Effect.as({ merchants: [], keys: [] }),
    Effect.catchTags({
      IdempotencyKeyInUse: () => Effect.fail(new Unavailable({ reason: "The entry is being written." })),
      IdempotencyKeyReuse: () => Effect.fail(new AdministrationFailed({ message: "This key is another entry's." }))
    })
  )
}

/** Creates or finds the default merchant and registers the given keys, or changes nothing. */
const ensure = (
  accounts: AccountsShape,
  { given, print }: Command & { readonly _tag: "EnsureDefault" }
): Effect.Effect<Ensured, Unavailable> => {
  const keys = Record.map(given as Readonly<Record<string, string>>, (key) => Redacted.make(key))
  return accounts.run(INSTALLATION, Effect.andThen(keepPrint(print), ensureWithLink(keys))).pipe(
    Effect.map(({ added, generated, link }): Ensured => ({
      _tag: "Ensured",
      generated: Record.map(generated as Readonly<Record<string, Redacted.Redacted>>, Redacted.value),
      added,
      link
    })),
    Effect.catchTags({
      ForeignSecret: () => Effect.succeed<Ensured>({ _tag: "ForeignSecret" }),
      ApiKeyTaken: ({ slot }) => Effect.succeed<Ensured>({ _tag: "ApiKeyTaken", slot })
    })
  )
}

/** The message repeats nothing but ids: an operator who enters a key by mistake must not find it in a log. */
const noApiKey = (id: string) =>
  new AdministrationFailed({
    message: id.startsWith("key_")
      ? `There is no API key ${id}, or it has been revoked.`
      : "An API key is named by its id, key_…, which the list of keys shows."
  })

const listKeys = Effect.fnUntraced(function* (merchant: string | null) {
  if (merchant === null) return { merchants: [], keys: yield* readAll(ApiKeys.API_KEY) }
  if ((yield* readDocument(INSTALLATION, Merchants.MERCHANT, merchant)) === undefined)
    return yield* noMerchant(merchant)
  return { merchants: [], keys: yield* readAll(ApiKeys.API_KEY, { merchant_id: merchant }) }
})

/** Returns the message for a name that pages or terminals cannot show; undefined if they can. */
export const nameComplaint = (name: string, owner: "merchant" | "key" = "merchant"): string | undefined =>
  name.trim() !== "" && hasLengthAtMost(name, Merchants.NAME_LENGTH_MAX) && !/\p{Cc}/u.test(name)
    ? undefined
    : `A ${owner}'s name has 1 to ${Merchants.NAME_LENGTH_MAX} characters, none of them a control character.`

const requireName = (name: string, owner: "merchant" | "key" = "merchant") => {
  const message = nameComplaint(name, owner)
  return message === undefined ? Effect.void : Effect.fail(new AdministrationFailed({ message }))
}

const noMerchant = (id: string) => new AdministrationFailed({ message: `There is no merchant ${id}.` })

const PAGE = 100

/** Reads every document of a kind, oldest first. */
const readAll = Effect.fnUntraced(function* <A extends Identified, H>(kind: Kind<A, H>, labels: Labels = {}) {
  const accounts = yield* Accounts
  const found: Array<A> = []
  for (;;) {
    const last = found.at(-1)
    const cursor = last === undefined ? {} : { olderThan: last.id }
    const page = yield* accounts.list(INSTALLATION, {
      kind: kind.name,
      prefix: kind.prefix,
      labels,
      limit: PAGE,
      ...cursor
    })
    found.push(...page.documents.map((document) => (document as Document<A>).value))
    if (!page.hasMore) return found.toReversed()
  }
})
