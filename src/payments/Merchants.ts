/**
 * The lifecycle of merchants, to whom accounts belong. They and their keys lie in the installation's account (semantics
 * A7).
 */
import { Effect, Equal, Layer, Schema } from "effect"
import type { Redacted } from "effect"
import { API_VERSION_DEFAULT, ApiVersion } from "../domain/ApiVersion.ts"
import { ApiVersions } from "../domain/ApiVersions.ts"
import { Brand, NO_BRAND } from "../domain/Brand.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import { secondsOf } from "../domain/Time.ts"
import type { Document } from "../engine/log/Document.ts"
import { EventVersions } from "../engine/log/Events.ts"
import { adding } from "../engine/views/DocumentFormats.ts"
import { Transaction } from "../engine/actor/Transaction.ts"
import { INSTALLATION, merchantIdOf } from "./AccountIds.ts"
import type { ApiKeyUse } from "./ApiKeys.ts"
import { findLookup, issue, register } from "./ApiKeys.ts"
import type { Kept } from "./Documents.ts"
import { shownIn } from "./Events.ts"

/** The characters that the name of a merchant can have. */
export const NAME_LENGTH_MAX = 256

export const Merchant = Schema.Struct({
  /** `mer_…` */
  id: Schema.String,
  object: Schema.Literal("merchant"),
  name: Schema.String,
  /** The version of requests that name none, and of events (semantics V3). */
  api_version: ApiVersion,
  /** What pages show beside the name (semantics 9.15). */
  brand: Brand,
  /** Unix seconds. */
  created: Schema.Int
})
export type Merchant = typeof Merchant.Type

export const MERCHANT: Kept<Merchant> = {
  name: "merchant",
  steps: [{ value: adding({ brand: NO_BRAND }) }],
  shape: { value: Merchant },
  prefix: PREFIXES.merchant
}

/**
 * Tells the engine a merchant's default version, in which the events of its accounts are rendered that happen from then
 * on (semantics V3, W8).
 */
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

/** Says which merchant was made at the first start. */
export const DEFAULT_MERCHANT: Kept<typeof DefaultMerchant.Type> = {
  name: "default_merchant",
  shape: { value: DefaultMerchant }
}
const DEFAULT_MERCHANT_ID = "default_merchant"

/** The id of the merchant that was made at the first start; undefined before that. */
export const findDefault: Effect.Effect<string | undefined, never, Transaction> = Effect.gen(function* () {
  const transaction = yield* Transaction
  return (yield* transaction.get(DEFAULT_MERCHANT, DEFAULT_MERCHANT_ID))?.value.merchant_id
})

/** A merchant begins with four keys (semantics A7). */
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

/** Makes a merchant without any key. */
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

/** Finds a merchant; undefined if there is none. */
export const find = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<Merchant | undefined, never, Transaction> {
  const transaction = yield* Transaction
  return (yield* transaction.get(MERCHANT, id))?.value
})

/**
 * Changes the version of requests that name none, and of events (semantics V3). Undefined if there is no such merchant.
 */
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

/** What a merchant shows to payers. A setting that is null is taken away, one that is left out stays. */
export type Appearance = Partial<Brand> & { readonly name?: string }

/** Changes what payers' pages show of a merchant. Undefined if there is no such merchant. */
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

/** A new merchant and those of its keys that were generated for it, which nothing else holds. */
export interface MerchantWithKeys {
  readonly merchant: Merchant
  readonly generated: ApiKeys
}

/**
 * Makes a merchant with its four keys: those that are given, and new ones in the place of the others (semantics A7).
 * Fails with `ApiKeyTaken` if a given key is another merchant's.
 */
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

/** The default merchant as a start has found or made it. */
export interface EnsuredMerchant extends MerchantWithKeys {
  /** Given keys that were not known before. */
  readonly added: ReadonlyArray<ApiKeySlot>
  /** Whether it was made now. */
  readonly isFirst: boolean
}

/**
 * Sees to it that there is a default merchant and that the given keys are its keys. At the first start, the keys that
 * are not given are generated; `generated` has them, once. At a later one, `added` names the keys that are new: they
 * come to the merchant's others, because a key that is not given any more may be in use elsewhere. Fails with
 * `ApiKeyTaken` if a given key is another merchant's (semantics A7).
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

/** Registers a given key, unless it is known already; answers with whether it is new. */
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
