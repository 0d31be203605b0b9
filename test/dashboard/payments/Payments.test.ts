/** Searching payments, and downloading them as a file (semantics dashboard.files). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readPaymentQuery } from "../../../src/dashboard/payments/PaymentSearch.ts"
import { Accounts } from "../../../src/engine/Accounts.ts"
import type { Answer } from "../../support/MemoryTillWithPages.ts"
import { cellsIn } from "../Csv.ts"
import { basic } from "../../support/HttpExchange.ts"
import { visit } from "../../support/fixtures/CheckoutPages.ts"
import { openTab } from "../People.ts"
import { openDashboard } from "../support.ts"

const { server, tab } = await openDashboard("support")

describe("payments of the dashboard", () => {
  const pay = (parameters: object = {}): Promise<Answer> =>
    server.post("/v1/payment_intents", {
      amount: 4321,
      currency: "usd",
      payment_method: "pm_card_visa",
      confirm: true,
      ...parameters
    })
  const declined = async (card: string, parameters: object = {}): Promise<string> => {
    const refused = await server.post(
      "/v1/payment_intents",
      { amount: 4321, currency: "usd", payment_method: card, confirm: true, ...parameters },
      { status: 402 }
    )
    return refused.error.payment_intent.id
  }
  const idsIn = (text: string) =>
    [...text.matchAll(/<td role="cell" class="end"[^>]*>\s*<a href="[^"]*\/payments\/(pi_\w+)"/g)].map(([, id]) => id!)
  const search = async (query: string, more: Readonly<Record<string, string>> = {}) =>
    await tab.get(`/dashboard/test/payments?${new URLSearchParams({ query, ...more })}`)

  it("are shown as failed, refunded or partly refunded, in lists and on their pages", async () => {
    const currency = "pln"
    const refund = (payment_intent: string, amount: number) => server.post("/v1/refunds", { payment_intent, amount })
    const [whole, part, paid] = [await pay({ currency }), await pay({ currency }), await pay({ currency })]
    const fresh = await pay({ currency, confirm: false, payment_method: undefined })
    const failed = await declined("pm_card_insufficient_funds", { currency })
    await refund(part.id, 21)
    assert.notInclude((await tab.get(`/dashboard/test/payments/${whole.id}`)).text, "Refunds of this payment")
    for (const amount of [4000, 321]) await refund(whole.id, amount)
    const badgeIn = (text: string) => /<span class="badge (\w+)">([^<]+)</.exec(text)!.slice(1).join(" ")
    const list = (await search("", { currency })).text
    for (const [id, badge] of [
      [whole.id, "plain refunded"],
      [part.id, "plain partly refunded"],
      [paid.id, "good succeeded"],
      [fresh.id, "wait waiting for a card"],
      [failed, "bad failed"]
    ] as const) {
      assert.strictEqual(badgeIn(list.slice(list.indexOf(`/payments/${id}`))), badge)
      const page = (await tab.get(`/dashboard/test/payments/${id}`)).text
      assert.strictEqual(badgeIn(page), badge)
      assert.strictEqual(page.includes("<dt>Refunded</dt>"), id === whole.id || id === part.id)
    }
  })

  it("are neither shown nor downloaded for an invalid filter, which has an error", async () => {
    await pay()
    for (const [filter, wrong] of [
      ["amount", "abc"],
      ["amount", "12.345"],
      ["amount", "10-x"],
      ["from", "2026-02-30x"],
      ["until", "yesterday"],
      ["metadata", "order"],
      ["metadata", ":6735"]
    ] as const) {
      const page = await search("", { [filter]: wrong, status: "succeeded" })
      assert.deepStrictEqual([wrong, page.status, idsIn(page.text)], [wrong, 400, []])
      assert.match(page.text, new RegExp(`<p class="error" id="filter-${filter}-error">Enter `))
      const file = await tab.get(`/dashboard/test/payments.csv?${new URLSearchParams({ [filter]: wrong })}`)
      assert.include(file.url, "/dashboard/test/payments?")
    }
  })

  it("are not searched by an email with a blank, whose error explains the plus sign", async () => {
    await server.post("/v1/customers", { email: "ada+shop@example.com" })
    for (const [list, field] of [
      ["payments", "customer"],
      ["customers", "email"]
    ]) {
      const wrong = await tab.get(`/dashboard/test/${list}?${field}=ada+shop@example.com`)
      assert.strictEqual(wrong.status, 400)
      assert.match(
        wrong.text,
        new RegExp(`id="filter-${field}-error">An email cannot contain a blank.*, write \\+ as %2B`)
      )
      assert.include(wrong.text, "read this search.")
      const file = await tab.get(`/dashboard/test/${list}.csv?${field}=ada+shop@example.com`)
      assert.include(file.url, `/dashboard/test/${list}?`)
      assert.strictEqual((await tab.get(`/dashboard/test/${list}?${field}=ada%2Bshop@example.com`)).status, 200)
    }
  })

  it.each(["+", " ", "- ", ".", ",", "0'", "1 ", "\u0301", "–", "1.", "9"])(
    "are refused quickly for an amount of 200,000 times %j",
    async (piece) => {
      const query = new URLSearchParams({ amount: `1${piece.repeat(200_000)}x` })
      const asked = Effect.provideService(
        readPaymentQuery({ account: "mer_x:test", query, zone: "UTC" }),
        Accounts,
        server.accounts
      )
      assert.match((await Effect.runPromise(asked)).problems!["amount"]!, /^Enter /)
    }
  )

  it("have their customers' names in the file, also of a deleted customer's payments", async () => {
    const named = await server.post("/v1/customers", { name: "Søren Ærø", email: "soren@example.com" })
    const gone = await server.post("/v1/customers", { name: "Gone" })
    const metadata = { test: "names" }
    const reachable = await server.post("/v1/customers", { email: "only@example.com" })
    const guest = await server.post("/v1/payment_methods", {
      type: "card",
      card: { number: "4242424242424242", exp_month: 12, exp_year: 2034, cvc: "123" },
      billing_details: { name: "Guest", email: "guest@example.com" }
    })
    const ids = [
      (await pay({ customer: named.id, metadata })).id,
      (await pay({ customer: gone.id, metadata })).id,
      (await pay({ metadata })).id,
      (await pay({ customer: reachable.id, metadata })).id,
      (await pay({ metadata, payment_method: guest.id })).id
    ]
    await server.request("DELETE", `/v1/customers/${gone.id}`)
    const [head, ...lines] = cellsIn((await tab.get("/dashboard/test/payments.csv?metadata=test:names")).text)
    const names = ["Payment ID", "Customer ID", "Customer", "Customer email", "Status"]
    const places = names.map((name) => head!.indexOf(name))
    assert.deepStrictEqual(
      lines.map((line) => places.map((place) => line[place])),
      [
        [ids[4], "", "Guest", "guest@example.com", "Succeeded"],
        [ids[3], reachable.id, "only@example.com", "only@example.com", "Succeeded"],
        [ids[2], "", "", "", "Succeeded"],
        [ids[1], gone.id, gone.id, "", "Succeeded"],
        [ids[0], named.id, "Søren Ærø", "soren@example.com", "Succeeded"]
      ]
    )
  })

  it("are found by API queries, ids, a card's last digits and a payer's email", async () => {
    const customer = await server.post("/v1/customers", { email: "Ada@Example.com" })
    const other = await server.post("/v1/customers", { email: "ada@example.com" })
    const first = await pay({ amount: 777, customer: customer.id, metadata: { order: "6735" } })
    const second = await pay({ amount: 999, customer: other.id, payment_method: "pm_card_mastercard" })
    const [found, both] = [[first.id], [second.id, first.id]]
    for (const [query, ids, more] of [
      ['amount<1000 AND metadata["order"]:"6735"', found],
      [`amount:777 OR amount:999`, both],
      ["", both, { amount: "7-10" }],
      ["", both, { amount: "7 – 20", last4: "" }],
      ["", found, { amount: "7-9" }],
      [`amount:777 OR amount:999`, found, { customer: customer.id }],
      ["amount<1000", found, { customer: customer.id }],
      [first.id, found],
      [customer.id, found],
      ["4444", [second.id]],
      ["order 6735", found],
      ["Mastercard •••• 4444", [second.id]],
      ["7.77", found],
      ["ada 9,99 $", [second.id]],
      ["ada@example.com", both],
      ["ADA@example.com", found, { last4: "4242" }],
      ["nobody@example.com", []]
    ] as ReadonlyArray<readonly [string, ReadonlyArray<string>, Record<string, string>?]>) {
      const page = await search(query, more)
      assert.strictEqual(page.status, 200)
      assert.deepStrictEqual(idsIn(page.text), ids, query)
    }
  })

  it("are found by the last decline, combined with every other filter", async () => {
    const marked = { metadata: { test: "declines" } }
    const poor = await declined("pm_card_insufficient_funds", marked)
    const lost = await declined("pm_card_lost_card", marked)
    const poorer = await declined("pm_card_insufficient_funds", { ...marked, amount: 9900 })
    const retried = await declined("pm_card_insufficient_funds", marked)
    await server.post(`/v1/payment_intents/${retried}/confirm`, { payment_method: "pm_card_visa" })
    const paid = await pay(marked)
    const found = async (filters: Readonly<Record<string, string>>) =>
      idsIn((await search("", { metadata: "test:declines", ...filters })).text)
    assert.deepStrictEqual(await found({}), [paid.id, retried, poorer, lost, poor])
    assert.deepStrictEqual(await found({ decline: "insufficient_funds" }), [poorer, poor])
    assert.deepStrictEqual(await found({ decline: "insufficient_funds", amount: "99" }), [poorer])
    assert.deepStrictEqual(await found({ decline: "lost_card", query: "amount:1 OR amount:4321" }), [lost])
    assert.deepStrictEqual(await found({ decline: "insufficient_funds", query: "amount:1 OR amount:4321" }), [poor])
    assert.deepStrictEqual(await found({ decline: "expired_card" }), [])
    const list = await search("", { metadata: "test:declines", decline: "insufficient_funds" })
    assert.include(list.text, '<option value="insufficient_funds" selected="">insufficient funds</option>')
    assert.match(list.text, /<small>insufficient funds<\/small>/)
    const file = await tab.get("/dashboard/test/payments.csv?metadata=test:declines&decline=insufficient_funds")
    assert.deepStrictEqual(
      cellsIn(file.text).map(([id]) => id),
      ["Payment ID", poorer, poor]
    )
  })

  it.each([{ currency: "gbp" }, { decline: "stolen_card" }])(
    "are paged in both directions when filtered by %o",
    async (filter) => {
      const make = (i: number): Promise<unknown> =>
        "currency" in filter
          ? pay(filter)
          : // Others lie between them.
            Promise.all([declined(i % 2 === 0 ? "pm_card_lost_card" : "pm_card_visa_chargeDeclinedStolenCard"), pay()])
      const count = "currency" in filter ? 64 : 128
      for (let i = 0; i < count; i += 8) await Promise.all(Array.from({ length: 8 }, (_, j) => make(i + j)))
      const to = (text: string, rel: "prev" | "next") =>
        new RegExp(`<a rel="${rel}" href="([^"]+)"`).exec(text)?.[1]?.replaceAll("&amp;", "&")
      const pages = [await search("", filter)]
      for (let href = to(pages[0]!.text, "next"); href !== undefined; href = to(pages.at(-1)!.text, "next")) {
        pages.push(await tab.get(new URL(href, pages.at(-1)!.url).href))
      }
      const shown = pages.map(({ text }) => idsIn(text))
      assert.deepStrictEqual(
        shown.map(({ length }) => length),
        [25, 25, 14]
      )
      assert.strictEqual(new Set(shown.flat()).size, 64)
      let page = pages[2]!
      for (const before of [1, 0]) {
        page = await tab.get(new URL(to(page.text, "prev")!, page.url).href)
        assert.deepStrictEqual(idsIn(page.text), shown[before])
      }
      assert.isUndefined(to(page.text, "prev"))
    }
  )

  it("are found by a guest's email, and show the payer", async () => {
    const product = await server.post("/v1/products", {
      name: "Cap",
      default_price_data: { currency: "nok", unit_amount: 4321 }
    })
    const bought = async (email: string) => {
      const session = await server.post("/v1/checkout_sessions", {
        mode: "payment",
        line_items: [{ price: product.default_price, quantity: 1 }],
        success_url: "https://shop.example/thanks"
      })
      const details = {
        email,
        name: "Grace",
        address: { line1: "Rua 1", city: "Porto", postal_code: "4000", country: "PT" }
      }
      const paid = { payment_method: "pm_card_visa", customer_details: details }
      const { customer, payment_intent } = await server.post(`/v1/checkout_sessions/${session.id}/confirm`, paid)
      assert.isNull(customer)
      return payment_intent as string
    }
    const known = await server.post("/v1/customers", { email: "grace@example.com" })
    const [first, second] = [await bought("Grace@Example.com"), await bought("grace@example.com")]
    const third = await pay({ currency: "nok", customer: known.id })
    await bought("other@example.com")
    assert.deepStrictEqual(idsIn((await search("GRACE@example.com")).text), [third.id, second, first])
    assert.deepStrictEqual(idsIn((await search("grace@example.com", { customer: known.id })).text), [third.id])
    for (const query of ["", "amount:4321 OR amount:1"]) {
      const found = await search(query, { customer: "grace@example.com", currency: "nok" })
      assert.deepStrictEqual(idsIn(found.text), [third.id, second, first])
      assert.notInclude(found.text, "other@example.com")
    }
    const page = (await tab.get(`/dashboard/test/payments/${first}`)).text
    const written = ["Grace", "Grace@Example.com", "Rua 1", "4000 Porto", "PT"]
    assert.include(
      page.replaceAll(/\s/g, ""),
      written
        .map((line) => `<div><bdi>${line}</bdi></div>`)
        .join("")
        .replaceAll(" ", "")
    )
    const file = await tab.get("/dashboard/test/payments.csv?query=grace@example.com&currency=nok")
    assert.match(file.text, new RegExp(`^"${first}",.*,"Grace","Grace@Example\\.com","","Visa ···· 4242",`, "m"))
  })

  it("name the payer: customers with a link, deleted ones and guests without", async () => {
    const currency = "sek"
    const customer = async (parameters: object) => (await server.post("/v1/customers", parameters)).id as string
    const named = await customer({ name: "Åsa <b>", email: "asa@example.com" })
    const reachable = await customer({ email: "only@example.com" })
    const unknown = await customer({ description: "Till four" })
    const deleted = await customer({ name: "Gone" })
    const guest = async (billing_details: object) =>
      await pay({
        currency,
        payment_method: (
          await server.post("/v1/payment_methods", {
            type: "card",
            card: { number: "4242424242424242", exp_month: 12, exp_year: 2040, cvc: "123" },
            billing_details
          })
        ).id
      })
    for (const id of [named, reachable, unknown, deleted, named]) await pay({ currency, customer: id })
    await guest({ name: "Guest", email: "guest@example.com" })
    await guest({ email: "another@example.com" })
    await pay({ currency })
    const remove = { method: "DELETE", headers: { authorization: basic(server.secretTest) } }
    assert.strictEqual((await fetch(`${server.url}/v1/customers/${deleted}`, remove)).status, 200)
    const link = (id: string, content: string) => `<a href="/dashboard/test/customers/${id}">${content}</a>`
    const cells = async (path: string) =>
      [...(await tab.get(path)).text.matchAll(/data-name="Customer">\s*([\s\S]*?)\s*<\/td>/g)].map(([, cell]) =>
        cell!.replace(/(?:\.\.\/)+/, "/")
      )
    const shown = [
      '<span class="nothing">–</span>',
      "<bdi>another@example.com</bdi>",
      "<bdi>Guest</bdi>",
      link(named, "<bdi>Åsa &lt;b&gt;</bdi>"),
      `<code>${deleted}</code>`,
      link(unknown, `<code>${unknown}</code>`),
      link(reachable, "<bdi>only@example.com</bdi>"),
      link(named, "<bdi>Åsa &lt;b&gt;</bdi>")
    ]
    assert.deepStrictEqual(await cells("/dashboard/test/payments?currency=sek"), shown)
    assert.deepStrictEqual(await cells("/dashboard/test"), shown)
  })

  it("dashboard.search: are found by texts as people type them", async () => {
    const jenny = await server.post("/v1/customers", { name: "Jénny Rosen", email: "jr@example.com" })
    const made = async (parameters: object) => (await pay({ currency: "pln", ...parameters })).id as string
    const described = await made({ description: "Order 9136 for İstanbul", amount: 3600 })
    const tagged = await made({ metadata: { orderNumber: "9137" }, payment_method: "pm_card_mastercard" })
    const hers = await made({ customer: jenny.id, amount: 5432 })
    const yen = await made({ currency: "jpy", amount: 5433, description: "Order 9138" })
    const dinar = await made({ currency: "kwd", amount: 54_330 })
    const numbered = await made({ description: "Order 4444 İstanbul", amount: 4444 })
    for (const [text, ids] of [
      ["Order 9136", [described]],
      ["order #9137", [tagged]],
      ["9137", [tagged]],
      ["913", []],
      ["ISTANBUL", [numbered, described]],
      ["ista", [numbered, described]],
      ["anbul", []],
      ["jenny", [hers]],
      ["Rosen, Jenny", [hers]],
      ["enn", [hers]],
      ["54.32", [hers]],
      ["54,32 zł", [hers]],
      ["PLN 54.32", [hers]],
      ["54.32 eur", []],
      ["jenny 54.32", [hers]],
      ["jenny 54.33", []],
      ["¥5433", [yen]],
      ["5,433 JPY", [yen]],
      ["54.33", [dinar]],
      ["order 4444", [numbered]],
      ["mastercard 4444", [tagged]],
      ["jenny 4242", [hers]],
      ["•••• 4444 rosen", []],
      ["nothing of the kind", []],
      ["!?", []],
      ["There is no field: Order", []]
    ] as const) {
      const page = await search(text, { from: new Date().toISOString().slice(0, 10) })
      assert.strictEqual(page.status, 200, text)
      const own = new Set([described, tagged, hers, yen, dinar, numbered])
      assert.deepStrictEqual(
        idsIn(page.text).filter((id) => own.has(id)),
        [...ids],
        text
      )
      assert.notInclude(page.text, "At character")
    }
    assert.deepStrictEqual(idsIn((await search("istanbul", { amount: "44.44", currency: "pln" })).text), [numbered])
  })

  it("show the error of a query, and keep it", async () => {
    const page = await search('amount>"x" OR <b>')
    assert.strictEqual(page.status, 400)
    assert.include(page.text, "At character 8, an integer is missing.")
    assert.include(page.text, "amount&gt;&quot;x&quot; OR &lt;b&gt;")
    const api = await server.get(`/v1/payment_intents/search?query=${encodeURIComponent('amount>"x" OR <b>')}`)
    assert.include(api.error.message, "at character 8, an integer is missing")
  })

  it("are downloaded as a file with all pages of the list, without formulas", async () => {
    const made: Array<string> = []
    for (let i = 0; i < 26; i++) {
      const some = await Promise.all(Array.from({ length: 10 }, () => pay({ amount: 1234, currency: "eur" })))
      made.push(...some.map(({ id }) => id))
    }
    const odd = await pay({
      amount: 1234,
      currency: "eur",
      description: '=HYPERLINK("http://evil.example","x")',
      metadata: { note: 'a "b",\nc' }
    })
    made.push(odd.id)
    await pay({ amount: 500, currency: "eur" })
    const list = await tab.get("/dashboard/test/payments?amount=12.34&currency=eur")
    const [, href] = /<a class="button" href="([^"]+)"/.exec(list.text)!
    const url = new URL(href!.replaceAll("&amp;", "&"), list.url).href
    const file = await visit(url, { cookie: tab.cookie })
    assert.strictEqual(file.status, 200)
    assert.strictEqual(file.headers.get("content-type"), "text/csv; charset=utf-8")
    assert.strictEqual(file.headers.get("cache-control"), "no-store")
    assert.include(file.headers.get("content-disposition")!, "attachment")
    const [head, ...rows] = cellsIn(file.text)
    assert.deepStrictEqual(rows.map(([id]) => id).toSorted(), made.toSorted())
    assert.isTrue(rows.every((row) => row.length === head!.length))
    const row = rows.find(([id]) => id === odd.id)!
    const cell = (name: string) => row[head!.indexOf(name)]
    assert.strictEqual(cell("Amount"), "12.34")
    assert.strictEqual(cell("Currency"), "EUR")
    assert.strictEqual(cell("Description"), `'=HYPERLINK("http://evil.example","x")`)
    assert.strictEqual(cell("Metadata (JSON)"), JSON.stringify({ note: 'a "b",\nc' }))
    assert.notInclude(file.text, "_secret_")
  })

  it("are not downloaded without a session or for an invalid query", async () => {
    assert.include((await openTab(server).get("/dashboard/test/payments.csv")).url, "/sign-in")
    const wrong = await tab.get("/dashboard/test/payments.csv?query=amount>nonsense")
    assert.include(wrong.url, "/dashboard/test/payments?query=amount%3Enonsense")
    assert.strictEqual(wrong.status, 400)
  })

  it("link to their checkout while it is open", async () => {
    const product = await server.post("/v1/products", { name: "Mug" })
    const session = await server.post("/v1/checkout_sessions", {
      mode: "payment",
      success_url: "https://shop.example/thanks",
      line_items: [{ quantity: 1, price_data: { currency: "usd", product: product.id, unit_amount: 1500 } }]
    })
    const page = () => tab.get(`/dashboard/test/payments/${session.payment_intent}`)
    assert.include((await page()).text, `href="${session.url}"`)
    await server.post(`/v1/checkout_sessions/${session.id}/expire`, {})
    const after = await page()
    assert.strictEqual(after.status, 200)
    assert.notInclude(after.text, "Open checkout")
  })
})
