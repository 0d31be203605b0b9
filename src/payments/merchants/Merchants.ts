/** The lifecycle of merchants. The installation's account holds them and their keys (semantics keys.first). */
import { Effect, Equal, Layer, type Redacted, Schema } from "effect"
import { API_VERSION_DEFAULT, ApiVersion } from "../../domain/ApiVersion.ts"
import { ApiVersions } from "../../domain/ApiVersions.ts"
import { Brand, NO_BRAND } from "../../domain/Brand.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { secondsOf } from "../../domain/Time.ts"
import type { Document } from "../../engine/log/Document.ts"
import { EventVersions } from "../../engine/log/Events.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { INSTALLATION, merchantIdOf } from "../shared/AccountIds.ts"
import { type ApiKeyUse, findLookup, issue, register } from "./ApiKeys.ts"
import type { Kept } from "../shared/Documents.ts"
import { shownIn } from "../shared/Events.ts"

export const NAME_LENGTH_MAX = 256

export const Merchant = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("merchant"),
  name: Schema.String,
  /** The version of events, and of requests that name no version (semantics versions.events). */
  api_version: ApiVersion,
  /** The appearance of the merchant's pages, beside the name (semantics pages.brand). */
  brand: Brand,
  created: Schema.Int
})
export type Merchant = typeof Merchant.Type

export const MERCHANT: Kept<Merchant> = {
  name: "merchant",
  shape: { value: Merchant },
  prefix: PREFIXES.merchant
}

/** Gives the engine a merchant's default version for later events (semantics versions.events). */
export const layerEventVersions: Layer.Layer<EventVersions, never, ApiVersions> = Layer.effect(
  EventVersions,
  Effect.map(ApiVersions, (versions) => ({
    namedBy: (account) => (account === INSTALLATION ? null : { account: INSTALLATION, id: merchantIdOf(account) }),
    versionOf: (document) =>
      document === undefined || document.deleted
        ? API_VERSION_DEFAULT
        : (document as Document<Merchant>).value.api_version,
    shownIn: shownIn(versions)
  }))
)

const DefaultMerchant = Schema.Struct({ id: Schema.String, merchant_id: Schema.String })

export const DEFAULT_MERCHANT: Kept<typeof DefaultMerchant.Type> = {
  name: "default_merchant",
  shape: { value: DefaultMerchant }
}
/** The id of the one document that names the default merchant. */
export const DEFAULT_MERCHANT_ID = "default_merchant"

/** Finds the id of the merchant that the first start created; undefined before it. */
export const findDefault: Effect.Effect<string | undefined, never, Transaction> = Effect.gen(function* () {
  const transaction = yield* Transaction
  return (yield* transaction.get(DEFAULT_MERCHANT, DEFAULT_MERCHANT_ID))?.value.merchant_id
})

/** The four keys that a merchant starts with (semantics keys.first). */
export const ApiKeySlot = Schema.Literals(["secretTest", "publishableTest", "secretLive", "publishableLive"])
export type ApiKeySlot = typeof ApiKeySlot.Type

/** A key that was set for the default merchant belongs to another one. */
export class ApiKeyTaken extends Schema.TaggedError<ApiKeyTaken>()("ApiKeyTaken", { slot: ApiKeySlot }) {}

export const API_KEY_SLOTS: Readonly<Record<ApiKeySlot, ApiKeyUse>> = {
  secretTest: { type: "secret", livemode: false },
  publishableTest: { type: "publishable", livemode: false },
  secretLive: { type: "secret", livemode: true },
  publishableLive: { type: "publishable", livemode: true }
}

const slots = ApiKeySlot.literals

export type ApiKeys = Partial<Readonly<Record<ApiKeySlot, Redacted.Redacted>>>

export const create = Effect.fnUntraced(function* (name: string): Effect.fn.Return<Merchant, never, Transaction> {
  const transaction = yield* Transaction
  const merchant: Merchant = {
    id: transaction.newId(PREFIXES.merchant),
    object: "merchant",
    name,
    api_version: API_VERSION_DEFAULT,
    brand: NO_BRAND,
    created: secondsOf(transaction.now)
  }
  transaction.put(MERCHANT, merchant)
  return merchant
})

export const find = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<Merchant | undefined, never, Transaction> {
  const transaction = yield* Transaction
  return (yield* transaction.get(MERCHANT, id))?.value
})

