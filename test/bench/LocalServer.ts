import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect } from "effect"

/** Starts an HTTP server for one test. No starter of Till: it stands for a server under load. */
export const serverOf = (handler: (request: IncomingMessage, response: ServerResponse) => void) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly port: number; readonly close: () => void }>((resume) => {
      const server = createServer(handler)
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(Effect.succeed({ port, close: () => void (server.closeAllConnections(), server.close()) }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )
