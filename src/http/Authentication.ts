/**
 * Finds the account of a request by its `Authorization` header (semantics keys.missing, keys.invalid, keys.expired,
 * keys.password).
 *
 * The installation stores SHA-256 hashes of keys: a key is hashed, and the hash is looked up. The lookup needs no
 * comparison in constant time, because knowing parts of a hash does not help to find the key.
 *
 * The SHA-256 hash of a valid header is cached, in memory only, with the two documents that made the header valid. The
 * entry is valid as long as the engine returns the same two documents, so a revoked key stops working immediately.
 * Headers themselves would put every client's key into a dump of the memory. The cache keeps one header of each key,
 * the latest: a key with ten thousand passwords evicts no other key.
 */
import { hash } from "node:crypto"
import { Clock, Effect, Exit } from "effect"
import { Accounts, type Unavailable } from "../engine/Accounts.ts"
import type { AccountId, Document } from "../engine/log/Document.ts"
import { accountOf, INSTALLATION } from "../payments/shared/AccountIds.ts"
import { API_KEY_LOOKUP, type ApiKeyLookup, type ApiKeyType, lookupIdOf } from "../payments/merchants/ApiKeys.ts"
import { MERCHANT, type Merchant } from "../payments/merchants/Merchants.ts"
import { isDocumentOf } from "../payments/shared/ReadDocument.ts"
import { ApiKeyExpired, CredentialsBearer, CredentialsInvalid, CredentialsMissing } from "../server/HttpErrors.ts"

/** The sender of a request, identified by its key. */
export interface Caller {
  readonly account: AccountId
  readonly livemode: boolean
  readonly keyType: ApiKeyType
  /** Id of the key, `key_…`. */
  readonly apiKey: string
  /** The merchant's default API version (semantics versions.default). */
  readonly apiVersion: string
}

export type AuthenticationFailure =
  | CredentialsMissing
  | CredentialsBearer
  | CredentialsInvalid
  | ApiKeyExpired
  | Unavailable

/** The longest text that is hashed; longer ones are no keys. */
const KEY_LENGTH_MAX = 255

/** The most cached headers; far fewer keys are in use at a time. The oldest entry is evicted. */
const CACHED_MAX = 10_000
/** The longest header that is cached. Longer ones have a long password. */
const CACHED_LENGTH_MAX = 512

const missing = Exit.fail(new CredentialsMissing())
const bearer = Exit.fail(new CredentialsBearer())
const invalid = Exit.fail(new CredentialsInvalid())
const expired = Exit.fail(new ApiKeyExpired())

interface Cached {
  readonly entry: Document<ApiKeyLookup>
  readonly merchant: Document<Merchant>
  readonly answer: Exit.Success<Caller>
}

/** Returns the hash of an `Authorization` header for the cache; empty for one that is not cached. */
export const credentialOf = (authorization: string | undefined): string =>
  authorization === undefined || authorization.length > CACHED_LENGTH_MAX ? "" : hash("sha256", authorization, "hex")

/** Authenticates by the value of the `Authorization` header, and by its hash if it is cached. */
export type Authenticate = (
  authorization: string | undefined,
  credential: string
) => Effect.Effect<Caller, AuthenticationFailure>

export interface Authentication {
  readonly authenticate: Authenticate
  /** Returns the account of a cached header, without checking that the entry is still valid. */
  readonly accountBefore: (credential: string) => AccountId | undefined
}

export const make: Effect.Effect<Authentication, never, Accounts> = Effect.gen(function* () {
  const accounts = yield* Accounts
  const clock = yield* Clock.Clock
  const cached = new Map<string, Cached>()
  /** The hash of the cached header of each key, by the id of the key's lookup document. */
  const credentials = new Map<string, string>()

  /** True if nothing has changed since the header was found valid. */
  const isCurrent = ({ entry, merchant }: Cached): boolean =>
    accounts.peek(INSTALLATION, entry.id) === entry &&
    accounts.peek(INSTALLATION, merchant.id) === merchant &&
    !isExpired(entry)

  const isExpired = ({ value }: Document<ApiKeyLookup>): boolean =>
    isPast(value.expires_at, clock.currentTimeMillisUnsafe())

  const forget = (key: string): void => {
    cached.delete(credentials.get(key) ?? "")
    credentials.delete(key)
  }

  const remember = (credential: string, found: Cached): void => {
    if (credential === "") return
    const key = found.entry.id
    forget(key)
    if (credentials.size >= CACHED_MAX) forget(credentials.keys().next().value!)
    credentials.set(key, credential)
    cached.set(credential, found)
  }

  const find = Effect.fnUntraced(function* (
    authorization: string,
    credential: string
  ): Effect.fn.Return<Caller, AuthenticationFailure> {
    if (isBearer(authorization)) return yield* bearer
    const key = keyOf(authorization)
    const entry = key === undefined ? undefined : yield* accounts.read(INSTALLATION, lookupIdOf(key))
    if (!isDocumentOf(entry, API_KEY_LOOKUP)) return yield* invalid
    const { api_key: apiKey, livemode, merchant_id: merchantId, status, type: keyType } = entry.value
    if (status === "revoked") return yield* invalid
    if (status === "expired" || isExpired(entry)) return yield* expired
    const merchant = yield* accounts.read(INSTALLATION, merchantId)
    if (!isDocumentOf(merchant, MERCHANT)) return yield* invalid
    const { api_version: apiVersion } = merchant.value
    const caller: Caller = { account: accountOf(merchantId, livemode), livemode, keyType, apiKey, apiVersion }
    remember(credential, { entry, merchant, answer: Exit.succeed(caller) as Exit.Success<Caller> })
    return caller
  })

  const authenticate: Authenticate = (authorization, credential) => {
    if (authorization === undefined || authorization === "") return missing
    const before = cached.get(credential)
    return before !== undefined && isCurrent(before) ? before.answer : find(authorization, credential)
  }
  return {
    authenticate,
    accountBefore: (credential) => cached.get(credential)?.answer.value.account
  }
})

/** Decodes the username of Basic authentication. A password and its colon are optional and ignored. */
export const usernameOf = (authorization: string): string | undefined => {
  const credentials = /^basic +([A-Za-z0-9+/_=-]+) *$/i.exec(authorization)?.[1]
  return credentials === undefined ? undefined : Buffer.from(credentials, "base64").toString("utf8").split(":", 1)[0]
}

/** Checks the scheme alone. The answer does not depend on the token, so a guess of a key learns nothing. */
const isBearer = (authorization: string): boolean => /^bearer(?: |$)/i.test(authorization)

/** Returns the username if it looks like a key. */
const keyOf = (authorization: string): string | undefined => {
  const key = usernameOf(authorization)
  return key !== undefined && key.length <= KEY_LENGTH_MAX && /^[sp]k_(test|live)_/.test(key) ? key : undefined
}

/** True if a time in Unix seconds has passed. */
const isPast = (seconds: number | null, nowMillis: number): boolean => seconds !== null && seconds * 1000 <= nowMillis
