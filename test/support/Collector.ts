/** A collector of OpenTelemetry on a free port, which keeps what OTLP/HTTP in JSON brings. */
import { Effect, type Scope } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

interface KeyValue {
  readonly key: string
  readonly value: {
    readonly stringValue?: string
    readonly intValue?: string | number
    readonly doubleValue?: number
    readonly boolValue?: boolean
  }
}

interface Resource {
  readonly attributes: ReadonlyArray<KeyValue>
}

export interface SentSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: ReadonlyArray<KeyValue>
  readonly status: { readonly code: number; readonly message?: string }
}

export interface SentMetric {
  readonly name: string
}

export interface Collector {
  readonly url: string
  /** Paths of the requests, in their order. */
  readonly paths: ReadonlyArray<string>
  readonly resources: ReadonlyArray<Resource>
  readonly spans: ReadonlyArray<SentSpan>
  /** The metrics of the newest request with any. */
  readonly metrics: ReadonlyArray<SentMetric>
}

interface Body {
  readonly resourceSpans?: ReadonlyArray<{
    readonly resource: Resource
    readonly scopeSpans: ReadonlyArray<{ readonly spans: ReadonlyArray<SentSpan> }>
  }>
  readonly resourceMetrics?: ReadonlyArray<{
    readonly resource: Resource
    readonly scopeMetrics: ReadonlyArray<{ readonly metrics: ReadonlyArray<SentMetric> }>
  }>
}

export const attributesOf = ({ attributes }: Resource | SentSpan): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? value.boolValue ?? value.doubleValue ?? Number(value.intValue)
    ])
  )

export const collector: Effect.Effect<Collector, never, Scope.Scope> = Effect.gen(function* () {
  const paths: Array<string> = []
  const resources: Array<Resource> = []
  const spans: Array<SentSpan> = []
  let metrics: ReadonlyArray<SentMetric> = []
  const take = ({ resourceMetrics = [], resourceSpans = [] }: Body): void => {
    for (const { resource, scopeSpans } of resourceSpans) {
      resources.push(resource)
      for (const scope of scopeSpans) spans.push(...scope.spans)
    }
    for (const { resource, scopeMetrics } of resourceMetrics) {
      resources.push(resource)
      metrics = scopeMetrics.flatMap((scope) => scope.metrics)
    }
  }
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      paths.push(request.url!)
      take(JSON.parse(Buffer.concat(chunks).toString()))
      response.writeHead(200, { "content-type": "application/json" }).end("{}")
    })
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))),
    () =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    paths,
    resources,
    spans,
    get metrics() {
      return metrics
    }
  }
})
