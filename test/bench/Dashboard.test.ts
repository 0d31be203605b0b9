import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { judge } from "../../bench/dashboard/DashboardGoals.ts"
import * as DashboardReport from "../../bench/dashboard/DashboardReport.ts"
import type { DashboardResults, PageFigures } from "../../bench/dashboard/DashboardResults.ts"
import {
  customerOf,
  RARE_DECLINE,
  type Sale,
  saleOf,
  UNKNOWN_DECLINE,
  wasCharged
} from "../../bench/dashboard/History.ts"
import { Charge } from "../../src/domain/Charge.ts"
import { Customer } from "../../src/domain/Customer.ts"
import { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import { Refund } from "../../src/domain/Refund.ts"

const page: PageFigures = {
  title: "home, 24h",
  alone: { p50Millis: 5, p95Millis: 100, maxMillis: 300 },
  atOnce: { p50Millis: 19, p95Millis: 100, maxMillis: 400 },
  serverMillis: 3,
  postgresMillis: 2
}
const withP95 = (which: "alone" | "atOnce", p95Millis: number): PageFigures => ({
  ...page,
  [which]: { ...page[which], p95Millis }
})

const results: DashboardResults = {
  at: "2026-11-25T00:00:00.000Z",
  machine: { cpu: "A", cores: 2, memoryGigabytes: 24, system: "l", node: "v24", postgres: "18.4", commit: "abc" },
  payments: 1_000_000,
  pages: [page, { ...withP95("alone", 20), title: "payments" }],
  loadsAtOnce: 4,
  openPages: 500,
  // A slow minute affects both.
  live: [
    { with: 950, without: 1000 },
    { with: 5, without: 10 },
    { with: 9800, without: 10_000 }
  ],
  loadsPerSecond: 4,
  residentBytes: { open: 310 * 2 ** 20, without: 300 * 2 ** 20 },
  requestLog: [[{ with: 970, without: 1000 }]]
}

describe("the goals of the dashboard", () => {
  const reached = (changes: Partial<DashboardResults>) =>
    judge({ ...results, ...changes }).map(({ reached }) => reached)

  it("are judged one by one, on both sides of their bounds", () => {
    assert.deepStrictEqual(reached({}), [true, true, true, true, true])
    assert.deepStrictEqual(reached({ pages: [page, withP95("alone", 100.1)] }), [false, true, true, true, true])
    assert.deepStrictEqual(reached({ pages: [page, withP95("atOnce", 101)] }), [true, false, true, true, true])
    assert.deepStrictEqual(reached({ live: [{ with: 949, without: 1000 }] }), [true, true, false, true, true])
    assert.deepStrictEqual(reached({ requestLog: [[{ with: 969, without: 1000 }], [{ with: 970, without: 1000 }]] }), [
      true,
      true,
      true,
      false,
      true
    ])
    const residentBytes = { open: 111, without: 100 }
    assert.deepStrictEqual(reached({ residentBytes }), [true, true, true, true, false])
  })
})

describe("the report of the dashboard", () => {
  it("shows each page, the remaining creates, and the memory, also where the system reports none", () => {
    const text = DashboardReport.text(results)
    assert.match(text, /^home, 24h +5\.00 +100 +300 +3\.00 +2\.00 +19\.0 +100$/m)
    assert.match(text, /^500 open pages +950 +1 000 +0\.95 ×$/m)
    assert.include(text, "500 open pages loaded themselves 4.00 times a second in all.")
    assert.include(text, "310 MiB with them, 300 MiB without.")
    const { residentBytes: _, ...others } = results
    const { postgresMillis: __, serverMillis: ___, ...bare } = page
    const markdown = DashboardReport.markdown({ ...others, pages: [bare] })
    assert.include(markdown, "| home, 24h | 5.00 | 100 | 300 | – | – | 19.0 | 100 |")
    assert.notInclude(markdown, "MiB")
  })
})

describe("the history of a shop", () => {
  const account = "mer_1:test"
  let ids = 0
  const making = {
    account,
    now: 1_700_000_000_123,
    newId: (prefix: string) => `${prefix}_${ids++}`,
    newSecret: () => "s"
  }
  const sales = Array.from({ length: 20_000 }, (_, i) =>
    saleOf(i, making, { customer: i % 2 === 0 ? "cus_1" : null, isRecent: i > 10_000 })
  )

  it("is what lifecycles could have left", () => {
    const strictly = <A>(schema: Schema.Codec<A>) => Schema.decodeUnknownSync(schema, { onExcessProperty: "error" })
    const [payment, charge, refund] = [strictly(PaymentIntent), strictly(Charge), strictly(Refund)]
    for (const sale of sales.slice(0, 2000)) {
      payment(sale.payment)
      if (sale.charge !== undefined) charge(sale.charge)
      if (sale.refund !== undefined) refund(sale.refund)
      assert.strictEqual(sale.payment.latest_charge, sale.charge?.id ?? null)
    }
    strictly(Customer)(customerOf(3, making))
  })

  it("is mixed as it says", () => {
    const share = (holds: (sale: Sale) => boolean) => sales.filter(holds).length / sales.length
    assert.closeTo(
      share(({ payment }) => payment.status === "succeeded"),
      0.85,
      0.01
    )
    assert.closeTo(
      share(({ charge }) => charge?.status === "failed"),
      0.09,
      0.01
    )
    assert.closeTo(
      share(({ refund }) => refund !== undefined),
      0.038,
      0.005
    )
    assert.closeTo(
      share(({ payment }) => payment.currency === "usd"),
      0.7,
      0.01
    )
    assert.strictEqual(new Set(sales.map(({ payment }) => payment.currency)).size, 5)
    const declinedFor = (code: string) => sales.filter(({ charge }) => charge?.decline_code === code).length
    assert.strictEqual(declinedFor(RARE_DECLINE), 1)
    assert.strictEqual(declinedFor(UNKNOWN_DECLINE), 0)
    for (const [i, { charge }] of sales.entries()) if (wasCharged(i)) assert.isDefined(charge)
  })
})
