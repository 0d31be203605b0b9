/** The home page: numbers of the payments, and warnings (semantics dashboard.numbers). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { numbersOf, rangeNamed } from "../../../src/dashboard/home/Numbers.ts"
import { Accounts } from "../../../src/engine/Accounts.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import * as ApiKeys from "../../../src/payments/merchants/ApiKeys.ts"
import type { Answer } from "../../support/MemoryTillWithPages.ts"
import { fail } from "../../support/fixtures/FailedDelivery.ts"
import { type Page, signedIn } from "../People.ts"
import { openDashboard } from "../support.ts"

/** The page's text. */
const textOf = ({ text }: Page): string =>
  text
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim()

const { server, tab } = await openDashboard("support")

describe("the home page", () => {
  const pay = (parameters: object = {}, status = 200): Promise<Answer> =>
    server.post(
      "/v1/payment_intents",
      { amount: 4321, currency: "usd", payment_method: "pm_card_visa", confirm: true, ...parameters },
      { status }
    )
  const home = (query = "") => tab.get(`/dashboard/test${query}`)
  const numbers = () =>
    Effect.runPromise(
      Effect.provideService(
        numbersOf(`${server.merchantId}:test`, "90d", Math.floor(Date.now() / 1000)),
        Accounts,
        server.accounts
      )
    )

  it("explains empty sections", async () => {
    const text = textOf(await home())
    assert.include(text, "No payments in the last 7 days.")
    assert.notInclude(text, "Needs attention")
    const developer = await signedIn(server, "developer")
    const emptyOf = async (mode: string) => textOf(await developer.get(`/dashboard/${mode}`)).replaceAll(" ,", ",")
    assert.include(await emptyOf("test"), "No payments yet. Trigger one, sell a product with a payment link")
    assert.include(await emptyOf("live"), "No payments yet. Sell a product with a payment link")
  })

  it("shows received and refunded amounts and declines by currency", async () => {
    const first = await pay()
    await pay({ amount: 10_000 })
    await pay({ payment_method: "pm_card_visa_chargeDeclinedInsufficientFunds" }, 402)
    await pay({ confirm: false, payment_method: undefined })
    await pay({ amount: 500, currency: "jpy" })
    await server.post("/v1/refunds", { payment_intent: first.id, amount: 21 })
    for (const range of ["", "?range=24h", "?range=30d", "?range=90d", "?range=nonsense", "?range=toString"]) {
      const page = await home(range)
      const text = textOf(page)
      assert.include(text, "Volume 143.21 USD received")
      assert.include(text, "Success rate 66 % 2 of 3 attempted payments")
      assert.include(text, "Refunds 0.21 USD one refund")
      assert.match(text, /insufficient funds 1 100 %/)
      // The table behind the chart has the same numbers.
      assert.match(text, /Volume per (day|hour) .* UTC .* Time \(UTC\) .*143\.21 USD.* Payments per/)
      assert.include(text, "3, 1 failed")
    }
    const yen = textOf(await home("?currency=jpy&range=24h"))
    assert.include(yen, "Volume 500 JPY received")
    assert.include(yen, "No declined payments.")
    const [usd, jpy] = (await numbers()).currencies
    for (const counted of [usd!, jpy!]) {
      const total = (name: "paid" | "failed" | "volume" | "refunded") =>
        counted.steps.reduce((sum, step) => sum + step[name], 0)
      assert.strictEqual(total("volume"), counted.volume)
    }
  })

  it("dashboard.attention: links to problems", async () => {
    await pay({ capture_method: "manual" })
    const endpoint = await server.post("/v1/webhook_endpoints", {
      url: "https://shop.example/hooks",
      enabled_events: ["payment_intent.succeeded"]
    })
    await pay()
    await fail(server, endpoint.id)
    const open = await pay({ confirm: false })
    const { documents } = await Effect.runPromise(
      server.accounts.list(INSTALLATION, { kind: "api_key", prefix: "key", limit: 10 })
    )
    const testKey = documents.find(({ value }) => (value as unknown as { prefix: string }).prefix === "pk_test_")!
    await Effect.runPromise(Effect.orDie(server.accounts.run(INSTALLATION, ApiKeys.roll(testKey.id, {}))))
    await server.post("/v1/test_helpers/clock/advance", { seconds: 7200 })
    const confirmed = await server.post(`/v1/payment_intents/${open.id}/confirm`, {
      payment_method: "pm_card_processing_success"
    })
    assert.strictEqual(confirmed.status, "processing")
    const page = await home()
    const text = textOf(page)
    assert.include(text, "Needs attention")
    assert.include(text, "Webhooks are failing 1 recent delivery to https://shop.example/hooks was rejected")
    assert.include(text, "One payment to capture")
    assert.include(text, "A key is about to expire pk_test_")
    assert.include(text, "The test clock is ahead It is 2 hours ahead")
    assert.include(text, "One payment without a result")
    for (const path of [`/webhooks/${endpoint.id}`, "/payments?status=requires_capture", "/developers"])
      assert.include(page.text, `/dashboard/test${path}"`)
    assert.notInclude(textOf(await tab.get("/dashboard/live")), "Needs attention")
  })

  it("charts decline reasons, most frequent first, and the health of endpoints", async () => {
    const drawn = async () => {
      const { text } = await home()
      return [...text.matchAll(/<ul class="ranking">([\s\S]*?)<\/ul>/g)].map(([, lines]) =>
        [...lines!.matchAll(/<li>([\s\S]*?)<\/li>/g)].map(([, line]) => ({
          text: textOf({ text: line! } as Page),
          bars: [...line!.matchAll(/class="(\w+)"\s+x="([\d.]+)"\s+width="([\d.]+)"/g)].map(([, kind, x, width]) => [
            kind,
            Number(x),
            Number(width)
          ])
        }))
      )
    }
    for (let i = 0; i < 4; i++) {
      await pay({ payment_method: "pm_card_visa_chargeDeclinedLostCard", currency: "usd" }, 402)
    }
    const { id } = await server.post("/v1/webhook_endpoints", {
      url: "https://shop.example/?a=<b>",
      enabled_events: ["customer.created"]
    })
    const [declines, endpoints] = await drawn()
    const { currencies } = await numbers()
    const counts = [...currencies.find(({ currency }) => currency === "usd")!.declines.values()]
    assert.deepStrictEqual(
      declines!.map(({ text }) => Number(/\d+$/.exec(text)![0])),
      counts.toSorted((one, other) => other - one)
    )
    assert.deepInclude(declines![0], { text: "lost card 4", bars: [["bar", 0, 600]] })
    const page = await home()
    const lost = new URL(
      /<a href="([^"]*decline=lost_card[^"]*)"/.exec(page.text)![1]!.replaceAll("&amp;", "&"),
      page.url
    )
    const led = await tab.get(lost.href)
    assert.strictEqual(led.text.match(/<td[^>]*data-name="Status"[^>]*>[\s\S]*?lost card/g)?.length, 4)
    const newest = endpoints![0]!
    assert.deepStrictEqual(newest, { text: "https://shop.example/?a=&lt;b&gt; no deliveries", bars: [] })
    await server.post("/v1/customers", {})
    await fail(server, id)
    for (let i = 0; i < 2; i++) await server.post("/v1/customers", {})
    const [tried, ...others] = (await drawn())[1]!
    assert.include(tried!.text, "0 of 3 delivered, 1 failing, 2 waiting")
    const ofThisOne = [
      ["part", 0, 200],
      ["rest", 200, 400]
    ]
    assert.deepStrictEqual(tried!.bars, ofThisOne)
    assert.isTrue(
      others.some(({ text }) => !text.includes("of 3 delivered")),
      "a busier one does not make it shorter"
    )
  })

  it("replaces an invalid range by the default", () => {
    assert.strictEqual(rangeNamed(null), "7d")
    assert.strictEqual(rangeNamed("toString"), "7d")
    assert.strictEqual(rangeNamed("90d"), "90d")
  })
})