/** Changes a merchant's default version (semantics versions.default); undefined without the merchant. */
export const setVersion = Effect.fnUntraced(function* (
  id: string,
  version: ApiVersion
): Effect.fn.Return<Merchant | undefined, never, Transaction> {
  const transaction = yield* Transaction
  const merchant = yield* find(id)
  if (merchant === undefined || merchant.api_version === version) return merchant
  const changed: Merchant = { ...merchant, api_version: version }
  transaction.put(MERCHANT, changed)
  return changed
})

/** The appearance of a merchant's pages. Null removes a setting; an absent setting keeps its value. */
export type Appearance = Partial<Omit<Brand, "logo">> & { readonly name?: string }

/** Sets the name of the merchant's logo; null removes it. Returns undefined if there is no such merchant. */
export const setLogo = Effect.fnUntraced(function* (
  id: string,
  logo: string | null
): Effect.fn.Return<Merchant | undefined, never, Transaction> {
  const transaction = yield* Transaction
  const merchant = yield* find(id)
  if (merchant === undefined || (merchant.brand.logo ?? null) === logo) return merchant
  const { logo: _, ...settings } = merchant.brand
  const changed: Merchant = { ...merchant, brand: logo === null ? settings : { ...settings, logo } }
  transaction.put(MERCHANT, changed)
  return changed
})

/** Changes the appearance of a merchant's pages. Returns undefined if there is no such merchant. */
export const changeAppearance = Effect.fnUntraced(function* (
  id: string,
  { name, ...settings }: Appearance
): Effect.fn.Return<Merchant | undefined, never, Transaction> {
  const transaction = yield* Transaction
  const merchant = yield* find(id)
  if (merchant === undefined) return undefined
  const changed: Merchant = {
    ...merchant,
    name: name ?? merchant.name,
    brand: { ...merchant.brand, ...settings }
  }
  if (!Equal.equals(changed, merchant)) transaction.put(MERCHANT, changed)
  return changed
})

export interface MerchantWithKeys {
  readonly merchant: Merchant
  readonly generated: ApiKeys
}

/** Creates a merchant with its four keys: the given ones, and new ones for the rest (semantics keys.first). */
export const createWithKeys = Effect.fnUntraced(function* (
  name: string,
  given: ApiKeys = {}
): Effect.fn.Return<MerchantWithKeys, ApiKeyTaken, Transaction> {
  const merchant = yield* create(name)
  const generated: Partial<Record<ApiKeySlot, Redacted.Redacted>> = {}
  for (const slot of slots) {
    const key = given[slot]
    if (key === undefined) generated[slot] = (yield* issue(merchant.id, API_KEY_SLOTS[slot])).secret
    else yield* registerFor(merchant.id, slot, key)
  }
  return { merchant, generated }
})

export interface EnsuredMerchant extends MerchantWithKeys {
  /** Given keys that were not registered before. */
  readonly added: ReadonlyArray<ApiKeySlot>
  readonly isFirst: boolean
}

/**
 * Creates or finds the default merchant and registers the given keys as its keys. The first start generates the keys
 * that are not given and returns them in `generated`, once. A later start returns the new keys in `added` and keeps the
 * merchant's other keys, because a key that is no longer given may be in use elsewhere. Fails with `ApiKeyTaken` if a
 * given key is another merchant's (semantics keys.first).
 */
export const ensureDefault = Effect.fnUntraced(function* (
  given: ApiKeys
): Effect.fn.Return<EnsuredMerchant, ApiKeyTaken, Transaction> {
  const transaction = yield* Transaction
  const known = yield* findDefault
  if (known === undefined) {
    const created = yield* createWithKeys("Default merchant", given)
    transaction.put(DEFAULT_MERCHANT, { id: DEFAULT_MERCHANT_ID, merchant_id: created.merchant.id })
    return { ...created, added: [], isFirst: true }
  }
  const merchant = (yield* transaction.get(MERCHANT, known))!.value
  const added: Array<ApiKeySlot> = []
  for (const slot of slots) {
    const key = given[slot]
    if (key !== undefined && (yield* registerFor(merchant.id, slot, key))) added.push(slot)
  }
  return { merchant, generated: {}, added, isFirst: false }
})

/** Registers a given key unless it is registered already; returns whether it is new. */
const registerFor = Effect.fnUntraced(function* (
  merchantId: string,
  slot: ApiKeySlot,
  key: Redacted.Redacted
): Effect.fn.Return<boolean, ApiKeyTaken, Transaction> {
  const entry = yield* findLookup(key)
  if (entry === undefined) yield* register(merchantId, API_KEY_SLOTS[slot], key)
  else if (entry.merchant_id !== merchantId) return yield* new ApiKeyTaken({ slot })
  return entry === undefined
})
