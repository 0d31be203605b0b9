/** Payment links in the dashboard (semantics dashboard.payment_links). */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type Answer, type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { filledIn, pay } from "../support/fixtures/CheckoutPages.ts"
import { makeLink, open } from "../support/fixtures/PaymentLinks.ts"
import { formTo, type Page, signedIn, type Tab } from "./People.ts"
import { textOf } from "./support.ts"

let server: MemoryTillWithPages
let tab: Tab
beforeAll(async () => {
  server = await start()
  tab = await signedIn(server)
})
afterAll(() => server.close())

const send = async (path: string, end: string, entered: Readonly<Record<string, string>> = {}): Promise<Page> => {
  const form = formTo(await tab.get(`/dashboard/test${path}`), end)
  return tab.post(form.action, { ...form.values, ...entered })
}
const retrieve = (id: string): Promise<Answer> => server.get(`/v1/payment_links/${id}`)
const idIn = ({ url }: Page): string => /plink_\w+/.exec(url)![0]
const LIMIT = "restrictions[completed_sessions][limit]"
const REDIRECT = "after_completion[redirect][url]"

const tea = (): Promise<Answer> =>
  server.post("/v1/products", { name: "Tea", default_price_data: { currency: "usd", unit_amount: 1250 } })

describe("a payment link", () => {
  it("dashboard.payment_links: is made on a product's page, with what payers may choose", async () => {
    const { default_price, id: product } = await tea()
    const shown = await tab.get(`/dashboard/test/products/${product}`)
    assert.include(shown.text, `/payment-links/new?price=${default_price}`)
    const made = await send(`/payment-links/new?price=${default_price}`, "/create", {
      "line_items[0][quantity]": "2",
      "line_items[0][adjustable_quantity][enabled]": "on",
      "line_items[0][adjustable_quantity][maximum]": "8",
      [LIMIT]: "10",
      [REDIRECT]: "https://shop.example/thanks",
      inactive_message: "Sold out"
    })
    assert.include(textOf(made), "Payment link created.")
    const link = await retrieve(idIn(made))
    assert.deepInclude(link, {
      restrictions: { completed_sessions: { count: 0, limit: 10 } },
      after_completion: { type: "redirect", redirect: { url: "https://shop.example/thanks" } },
      inactive_message: "Sold out"
    })
    const [line] = (await server.get(`/v1/payment_links/${link.id}/line_items`)).data
    assert.deepInclude(line, { quantity: 2, adjustable_quantity: { enabled: true, minimum: 1, maximum: 8 } })
    assert.include(made.text, `<code class="copy">${link.url}</code>`)
    assert.include(textOf(made), "1 to 8, payers choose")
    assert.match(made.text, new RegExp(`download="payment-link-${link.id}\\.svg" href="data:image/svg\\+xml,`))
    assert.match(made.text, new RegExp(`download="payment-link-${link.id}\\.png" href="data:image/png;base64,`))
  })

  it("dashboard.payment_links: is made from a list of prices, too, with one field filled in", async () => {
    const { default_price } = await tea()
    const page = await tab.get("/dashboard/test/payment-links/new")
    assert.match(page.text, new RegExp(`<option value="${default_price}"[^>]*>Tea, 12.50 USD</option>`))
    const made = await send("/payment-links/new", "/create", { "line_items[0][price]": default_price })
    const link = await retrieve(idIn(made))
    assert.deepInclude(link, { restrictions: null, inactive_message: null })
    assert.match(textOf(await tab.get("/dashboard/test/payment-links")), /Tea 12\.50 USD active/)
  })

  it("dashboard.payment_links: explains invalid input beside its field", async () => {
    const { default_price } = await tea()
    for (const [entered, said] of [
      [{ [REDIRECT]: "javascript:alert(1)" }, /url\]-error">/],
      [{ [LIMIT]: "0" }, /limit\]-error">/],
      [{ [LIMIT]: "many" }, /limit\]-error">/],
      [{ "line_items[0][quantity]": "0" }, /\[quantity\]-error">/],
      [
        {
          "line_items[0][adjustable_quantity][enabled]": "on",
          "line_items[0][adjustable_quantity][maximum]": "x"
        },
        /maximum\]-error">/
      ]
    ] as const) {
      const wrong = await send(`/payment-links/new?price=${default_price}`, "/create", entered)
      assert.strictEqual(wrong.status, 400, JSON.stringify(entered))
      assert.match(wrong.text, said, JSON.stringify(entered))
      // The form still sells the same price.
      assert.strictEqual(formTo(wrong, "/create").values["price"], default_price)
    }
  })

  it("dashboard.payment_links: shows its state, its payments, and every change", async () => {
    const link = await makeLink(server, { restrictions: { completed_sessions: { limit: 1 } } })
    const at = `/payment-links/${link.id}`
    assert.include(textOf(await tab.get(`/dashboard/test${at}`)), "Nobody has started to pay with this link yet.")
    const session = await open(server, link)
    await pay(session, filledIn())
    const page = await tab.get(`/dashboard/test${at}`)
    const shown = textOf(page)
    assert.include(shown, "used up")
    assert.include(shown, "Completed payments 1 Limit of payments 1")
    assert.match(shown, /12\.00 USD complete paid Ana Lima/)
    assert.include(page.text, `/checkout-sessions/${session.id}"`)
    assert.include(page.text, `/payments/${session.payment_intent}"`)
    assert.include(shown, "Payment link took a payment")
    assert.include((await tab.get(`/dashboard/test/checkout-sessions/${session.id}`)).text, `${at}"`)
    assert.notInclude(textOf(await tab.get(`/dashboard/test/checkout-sessions/${session.id}`)), "One-time link")
    const filtered = await tab.get(`/dashboard/test/checkout-sessions?payment_link=${link.id}`)
    assert.include(filtered.text, session.id)
    const other = await tab.get("/dashboard/test/checkout-sessions?payment_link=plink_none")
    assert.notInclude(other.text, session.id)

    const raised = await send(at, "/edit", { [LIMIT]: "4" })
    assert.include(textOf(raised), "Payment link updated.")
    assert.deepInclude(await retrieve(link.id), {
      restrictions: { completed_sessions: { count: 1, limit: 4 } },
      after_completion: link.after_completion
    })
    await send(at, "/edit", { [LIMIT]: "", [REDIRECT]: "https://shop.example/", inactive_message: "Soon\nagain" })
    assert.deepInclude(await retrieve(link.id), {
      restrictions: null,
      after_completion: { type: "redirect", redirect: { url: "https://shop.example/" } },
      inactive_message: "Soon\nagain"
    })
    assert.include(textOf(await send(at, "/deactivate")), "Payment link deactivated.")
    assert.isFalse((await retrieve(link.id)).active)
    assert.include(textOf(await tab.get(`/dashboard/test${at}`)), "Payment link deactivated active")
    assert.include((await tab.get("/dashboard/test/payment-links?status=inactive")).text, link.id)
    assert.notInclude((await tab.get("/dashboard/test/payment-links?status=active")).text, link.id)
    assert.include(textOf(await send(at, "/activate")), "Payment link activated.")
    assert.isTrue((await retrieve(link.id)).active)
  })

  it("dashboard.find: is found by its id and by a line's", async () => {
    const link = await makeLink(server)
    const [line] = (await server.get(`/v1/payment_links/${link.id}/line_items`)).data
    for (const id of [link.id, line.id]) {
      const found = await tab.get(`/dashboard/test/find?query=${id}`)
      assert.strictEqual(new URL(found.url).pathname, `/dashboard/test/payment-links/${link.id}`)
    }
  })

  it("is of no other merchant and environment", async () => {
    const link = await makeLink(server)
    const support = await signedIn(server, "support")
    assert.strictEqual((await support.get(`/dashboard/test/payment-links/${link.id}`)).status, 200)
    assert.strictEqual((await support.get("/dashboard/test/payment-links/new")).status, 403)
    assert.strictEqual((await tab.get(`/dashboard/live/payment-links/${link.id}`)).status, 404)
  })
})

