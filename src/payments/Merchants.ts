/** Merchants: who an account belongs to. They and their keys lie in the installation's account. */
import { Data, Effect, Layer, Schema } from "effect"
import type { Redacted } from "effect"
import { API_VERSION_DEFAULT, ApiVersion } from "../domain/ApiVersion.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import { secondsOf } from "../domain/Time.ts"
import type { Document } from "../engine/Document.ts"
import { EventVersions } from "../engine/Events.ts"
import { Transaction } from "../engine/Transaction.ts"
import { INSTALLATION, merchantIdOf } from "./AccountIds.ts"
import type { ApiKeyUse } from "./ApiKeys.ts"
import { findLookup, issue, register } from "./ApiKeys.ts"
import type { Kept } from "./Documents.ts"

export const Merchant = Schema.Struct({
  /** `mer_…` */
  id: Schema.String,
  object: Schema.Literal("merchant"),
  name: Schema.String,
  /** The version of requests that name none, and of events (semantics V3). */
  api_version: ApiVersion,
  /** Unix seconds. */
  created: Schema.Int
})
export type Merchant = typeof Merchant.Type

export const MERCHANT: Kept<Merchant> = { name: "merchant", shape: { value: Merchant }, prefix: PREFIXES.merchant }

/**
 * Tells the engine a merchant's default version, in which the events of its accounts are rendered that happen from then on
 * (semantics V3, W8).
 */
export const layerEventVersions: Layer.Layer<EventVersions> = Layer.succeed(EventVersions, {
  namedBy: (account) => (account === INSTALLATION ? null : { account: INSTALLATION, id: merchantIdOf(account) }),
  versionOf: (document) =>
    document === undefined || document.deleted
      ? API_VERSION_DEFAULT
      : (document as Document<Merchant>).value.api_version
})

const DefaultMerchant = Schema.Struct({ id: Schema.String, merchant_id: Schema.String })

/** Says which merchant was made at the first start. */
export const DEFAULT_MERCHANT: Kept<typeof DefaultMerchant.Type> = {
  name: "default_merchant",
  shape: { value: DefaultMerchant }
}
const DEFAULT_MERCHANT_ID = "default_merchant"

/** A key that was set for the default merchant belongs to another one. */
export class ApiKeyTaken extends Data.TaggedError("ApiKeyTaken")<{ readonly slot: ApiKeySlot }> {}

/** The four keys of a merchant (semantics A7). */
export type ApiKeySlot = "secretTest" | "publishableTest" | "secretLive" | "publishableLive"

export const API_KEY_SLOTS: Readonly<Record<ApiKeySlot, ApiKeyUse>> = {
  secretTest: { type: "secret", livemode: false },
  publishableTest: { type: "publishable", livemode: false },
  secretLive: { type: "secret", livemode: true },
  publishableLive: { type: "publishable", livemode: true }
}

const slots = Object.keys(API_KEY_SLOTS) as ReadonlyArray<ApiKeySlot>

export type ApiKeys = Partial<Readonly<Record<ApiKeySlot, Redacted.Redacted<string>>>>

/** A new merchant without any key. */
export const create = Effect.fnUntraced(function* (name: string) {
  const transaction = yield* Transaction
  const merchant: Merchant = {
    id: transaction.newId(PREFIXES.merchant),
    object: "merchant",
    name,
    api_version: API_VERSION_DEFAULT,
    created: secondsOf(transaction.now)
  }
  transaction.put(MERCHANT, merchant)
  return merchant
})

/** A merchant; undefined if there is none. */
export const find = Effect.fnUntraced(function* (id: string) {
  const transaction = yield* Transaction
  return (yield* transaction.get(MERCHANT, id))?.value
})

/** Changes the version of requests that name none, and of events (semantics V3). Undefined if there is no such merchant. */
export const setVersion = Effect.fnUntraced(function* (id: string, version: ApiVersion) {
  const transaction = yield* Transaction
  const merchant = yield* find(id)
  if (merchant === undefined || merchant.api_version === version) return merchant
  const changed: Merchant = { ...merchant, api_version: version }
  transaction.put(MERCHANT, changed)
  return changed
})

/** Changes how payers' pages call the merchant. Undefined if there is no such merchant. */
export const rename = Effect.fnUntraced(function* (id: string, name: string) {
  const transaction = yield* Transaction
  const merchant = yield* find(id)
  if (merchant === undefined || merchant.name === name) return merchant
  const changed: Merchant = { ...merchant, name }
  transaction.put(MERCHANT, changed)
  return changed
})

/** A new merchant with its four keys, which are in the answer and nowhere else. */
export const createWithKeys = Effect.fnUntraced(function* (name: string, given: ApiKeys = {}) {
  const merchant = yield* create(name)
  const generated: Partial<Record<ApiKeySlot, Redacted.Redacted<string>>> = {}
  for (const slot of slots) {
    const key = given[slot]
    if (key === undefined) generated[slot] = (yield* issue(merchant.id, API_KEY_SLOTS[slot])).key
    else yield* registerFor(merchant.id, slot, key)
  }
  return { merchant, generated: generated as ApiKeys }
})

/**
 * Sees to it that there is a default merchant and that the given keys are its keys. At the first start, the keys that
 * are not given are generated; `generated` has them, once. At a later one, `added` names the keys that are new: they come
 * to the merchant's others, because a key that is not given any more may be in use elsewhere.
 */
export const ensureDefault = Effect.fnUntraced(function* (given: ApiKeys) {
  const transaction = yield* Transaction
  const known = yield* transaction.get(DEFAULT_MERCHANT, DEFAULT_MERCHANT_ID)
  if (known === undefined) {
    const created = yield* createWithKeys("Default merchant", given)
    transaction.put(DEFAULT_MERCHANT, { id: DEFAULT_MERCHANT_ID, merchant_id: created.merchant.id })
    return { ...created, added: [] }
  }
  const merchant = (yield* transaction.get(MERCHANT, known.value.merchant_id))!.value
  const added: Array<ApiKeySlot> = []
  for (const slot of slots) {
    const key = given[slot]
    if (key !== undefined && (yield* registerFor(merchant.id, slot, key))) added.push(slot)
  }
  const generated: ApiKeys = {}
  return { merchant, generated, added: added as ReadonlyArray<ApiKeySlot> }
})

/** Registers a given key, unless it is known already; answers with whether it is new. */
const registerFor = Effect.fnUntraced(function* (merchantId: string, slot: ApiKeySlot, key: Redacted.Redacted<string>) {
  const entry = yield* findLookup(key)
  if (entry === undefined) yield* register(merchantId, API_KEY_SLOTS[slot], key)
  else if (entry.merchant_id !== merchantId) return yield* new ApiKeyTaken({ slot })
  return entry === undefined
})
