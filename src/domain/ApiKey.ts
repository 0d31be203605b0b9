/** API keys as the API shows them, masked (semantics keys.list, keys.roll, keys.object). */
import { Schema } from "effect"
import { ApiKeyId, MerchantId } from "./Identifiers.ts"
import { Timestamp } from "./Time.ts"

export const ApiKeyType = Schema.Literals(["secret", "publishable"])
export type ApiKeyType = typeof ApiKeyType.Type

/** `rolling`: replaced by a newer key, valid until `expires_at`. `revoked`: invalid for good. */
export const ApiKeyStatus = Schema.Literals(["active", "rolling", "expired", "revoked"])
export type ApiKeyStatus = typeof ApiKeyStatus.Type

/** The longest grace period of a rolled key, and its default, in seconds (semantics keys.roll). */
export const API_KEY_GRACE_SECONDS_MAX = 86_400

export const ApiKeyGrace = Schema.Int.check(
  Schema.isBetween({ minimum: 0, maximum: API_KEY_GRACE_SECONDS_MAX })
).annotate({ rule: `an integer from 0 to ${API_KEY_GRACE_SECONDS_MAX}` })

/** Times are in Unix seconds. `expires_at` is null unless the key was rolled. */
export const ApiKey = Schema.Struct({
  id: ApiKeyId,
  object: Schema.Literal("api_key"),
  type: ApiKeyType,
  livemode: Schema.Boolean,
  prefix: Schema.String,
  last4: Schema.String,
  created: Timestamp,
  expires_at: Schema.NullOr(Timestamp),
  status: ApiKeyStatus,
  merchant_id: MerchantId,
  /** The operator's name of the key; only keys that were given one have it. */
  name: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "ApiKey" })
export type ApiKey = typeof ApiKey.Type

/** A new key. Only the first response has `secret`, the key itself: it is not stored, so a replay cannot contain it. */
export const NewApiKey = Schema.Struct({
  ...ApiKey.fields,
  secret: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "NewApiKey" })
export type NewApiKey = typeof NewApiKey.Type

/** The body of a roll. The old key stays valid for `expires_in` seconds, 24 hours by default (semantics keys.roll). */
export const RollApiKey = Schema.Struct({
  expires_in: Schema.optionalKey(Schema.NullOr(ApiKeyGrace))
}).annotate({ identifier: "RollApiKey" })
