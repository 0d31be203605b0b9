/**
 * Requests are let in by an API key (spec: Authentication), and carry headers that are declared once for all endpoints.
 * Annotations of the contract's endpoints say who may call them, beyond holders of a secret key.
 */
import { Context, Schema } from "effect"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import { ApiVersion } from "../domain/ApiVersion.ts"

/** Marks endpoints that need an API key: HTTP Basic, with the key as username. */
export class ApiKey extends HttpApiMiddleware.Service<ApiKey>()("till/api/ApiKey", {
  security: { apiKey: HttpApiSecurity.basic }
}) {}

/**
 * Publishable keys may call the endpoint too, if they send the object's `client_secret` (semantics A5): in the query of
 * a GET, in the body of a POST.
 */
export const PublishableKey: Context.Reference<boolean> = Context.Reference("till/api/PublishableKey", {
  defaultValue: () => false
})

/**
 * Publishable keys may call the endpoint without a client secret: it makes something new, and shows nothing else
 * (semantics A5).
 */
export const WithoutClientSecret: Context.Reference<boolean> = Context.Reference("till/api/WithoutClientSecret", {
  defaultValue: () => false
})

/** The endpoint exists in test mode only (semantics §8.27). */
export const TestMode: Context.Reference<boolean> = Context.Reference("till/api/TestMode", {
  defaultValue: () => false
})

/**
 * The endpoint changes what the installation keeps of a merchant, not what the merchant keeps in an environment.
 */
export const InstallationWide: Context.Reference<boolean> = Context.Reference("till/api/InstallationWide", {
  defaultValue: () => false
})

/** An `Idempotency-Key` may have so many characters (semantics I2). */
export const IDEMPOTENCY_KEY_LENGTH_MAX = 255

/** Every request may carry these headers. */
export const requestHeaders = {
  "x-api-version": Schema.optionalKey(
    ApiVersion.annotate({
      description: "Overrides the account's default API version for this request."
    })
  )
}

/** Every POST carries these headers. */
export const commandHeaders = {
  "idempotency-key": Schema.String.check(
    Schema.isMinLength(1),
    Schema.isMaxLength(IDEMPOTENCY_KEY_LENGTH_MAX)
  ).annotate({
    description:
      "A repetition with the same key and the same request gets the first one's response for 24 hours. Keys sent with a " +
      "publishable API key are apart from those sent with a secret one. Characters that are not ASCII are sent in UTF-8."
  }),
  ...requestHeaders
}
