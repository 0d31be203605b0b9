/** Authentication as part of the contract: HTTP Basic, the API key as username (spec: Authentication). */
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"

/** Marks endpoints that need an API key. */
export class ApiKey extends HttpApiMiddleware.Service<ApiKey>()("till/api/ApiKey", {
  security: { apiKey: HttpApiSecurity.basic }
}) {}
