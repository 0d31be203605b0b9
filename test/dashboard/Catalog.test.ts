/** Customers, products and prices on the dashboard, without scripts (semantics dashboard.amounts). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { amountText, plainAmount } from "../../src/dashboard/frame/Values.ts"
import { lineAmount } from "../../src/domain/PriceArithmetic.ts"
import { start } from "../support/MemoryTillWithPages.ts"
import { pay, visit } from "../support/fixtures/CheckoutPages.ts"
import { formTo, openTab, type Page, signedIn } from "./People.ts"
import { openDashboard, textIn, textOf } from "./support.ts"

const { server, tab } = await openDashboard()

describe("the dashboard's", () => {
  const send = async (page: string, end: string, entered: Readonly<Record<string, string>>) => {
    const { action, values } = formTo(await tab.get(`/dashboard/test${page}`), end)
    return await tab.post(action, { ...values, ...entered })
  }
  const idIn = ({ url }: Page): string => new URL(url).pathname.split("/").at(-1)!

  describe("customers", () => {
    it("are created, found by part of the email or name, changed and deleted", async () => {
      const made = await send("/customers", "/create", { email: "Ada@Example.com", name: "Ada Lovelace" })
      const id = idIn(made)
      assert.match(id, /^cus_/)
      assert.include(textOf(made), "Customer created.")
      await send("/customers", "/create", { email: "charles@example.com", name: "Charles" })
      for (const query of ["email=ada%40ex", "name=LOVELACE", "email=ada@example.com&name=ada"]) {
        const found = textOf(await tab.get(`/dashboard/test/customers?${query}`))
        assert.include(found, "Ada Lovelace")
        assert.notInclude(found, "Charles")
      }
      assert.include(textOf(await tab.get("/dashboard/test/customers?name=nobody")), "No customers match this search.")
      assert.include(textOf(await tab.get("/dashboard/test/customers?name=no")), "Enter at least 3 characters")
      const changed = await send(`/customers/${id}`, "/edit", { email: "", name: "Countess" })
      assert.include(textOf(changed), "Countess")
      assert.deepInclude(await server.get(`/v1/customers/${id}`), { email: null, name: "Countess" })
      const gone = await send(`/customers/${id}`, "/delete", {})
      assert.include(textOf(gone), "Customer deleted.")
      assert.isTrue((await server.get(`/v1/customers/${id}`)).deleted)
      assert.strictEqual((await tab.get(`/dashboard/test/customers/${id}`)).status, 404)
    })

    it("are listed with their email once if they have no name", async () => {
      const { id } = await server.post("/v1/customers", { email: "nameless@example.com" })
      const list = textOf(await tab.get("/dashboard/test/customers"))
      assert.lengthOf(list.match(/nameless@example\.com/g)!, 1)
      await server.post(`/v1/customers/${id}`, { name: "Named" })
      assert.include(textOf(await tab.get("/dashboard/test/customers")), "Named nameless@example.com")
    })

    it("show their payments and their saved cards, which can be detached", async () => {
      const { id } = await server.post("/v1/customers", { name: "Payer" })
      const { id: card } = await server.post("/v1/payment_methods/pm_card_mastercard/attach", { customer: id })
      const payment = await server.post("/v1/payment_intents", {
        amount: 4321,
        currency: "usd",
        customer: id,
        payment_method: card,
        confirm: true
      })
      const page = await tab.get(`/dashboard/test/customers/${id}`)
      assert.match(textOf(page), /43\.21 USD .*Mastercard ···· 4444/)
      assert.include(page.text, `/payments/${payment.id}"`)
      const detached = textOf(await send(`/customers/${id}`, `/${card}/detach`, {}))
      assert.include(detached, "Card removed.")
      assert.include(detached, "No saved cards. Your website can offer to save the card")
      assert.isNull((await server.get(`/v1/payment_methods/${card}`)).customer)
    })

    it("are refused beside the invalid field, in the API's words", async () => {
      const wrong = await send("/customers", "/create", { email: "nobody", name: "x" })
      assert.strictEqual(wrong.status, 400)
      const { error } = await server.post("/v1/customers", { email: "nobody" }, { status: 400 })
      assert.match(wrong.text, /<p class="error" id="[^"]*-email-error">/)
      assert.include(wrong.text, error.message.replace("The `email` field", "This"))
    })
  })

  describe("products", () => {
    it("are created with a price, changed, archived and activated", async () => {
      const made = await send("/products", "/create", {
        name: "Tea",
        "default_price_data[unit_amount]": "12.5",
        "default_price_data[currency]": "EUR",
        "default_price_data[recurring][interval]": "month"
      })
      const id = idIn(made)
      assert.include(textOf(made), "12.50 EUR / month")
      const { default_price } = await server.get(`/v1/products/${id}`)
      for (const page of ["/products", `/products/${id}/prices`, `/prices/${default_price}`]) {
        assert.include(textOf(await tab.get(`/dashboard/test${page}`)), "Till has no subscriptions that charge again")
      }
      assert.include(textOf(await tab.get("/dashboard/test/products")), "12.50 EUR / month")
      const images = "https://shop.example/1.png\nhttps://shop.example/2.png"
      await send(`/products/${id}`, "/edit", { name: "Green tea", images })
      assert.deepInclude(await server.get(`/v1/products/${id}`), { name: "Green tea", images: images.split("\n") })
      const archived = await send(`/products/${id}`, `${id}/archive`, {})
      assert.include(textOf(archived), "Product archived.")
      assert.notInclude(textOf(await tab.get("/dashboard/test/products")), "Green tea")
      assert.include(textOf(await tab.get("/dashboard/test/products?status=archived")), "Green tea")
      assert.include(textOf(await send(`/products/${id}`, `${id}/activate`, {})), "Product activated.")
    })

    it("report an invalid amount or currency", async () => {
      const amount = "default_price_data[unit_amount]"
      const currency = "default_price_data[currency]"
      for (const [entered, field] of [
        [{ [amount]: "1.234" }, amount],
        [{ [amount]: "<script>" }, amount],
        [{ [amount]: "5", [currency]: "<script>" }, currency],
        [{ [amount]: "5", [currency]: "zzzz" }, currency],
        [{ [amount]: "99999999999.99" }, amount],
        [{ name: "" }, "name"]
      ] as const) {
        const wrong = await send("/products", "/create", { name: "Tea", ...entered })
        assert.strictEqual(wrong.status, 400, JSON.stringify(entered))
        assert.include(wrong.text, `-${field}-error">`, JSON.stringify(entered))
      }
    })
  })

  describe("prices", () => {
    const product = async () => (await server.post("/v1/products", { name: "Seat" })).id
    const add = async (id: string, entered: Readonly<Record<string, string>>) =>
      await send(`/products/${id}/prices`, "/prices/create", entered)

    /** The rows of the form's table of tiers. */
    const tiersOf = (...rows: ReadonlyArray<readonly [up_to: string, each: string, flat?: string]>) =>
      Object.fromEntries(
        rows.flatMap(([up_to, each, flat = ""], row) => [
          [`tiers[${row}][up_to]`, up_to],
          [`tiers[${row}][unit_amount]`, each],
          [`tiers[${row}][flat_amount]`, flat]
        ])
      )

    it("with tiers show the amounts that are billed", async () => {
      const id = await product()
      const page = await add(id, {
        tiers_mode: "graduated",
        ...tiersOf(["10", "5.00"], ["20", "4", "2.50"], ["", "3.00"])
      })
      assert.strictEqual(page.status, 200, textOf(page))
      const [price] = (await server.get(`/v1/prices?product=${id}`)).data
      assert.deepStrictEqual(
        price.tiers.map((tier: Record<string, unknown>) => [tier["up_to"], tier["unit_amount"], tier["flat_amount"]]),
        [
          [10, 500, null],
          [20, 400, 250],
          [null, 300, null]
        ]
      )
      const shown = textOf(page)
      assert.include(shown, "1 to 10 5.00 USD – 11 to 20 4.00 USD 2.50 USD 21 and more 3.00 USD –")
      assert.include(
        shown,
        "Quantity Amount 1 5.00 USD 10 50.00 USD 11 56.50 USD 20 92.50 USD 21 95.50 USD 40 152.50 USD"
      )
      for (const quantity of [11, 40]) {
        const session = await server.post("/v1/checkout_sessions", {
          mode: "payment",
          success_url: "https://shop.example/",
          line_items: [{ price: price.id, quantity }]
        })
        assert.include(shown, ` ${quantity} ${(session.amount_total / 100).toFixed(2)} USD`)
      }
    })

    it("can have packages, a payer-chosen amount, and an interval", async () => {
      const id = await product()
      const packages = await add(id, {
        unit_amount: "50",
        "transform_quantity[divide_by]": "12",
        "transform_quantity[round]": "up"
      })
      assert.include(
        textOf(packages),
        "1 50.00 USD 12 50.00 USD 13 100.00 USD 24 100.00 USD 25 150.00 USD 120 500.00 USD"
      )
      const custom = await add(id, {
        "custom_unit_amount[enabled]": "on",
        "custom_unit_amount[minimum]": "3",
        currency: "eur"
      })
      assert.include(textOf(custom), "Payer chooses, from 3.00 EUR")
      const recurring = await add(id, {
        unit_amount: "500",
        currency: "jpy",
        "recurring[interval]": "week",
        "recurring[interval_count]": "2"
      })
      assert.include(textOf(recurring), "500 JPY every 2 weeks")
    })

    it("can become the default, be archived and activated", async () => {
      const id = await product()
      await add(id, { unit_amount: "5" })
      const [price] = (await server.get(`/v1/prices?product=${id}`)).data
      await send(`/products/${id}`, `${price.id}/default`, {})
      assert.strictEqual((await server.get(`/v1/products/${id}`)).default_price, price.id)
      await send(`/products/${id}`, `${price.id}/archive`, {})
      assert.isFalse((await server.get(`/v1/prices/${price.id}`)).active)
      await send(`/products/${id}`, `${price.id}/activate`, {})
      assert.isTrue((await server.get(`/v1/prices/${price.id}`)).active)
    })

    /** The same form, sent by its preview button. */
    const preview = async (id: string, entered: Readonly<Record<string, string>>) =>
      await add(id, { ...entered, preview: "on" })

    const cellsIn = ({ text }: Page) =>
      [...text.matchAll(/<td[^>]*>([\s\S]*?)<\/td>/g)].map(([, cell]) => textIn(cell!))

    const tier = Schema.Struct({
      units: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1000 })),
      each: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100_000 })),
      flat: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100_000 })))
    })

    it.effect.prop(
      "have the same amounts in the preview and after creation",
      {
        tiers: Schema.NonEmptyArray(tier).check(Schema.isMaxLength(4)),
        mode: Schema.Literals(["graduated", "volume"]),
        currency: Schema.Literals(["usd", "jpy", "kwd"])
      },
      ({ currency, mode, tiers }) =>
        Effect.promise(async () => {
          const id = await product()
          let end = 0
          const rows = tiers.map(({ each, flat, units }, index) => {
            end += units
            const last = index === tiers.length - 1 ? "" : String(end)
            return [last, plainAmount(each, currency), flat === undefined ? "" : plainAmount(flat, currency)] as const
          })
          const entered = { currency, tiers_mode: mode, ...tiersOf(...rows) }
          const previewed = await preview(id, entered)
          assert.strictEqual(previewed.status, 200)
          assert.deepStrictEqual((await server.get(`/v1/prices?product=${id}`)).data, [])
          await add(id, entered)
          const [price] = (await server.get(`/v1/prices?product=${id}`)).data
          const cells = cellsIn({ ...previewed, text: previewed.text.slice(previewed.text.indexOf('id="preview"')) })
          assert.deepStrictEqual(
            cells,
            cellsIn(await tab.get(`/dashboard/test/prices/${price.id}`)).slice(0, cells.length)
          )
          for (const [index, cell] of cells.slice(3 * tiers.length).entries()) {
            const quantity = cells[3 * tiers.length + index - 1]
            if (index % 2 === 1) assert.strictEqual(cell, amountText(lineAmount(price, Number(quantity))!, currency))
          }
        }),
      { arbitrary: { runs: 10 } }
    )

    it("are previewed in every kind, without being created", async () => {
      const id = await product()
      const form = formTo(await tab.get(`/dashboard/test/products/${id}/prices`), "/prices/create")
      const before = await server.journal()
      const table = "Amounts by quantity for this price Quantity Amount"
      for (const [entered, shown] of [
        [
          { unit_amount: "12", "recurring[interval]": "month" },
          `12.00 USD / month ${table} 1 12.00 USD 2 24.00 USD 10 120.00 USD This`
        ],
        [
          { unit_amount: "50", "transform_quantity[divide_by]": "12", "transform_quantity[round]": "up" },
          `50.00 USD for 12, rounded up ${table} 1 50.00 USD 12 50.00 USD 13 100.00 USD`
        ],
        [
          {
            "custom_unit_amount[enabled]": "on",
            "custom_unit_amount[minimum]": "3",
            "custom_unit_amount[preset]": "5"
          },
          "Minimum 3.00 USD Maximum – Suggested 5.00 USD This"
        ]
      ] as const) {
        const page = await tab.post(form.action, { ...form.values, ...entered, preview: "on" })
        assert.strictEqual(page.status, 200)
        const seen = textOf(page)
        assert.include(seen, shown)
        assert.include(seen, "This price is not added yet.")
        const again = formTo(page, "/prices/create").values
        for (const [name, value] of Object.entries(entered)) {
          if (!/interval\]|round/.test(name)) assert.strictEqual(again[name], value, name)
        }
      }
      assert.strictEqual(await server.journal(), before)
      // After a preview, the previewed form and the form of the preview page can both be sent.
      const last = formTo(await tab.post(form.action, { ...form.values, unit_amount: "1", preview: "on" }), "/create")
      for (const { action, values } of [form, last, form]) {
        assert.include(textOf(await tab.post(action, { ...values, unit_amount: "1" })), "Price added.")
      }
      assert.lengthOf((await server.get(`/v1/prices?product=${id}`)).data, 2)
    })

    it("begin with two fields, and show others where they have a value or an error", async () => {
      const id = await product()
      const openIn = ({ text }: Page) =>
        [...text.matchAll(/<details class="more" open="">\s*<summary>([^<]*)/g)].map(([, title]) => title)
      const empty = await tab.get(`/dashboard/test/products/${id}/prices`)
      assert.deepStrictEqual(openIn(empty), [])
      assert.lengthOf(empty.text.match(/<details class="more"/g)!, 5)
      const outside = empty.text.replaceAll(/<details class="more"[\s\S]*?<\/details>/g, "")
      const fields = [...outside.matchAll(/<label for="[^"]*">([^<]*)<\/label>/g)].map(([, label]) => label)
      assert.deepStrictEqual(fields, ["Price", "Currency"])
      const wrong = await preview(id, { unit_amount: "5", "transform_quantity[divide_by]": "many" })
      assert.deepStrictEqual(openIn(wrong), ["Packages of several units"])
      const named = await preview(id, { unit_amount: "5", nickname: "By the box" })
      assert.deepStrictEqual(openIn(named), ["Name and lookup key"])
    })

    it("have a table of tiers that grows by a button, and keeps what was entered", async () => {
      const id = await product()
      const before = await server.journal()
      const { action, values } = formTo(await tab.get(`/dashboard/test/products/${id}/prices`), "/prices/create")
      const rowsOf = (fields: object) => Object.keys(fields).filter((name) => name.endsWith("[up_to]")).length
      assert.strictEqual(rowsOf(values), 3)
      const entered = { currency: "eur", ...tiersOf(["10", "5.00"], ["20", "not yet"], ["30", "3"]) }
      const grown = await tab.post(action, { ...values, ...entered, add_tier: "4" })
      assert.strictEqual(grown.status, 200)
      assert.notInclude(grown.text, 'class="error"')
      assert.match(grown.text, /<input\s[^>]*name="tiers\[3\]\[up_to\]"[^>]*autofocus=""/)
      const again = formTo(grown, "/prices/create").values
      assert.deepInclude(again, entered)
      assert.strictEqual(rowsOf(again), 4)
      assert.strictEqual(await server.journal(), before)
      for (const asked of ["100000", "-1", "1e9", "x"]) {
        const { text } = await tab.post(action, { ...again, add_tier: asked })
        assert.isAtMost(text.match(/\[up_to\]"/g)!.length, 300)
      }
      const corrected = { ...again, ...tiersOf(["10", "5"], ["20", "4"], ["30", "3"], ["", "2"]), tiers_mode: "volume" }
      assert.include(textOf(await tab.post(action, corrected)), "Price added.")
      const [price] = (await server.get(`/v1/prices?product=${id}`)).data
      assert.lengthOf(price.tiers, 4)
    })

    it("report errors at the field or above the form, in previews too", async () => {
      const id = await product()
      await add(id, { unit_amount: "5", lookup_key: "taken" })
      for (const [entered, said] of [
        [{}, /-unit_amount-error">/],
        [{ unit_amount: "5", currency: "" }, /-currency-error">/],
        [{ unit_amount: "5", "custom_unit_amount[enabled]": "on" }, /-unit_amount-error">/],
        [{ tiers_mode: "volume" }, /-tiers-error">/],
        [tiersOf(["10", "1.00"], ["", "2"]), /-tiers_mode-error">/],
        [{ tiers_mode: "volume", ...tiersOf(["ten", "1.00"]) }, /Tier 1, up to unit: Enter a whole number/],
        [{ tiers_mode: "volume", ...tiersOf(["10", "1.001"]) }, /Tier 1, price per unit: Enter at most 2 decimals/],
        [
          { tiers_mode: "volume", ...tiersOf(["10", "1"], ["5", "2"], ["", "1"]) },
          /tiers\[1\]\[up_to\]-error">Tier 2, up to unit: Enter a number above 10\./
        ],
        [{ tiers_mode: "volume", ...tiersOf(["0", "1"]) }, /Tier 1, up to unit: Enter a number above 0\./],
        [
          { tiers_mode: "volume", ...tiersOf(["", "1"], ["10", "2"]) },
          /tiers\[0\]\[up_to\]-error">Tier 1, up to unit: Only the last tier can be without a limit\./
        ],
        [
          { tiers_mode: "volume", ...tiersOf(["10", "1"], ["20", "2"]) },
          /Tier 2, up to unit: The last tier has no limit/
        ],
        [{ tiers_mode: "volume", ...tiersOf(["", "", "x"]) }, /Tier 1, flat fee: Enter an amount/],
        [
          { tiers_mode: "volume", ...tiersOf(["10", "1"], ["", ""], ["", "1"]) },
          /tiers\[1\]\[up_to\]-error">Tier 2, up to unit: Fill in this row/
        ],
        [{ unit_amount: "5", lookup_key: "taken" }, /-lookup_key-error">/],
        [
          { unit_amount: "5", "recurring[interval]": "year", "recurring[interval_count]": "4" },
          /interval_count\]-error">/
        ],
        [
          { unit_amount: "5", "transform_quantity[divide_by]": "many", "transform_quantity[round]": "up" },
          /divide_by\]-error">/
        ]
      ] as const) {
        const before = await server.journal()
        const previewed = await preview(id, entered)
        assert.strictEqual(await server.journal(), before)
        for (const wrong of [previewed, await add(id, entered)]) {
          assert.strictEqual(wrong.status, 400, JSON.stringify(entered))
          assert.match(wrong.text, said, JSON.stringify(entered))
          assert.notInclude(textOf(wrong), "This price is not added yet.")
        }
      }
      assert.lengthOf((await server.get(`/v1/prices?product=${id}`)).data, 1)
    })
  })

  describe("checkout sessions", () => {
    const tea = () =>
      server.post("/v1/products", { name: "Tea", default_price_data: { currency: "usd", unit_amount: 1250 } })

    it("dashboard.one_time_links: are created as a one-time link, shown with their outcome, and expired", async () => {
      const { default_price, id } = await tea()
      const entered = { "line_items[0][quantity]": "3", success_url: "https://shop.example/thanks" }
      const made = await send(`/products/${id}`, `${default_price}/link`, entered)
      const session = await server.get(`/v1/checkout_sessions/${idIn(made)}`)
      assert.deepInclude(session, { amount_total: 3750, status: "open", success_url: entered.success_url })
      assert.include(made.text, `<code class="copy">${session.url}</code>`)
      assert.match(textOf(made), /37\.50 USD .*Tea 3 .*37\.50 USD/)
      assert.include(made.text, `/payments/${session.payment_intent}"`)
      const payment = await tab.get(`/dashboard/test/payments/${session.payment_intent}`)
      assert.include(payment.text, `/checkout-sessions/${session.id}"`)
      assert.include((await tab.get("/dashboard/test/checkout-sessions?status=open")).text, session.id)
      const expired = await send(`/checkout-sessions/${session.id}`, "/expire", {})
      assert.include(textOf(expired), "Checkout closed.")
      assert.include(textOf(made), "One-time link created.")
      assert.include(textOf(made), "This link works for one payment.")
      assert.notInclude(textOf(expired), "One-time link")
      assert.notInclude((await tab.get("/dashboard/test/checkout-sessions?status=open")).text, session.id)
      assert.include((await tab.get("/dashboard/test/checkout-sessions")).text, session.id)
    })

    it("end on Till's own confirmation page without a success URL", async () => {
      const { default_price, id } = await tea()
      const made = await send(`/products/${id}`, `${default_price}/link`, {})
      const session = await server.get(`/v1/checkout_sessions/${idIn(made)}`)
      assert.strictEqual(session.success_url, `${new URL(session.url).origin}/checkout/{CHECKOUT_SESSION_ID}`)
      const paid = await pay(session)
      assert.strictEqual(paid.headers.get("location"), session.url, paid.text)
      const said = await visit(session.url)
      assert.include(said.text, "This order is paid")
      assert.notInclude(said.text, "Go back to")
    })

    it("show the payer, and never the client secret", async () => {
      const { default_price } = await tea()
      const session = await server.post("/v1/checkout_sessions", {
        mode: "payment",
        ui_mode: "embedded",
        line_items: [{ price: default_price, quantity: 1 }]
      })
      await server.post(`/v1/checkout_sessions/${session.id}/confirm`, {
        payment_method: "pm_card_visa",
        customer_details: { email: "payer@example.com", name: "Somebody" }
      })
      const page = await tab.get(`/dashboard/test/checkout-sessions/${session.id}`)
      assert.match(textOf(page), /complete paid .*Somebody payer@example\.com/)
      assert.notInclude(page.text, session.client_secret)
      assert.match(textOf(await tab.get("/dashboard/test/checkout-sessions")), /complete Somebody cs_/)
    })

    it("explain invalid input", async () => {
      const { default_price, id } = await tea()
      for (const [entered, said] of [
        [{ success_url: "javascript:alert(1)" }, /-success_url-error">/],
        [{ success_url: "https://shop.example/", "line_items[0][quantity]": "0" }, /quantity\]-error">/],
        [{ success_url: "https://shop.example/", "line_items[0][quantity]": "many" }, /quantity\]-error">/]
      ] as const) {
        const wrong = await send(`/products/${id}`, `${default_price}/link`, entered)
        assert.strictEqual(wrong.status, 400, JSON.stringify(entered))
        assert.match(wrong.text, said, JSON.stringify(entered))
      }
    })
  })

  it("filters accept any text as a currency", async () => {
    for (const currency of ["x", "<s>", "EUR"]) {
      const page = await tab.get(`/dashboard/test/payments?${new URLSearchParams({ currency, amount: "1" })}`)
      assert.strictEqual(page.status, 200, currency)
    }
  })

  it("pages show nothing of another merchant or environment", async () => {
    const other = await start({ merchantName: "Other" })
    const stranger = await signedIn(other)
    const { id: customer } = await server.post("/v1/customers", { name: "Mine" })
    const { id: product } = await server.post("/v1/products", { name: "Mine" })
    const price = await server.post("/v1/prices", { product, currency: "usd", unit_amount: 100 })
    const { id: session } = await server.post("/v1/checkout_sessions", {
      mode: "payment",
      success_url: "https://shop.example/",
      line_items: [{ price: price.id, quantity: 1 }]
    })
    const paths = [
      `customers/${customer}`,
      `products/${product}`,
      `products/${product}/prices`,
      `checkout-sessions/${session}`
    ]
    for (const path of paths) {
      assert.strictEqual((await tab.get(`/dashboard/test/${path}`)).status, 200)
      assert.strictEqual((await tab.get(`/dashboard/live/${path}`)).status, 404)
      assert.strictEqual((await stranger.get(`/dashboard/test/${path}`)).status, 404)
      assert.include((await openTab(server).get(`/dashboard/test/${path}`)).url, "/sign-in")
    }
    assert.strictEqual((await tab.get(`/dashboard/test/customers/${product}`)).status, 404)
    await other.close()
  })
})
