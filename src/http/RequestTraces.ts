/** The spans of a request and its command, with the attributes of OpenTelemetry's semantic conventions. */
import { Effect, Exit } from "effect"
import { clean } from "../domain/Secrets.ts"
import { endSpan, type Span, type TraceStore } from "../engine/process/Traces.ts"
import type { AnsweredRequest } from "./RequestContext.ts"

/** The most characters of a path. */
const PATH_MAX = 500

/** Ends the span of an answered request. */
export const endTrace = (span: Span, answered: AnsweredRequest, isForwarded: boolean): void => {
  const { id, isReplay, method, path, route, status } = answered
  endSpan(span, performance.now(), {
    attributes: {
      "http.request.method": clean(method),
      "http.route": route,
      "url.path": clean(path.slice(0, PATH_MAX)),
      "http.response.status_code": status,
      "till.request_id": id,
      "till.replay": isReplay ? true : undefined,
      "till.forwarded": isForwarded ? true : undefined
    },
    error: status >= 500 ? `The answer is ${status}.` : undefined
  })
}

/**
 * Traces a command, from its submission to its answer. The flush and the projection of its record, and its webhooks,
 * are children of this span.
 */
export const traceCommand = <A, E, R>(
  traces: TraceStore,
  parent: Span,
  requestId: string,
  command: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const span = traces.beginChild("command", "internal", parent)
    traces.remember(requestId, span)
    return Effect.onExit(command, (exit) =>
      Effect.sync(() => {
        const error = Exit.isFailure(exit) && Exit.hasDies(exit) ? "The command has failed." : undefined
        endSpan(span, performance.now(), { attributes: { "till.request_id": requestId }, error })
      })
    )
  })
