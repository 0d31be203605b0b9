/**
 * The lifecycle of API keys (semantics keys.storage, keys.roll, keys.revoke). The installation's account holds them as
 * a SHA-256 hash and the last four characters only, so a key cannot be shown a second time.
 *
 * Every key has an entry whose id is its hash, so a request is authenticated with one read by id. The hash needs no
 * salt: a generated key is 32 random characters, and an operator who sets a key has to choose one as hard to guess.
 */
import { hash } from "node:crypto"
import { Effect, Redacted, Schema } from "effect"
import { API_KEY_GRACE_SECONDS_MAX, ApiKey, ApiKeyStatus, ApiKeyType } from "../../domain/ApiKey.ts"
import { ApiKeyInUse, ResourceMissing } from "../../domain/Errors.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { secondsOf } from "../../domain/Time.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { accountOf } from "../shared/AccountIds.ts"
import type { Kept } from "../shared/Documents.ts"
import { timer, timerId } from "../shared/TimerNames.ts"

export type { ApiKeyType }

/** The use of a key. A merchant has four: each type in each environment. */
export interface ApiKeyUse {
  readonly type: ApiKeyType
  readonly livemode: boolean
  /** The operator's name of the key. */
  readonly name?: string | undefined
}

export const ApiKeyHidden = Schema.Struct({
  lookup: Schema.String
})
export type ApiKeyHidden = typeof ApiKeyHidden.Type

/** The entry that authentication reads, by the hash of the request's key. */
export const ApiKeyLookup = Schema.Struct({
  id: Schema.String,
  api_key: Schema.String,
  merchant_id: Schema.String,
  type: ApiKeyType,
  livemode: Schema.Boolean,
  status: ApiKeyStatus,
  /** Unix seconds; null for a key that does not expire. */
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

/** Returns the prefix that all keys of one use share (spec: Authentication 2). */
const prefixOf = ({ livemode, type }: ApiKeyUse): string =>
  `${type === "secret" ? "sk" : "pk"}_${livemode ? "live" : "test"}_`

export const lookupIdOf = (key: string): string => `keyhash_${hash("sha256", key, "hex")}`

/** A key as the API shows it, with its secret, which is stored nowhere. */
export interface IssuedApiKey {
  readonly value: ApiKey
  readonly secret: Redacted.Redacted
}

/** Creates a key for a merchant. Only the result contains the secret (semantics keys.first). */
export const issue = Effect.fnUntraced(function* (
  merchantId: string,
  use: ApiKeyUse
): Effect.fn.Return<IssuedApiKey, never, Transaction> {
  const transaction = yield* Transaction
  const secret = Redacted.make(`${prefixOf(use)}${transaction.newSecret(SECRET_LENGTH)}`)
  return { value: yield* register(merchantId, use, secret), secret }
})

/** Registers a key that the operator chose as a merchant's key (semantics keys.first). */
export const register = Effect.fnUntraced(function* (
  merchantId: string,
  { livemode, name, type }: ApiKeyUse,
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
    merchant_id: merchantId,
    ...(name !== undefined && { name })
  }
  const { expires_at, id: api_key, merchant_id, status } = apiKey
  const lookup = lookupIdOf(text)
  transaction.put(API_KEY, apiKey, { lookup })
  transaction.put(API_KEY_LOOKUP, { id: lookup, api_key, merchant_id, livemode, type, status, expires_at })
  return apiKey
})

export const findLookup = Effect.fnUntraced(function* (
  key: Redacted.Redacted
): Effect.fn.Return<ApiKeyLookup | undefined, never, Transaction> {
  const transaction = yield* Transaction
  return (yield* transaction.get(API_KEY_LOOKUP, lookupIdOf(Redacted.value(key))))?.value
})

/** Returns whether a key acts on this account (semantics keys.environments). */
export const belongsTo = ({ livemode, merchant_id }: ApiKey, account: AccountId): boolean =>
  accountOf(merchant_id, livemode) === account

/** Finds a key to change. A revoked key counts as missing for every operation (semantics keys.revoke). */
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
  /** Seconds for which the old key stays valid; 24 hours by default. */
  readonly expiresIn?: number | undefined
  /** Limits the operation to keys of this account. */
  readonly account?: AccountId
}

/**
 * Replaces a key by a new one; the old key stays valid for a grace period (semantics keys.roll). A key that expires
 * earlier already keeps its expiry: rolling it again only issues one more key, for a client that lost the first
 * response.
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
  readonly account?: AccountId
  /** Id of the request's own key. It cannot revoke itself, so a merchant cannot lose its last key this way. */
  readonly by?: string
}

/** Revokes a key in any other status: authentication refuses every later request with it (semantics keys.revoke). */
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

/** Ends the grace period of a rolled key, when its timer fires (semantics keys.roll). */
export const expire = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const document = (yield* transaction.get(API_KEY, id))!
  if (document.value.status === "rolling") yield* change(id, { status: "expired" })
})

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
