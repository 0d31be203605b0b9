/** API keys as the API shows them: masked (semantics A8, §6). */
import { Schema } from "effect"
import { ApiKeyId, MerchantId } from "./Identifiers.ts"
import { Timestamp } from "./Time.ts"

export const ApiKeyType = Schema.Literals(["secret", "publishable"])
export type ApiKeyType = typeof ApiKeyType.Type

/** `rolling`: a newer key has taken its place, and it is valid until `expires_at`. */
export const ApiKeyStatus = Schema.Literals(["active", "rolling", "expired", "revoked"])
export type ApiKeyStatus = typeof ApiKeyStatus.Type

/** How long a rolled key can go on being used, at most, and unless said otherwise; in seconds. */
export const API_KEY_GRACE_SECONDS_MAX = 86_400

/** Seconds for which a rolled key goes on being valid. */
export const ApiKeyGrace = Schema.Int.check(
  Schema.isBetween({ minimum: 0, maximum: API_KEY_GRACE_SECONDS_MAX })
).annotate({ rule: `an integer from 0 to ${API_KEY_GRACE_SECONDS_MAX}` })

/** Times in Unix seconds. `expires_at` is null unless the key was rolled. */
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

/** The body of a roll. `expires_in`: seconds for which the old key goes on being valid; 24 hours unless given. */
export const RollApiKey = Schema.Struct({
  expires_in: Schema.optionalKey(Schema.NullOr(ApiKeyGrace))
}).annotate({ identifier: "RollApiKey" })
