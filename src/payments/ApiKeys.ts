/**
 * API keys (semantics A7). They lie in the installation's account, as a SHA-256 and the last four characters only:
 * a key that was handed out cannot be had again.
 *
 * Every key has an entry whose id is its hash, so that a request is authenticated with one read by id. The hash needs
 * no salt, because a key is 32 random characters.
 */
import { hash } from "node:crypto"
import { Effect, Redacted } from "effect"
import { secondsOf } from "../domain/Time.ts"
import type { Kind } from "../engine/Document.ts"
import { Transaction } from "../engine/Transaction.ts"

export type ApiKeyType = "secret" | "publishable"
export type ApiKeyStatus = "active" | "rolling" | "expired" | "revoked"

/** Which of a merchant's four kinds of keys. */
export interface ApiKeyUse {
  readonly type: ApiKeyType
  readonly livemode: boolean
}

/** A key as the API shows it (semantics §6), and whose it is. */
export interface ApiKey extends ApiKeyUse {
  readonly id: string
  readonly object: "api_key"
  readonly prefix: string
  readonly last4: string
  /** Unix seconds, as every time here. */
  readonly created: number
  readonly expires_at: number | null
  readonly status: ApiKeyStatus
  readonly merchant_id: string
}

/** What a request's key leads to. */
export interface ApiKeyLookup extends ApiKeyUse {
  /** `keyhash_<SHA-256 of the key, hex>` */
  readonly id: string
  readonly api_key: string
  readonly merchant_id: string
  readonly status: ApiKeyStatus
  readonly expires_at: number | null
}

export const API_KEY: Kind<ApiKey> = { name: "api_key", labels: ({ merchant_id }) => ({ merchant_id }) }
export const API_KEY_LOOKUP: Kind<ApiKeyLookup> = { name: "api_key_lookup" }

const SECRET_LENGTH = 32

/** How the keys of one use begin (spec: Authentication 2). */
export const prefixOf = ({ livemode, type }: ApiKeyUse): string =>
  `${type === "secret" ? "sk" : "pk"}_${livemode ? "live" : "test"}_`

/** The id of a key's entry. */
export const lookupIdOf = (key: string): string => `keyhash_${hash("sha256", key, "hex")}`

/** A new key for a merchant. The key itself is in the answer, and nowhere else. */
export const issue = Effect.fnUntraced(function* (merchantId: string, use: ApiKeyUse) {
  const transaction = yield* Transaction
  const key = Redacted.make(`${prefixOf(use)}${transaction.newSecret(SECRET_LENGTH)}`)
  return { apiKey: yield* register(merchantId, use, key), key }
})

/** Makes a key that was chosen elsewhere known as a merchant's. */
export const register = Effect.fnUntraced(function* (
  merchantId: string,
  { livemode, type }: ApiKeyUse,
  key: Redacted.Redacted<string>
) {
  const transaction = yield* Transaction
  const text = Redacted.value(key)
  const apiKey: ApiKey = {
    id: transaction.newId("key"),
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
  transaction.put(API_KEY, apiKey)
  transaction.put(API_KEY_LOOKUP, { id: lookupIdOf(text), api_key, merchant_id, livemode, type, status, expires_at })
  return apiKey
})

/** The entry of a key; undefined if it is nobody's. */
export const findLookup = Effect.fnUntraced(function* (key: Redacted.Redacted<string>) {
  const transaction = yield* Transaction
  return (yield* transaction.get(API_KEY_LOOKUP, lookupIdOf(Redacted.value(key))))?.value
})
