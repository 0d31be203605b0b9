/** Which TCP port to listen on, for whoever must know it before the server listens. */
import { createServer } from "node:net"
import { Effect } from "effect"

/**
 * A port of the host that nobody listens on. Nothing keeps it free: another process could take it before the server
 * does, which then says so. Gives 0 for a host that cannot be listened on, so that the server says that as well.
 */
export const freePort = (host: string): Effect.Effect<number> =>
  Effect.callback((resume) => {
    const probe = createServer()
    probe.once("error", () => resume(Effect.succeed(0)))
    probe.listen(0, host, () => {
      const address = probe.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      probe.close(() => resume(Effect.succeed(port)))
    })
  })
