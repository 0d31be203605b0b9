/** Errors that wrap others: what a driver says of a query, what the server said to the driver. */

/** What the innermost error says, in one line. It tells most: "password authentication failed", "connect ECONNREFUSED". */
export const innermostMessage = (error: unknown): string => {
  if (!(error instanceof Error)) return line(String(error))
  // Of several addresses of a host that were tried, the first.
  if (error instanceof AggregateError && error.message === "") return innermostMessage(error.errors[0] ?? error.name)
  return error.cause instanceof Error && error.cause !== error ? innermostMessage(error.cause) : line(error.message)
}

const line = (text: string): string => text.trim().replaceAll(/\s+/g, " ").replace(/\.$/, "")
