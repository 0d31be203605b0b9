/** The API shows API keys masked (semantics A8, §6). */
import { Schema } from "effect"
import { ApiKeyId, MerchantId } from "./Identifiers.ts"
import { Timestamp } from "./Time.ts"

export const ApiKeyType = Schema.Literals(["secret", "publishable"])
export type ApiKeyType = typeof ApiKeyType.Type

/** `rolling`: a newer key has taken its place, and it is valid until `expires_at`. `revoked`: it never works again. */
export const ApiKeyStatus = Schema.Literals(["active", "rolling", "expired", "revoked"])
export type ApiKeyStatus = typeof ApiKeyStatus.Type

/** A rolled key can be used for so many seconds at most, and unless the request says otherwise (semantics A8). */
export const API_KEY_GRACE_SECONDS_MAX = 86_400

/** A rolled key goes on being valid for so many seconds. */
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
  merchant_id: MerchantId
}).annotate({ identifier: "ApiKey" })
export type ApiKey = typeof ApiKey.Type

/** A new key. `secret`, the key itself, is in the first answer only: nothing keeps it, so no repetition can show it. */
export const NewApiKey = Schema.Struct({
  ...ApiKey.fields,
  secret: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "NewApiKey" })
export type NewApiKey = typeof NewApiKey.Type

/**
 * The body of a roll. The old key goes on being valid for `expires_in` seconds, 24 hours unless given (semantics A8).
 */
export const RollApiKey = Schema.Struct({
  expires_in: Schema.optionalKey(Schema.NullOr(ApiKeyGrace))
}).annotate({ identifier: "RollApiKey" })
