/** A merchant's API keys of the request's environment (semantics keys.roll, keys.revoke). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { ApiKey, NewApiKey, RollApiKey } from "../domain/ApiKey.ts"
import { commandHeaders, InstallationWide, requestHeaders } from "./Access.ts"
import { commandErrors, errors } from "./Errors.ts"
import { List, listQuery } from "./List.ts"

export const ApiKeys = HttpApiGroup.make("api_keys").add(
  HttpApiEndpoint.get("list", "/v1/api_keys", {
    headers: requestHeaders,
    query: listQuery,
    success: List(ApiKey),
    error: errors
  }),
  HttpApiEndpoint.post("roll", "/v1/api_keys/:id/roll", {
    headers: commandHeaders,
    params: { id: Schema.String },
    payload: RollApiKey,
    success: NewApiKey,
    error: commandErrors
  }).annotate(InstallationWide, true),
  HttpApiEndpoint.delete("revoke", "/v1/api_keys/:id", {
    headers: requestHeaders,
    params: { id: Schema.String },
    success: ApiKey,
    error: errors
  })
    .annotate(InstallationWide, true)
    .annotate(
      OpenApi.Description,
      "Later requests with the key get a 401. Lists still show it, as `revoked`. The key that " +
        "authenticates this request cannot be revoked by it."
    )
)
