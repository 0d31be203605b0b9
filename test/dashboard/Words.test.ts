/** Plain words on the pages of the dashboard, and content for developers folded (semantics dashboard.words). */
import { assert, describe, it } from "@effect/vitest"
import type { Answer } from "../support/MemoryTillWithPages.ts"
import { openDashboard, textIn } from "./support.ts"

const { server, tab } = await openDashboard("developer")

/** A page's text, without what its closed headings hide. */
const seenOn = async (path: string): Promise<string> => {
  const { status, text } = await tab.get(`/dashboard/test${path}`)
  assert.strictEqual(status, 200)
  const main = text.slice(text.indexOf("<main"))
  return textIn(main.replaceAll(/<details class="(?:developers|trace)">[\s\S]*?<\/details>/g, ""))
}

describe("pages for a shop's people", () => {
  const pay = (parameters: object): Promise<Answer> =>
    server.post("/v1/payment_intents", { amount: 4321, currency: "usd", ...parameters })

  it.each([
    ["requires_payment_method", "waiting for a card", {}],
    ["requires_confirmation", "not confirmed yet", { payment_method: "pm_card_visa" }],
    ["requires_capture", "authorized", { payment_method: "pm_card_visa", capture_method: "manual", confirm: true }]
  ] as const)("dashboard.words: tell the status %s as “%s”", async (status, words, parameters) => {
    const { id, status: became } = await pay(parameters)
    assert.strictEqual(became, status)
    for (const path of ["/payments", `/payments/${id}`]) assert.include(await seenOn(path), words)
    const options = (await tab.get("/dashboard/test/payments")).text
    assert.match(options, new RegExp(`<option value="${status}" >${words}`))
  })

  it("dashboard.words: fold JSON, requests and keys", async () => {
    const customer = await server.post("/v1/customers", { name: "Ada" })
    const product = await server.post("/v1/products", {
      name: "Tea",
      default_price_data: { currency: "usd", unit_amount: 1250 }
    })
    const payment = await pay({ customer: customer.id, payment_method: "pm_card_visa", confirm: true })
    const link = await server.post("/v1/payment_links", { line_items: [{ price: product.default_price }] })
    for (const path of [
      `/payments/${payment.id}`,
      `/charges/${payment.latest_charge ?? payment.charges.data[0].id}`,
      `/customers/${customer.id}`,
      `/products/${product.id}`,
      `/prices/${product.default_price}`,
      `/payment-links/${link.id}`
    ]) {
      const { text } = await tab.get(`/dashboard/test${path}`)
      assert.match(text, /<summary>For developers<\/summary>[\s\S]*class="json copy"/, path)
      const seen = await seenOn(path)
      assert.notMatch(seen, /&quot;object&quot;|req_|Idempotency|idempotency|key_/, path)
    }
  })
})
