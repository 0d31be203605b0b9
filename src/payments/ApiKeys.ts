/**
 * The lifecycle of API keys (semantics A7, A8, 9.17). They lie in the installation's account, as a SHA-256 and the last
 * four characters only: a key that was handed out cannot be had again.
 *
 * Every key has an entry whose id is its hash, so that a request is authenticated with one read by id. The hash needs
 * no salt, because a generated key is 32 random characters; who sets one of their own has to make it as hard to guess.
 */
import { hash } from "node:crypto"
import { Effect, Redacted, Schema } from "effect"
import { API_KEY_GRACE_SECONDS_MAX, ApiKey, ApiKeyStatus, ApiKeyType } from "../domain/ApiKey.ts"
import { ApiKeyInUse, ResourceMissing } from "../domain/Errors.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import { secondsOf } from "../domain/Time.ts"
import type { AccountId } from "../engine/log/Document.ts"
import { Transaction } from "../engine/actor/Transaction.ts"
import { accountOf } from "./AccountIds.ts"
import type { Kept } from "./Documents.ts"
import { timer, timerId } from "./TimerNames.ts"

export type { ApiKeyType }

/** A merchant has four kinds of keys: each type for each environment. */
export interface ApiKeyUse {
  readonly type: ApiKeyType
  readonly livemode: boolean
}

/** The part of a key's document that nobody is shown. */
export const ApiKeyHidden = Schema.Struct({
  /** Id of the entry that requests find the key by. */
  lookup: Schema.String
})
export type ApiKeyHidden = typeof ApiKeyHidden.Type

/** The entry that a request's key leads to. */
export const ApiKeyLookup = Schema.Struct({
  /** `keyhash_<SHA-256 of the key, hex>` */
  id: Schema.String,
  api_key: Schema.String,
  merchant_id: Schema.String,
  type: ApiKeyType,
  livemode: Schema.Boolean,
  status: ApiKeyStatus,
  /** Unix seconds; null for a key without an end. */
  expires_at: Schema.NullOr(Schema.Int)
})
export type ApiKeyLookup = typeof ApiKeyLookup.Type

export const API_KEY: Kept<ApiKey, ApiKeyHidden> = {
  name: "api_key",
  shape: { value: ApiKey, hidden: ApiKeyHidden },
  prefix: PREFIXES.api_key,
  labels: ({ livemode, merchant_id }) => ({ merchant_id, account: accountOf(merchant_id, livemode) })
}
export const API_KEY_LOOKUP: Kept<ApiKeyLookup> = { name: "api_key_lookup", shape: { value: ApiKeyLookup } }

const SECRET_LENGTH = 32

/** Keys of one use begin alike (spec: Authentication 2). */
const prefixOf = ({ livemode, type }: ApiKeyUse): string =>
  `${type === "secret" ? "sk" : "pk"}_${livemode ? "live" : "test"}_`

/** Derives the id of a key's entry. */
export const lookupIdOf = (key: string): string => `keyhash_${hash("sha256", key, "hex")}`

/** A key as the API shows it, and the key itself, which nothing else holds. */
export interface IssuedApiKey {
  readonly value: ApiKey
  readonly secret: Redacted.Redacted
}

/** Makes a new key for a merchant. The key itself is in the answer, and nowhere else (semantics A7). */
export const issue = Effect.fnUntraced(function* (
  merchantId: string,
  use: ApiKeyUse
): Effect.fn.Return<IssuedApiKey, never, Transaction> {
  const transaction = yield* Transaction
  const secret = Redacted.make(`${prefixOf(use)}${transaction.newSecret(SECRET_LENGTH)}`)
  return { value: yield* register(merchantId, use, secret), secret }
})

/** Makes a key that was chosen elsewhere known as a merchant's (semantics A7). */
export const register = Effect.fnUntraced(function* (
  merchantId: string,
  { livemode, type }: ApiKeyUse,
  key: Redacted.Redacted
): Effect.fn.Return<ApiKey, never, Transaction> {
  const transaction = yield* Transaction
  const text = Redacted.value(key)
  const apiKey: ApiKey = {
    id: transaction.newId(PREFIXES.api_key),
    object: "api_key",
    type,
    livemode,
    prefix: prefixOf({ type, livemode }),
    last4: text.slice(-4),
    created: secondsOf(transaction.now),
    expires_at: null,
    status: "active",
    merchant_id: merchantId
  }
  const { expires_at, id: api_key, merchant_id, status } = apiKey
  const lookup = lookupIdOf(text)
  transaction.put(API_KEY, apiKey, { lookup })
  transaction.put(API_KEY_LOOKUP, { id: lookup, api_key, merchant_id, livemode, type, status, expires_at })
  return apiKey
})