describe("the numbers of the home page", () => {
  it("stand beside those of the time before", async () => {
    const { server, tab } = await openDashboard("support")
    const card = { currency: "usd", payment_method: "pm_card_visa", confirm: true }
    const pay = (amount: number) => server.post("/v1/payment_intents", { ...card, amount })
    const home = async (range: string) => textOf(await tab.get(`/dashboard/test?range=${range}`))
    const { id } = await pay(4321)
    await pay(10_000)
    await server.post(
      "/v1/payment_intents",
      { ...card, amount: 1, payment_method: "pm_card_visa_chargeDeclined" },
      { status: 402 }
    )
    await server.post("/v1/refunds", { payment_intent: id, amount: 21 })
    assert.notInclude(await home("7d"), "days before")
    await server.post("/v1/test_helpers/clock/advance", { seconds: 9 * 24 * 3600 })
    await pay(777)
    const week = await home("7d")
    assert.include(week, "Volume 7.77 USD received, before refunds 143.21 USD in the 7 days before")
    assert.include(week, "1 of 1 attempted payments 66 % in the 7 days before")
    assert.include(week, "Refunds 0.00 USD 0 refunds 0.21 USD in the 7 days before")
    assert.include(await home("30d"), "Volume 150.98 USD")
    assert.notInclude(await home("30d"), "days before")
  })
})
