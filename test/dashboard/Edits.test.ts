/** Edit forms keep the current value of fields that were not edited (semantics dashboard.editing). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import * as Merchants from "../../src/payments/merchants/Merchants.ts"
import { formTo } from "./People.ts"
import { openDashboard } from "./support.ts"

const { server, tab } = await openDashboard()

describe("forms that edit", () => {
  interface Edited {
    readonly of: string
    /** Creates the object and returns its paths on the dashboard and in the API. */
    readonly make: () => Promise<readonly [page: string, path: string]>
    /** Concurrent changes while the form is open. */
    readonly theirs: Readonly<Record<string, unknown>>
    /** Entered values, and the resulting object. */
    readonly mine: Readonly<Record<string, string>>
    readonly becomes: Readonly<Record<string, unknown>>
    readonly wrong: Readonly<Record<string, string>>
  }

  const EDITED: ReadonlyArray<Edited> = [
    {
      of: "a customer",
      make: async () => {
        const body = { email: "ada@example.com", name: "Ada", description: "In\ntwo lines" }
        const { id } = await server.post("/v1/customers", body)
        return [`customers/${id}`, `customers/${id}`]
      },
      theirs: { name: "Countess", phone: "+44 20" },
      mine: { email: "" },
      becomes: { email: null, description: "In\ntwo lines" },
      wrong: { email: "nobody" }
    },
    {
      of: "a product",
      make: async () => {
        const images = ["https://shop.example/1.png", "https://shop.example/2.png"]
        const { id } = await server.post("/v1/products", { name: "Tea", images, description: "Green" })
        return [`products/${id}`, `products/${id}`]
      },
      theirs: { images: ["https://shop.example/3.png"], unit_label: "box" },
      mine: { name: "Green tea", description: "" },
      becomes: { name: "Green tea", description: null },
      wrong: { name: "" }
    },
    {
      of: "a price",
      make: async () => {
        const { id: product } = await server.post("/v1/products", { name: "Tea" })
        const body = { product, currency: "usd", unit_amount: 100, nickname: "One", lookup_key: product }
        const { id } = await server.post("/v1/prices", body)
        return [`prices/${id}`, `prices/${id}`]
      },
      theirs: { nickname: "Other" },
      mine: { lookup_key: "" },
      becomes: { lookup_key: null },
      wrong: { lookup_key: "x".repeat(201) }
    },
    {
      of: "an endpoint",
      make: async () => {
        const body = { url: "https://shop.example/w", enabled_events: ["charge.succeeded"] }
        const { id } = await server.post("/v1/webhook_endpoints", body)
        return [`webhooks/${id}`, `webhook_endpoints/${id}`]
      },
      theirs: { enabled_events: ["charge.succeeded", "charge.refunded"], description: "The shop" },
      mine: { url: "https://shop.example/other" },
      becomes: { url: "https://shop.example/other" },
      wrong: { url: "ftp://shop.example" }
    },
    {
      of: "a payment",
      make: async () => {
        const body = { amount: 4321, currency: "usd", description: "Order" }
        const { id } = await server.post("/v1/payment_intents", body)
        return [`payments/${id}`, `payment_intents/${id}`]
      },
      theirs: { description: "Order 6735", statement_descriptor: "LUMEN" },
      mine: { amount: "50" },
      becomes: { amount: 5000 },
      wrong: { amount: "50.123" }
    }
  ]

  const opened = async ({ make, theirs }: Edited) => {
    const [page, path] = await make()
    const form = formTo(await tab.get(`/dashboard/test/${page}`), "/edit")
    await server.post(`/v1/${path}`, theirs)
    return { ...form, current: () => server.get(`/v1/${path}`) }
  }

  it.each(EDITED)("of $of keep concurrent changes", async (edited) => {
    const { action, current, values } = await opened(edited)
    const done = await tab.post(action, { ...values, ...edited.mine })
    assert.include(done.text, 'class="said"')
    assert.deepInclude(await current(), { ...edited.theirs, ...edited.becomes })
  })

  it.each(EDITED)("of $of keep concurrent changes after a mistake, too", async (edited) => {
    const { action, current, values } = await opened(edited)
    const refused = await tab.post(action, { ...values, ...edited.wrong })
    assert.strictEqual(refused.status, 400)
    assert.include(refused.text, 'class="error"')
    const again = formTo(refused, "/edit").values
    for (const [name, value] of Object.entries(edited.wrong)) assert.strictEqual(again[name], value)
    const corrected = Object.fromEntries(Object.keys(edited.wrong).map((name) => [name, again[`seen[${name}]`]!]))
    const done = await tab.post(action, { ...again, ...corrected, ...edited.mine })
    assert.include(done.text, 'class="said"')
    assert.deepInclude(await current(), { ...edited.theirs, ...edited.becomes })
  })

  it("of the brand keep concurrent changes", async () => {
    const { action, values } = formTo(await tab.get("/dashboard/test/settings"), "/set")
    const { accounts, merchantId } = server
    await Effect.runPromise(accounts.run(INSTALLATION, Merchants.changeAppearance(merchantId, { accent: "#1b7f5e" })))
    const done = await tab.post(action, { ...values, name: "Lumen Tea" })
    assert.include(done.text, "Brand saved.")
    assert.deepInclude(formTo(done, "/set").values, { name: "Lumen Tea", accent: "#1b7f5e" })
  })

  describe("of a payment", () => {
    const pay = (parameters: object) =>
      server.post("/v1/payment_intents", { amount: 4321, currency: "usd", ...parameters })
    const formOf = async (id: string) => formTo(await tab.get(`/dashboard/test/payments/${id}`), "/edit")
    const fieldsOf = async (id: string) =>
      Object.keys((await formOf(id)).values).filter((name) => name !== "token" && !name.startsWith("seen["))

    it("have the fields that its status allows to change", async () => {
      const all = ["description", "amount", "customer", "statement_descriptor"]
      assert.deepStrictEqual(await fieldsOf((await pay({})).id), all)
      const waiting = await pay({ payment_method: "pm_card_authenticationRequired", confirm: true })
      assert.strictEqual(waiting.status, "requires_action")
      assert.deepStrictEqual(await fieldsOf(waiting.id), all)
      const paid = await pay({ payment_method: "pm_card_visa", confirm: true })
      assert.deepStrictEqual(await fieldsOf(paid.id), ["description"])
      const product = { name: "Tea", default_price_data: { currency: "usd", unit_amount: 1250 } }
      const { default_price } = await server.post("/v1/products", product)
      const { payment_intent } = await server.post("/v1/checkout_sessions", {
        mode: "payment",
        success_url: "https://shop.example/",
        line_items: [{ price: default_price, quantity: 1 }]
      })
      assert.deepStrictEqual(await fieldsOf(payment_intent), ["description", "statement_descriptor"])
    })

    it("set its customer, and report errors at the field", async () => {
      const { id } = await pay({})
      const { id: customer } = await server.post("/v1/customers", { name: "Ada" })
      for (const [entered, field] of [
        [{ customer: "cus_nobody" }, "customer"],
        [{ customer: "Ada" }, "customer"],
        [{ amount: "" }, "amount"],
        [{ amount: "0" }, "amount"],
        [{ amount: "99999999999" }, "amount"],
        [{ statement_descriptor: "x".repeat(23) }, "statement_descriptor"]
      ] as const) {
        const { action, values } = await formOf(id)
        const wrong = await tab.post(action, { ...values, ...entered })
        assert.isAtLeast(wrong.status, 400, JSON.stringify(entered))
        assert.include(wrong.text, `-${field}-error">`, JSON.stringify(entered))
      }
      const { action, values } = await formOf(id)
      await tab.post(action, { ...values, customer, description: "First\r\nsecond" })
      const { amount, description, ...changed } = await server.get(`/v1/payment_intents/${id}`)
      assert.deepStrictEqual([amount, description, changed.customer], [4321, "First\nsecond", customer])
    })

    it("are refused once it is paid, and keep the entered values", async () => {
      const { id } = await pay({ payment_method: "pm_card_visa" })
      const { action, values } = await formOf(id)
      await server.post(`/v1/payment_intents/${id}/confirm`, {})
      const late = await tab.post(action, { ...values, amount: "50" })
      assert.strictEqual(late.status, 400)
      assert.match(late.text, /role="alert">[^<]*status is &#96;succeeded&#96;/)
      assert.strictEqual((await server.get(`/v1/payment_intents/${id}`)).amount, 4321)
    })
  })
})
