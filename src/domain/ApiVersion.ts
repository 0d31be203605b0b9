/** Versions of the API (spec: Versioning; semantics versions.*). Their changes: `ApiVersions.ts`. */
import { Schema } from "effect"
import { API_VERSIONS } from "./ApiVersionNames.ts"

export * from "./ApiVersionNames.ts"

export const ApiVersion = Schema.Literals(API_VERSIONS)
export type ApiVersion = typeof ApiVersion.Type
