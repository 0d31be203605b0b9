/** Returns the SQLSTATE in an error or its causes; undefined if Postgres did not refuse a statement. */
export const sqlStateOf = (error: unknown): string | undefined => {
  if (!(error instanceof Error)) return undefined
  // System errors have codes too, such as EPIPE, but no severity.
  if ("severity" in error && "code" in error && typeof error.code === "string") return error.code
  return error.cause === error ? undefined : sqlStateOf(error.cause)
}

/** Returns whether a refusal means that stored bytes cannot be read (classes XX and 58). */
export const isDamage = (sqlState: string | undefined): boolean => sqlState !== undefined && /^(?:XX|58)/.test(sqlState)
