/**
 * Listens on one address or on two. Requests under /v1 go to the API as Node's parser or this server's own has read
 * them; all others go through Effect's HTTP.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer } from "effect"
import { HttpServerError } from "effect/http"
import { endConnections, setApi, type TakeApi } from "./NodeServer.ts"

/** The API's interface to the server. */
export class ApiServer extends Context.Service<
  ApiServer,
  {
    /** Sets the handlers of API requests. */
    readonly takeApi: (take: TakeApi) => void
    /** Makes every answer from now on end its connection. */
    readonly endConnections: Effect.Effect<void>
    /** Handles a request as if it had arrived at the server. */
    readonly takeUp: (request: IncomingMessage, response: ServerResponse) => void
  }
>()("till/http/ApiServer") {}

export interface Options extends NodeHttpServer.Options {
  readonly port: number
  /** A second address of the machine to listen on, if the machine has it. */
  readonly hostBeside?: string | undefined
}

/** Listens as long as the layer lives. */
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

/** Error codes of an address that the machine lacks, as `::1` without IPv6. */
const NO_ADDRESS: ReadonlySet<string | undefined> = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"])

/**
 * Makes `beside` the second server of a service: it passes requests that are not the API's to the first one, and both
 * close together.
 */
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
