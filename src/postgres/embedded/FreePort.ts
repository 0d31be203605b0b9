/** Finds a TCP port to listen on, for whoever must know it before the server listens. */
import { createServer } from "node:net"
import { Effect } from "effect"

/**
 * The port, or one that nobody listens on if it is 0; fails with what keeps a server from listening. Nothing keeps it
 * free: another process could take it before the server does, which then says so.
 */
export const freePort = (host: string, port: number): Effect.Effect<number, Error> =>
  Effect.callback((resume) => {
    const probe = createServer()
    probe.once("error", (error) => resume(Effect.fail(error)))
    // Processes that share a port would be given the same free one.
    probe.listen({ port, host, exclusive: true }, () => {
      const address = probe.address()
      const taken = typeof address === "object" && address !== null ? address.port : 0
      probe.close(() => resume(Effect.succeed(taken)))
    })
  })

/** Tells whether the machine does not have an address, as one without IPv6 does not have `::1`. */
export const isNoAddress = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "EADDRNOTAVAIL" || error.code === "EAFNOSUPPORT")

/** A port that is free on one address may be taken on the other: then the system is asked for another port. */
const TRIES = 20

/** The same for a port of two addresses; the second one counts only where the machine has it. */
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
