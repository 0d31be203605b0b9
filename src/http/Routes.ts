/**
 * The server's routes: /v1, the two health checks, the messages of processors, and JSON errors for every other path.
 *
 * /v1 goes neither through the router nor through Effect's HTTP server: `Server.ts` hands it over right after parsing.
 * Other parts of the service add their routes to the router.
 */
import type { IncomingMessage } from "node:http"
import { Effect, Layer } from "effect"
import { HttpRouter, type HttpServer, HttpServerError, HttpServerRequest, type HttpServerResponse } from "effect/http"
import type { ApiVersions } from "../domain/ApiVersions.ts"
import type { Accounts } from "../engine/Accounts.ts"
import type { PaymentsConfig } from "../payments/shared/PaymentsConfig.ts"
import type { Processors } from "../payments/processing/Processor.ts"
import * as AnsweredRequests from "./AnsweredRequests.ts"
import { endpoints } from "./ApiEndpoints.ts"
import { RequestIds, respond, sourceOf } from "./RequestContext.ts"
import * as Calls from "./forward/Calls.ts"
import { Forwarder } from "./forward/Forwarder.ts"
import * as Health from "./Health.ts"
import { InvalidHttp, RouteNotFound } from "../server/HttpErrors.ts"
import type { HttpConfig } from "../server/HttpConfig.ts"
import { NodeIncoming } from "../server/NodeIncoming.ts"
import * as Pipeline from "./Pipeline.ts"
import * as ProcessorMessages from "./ProcessorMessages.ts"
import type { Readiness } from "./Readiness.ts"
import { RequestBodies } from "../server/RequestBody.ts"
import { isWrongTarget } from "../server/RequestTarget.ts"
import { ApiServer } from "../server/Server.ts"

/** Services that all requests of a server share. */
type Shared = RequestBodies | RequestIds

type Services = Accounts | ApiServer | ApiVersions | HttpConfig | PaymentsConfig | Processors | Readiness

type Routed = Effect.Effect<HttpServerResponse.HttpServerResponse, unknown, HttpServerRequest.HttpServerRequest>

/** Takes the API's requests from the server, and answers requests that no route matches. */
const api = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const pipeline = yield* Pipeline.make(endpoints)
    const requestIds = yield* RequestIds
    const { readBody } = yield* RequestBodies
    const { takeApi, takeUp } = yield* ApiServer
    yield* (yield* Forwarder).serve({ api: pipeline.answer, page: takeUp, call: yield* Calls.make })
    takeApi({
      request: (source, response) => {
        const incoming = new NodeIncoming(source, response, readBody)
        if (isUnreadable(source)) pipeline.refuse(incoming, invalidHttp)
        else pipeline.answer(incoming)
      },
      plain: pipeline.answer
    })
    const dispatch = (routed: Routed): Routed =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
        const refuse = (failure: InvalidHttp | RouteNotFound) =>
          Effect.sync(() => respond(request, requestIds.next(), pipeline.refusal(failure)))
        if (isUnreadable(sourceOf(request))) return refuse(invalidHttp)
        return Effect.catch(routed, (error) =>
          isRouteNotFound(error)
            ? refuse(new RouteNotFound({ method: request.method, path: request.url.split("?", 1)[0]! }))
            : Effect.fail(error)
        )
      })
    yield* router.addGlobalMiddleware(dispatch)
  })
) as Layer.Layer<never, never, HttpRouter.HttpRouter | Services | Shared>

const invalidHttp = new InvalidHttp()

/**
 * Checks `Host`, which HTTP/1.1 requires (RFC 9112, 3.2): Node's own check would answer without a body. Refuses a
 * request target that is none, without guessing at its meaning.
 */
const isUnreadable = (source: IncomingMessage): boolean =>
  (source.headers.host === undefined && source.httpVersion === "1.1") || isWrongTarget(source)

const isRouteNotFound = (error: unknown): boolean =>
  HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound"

const layer: Layer.Layer<never, never, HttpRouter.HttpRouter | Services | Shared> = Layer.mergeAll(
  api,
  Health.layer,
  ProcessorMessages.layer
)

/** Serves these routes together with those of another part. */
export const serveWith = <R>(
  others: Layer.Layer<never, never, HttpRouter.HttpRouter | Shared | R>
): Layer.Layer<never, never, HttpServer.HttpServer | Services | Exclude<R, HttpRouter.HttpRouter | Shared>> =>
  HttpRouter.serve(
    Layer.merge(layer, others).pipe(
      Layer.provide([RequestBodies.layer, RequestIds.layer]),
      Layer.provide(AnsweredRequests.layerOfRouter)
    ),
    { disableLogger: true, disableListenLog: true }
  ) as Layer.Layer<never, never, HttpServer.HttpServer | Services | Exclude<R, HttpRouter.HttpRouter | Shared>>
