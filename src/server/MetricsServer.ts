/**
 * Serves the metrics as Prometheus reads them: `GET /metrics` on an address of its own, which is for the operator alone
 * (semantics operation.metrics). It shares nothing with the server of the API, so that a flood of requests does not
 * keep the operator from seeing it.
 */
import { Context, Effect, type Scope } from "effect"
import { PrometheusMetrics } from "effect/observability"
import * as http from "node:http"
import { type AddressInfo, isIPv6 } from "node:net"

export interface Options {
  readonly host: string
  /** Tried in their order, for processes that share a setting; 0 means any free port. */
  readonly ports: ReadonlyArray<number>
}

const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
const PATH = /^\/metrics(?:\?|$)/
/** A slow reader is no reason to keep the process. */
const REQUEST_MILLIS_MAX = 10_000

/** Listens until the scope closes. Returns the address; fails with the error of the last port. */
export const listen = Effect.fnUntraced(function* ({
  host,
  ports
}: Options): Effect.fn.Return<string, NodeJS.ErrnoException, Scope.Scope> {
  const context = yield* Effect.context<never>()
  const server = http.createServer({ requestTimeout: REQUEST_MILLIS_MAX }, answerBy(context))
  const [first = 0, ...others] = ports
  const opened = others.reduce(
    (before, port) =>
      Effect.catch(before, (error) => (error.code === "EADDRINUSE" ? open(server, host, port) : Effect.fail(error))),
    open(server, host, first)
  )
  yield* Effect.acquireRelease(opened, () => close(server))
  const { port } = server.address() as AddressInfo
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}/metrics`
})

const answerBy =
  (context: Context.Context<never>): http.RequestListener =>
  (request, response) => {
    const isFound = PATH.test(request.url ?? "")
    const isRead = request.method === "GET" || request.method === "HEAD"
    if (!isFound || !isRead) return void response.writeHead(isFound ? 405 : 404, { "content-length": 0 }).end()
    const body = PrometheusMetrics.formatUnsafe(context)
    response.writeHead(200, { "content-type": CONTENT_TYPE, "content-length": Buffer.byteLength(body) })
    response.end(request.method === "HEAD" ? "" : body)
  }

const open = (server: http.Server, host: string, port: number): Effect.Effect<void, NodeJS.ErrnoException> =>
  Effect.callback((resume) => {
    const fail = (error: NodeJS.ErrnoException) => resume(Effect.fail(error))
    server.once("error", fail)
    // Exclusive: processes that share a port would be asked in turn.
    server.listen({ port, host, exclusive: true }, () => {
      server.off("error", fail)
      resume(Effect.void)
    })
  })

const close = (server: http.Server): Effect.Effect<void> =>
  Effect.callback((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })
