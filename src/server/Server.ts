/**
 * Listens, on one address or on two. What is under /v1 goes to the API as node has read it; everything else goes
 * through Effect's HTTP.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer } from "effect"
import { HttpServerError } from "effect/http"
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

export interface Options extends NodeHttpServer.Options {
  readonly port: number
  /** A second address of the machine to listen on, if the machine has it. */
  readonly hostBeside?: string | undefined
}

/** Has a server listen, as long as the layer lives. */
export const layer = (make: () => Server, { hostBeside, ...options }: Options) =>
  Layer.unwrap(
    Effect.sync(() => {
      const server = make()
      const beside = hostBeside === undefined ? undefined : besideOf(server, make())
      const servers = beside === undefined ? [server] : [server, beside]
      const api = Layer.succeed(ApiServer, {
        takeApi: (take) => {
          for (const one of servers) setApi(one, take)
        },
        endConnections: Effect.sync(() => {
          for (const one of servers) endConnections(one)
        }),
        takeUp: (request, response) => void server.emit("request", request, response)
      })
      const listening = NodeHttpServer.layer(() => server, options)
      return beside === undefined
        ? Layer.merge(listening, api)
        : Layer.merge(api, Layer.provideMerge(listen(beside, { host: hostBeside, port: options.port }), listening))
    })
  )

/** The machine does not have the address, as one without IPv6 does not have `::1`. */
const NO_ADDRESS: ReadonlySet<string | undefined> = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"])

/** Makes a server the second one of a service: what is not the API's goes to the first, and both close together. */
const besideOf = (server: Server, beside: Server): Server => {
  for (const event of ["request", "checkContinue"]) {
    beside.on(event, (request: IncomingMessage, response: ServerResponse) => server.emit(event, request, response))
  }
  const close = server.close.bind(server)
  server.close = (callback) => {
    const besideClosed = new Promise<void>((resolve) => beside.close(() => resolve()))
    return close((error) => void besideClosed.then(() => callback?.(error)))
  }
  return beside
}

const listen = (server: Server, address: { readonly host: string | undefined; readonly port: number }) =>
  Layer.effectDiscard(
    Effect.callback<void, HttpServerError.ServeError>((resume) => {
      const onError = (cause: NodeJS.ErrnoException) =>
        resume(NO_ADDRESS.has(cause.code) ? Effect.void : Effect.fail(new HttpServerError.ServeError({ cause })))
      server.once("error", onError)
      server.listen(address, () => {
        server.off("error", onError)
        resume(Effect.void)
      })
    })
  )