/** Finds the entry of a key; undefined if it is nobody's. */
export const findLookup = Effect.fnUntraced(function* (
  key: Redacted.Redacted
): Effect.fn.Return<ApiKeyLookup | undefined, never, Transaction> {
  const transaction = yield* Transaction
  return (yield* transaction.get(API_KEY_LOOKUP, lookupIdOf(Redacted.value(key))))?.value
})

/** Says whether a key acts on this account (semantics A9). */
export const belongsTo = ({ livemode, merchant_id }: ApiKey, account: AccountId): boolean =>
  accountOf(merchant_id, livemode) === account

/** Finds a key that is to change. A revoked one is gone, whatever is asked of it (semantics 9.17). */
const findChangeable = Effect.fnUntraced(function* (
  id: string,
  account: AccountId | undefined
): Effect.fn.Return<ApiKey, ResourceMissing, Transaction> {
  const transaction = yield* Transaction
  const key = (yield* transaction.get(API_KEY, id))?.value
  if (key === undefined || key.status === "revoked" || (account !== undefined && !belongsTo(key, account))) {
    return yield* new ResourceMissing({ kind: "API key", id, param: "id" })
  }
  return key
})

export interface Roll {
  /** Seconds of grace for the old key; 24 hours unless given. */
  readonly expiresIn?: number | undefined
  /** The only account whose keys may be rolled, if there is one. */
  readonly account?: AccountId
}

/**
 * Issues a key in the place of another, which stays valid for a while (semantics A8). A key whose end is set already
 * ends then at the latest: rolling it again only issues another key, which helps whoever lost the answer. Fails with
 * `ResourceMissing` if there is no such key, or none of this account, or if it was revoked.
 */
export const roll = Effect.fnUntraced(function* (
  id: string,
  { account, expiresIn }: Roll
): Effect.fn.Return<IssuedApiKey, ResourceMissing, Transaction> {
  const transaction = yield* Transaction
  const old = yield* findChangeable(id, account)
  const endsAt = secondsOf(transaction.now) + (expiresIn ?? API_KEY_GRACE_SECONDS_MAX)
  if ((old.status === "active" || old.status === "rolling") && (old.expires_at === null || endsAt < old.expires_at)) {
    yield* change(id, { status: expiresIn === 0 ? "expired" : "rolling", expires_at: endsAt })
    if (expiresIn === 0) transaction.clearTimer(timerId("api_key.expire", id))
    else transaction.setTimer(timer("api_key.expire", id, endsAt * 1000))
  }
  return yield* issue(old.merchant_id, old)
})

export interface Revocation {
  /** The only account whose keys may be revoked, if there is one. */
  readonly account?: AccountId
  /** Id of the key that asks, which cannot revoke itself: whoever holds the last one would be locked out. */
  readonly by?: string
}

/**
 * Ends a key, in whatever state it is: no request with it is let in any more (semantics 9.17). Fails with
 * `ResourceMissing` if there is no such key, or none of this account, or if it was revoked before, and with
 * `ApiKeyInUse` if it is the key that asks.
 */
export const revoke = Effect.fnUntraced(function* (
  id: string,
  { account, by }: Revocation = {}
): Effect.fn.Return<ApiKey, ResourceMissing | ApiKeyInUse, Transaction> {
  const transaction = yield* Transaction
  const key = yield* findChangeable(id, account)
  if (id === by) return yield* new ApiKeyInUse({ id })
  if (key.status === "rolling") transaction.clearTimer(timerId("api_key.expire", id))
  return yield* change(id, { status: "revoked" })
})

/** Ends a rolled key's grace, when its timer fires (semantics A8). */
export const expire = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const document = (yield* transaction.get(API_KEY, id))!
  if (document.value.status === "rolling") yield* change(id, { status: "expired" })
})

/** Changes a key and the entry that requests find it by. */
const change = Effect.fnUntraced(function* (
  id: string,
  changes: { readonly status: ApiKeyStatus; readonly expires_at?: number }
): Effect.fn.Return<ApiKey, never, Transaction> {
  const transaction = yield* Transaction
  const { hidden, value } = (yield* transaction.get(API_KEY, id))!
  const lookup = (yield* transaction.get(API_KEY_LOOKUP, hidden.lookup))!
  const changed = { ...value, ...changes }
  transaction.put(API_KEY, changed, hidden)
  transaction.put(API_KEY_LOOKUP, { ...lookup.value, ...changes })
  return changed
})
