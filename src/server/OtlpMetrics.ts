/** Sends the metrics to a collector, as the `OTEL_*` variables of OpenTelemetry say. Loaded only if they name one. */
import { Layer } from "effect"
import { OtlpMetrics } from "effect/observability"
import * as Otlp from "./Otlp.ts"

export const layer = (version: string) =>
  Layer.provide(OtlpMetrics.layerFromConfig({ resource: Otlp.resourceOf(version) }), Otlp.layer)
