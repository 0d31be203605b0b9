/**
 * Metrics of the process: memory, processor time and event loop, under the names that dashboards for Node know. The
 * delay of the event loop is sampled only while this layer lives, because sampling wakes an idle process.
 */
import { Effect, Layer } from "effect"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { getHeapStatistics } from "node:v8"
import { measureUtilisation } from "./EventLoop.ts"
import * as Metrics from "./Metrics.ts"

const BUILD = { name: "till_build_info", description: "1, with the version of Till as a label." }
const START = { name: "process_start_time_seconds", description: "When the process started, in Unix time." }
const CPU = { name: "process_cpu_seconds_total", description: "Processor time of the process." }
const RESIDENT = { name: "process_resident_memory_bytes", description: "Memory of the process in RAM." }
const HEAP_TOTAL = { name: "nodejs_heap_size_total_bytes", description: "Size of V8's heap." }
const HEAP_USED = { name: "nodejs_heap_size_used_bytes", description: "Used part of V8's heap." }
const HEAP_LIMIT = { name: "nodejs_heap_size_limit_bytes", description: "Size at which V8's heap ends the process." }
const EXTERNAL = { name: "nodejs_external_memory_bytes", description: "Memory outside of V8's heap, such as buffers." }
const DELAY = {
  name: "nodejs_eventloop_delay_seconds",
  description: "Delay of the event loop since the metrics were last read, by quantile."
}
const UTILIZATION = {
  name: "nodejs_eventloop_utilization_ratio",
  description: "Share of the time in which the event loop was busy, since the metrics were last read."
}

const NANOS = 1e9
const MICROS = 1e6
/** Interval of the samples, in milliseconds. */
const RESOLUTION_MILLIS = 20
const QUANTILES = [
  ["0.5", 50],
  ["0.99", 99],
  ["1", 100]
] as const

export const layer = (version: string): Layer.Layer<never> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* Metrics.observeGauge(BUILD, () => 1, { version })
      const startedAt = Date.now() / 1000 - process.uptime()
      yield* Metrics.observeGauge(START, () => startedAt)
      yield* Metrics.observeCounter(CPU, () => {
        const { system, user } = process.cpuUsage()
        return (system + user) / MICROS
      })
      yield* Metrics.observeGauge(RESIDENT, () => process.memoryUsage.rss())
      yield* Metrics.observeGauge(HEAP_TOTAL, () => process.memoryUsage().heapTotal)
      yield* Metrics.observeGauge(HEAP_USED, () => process.memoryUsage().heapUsed)
      yield* Metrics.observeGauge(HEAP_LIMIT, () => getHeapStatistics().heap_size_limit)
      yield* Metrics.observeGauge(EXTERNAL, () => process.memoryUsage().external)
      yield* Metrics.observeGauge(UTILIZATION, measureUtilisation())
      yield* observeDelay
    })
  )

const observeDelay = Effect.gen(function* () {
  const delays = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MILLIS })
      histogram.enable()
      return histogram
    }),
    (histogram) => Effect.sync(() => void histogram.disable())
  )
  // The samples contain the interval itself.
  const secondsOf = (nanos: number) => Math.max(nanos / NANOS - RESOLUTION_MILLIS / 1000, 0)
  for (const [quantile, percent] of QUANTILES) {
    yield* Metrics.observeGauge(
      DELAY,
      () => {
        const seconds = secondsOf(delays.count === 0 ? 0 : delays.percentile(percent))
        if (percent === 100) delays.reset()
        return seconds
      },
      { quantile }
    )
  }
})
