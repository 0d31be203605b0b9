/** Listens. What is under /v1 goes to the API as node has read it; everything else goes through Effect's HTTP. */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer } from "effect"
import type { TakeApi } from "./NodeServer.ts"
import { endConnections, setApi } from "./NodeServer.ts"

/** The server as the API sees it. */
export class ApiServer extends Context.Service<
  ApiServer,
  {
    /** Has the requests of the API answered from now on. */
    readonly takeApi: (take: TakeApi) => void
    /** Has every answer end its connection from now on. */
    readonly endConnections: Effect.Effect<void>
    /** Takes a request as if it had come to the server. */
    readonly takeUp: (request: IncomingMessage, response: ServerResponse) => void
  }
>()("till/http/ApiServer") {}

/** Has a server listen, as long as the layer lives. */
export const layer = (make: () => Server, options: NodeHttpServer.Options) =>
  Layer.unwrap(
    Effect.sync(() => {
      const server = make()
      return Layer.merge(
        NodeHttpServer.layer(() => server, options),
        Layer.succeed(ApiServer, {
          takeApi: (take) => setApi(server, take),
          endConnections: Effect.sync(() => endConnections(server)),
          takeUp: (request, response) => void server.emit("request", request, response)
        })
      )
    })
  )
