/** Headers of requests, declared once for all endpoints. */
import { Schema } from "effect"
import { ApiVersion } from "../domain/ApiVersion.ts"

/** Characters that an `Idempotency-Key` may have (semantics I2). */
export const IDEMPOTENCY_KEY_LENGTH_MAX = 255

/** Headers that every request may carry. */
export const requestHeaders = {
  "x-api-version": Schema.optionalKey(
    ApiVersion.annotate({
      description: "Overrides the account's default API version for this request."
    })
  )
}

/** Headers of every POST. */
export const commandHeaders = {
  "idempotency-key": Schema.String.check(
    Schema.isMinLength(1),
    Schema.isMaxLength(IDEMPOTENCY_KEY_LENGTH_MAX)
  ).annotate({
    description:
      "A repetition with the same key and the same request gets the first one's response for 24 hours. Keys sent with a " +
      "publishable API key are apart from those sent with a secret one."
  }),
  ...requestHeaders
}
