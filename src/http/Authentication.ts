/**
 * Finds the account that a request acts on by its `Authorization` header (semantics A1–A4).
 *
 * The installation keeps SHA-256 hashes of keys: a key is hashed, and the hash is looked up. A lookup by hash needs no
 * comparison in constant time, since what its timing could tell about a hash does not lead to the key.
 *
 * A header that was valid is remembered, in memory only, with the two documents that made it so, and holds for as long
 * as the engine shows the same two: a revoked key ends at once. Its look-up is by a hash as well, that of a Map, which
 * is seeded anew in every process. Of each key one header is remembered, the latest: a key with ten thousand passwords
 * takes nobody else's place.
 */
import { Clock, Effect, Exit } from "effect"
import type { Unavailable } from "../engine/Accounts.ts"
import { Accounts } from "../engine/Accounts.ts"
import type { AccountId, Document } from "../engine/log/Document.ts"
import { accountOf, INSTALLATION } from "../payments/AccountIds.ts"
import type { ApiKeyLookup, ApiKeyType } from "../payments/ApiKeys.ts"
import { API_KEY_LOOKUP, lookupIdOf } from "../payments/ApiKeys.ts"
import type { Merchant } from "../payments/Merchants.ts"
import { MERCHANT } from "../payments/Merchants.ts"
import { isDocumentOf } from "../payments/ReadDocument.ts"
import { ApiKeyExpired, CredentialsBearer, CredentialsInvalid, CredentialsMissing } from "../server/HttpErrors.ts"

/** The sender of a request, as its key tells it. */
export interface Caller {
  readonly account: AccountId
  readonly livemode: boolean
  readonly keyType: ApiKeyType
  /** Id of the key, `key_…`. */
  readonly apiKey: string
  /** The merchant's default API version (semantics V3). */
  readonly apiVersion: string
}

export type AuthenticationFailure =
  | CredentialsMissing
  | CredentialsBearer
  | CredentialsInvalid
  | ApiKeyExpired
  | Unavailable

/** Longer texts are no keys, and not worth hashing. */
const KEY_LENGTH_MAX = 255

/** The number of keys whose headers are remembered; far fewer are in use at a time. The oldest makes room. */
const KNOWN_MAX = 10_000
/** The length of a header that is remembered. Longer ones have a long password. */
const KNOWN_LENGTH_MAX = 512

const missing = Exit.fail(new CredentialsMissing())
const bearer = Exit.fail(new CredentialsBearer())
const invalid = Exit.fail(new CredentialsInvalid())
const expired = Exit.fail(new ApiKeyExpired())

interface Known {
  readonly entry: Document<ApiKeyLookup>
  readonly merchant: Document<Merchant>
  readonly answer: Exit.Success<Caller>
}

/** Authenticates by the value of the `Authorization` header. */
export type Authenticate = (authorization: string | undefined) => Effect.Effect<Caller, AuthenticationFailure>

export interface Authentication {
  readonly authenticate: Authenticate
  /** The account that a header has led to before, which nobody has checked since. */
  readonly accountBefore: (authorization: string | undefined) => AccountId | undefined
}

export const make: Effect.Effect<Authentication, never, Accounts> = Effect.gen(function* () {
  const accounts = yield* Accounts
  const clock = yield* Clock.Clock
  const known = new Map<string, Known>()
  /** The one header that is remembered of each key, by the id of its entry. */
  const headers = new Map<string, string>()

  /** Tells whether nothing has changed behind a header since it was found valid. */
  const isCurrent = ({ entry, merchant }: Known): boolean =>
    accounts.peek(INSTALLATION, entry.id) === entry &&
    accounts.peek(INSTALLATION, merchant.id) === merchant &&
    !isExpired(entry)

  const isExpired = ({ value }: Document<ApiKeyLookup>): boolean =>
    isPast(value.expires_at, clock.currentTimeMillisUnsafe())

  const forget = (key: string): void => {
    known.delete(headers.get(key) ?? "")
    headers.delete(key)
  }

  const remember = (authorization: string, found: Known): void => {
    if (authorization.length > KNOWN_LENGTH_MAX) return
    const key = found.entry.id
    forget(key)
    if (headers.size >= KNOWN_MAX) forget(headers.keys().next().value!)
    headers.set(key, authorization)
    known.set(authorization, found)
  }

  const find = Effect.fnUntraced(function* (authorization: string): Effect.fn.Return<Caller, AuthenticationFailure> {
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
    remember(authorization, { entry, merchant, answer: Exit.succeed(caller) as Exit.Success<Caller> })
    return caller
  })

  const authenticate: Authenticate = (authorization) => {
    if (authorization === undefined || authorization === "") return missing
    const before = known.get(authorization)
    return before !== undefined && isCurrent(before) ? before.answer : find(authorization)
  }
  return {
    authenticate,
    accountBefore: (authorization) => known.get(authorization ?? "")?.answer.value.account
  }
})

/** Reads the username of Basic authentication. A password is ignored, and so is its colon's absence. */
export const usernameOf = (authorization: string): string | undefined => {
  const credentials = /^basic +([A-Za-z0-9+/_=-]+) *$/i.exec(authorization)?.[1]
  return credentials === undefined ? undefined : Buffer.from(credentials, "base64").toString("utf8").split(":", 1)[0]
}

/** Looks at the scheme alone. The answer does not depend on the token, so a guess of a key learns nothing. */
const isBearer = (authorization: string): boolean => /^bearer(?: |$)/i.test(authorization)

/** Gives the username, if it looks like a key. */
const keyOf = (authorization: string): string | undefined => {
  const key = usernameOf(authorization)
  return key !== undefined && key.length <= KEY_LENGTH_MAX && /^[sp]k_(test|live)_/.test(key) ? key : undefined
}

/** Tells whether a time in Unix seconds has come. */
const isPast = (seconds: number | null, nowMillis: number): boolean => seconds !== null && seconds * 1000 <= nowMillis
