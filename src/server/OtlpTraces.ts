/**
 * Sends traces to a collector, as the `OTEL_*` variables of OpenTelemetry say. Loaded only if they name one. The tracer
 * is for the spans of `Traces.ts` alone: as the tracer of all effects, it would add spans for each statement.
 */
import { Effect, Layer, Tracer } from "effect"
import { OtlpTracer } from "effect/observability"
import { type Sampler, Traces, TraceStore } from "../engine/process/Traces.ts"
import * as Otlp from "./Otlp.ts"

export interface Options {
  readonly version: string
  /** Share of the traces to send, from 0 to 1. */
  readonly ratio: number
  /** True if a request with a parent is sent if, and only if, its parent is. */
  readonly followsParent: boolean
}

/** Hexadecimal digits of a trace id that decide about its sampling; they are random. */
const DIGITS = 12

const samplerOf =
  ({ followsParent, ratio }: Options): Sampler =>
  (parent) => {
    if (parent === undefined) return Math.random() < ratio
    if (followsParent) return parent.sampled
    return Number.parseInt(parent.traceId.slice(-DIGITS), 16) / 16 ** DIGITS < ratio
  }

export const layer = (options: Options): Layer.Layer<never> =>
  Layer.effect(
    Traces,
    Effect.map(Tracer.Tracer, (tracer) => new TraceStore(tracer, samplerOf(options)))
  ).pipe(
    Layer.provide(OtlpTracer.layerFromConfig({ resource: Otlp.resourceOf(options.version) })),
    Layer.provide(Otlp.layer)
  )
