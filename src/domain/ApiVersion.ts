/** Versions of the API (spec: Versioning; semantics versions.*). Their changes: `ApiVersions.ts`. */
import { Schema } from "effect"

/** Oldest first. */
export const API_VERSIONS = ["2026-03-09"] as const

export const ApiVersion = Schema.Literals(API_VERSIONS)
export type ApiVersion = typeof ApiVersion.Type

/** The version of the contract, the lifecycles, the pages and the client. */
export const API_VERSION_NEWEST: ApiVersion = API_VERSIONS.at(-1)!

/** The version of new merchants (semantics versions.default), 30 days behind the newest (spec: Versioning 8). */
export const API_VERSION_DEFAULT: ApiVersion = "2026-03-09"
