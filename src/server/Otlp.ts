/**
 * Surroundings of exports to a collector of OpenTelemetry: JSON over HTTP. The configuration has decided what is
 * exported (`config.ts`), where Effect's exporters would ask for a variable that has a default in OpenTelemetry.
 */
import { ConfigProvider, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpSerialization } from "effect/observability"

const exporters = ConfigProvider.fromEnv({ env: { OTEL_METRICS_EXPORTER: "otlp", OTEL_TRACES_EXPORTER: "otlp" } })

export const layer = Layer.mergeAll(
  OtlpSerialization.layerJson,
  FetchHttpClient.layer,
  ConfigProvider.layerAdd(exporters, { asPrimary: true })
)

export const resourceOf = (version: string) => ({ serviceName: "till", serviceVersion: version })
