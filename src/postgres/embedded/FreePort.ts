/** Finds a TCP port to listen on, for uses that need its number before the server listens. */
import { createServer } from "node:net"
import { Effect } from "effect"

/**
 * Returns the port, or a free one if it is 0; fails with the error of listening. The port is not reserved: another
 * process could take it before the server does, and then the server fails.
 */
export const freePort = (host: string, port: number): Effect.Effect<number, Error> =>
  Effect.callback((resume) => {
    const probe = createServer()
    probe.once("error", (error) => resume(Effect.fail(error)))
    // Otherwise worker processes, which share ports, would get the same free one.
    probe.listen({ port, host, exclusive: true }, () => {
      const address = probe.address()
      const taken = typeof address === "object" && address !== null ? address.port : 0
      probe.close(() => resume(Effect.succeed(taken)))
    })
  })

/** Returns whether an error means that the machine lacks the address, such as `::1` without IPv6. */
const isNoAddress = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "EADDRNOTAVAIL" || error.code === "EAFNOSUPPORT")

/** How often another port is tried if one is free on the first address and taken on the second. */
const TRIES = 20

/** The same for a port on two addresses, of which the machine may lack the second. */
export const freePortOfBoth = (
  host: string,
  beside: string | undefined,
  port: number
): Effect.Effect<number, Error> => {
  const found = freePort(host, port)
  if (beside === undefined) return found
  return Effect.flatMap(found, (free) =>
    Effect.catch(freePort(beside, free), (error) => (isNoAddress(error) ? Effect.succeed(free) : Effect.fail(error)))
  ).pipe(Effect.retry({ times: port === 0 ? TRIES : 0 }))
}
