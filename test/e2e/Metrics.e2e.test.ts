/** The metrics of a real process, as Prometheus and a collector get them, and its access log. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { attributesOf, collector } from "../support/Collector.ts"
import { documented } from "../support/DocumentedMetrics.ts"
import { freshDatabase } from "../support/Postgres.ts"
import { type Family, parse, type Sample } from "../support/PrometheusText.ts"
import { serverPort } from "../support/ServerPort.ts"
import { KEYS, startTill, till, type TillProcess, until } from "../support/TillProcess.ts"
import { answersWith, receiver } from "../webhooks/RawReceiver.ts"

const urlOf = (server: TillProcess): string => {
  const found = /Metrics are served at (\S+?)["\s]/u.exec(server.stderr)
  assert.isNotNull(found, server.stderr)
  return found![1]!
}

const scrape = async (server: TillProcess): Promise<ReadonlyMap<string, Family>> =>
  parse(await (await fetch(urlOf(server))).text())

/** The sample of a family with these labels. */
const sampleOf = (family: Family | undefined, labels: Readonly<Record<string, string>>): Sample | undefined =>
  family?.samples.find((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))

const pay = (server: TillProcess, paymentMethod: string) =>
  server.request("POST", "/v1/payment_intents", {
    body: { amount: 2000, currency: "usd", payment_method: paymentMethod, confirm: true },
    idempotencyKey: paymentMethod
  })

describe("the metrics of a process", () => {
  it.live("are those of the document, with its types and labels, and count what happened", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const there = yield* receiver(answersWith(200))
      const variables = { DATABASE_URL: Redacted.value(url), TILL_METRICS_PORT: "0", TILL_ACCESS_LOG: "on" }
      const server = yield* startTill({ variables })
      yield* Effect.promise(async () => {
        await server.post("/v1/webhook_endpoints", { url: there.url, enabled_events: ["charge.succeeded"] })
        for (const card of ["pm_card_visa", "pm_card_visa", "pm_card_visa_chargeDeclinedInsufficientFunds"]) {
          await pay(server, card)
        }
        await server.request("GET", "/v1/customers/cus_123456789012345")
        await until("the webhook was delivered", async () => {
          const family = (await scrape(server)).get("till_webhook_attempt_duration_seconds")
          const delivered = family?.samples.find(
            ({ labels, name }) => name.endsWith("_count") && labels["outcome"] === "delivered"
          )
          return delivered?.value === 1
        })
        const families = await scrape(server)
        const labelsOf = ({ samples }: Family) => [
          ...new Set(samples.flatMap(({ labels }) => Object.keys(labels).filter((label) => label !== "le")))
        ]
        const shown = [...families.values()].map((one) => [one.name, { type: one.type, labels: labelsOf(one) }])
        // These need a backup, an hour or days.
        const later = /^till_(?:backup|anchor|scrub_completed)_timestamp_seconds$/u
        const expected = [...documented].filter(([name]) => !later.test(name) || families.has(name))
        assert.deepStrictEqual(Object.fromEntries(shown), Object.fromEntries(expected))
        const charges = families.get("till_charges_total")
        assert.strictEqual(sampleOf(charges, { mode: "test", outcome: "approved" })?.value, 1)
        assert.strictEqual(sampleOf(charges, { mode: "test", code: "insufficient_funds" })?.value, 1)
        assert.strictEqual(sampleOf(charges, { mode: "live", outcome: "approved" })?.value, 0)
        assert.strictEqual(families.get("till_idempotent_replays_total")?.samples[0]?.value, 1)
        const durations = families.get("http_server_request_duration_seconds")
        const route = { http_route: "/v1/payment_intents", http_request_method: "POST" }
        assert.isDefined(sampleOf(durations, { ...route, http_response_status_code: "402" }))
        assert.isDefined(sampleOf(durations, { http_route: "/v1/customers/{id}", http_response_status_code: "404" }))
        assert.isAbove(sampleOf(families.get("till_database_table_bytes"), { table: "journal" })!.value, 0)
        assert.strictEqual(families.get("till_partitions_held")?.samples[0]?.value, 64)
        assert.notMatch(JSON.stringify([...families.values()]), /(?:mer|req|cus|pi)_[0-9A-Za-z]{16}/u)
        assert.notInclude(JSON.stringify([...families.values()]), KEYS.secretTest)
      })
    })
  )

  it.live("show the newest backup of the data folder", () =>
    Effect.gen(function* () {
      const server = yield* startTill({ variables: { TILL_METRICS_PORT: "0" } })
      yield* Effect.promise(async () => {
        await server.post("/v1/customers", { name: "Zoë" })
        const before = Date.now() / 1000 - 60
        const backup = await till(["backup", `${server.folder}/backups`], server.variables)
        assert.strictEqual(backup.code, 0, backup.stderr)
        // Read every 15 seconds.
        const at = () =>
          scrape(server).then((families) => families.get("till_backup_timestamp_seconds")?.samples[0]?.value)
        await until("the backup is shown", async () => ((await at()) ?? 0) > before)
      })
    })
  )

  it.live("of each of several processes on one port have a port of their own", () =>
    Effect.gen(function* () {
      // The service itself gets a port behind these.
      const [port = 0] = yield* Effect.replicateEffect(serverPort, 4)
      const server = yield* startTill({ args: ["--runners", "2"], variables: { TILL_METRICS_PORT: String(port) } })
      yield* Effect.promise(async () => {
        const ports = () =>
          [...server.stderr.matchAll(/Metrics are served at http:\/\/127\.0\.0\.1:(\d+)/gu)].map(([, at]) => Number(at))
        await until("both have a port", async () => ports().length === 2)
        const [first = 0, second = 0] = ports().toSorted()
        assert.strictEqual(first, port)
        assert.isAbove(second, port)
        const held = async (at: number) => {
          const text = await (await fetch(`http://127.0.0.1:${at}/metrics`)).text()
          return parse(text).get("till_partitions_held")?.samples[0]?.value ?? Number.NaN
        }
        await until("all partitions are held", async () => (await held(first)) + (await held(second)) === 64)
      })
    })
  )

  it.live("are neither served nor sent unless that is asked for", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      assert.notInclude(server.stderr, "Metrics")
      assert.notInclude(server.stderr, "http.server.request")
    })
  )
})

describe("a collector of OpenTelemetry", () => {
  it.live("receives the same metrics", () =>
    Effect.gen(function* () {
      const there = yield* collector
      const server = yield* startTill({
        variables: {
          OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${there.url}/v1/metrics`,
          OTEL_METRIC_EXPORT_INTERVAL: "500"
        }
      })
      yield* Effect.promise(async () => {
        await pay(server, "pm_card_visa")
        await until("the request was sent", async () =>
          there.metrics.some(({ name }) => name === "http_server_request_duration_seconds")
        )
        assert.deepStrictEqual([...new Set(there.paths)], ["/v1/metrics"])
        assert.strictEqual(attributesOf(there.resources[0]!)["service.name"], "till")
        const names = there.metrics.map(({ name }) => name)
        assert.includeMembers(names, ["http_server_request_duration_seconds", "till_database_table_bytes"])
        for (const name of names) assert.isTrue(documented.has(name), name)
        assert.lengthOf(there.spans, 0)
      })
    })
  )
})
