/** Merchants: who an account belongs to. They and their keys lie in the installation's account. */
import { Data, Effect } from "effect"
import type { Redacted } from "effect"
import type { ApiVersion } from "../domain/ApiVersion.ts"
import { API_VERSION_DEFAULT } from "../domain/ApiVersion.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import { secondsOf } from "../domain/Time.ts"
import type { Kind } from "../engine/Document.ts"
import { Transaction } from "../engine/Transaction.ts"
import type { ApiKeyUse } from "./ApiKeys.ts"
import { findLookup, issue, register } from "./ApiKeys.ts"

export interface Merchant {
  /** `mer_…` */
  readonly id: string
  readonly object: "merchant"
  readonly name: string
  /** The version of requests that name none, and of events (semantics V3). */
  readonly api_version: ApiVersion
  /** Unix seconds. */
  readonly created: number
}

export const MERCHANT: Kind<Merchant> = { name: "merchant", prefix: PREFIXES.merchant }

/** Says which merchant was made at the first start. */
const DEFAULT_MERCHANT: Kind<{ readonly id: string; readonly merchant_id: string }> = { name: "default_merchant" }
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