describe("live mode", () => {
  it("dashboard.live_mode: says on every page that no card can be taken, until a processor is connected", async () => {
    const link = await makeLink(server, {}, { key: server.secretLive })
    const product = await server.post("/v1/products", { name: "Tea" }, { key: server.secretLive })
    const price_data = { currency: "usd", product: product.id, unit_amount: 100 }
    const body = { mode: "payment", success_url: "https://shop.example/", line_items: [{ price_data }] }
    const session = await server.post("/v1/checkout_sessions", body, { key: server.secretLive })
    const links = [`/payment-links/${link.id}`, `/checkout-sessions/${session.id}`]
    for (const path of [
      "",
      "/payments",
      "/customers",
      "/products",
      "/developers",
      "/team",
      "/payment-links",
      ...links
    ]) {
      const live = await tab.get(`/dashboard/live${path}`)
      assert.strictEqual(live.status, 200, path)
      assert.include(textOf(live), "Lumen Coffee cannot take cards yet. No card processor is connected", path)
      assert.include(live.text, `href="${server.url}/docs/guide/live"`)
      const isLink = (links as ReadonlyArray<string>).includes(path)
      assert.strictEqual(live.text.includes("Nobody can pay with this link"), isLink, path)
    }
    for (const path of ["", "/payment-links"]) {
      assert.notInclude((await tab.get(`/dashboard/test${path}`)).text, "cannot take cards yet")
    }
    const simulating = await start({ liveProcessor: "simulator" })
    try {
      const owner = await signedIn(simulating)
      const open = await makeLink(simulating, {}, { key: simulating.secretLive })
      for (const path of ["", `/payment-links/${open.id}`]) {
        const { status, text } = await owner.get(`/dashboard/live${path}`)
        assert.strictEqual(status, 200)
        assert.notInclude(text, "cannot take cards yet")
        assert.notInclude(text, "No payer can pay")
      }
    } finally {
      await simulating.close()
    }
  })
})
