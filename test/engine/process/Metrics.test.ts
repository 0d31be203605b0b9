/** Metrics: series by their label values, observed values, and values that a query replaces. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { PrometheusMetrics } from "effect/observability"
import * as Metrics from "../../../src/engine/process/Metrics.ts"
import { type Family, parse } from "../../support/PrometheusText.ts"

const families = Effect.map(PrometheusMetrics.format(), (text): ReadonlyMap<string, Family> =>
  text === "" ? new Map() : parse(text)
)

/** The values of a family by the values of its labels. */
const valuesOf = (family: Family | undefined) =>
  Object.fromEntries((family?.samples ?? []).map(({ labels, value }) => [Object.values(labels).join(" "), value]))

describe("metrics", () => {
  it.effect("count from zero, by their labels", () =>
    Effect.gen(function* () {
      const definition = { name: "outcomes_total", description: "Outcomes.", labels: ["mode", "outcome"] }
      const count = yield* Metrics.counters(definition, [["test", "good"]])
      const countAll = yield* Metrics.counter({ name: "all_total", description: "All." })
      const before = yield* families
      assert.deepStrictEqual(valuesOf(before.get("outcomes_total")), { "test good": 0 })
      assert.deepStrictEqual(valuesOf(before.get("all_total")), { "": 0 })
      count(["test", "good"])
      count(["live", "bad"], 3)
      countAll()
      const after = yield* families
      assert.deepStrictEqual(valuesOf(after.get("outcomes_total")), { "test good": 1, "live bad": 3 })
      assert.deepStrictEqual(valuesOf(after.get("all_total")), { "": 1 })
    }).pipe(Effect.provide(Metrics.layer))
  )

  it.effect("have a bounded number of series, and lose no count", () =>
    Effect.gen(function* () {
      const count = yield* Metrics.counters({ name: "paths_total", description: "Paths.", labels: ["method", "path"] })
      for (let i = 0; i < 5000; i++) count(["GET", `/${i}`])
      const values = valuesOf((yield* families).get("paths_total"))
      assert.strictEqual(Object.keys(values).length, 1001)
      assert.strictEqual(values["other other"], 4000)
    }).pipe(Effect.provide(Metrics.layer))
  )

  it.effect("measure in buckets", () =>
    Effect.gen(function* () {
      const definition = { name: "waits_seconds", description: "Waits.", labels: ["lane"], boundaries: [0.1, 1] }
      const measure = yield* Metrics.histograms(definition, [["slow"]])
      for (const seconds of [0.05, 0.1, 0.5, 2]) measure(["fast"], seconds)
      const { samples } = (yield* families).get("waits_seconds")!
      const bucketsOf = (lane: string) =>
        samples
          .filter(({ labels, name }) => labels["lane"] === lane && name.endsWith("_bucket"))
          .map(({ value }) => value)
      assert.deepStrictEqual(bucketsOf("fast"), [2, 3, 4])
      assert.deepStrictEqual(bucketsOf("slow"), [0, 0, 0])
    }).pipe(Effect.provide(Metrics.layer))
  )

  it.effect("observe a value when they are read, as long as their scope lives", () =>
    Effect.gen(function* () {
      let value = 1
      const scope = yield* Scope.make()
      const observe = Metrics.observeGauge({ name: "depth", description: "Depth." }, () => value, { owner: "queue" })
      yield* Scope.provide(observe, scope)
      value = 7
      assert.deepStrictEqual(valuesOf((yield* families).get("depth")), { queue: 7 })
      yield* Scope.close(scope, Exit.void)
      assert.isFalse((yield* families).has("depth"))
    }).pipe(Effect.provide(Metrics.layer))
  )

  it.effect("replace the values of a report, and drop those that are gone", () =>
    Effect.gen(function* () {
      const definition = { name: "table_bytes", description: "Sizes." }
      const replace = yield* Metrics.readings()
      replace((set) => {
        set(definition, { table: "journal" }, 10)
        set(definition, { table: "old" }, 5)
      })
      replace((set) => set(definition, { table: "journal" }, 20))
      assert.deepStrictEqual(valuesOf((yield* families).get("table_bytes")), { journal: 20 })
      replace(() => {})
      assert.isFalse((yield* families).has("table_bytes"))
    }).pipe(Effect.provide(Metrics.layer))
  )

  it.effect("of two services are apart", () =>
    Effect.gen(function* () {
      const one = Effect.gen(function* () {
        const count = yield* Metrics.counter({ name: "services_total", description: "Services." })
        count()
        return valuesOf((yield* families).get("services_total"))
      })
      const separately = Effect.provide(one, Metrics.layer, { local: true })
      assert.deepStrictEqual([yield* separately, yield* separately], [{ "": 1 }, { "": 1 }])
    })
  )
})
