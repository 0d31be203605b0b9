/**
 * From a request's `Authorization` header to the account that it acts on (semantics A1–A4).
 *
 * The installation keeps SHA-256 hashes of keys, and nothing here keeps a key: it is hashed, and the hash is looked up.
 * A lookup by hash needs no comparison in constant time, since what its timing could tell about a hash does not lead to
 * the key. Every request looks its key up anew, so a revoked key ends at once; what follows from the two documents
 * behind a key is worked out once for as long as the engine has them in memory.
 */
import { Clock, Effect, Exit } from "effect"
import type { Unavailable } from "../engine/Accounts.ts"
import { Accounts } from "../engine/Accounts.ts"
import type { AccountId, Document } from "../engine/Document.ts"
import { accountOf, INSTALLATION } from "../payments/AccountIds.ts"
import type { ApiKeyLookup, ApiKeyType } from "../payments/ApiKeys.ts"
import { API_KEY_LOOKUP, lookupIdOf } from "../payments/ApiKeys.ts"
import type { Merchant } from "../payments/Merchants.ts"
import { MERCHANT } from "../payments/Merchants.ts"
import { ApiKeyExpired, CredentialsInvalid, CredentialsMissing } from "./HttpErrors.ts"

/** Who sent a request. */
export interface Caller {
  readonly account: AccountId
  readonly merchantId: string
  readonly livemode: boolean
  readonly keyType: ApiKeyType
  /** The merchant's default API version (semantics V3). */
  readonly apiVersion: string
}

export type AuthenticationFailure = CredentialsMissing | CredentialsInvalid | ApiKeyExpired | Unavailable

/** Longer texts are no keys, and not worth hashing. */
const KEY_LENGTH_MAX = 255

const missing = Exit.fail(new CredentialsMissing())
const invalid = Exit.fail(new CredentialsInvalid())
const expired = Exit.fail(new ApiKeyExpired())

interface Known {
  readonly merchant: Document
  readonly caller: Caller
}

/** Authenticates by the value of the `Authorization` header. */
export type Authenticate = (authorization: string | undefined) => Effect.Effect<Caller, AuthenticationFailure>

export const make = Effect.gen(function* () {
  const accounts = yield* Accounts
  const clock = yield* Clock.Clock
  const known = new WeakMap<Document, Known>()

  const callerOf = (document: Document<ApiKeyLookup>): Effect.Effect<Caller, AuthenticationFailure> => {
    const { expires_at, livemode, merchant_id, status, type } = document.value
    if (status === "revoked") return invalid
    if (status === "expired" || isPast(expires_at, clock.currentTimeMillisUnsafe())) return expired
    return Effect.flatMap(accounts.read(INSTALLATION, merchant_id), (merchant) => {
      if (merchant === undefined || merchant.deleted || merchant.kind !== MERCHANT.name) return invalid
      const before = known.get(document)
      if (before?.merchant === merchant) return Exit.succeed(before.caller)
      const { api_version: apiVersion } = (merchant as Document<Merchant>).value
      const account = accountOf(merchant_id, livemode)
      const caller: Caller = { account, merchantId: merchant_id, livemode, keyType: type, apiVersion }
      known.set(document, { merchant, caller })
      return Exit.succeed(caller)
    })
  }

  const authenticate: Authenticate = (authorization) => {
    if (authorization === undefined || authorization === "") return missing
    const key = keyOf(authorization)
    if (key === undefined) return invalid
    return Effect.flatMap(accounts.read(INSTALLATION, lookupIdOf(key)), (entry) =>
      entry === undefined || entry.deleted || entry.kind !== API_KEY_LOOKUP.name
        ? invalid
        : callerOf(entry as Document<ApiKeyLookup>)
    )
  }
  return authenticate
})

/** The username of Basic authentication. A password is ignored, and so is its colon's absence. */
export const usernameOf = (authorization: string): string | undefined => {
  const credentials = /^basic +([A-Za-z0-9+/_=-]+) *$/i.exec(authorization)?.[1]
  return credentials === undefined ? undefined : Buffer.from(credentials, "base64").toString("utf8").split(":", 1)[0]
}

/** The username, if it looks like a key. */
const keyOf = (authorization: string): string | undefined => {
  const key = usernameOf(authorization)
  return key !== undefined && key.length <= KEY_LENGTH_MAX && /^[sp]k_(test|live)_/.test(key) ? key : undefined
}

/** Whether a time in Unix seconds has come. */
const isPast = (seconds: number | null, nowMillis: number): boolean => seconds !== null && seconds * 1000 <= nowMillis
