/** Versions of the API (spec: Versioning; semantics §1.5). */
import { Schema } from "effect"

export const API_VERSIONS = ["2026-03-09"] as const

export const ApiVersion = Schema.Literals(API_VERSIONS)
export type ApiVersion = typeof ApiVersion.Type

/** A new merchant starts with this version (semantics V3). */
export const API_VERSION_DEFAULT: ApiVersion = "2026-03-09"
