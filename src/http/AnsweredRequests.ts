/**
 * Reports of answered requests: of the API, of pages and of the dashboard, but not of health checks. The process that
 * answers a request reports it. The access log and the metrics of requests are made of these reports.
 */
import { Context, Effect, type Layer } from "effect"
import { HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { type Span, Traces, type TraceStore } from "../engine/process/Traces.ts"
import { templateOf } from "./Endpoints.ts"
import { wasForwarded } from "./forward/ForwardPage.ts"
import { accountNotedFor, type AnsweredRequest, noteTrace, parentSpanOf, sourceOf } from "./RequestContext.ts"
import { endTrace } from "./RequestTraces.ts"

export type Report = (answered: AnsweredRequest) => void

/** Takes reports. Without a provided service, they are dropped. */
export const AnsweredRequests: Context.Reference<{ readonly report: Report }> = Context.Reference(
  "till/http/AnsweredRequests",
  { defaultValue: (): { readonly report: Report } => ({ report: () => {} }) }
)

/** A page's route. Assets share one, because their names change with their content. */
const routeOf = (path: string): string => (path.startsWith("/assets/") ? "/assets/{file}" : templateOf(path))

const HEALTH_CHECKS: ReadonlySet<string | undefined> = new Set(["/healthz", "/readyz"])

/** Makes the report of a request that the router has answered. */
const answeredOf = (
  request: HttpServerRequest.HttpServerRequest,
  route: string | undefined,
  status: number,
  millis: number
): AnsweredRequest => {
  const path = request.url.split("?", 1)[0]!
  const account = accountNotedFor(sourceOf(request))
  return { id: undefined, method: request.method, path, route, status, millis, account, isReplay: false }
}

/** Begins the span of a page's request. */
const beginTrace = (traces: TraceStore, request: HttpServerRequest.HttpServerRequest, since: number): Span => {
  const { headers, method } = request
  const span = traces.beginRequest(method, since, parentSpanOf(headers["traceparent"]))
  noteTrace(sourceOf(request), span)
  return span
}

/** Reports the requests that the router answers. Added before all other middlewares, to see what those answer. */
export const layerOfRouter: Layer.Layer<never, never, HttpRouter.HttpRouter> = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const { report } = yield* AnsweredRequests
    const traces = yield* Traces
    yield* router.addGlobalMiddleware((routed) =>
      Effect.withFiber((fiber) => {
        const since = performance.now()
        const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
        const trace = traces && beginTrace(traces, request, since)
        return Effect.map(routed, (response: HttpServerResponse.HttpServerResponse) => {
          // The router has set it in the request's fiber.
          const found = Context.getOrUndefined(fiber.context, HttpRouter.RouteContext)
          const route = found === undefined ? undefined : routeOf(found.route.path)
          if (HEALTH_CHECKS.has(route)) return response
          const isForwarded = wasForwarded(sourceOf(request))
          const answered = answeredOf(request, route, response.status, performance.now() - since)
          if (trace !== undefined) endTrace(trace, answered, isForwarded)
          if (!isForwarded) report(answered)
          return response
        })
      })
    )
  })
) as Layer.Layer<never, never, HttpRouter.HttpRouter>
