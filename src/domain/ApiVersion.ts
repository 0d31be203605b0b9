/** Versions of the API (spec: Versioning; semantics §1.5). What changed from one to the next: `ApiVersions.ts`. */
import { Schema } from "effect"

/** Oldest first. */
export const API_VERSIONS = ["2026-03-09"] as const

export const ApiVersion = Schema.Literals(API_VERSIONS)
export type ApiVersion = typeof ApiVersion.Type

/** The contract, the lifecycles, the pages and the client are of this version. */
export const API_VERSION_NEWEST: ApiVersion = API_VERSIONS.at(-1)!

/** A new merchant starts with this version (semantics V3). It follows the newest after 30 days (spec: Versioning 8). */
export const API_VERSION_DEFAULT: ApiVersion = "2026-03-09"
