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
