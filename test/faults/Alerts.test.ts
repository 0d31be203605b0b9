/** `npm run faults -- --only alerts` provokes every alert, with a rule that Prometheus evaluates faster. */
import { assert, describe, it } from "@effect/vitest"
import { PROVOKED } from "./parts/Alerts.ts"
import { alertNames, scaled } from "./Prometheus.ts"

describe("the faults of the alerts", () => {
  it("are one for each alert", () => {
    assert.deepStrictEqual(PROVOKED.toSorted(), alertNames().toSorted())
  })

  it("divide durations, ages and increases by the speed, but neither rates, latencies nor ages of the clock", () => {
    const rule = (expr: string, pending?: string) =>
      scaled({ alert: "Till", expr, ...(pending !== undefined && { for: pending }) })
    assert.deepInclude(rule("max(till_projection_lag_seconds) > 30", "2m"), {
      expr: "max(till_projection_lag_seconds) > 0.5",
      for: "2000ms"
    })
    const increased = rule("sum(increase(a_total[10m])) > 6 and sum(increase(b_count[1h] offset 2h)) > 0").expr
    assert.strictEqual(
      increased,
      "sum(increase(a_total[10000ms])) > 0.1 and sum(increase(b_count[60000ms] offset 120000ms)) > 0"
    )
    assert.strictEqual(rule("sum(rate(a_total[5m])) > 1").expr, "sum(rate(a_total[5000ms])) > 1")
    const old = "time() - max(a_seconds) > 10800 and sum(increase(b_count[1h])) > 0"
    assert.strictEqual(rule(old).expr, "time() - max(a_seconds) > 10800 and sum(increase(b_count[60000ms])) > 0")
    const slow = "max(nodejs_eventloop_delay_seconds) > 0.5"
    assert.strictEqual(rule(slow).expr, slow)
  })
})
