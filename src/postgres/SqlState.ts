/** The SQLSTATE by which Postgres says why it refuses a statement, and what it means for Till. */

/** Returns the SQLSTATE of a refusal, however deep in an error it is; undefined if Postgres refused nothing. */
export const sqlStateOf = (error: unknown): string | undefined => {
  if (!(error instanceof Error)) return undefined
  // Errors of the system have codes as well, such as EPIPE, but no severity.
  if ("severity" in error && "code" in error && typeof error.code === "string") return error.code
  return error.cause === error ? undefined : sqlStateOf(error.cause)
}

/**
 * Tells whether a refusal says that stored bytes cannot be read: a page whose checksum is wrong, a file that is gone, a
 * disk that does not give them (classes XX and 58).
 */
export const isDamage = (sqlState: string | undefined): boolean => sqlState !== undefined && /^(?:XX|58)/.test(sqlState)
