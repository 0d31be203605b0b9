/** Takes the reports of answered requests: measures them, and writes the access log if there is an output for it. */
import { Effect, Layer } from "effect"
import * as Metrics from "../engine/process/Metrics.ts"
import type { Output } from "./AccessLog.ts"
import * as AccessLog from "./AccessLog.ts"
import { AnsweredRequests } from "./AnsweredRequests.ts"

/** Named as OpenTelemetry's semantic conventions do, with the unit that Prometheus appends. */
const DURATION = {
  name: "http_server_request_duration_seconds",
  description: "Time from the arrival of a request to its answer; to its start for a stream.",
  labels: ["http_request_method", "http_route", "http_response_status_code"],
  boundaries: Metrics.SECONDS
}
const REPLAYS = {
  name: "till_idempotent_replays_total",
  description: "Answers that repeat that of an earlier request with the same idempotency key."
}

/** Methods that are a label of their own; a client may send any other. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])

export const layer = (output: Output | undefined): Layer.Layer<never> =>
  Layer.effect(
    AnsweredRequests,
    Effect.gen(function* () {
      const measure = yield* Metrics.histograms(DURATION)
      const countReplay = yield* Metrics.counter(REPLAYS)
      const log = output === undefined ? undefined : yield* AccessLog.make(output)
      return {
        report: (answered) => {
          const { isReplay, method, millis, route = "", status } = answered
          measure([METHODS.has(method) ? method : "_OTHER", route, String(status)], millis / 1000)
          if (isReplay) countReplay()
          log?.write(answered)
        }
      }
    })
  )
