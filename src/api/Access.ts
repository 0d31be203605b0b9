/** Authentication by API key (spec: Authentication), and the annotations of endpoints for other callers. */
import { Context, Schema } from "effect"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import { IDEMPOTENCY_KEY_LENGTH_MAX } from "../domain/Length.ts"
import { ApiVersion } from "../domain/ApiVersion.ts"

/** Marks endpoints that require an API key: HTTP Basic, with the key as username. */
export class ApiKey extends HttpApiMiddleware.Service<ApiKey>()("till/api/ApiKey", {
  security: { apiKey: HttpApiSecurity.basic }
}) {}

/** Marks endpoints for publishable keys with the object's `client_secret` (semantics keys.client_secret). */
export const PublishableKey: Context.Reference<boolean> = Context.Reference("till/api/PublishableKey", {
  defaultValue: () => false
})

/** Marks endpoints that publishable keys may call without a client secret (semantics keys.publishable). */
export const WithoutClientSecret: Context.Reference<boolean> = Context.Reference("till/api/WithoutClientSecret", {
  defaultValue: () => false
})

/** Marks endpoints of test mode (semantics test_helpers.data). */
export const TestMode: Context.Reference<boolean> = Context.Reference("till/api/TestMode", {
  defaultValue: () => false
})

/** Marks endpoints that change the merchant's data in the installation's account, not in an environment. */
export const InstallationWide: Context.Reference<boolean> = Context.Reference("till/api/InstallationWide", {
  defaultValue: () => false
})

export const requestHeaders = {
  "x-api-version": Schema.optionalKey(
    ApiVersion.annotate({
      description: "Overrides the account's default API version for this request."
    })
  )
}

export const commandHeaders = {
  "idempotency-key": Schema.String.check(
    Schema.isMinLength(1),
    Schema.isMaxLength(IDEMPOTENCY_KEY_LENGTH_MAX)
  ).annotate({
    description:
      "A repetition with the same key and the same request gets the first response for 24 hours. Keys sent with a " +
      "publishable API key are separate from those sent with a secret one. Characters outside of ASCII are sent in " +
      "UTF-8."
  }),
  ...requestHeaders
}
