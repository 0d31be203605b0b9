/** Names of the API's versions (spec: Versioning; semantics versions.*). Loads no schemas, for the client. */

/** Oldest first. */
export const API_VERSIONS = ["2026-03-09"] as const

/** The version of the contract, the lifecycles, the pages and the client. */
export const API_VERSION_NEWEST: (typeof API_VERSIONS)[number] = API_VERSIONS.at(-1)!

/**
 * The version of new merchants (semantics versions.default). It follows the newest version after 30 days (spec:
 * Versioning 8).
 */
export const API_VERSION_DEFAULT: (typeof API_VERSIONS)[number] = "2026-03-09"
