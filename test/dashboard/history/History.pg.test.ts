/** The history of an object: every record, its cause and its consequences (semantics dashboard.history). */
import { afterAll, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import { Accounts } from "../../../src/engine/Accounts.ts"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import { basic } from "../../support/HttpExchange.ts"
import { type Answer, type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { answerChallenge, openSession } from "../../support/fixtures/CheckoutPages.ts"
import { createMerchant } from "../../support/fixtures/Merchants.ts"
import { layerFreshLog } from "../../support/RequestLog.ts"
import { fail } from "../../support/fixtures/FailedDelivery.ts"
import { formTo, linkFor, openTab, type Page, signedIn, type Tab } from "../People.ts"

interface Item {
  readonly text: string
  readonly links: ReadonlyArray<string>
}

/** Entries of a page's timeline with their texts and links. */
const itemsIn = ({ text, url }: Page): ReadonlyArray<Item> => {
  const list = /<ol class="timeline">([\s\S]*?)<\/ol>/.exec(text)?.[1] ?? ""
  return [...list.matchAll(/<li class="\w+">([\s\S]*?)<\/li>/g)].map(([, item]) => ({
    text: item!
      .replaceAll(/<[^>]+>/g, " ")
      .replaceAll(/\s+/g, " ")
      .replaceAll(" ,", ",")
      .trim(),
    links: [...item!.matchAll(/href="([^"]+)"/g)].map(
      ([, href]) => new URL(href!.replaceAll("&amp;", "&"), url).pathname
    )
  }))
}

const linkIn = ({ text, url }: Page, rel: "prev" | "next"): string | undefined => {
  const href = new RegExp(`<a rel="${rel}" href="([^"]+)"`).exec(text)?.[1]
  return href === undefined ? undefined : new URL(href.replaceAll("&amp;", "&"), url).href
}

describe("a payment's page", () => {
  let server: MemoryTillWithPages
  let tab: Tab
  beforeAll(async () => {
    server = await start({
      merchantName: "Lumen",
      liveProcessor: "simulator",
      requestLog: layerFreshLog({ batchMillis: 20 })
    })
    tab = await signedIn(server, "developer")
  })
  afterAll(() => server.close())

  const ask = async (path: string, body: object, key: string, status = 200) => {
    const response = await fetch(server.url + path, {
      method: "POST",
      headers: { authorization: basic(server.secretTest), "content-type": "application/json", "idempotency-key": key },
      body: JSON.stringify(body)
    })
    const answer: Answer = await response.json()
    assert.strictEqual(response.status, status, JSON.stringify(answer))
    return { request: response.headers.get("x-request-id")!, answer }
  }
  const pageOf = (id: string) => tab.get(`/dashboard/test/payments/${id}`)
  const pay = (): Promise<Answer> =>
    server.post("/v1/payment_intents", {
      amount: 4321,
      currency: "usd",
      payment_method: "pm_card_visa",
      confirm: true
    })
  const count = (id: string, n: number) => server.post(`/v1/payment_intents/${id}`, { metadata: { n: String(n) } })

  it("shows attempts, authentication, capture and refunds, with events, deliveries, requests, keys and people", async () => {
    const { id: endpoint } = await server.post("/v1/webhook_endpoints", {
      url: "https://shop.example/w",
      enabled_events: ["*"]
    })
    const made = await ask("/v1/payment_intents", { amount: 4321, currency: "usd", capture_method: "manual" }, "make")
    const id: string = made.answer.id
    const path = `/v1/payment_intents/${id}`
    const declined = await ask(`${path}/confirm`, { payment_method: "pm_card_chargeDeclined" }, "decline", 402)
    const challenging = { payment_method: "pm_card_3ds_required", return_url: "https://shop.example/" }
    const challenged = await ask(`${path}/confirm`, challenging, "challenge")
    await answerChallenge(challenged.answer.next_action.redirect_to_url.url, "success")
    const { delivery, event } = await fail(server, endpoint)
    const capture = formTo(await pageOf(id), "/capture")
    await tab.post(capture.action, { ...capture.values, amount_to_capture: "" })
    const again = formTo(await tab.get(`/dashboard/test/events/${event}`), "/resend")
    await tab.post(again.action, again.values)
    const refunded = await ask("/v1/refunds", { payment_intent: id, amount: 21 }, "refund")
    const noted = await ask(`/v1/refunds/${refunded.answer.id}`, { metadata: { note: "x" } }, "note")
    // The request log is written after the responses.
    const page = await vi.waitFor(
      async () => {
        const page = await pageOf(id)
        assert.include(page.text, `/requests/${noted.request}`)
        return page
      },
      { timeout: 120_000, interval: 30 }
    )
    const items = itemsIn(page)
    const expected: ReadonlyArray<{ readonly says: ReadonlyArray<string>; readonly request?: string }> = [
      {
        says: [
          "Refund of 0.21 USD changed metadata ref_",
          "by your server refund.updated",
          "idempotency key note, API key key_"
        ],
        request: noted.request
      },
      {
        says: ["Refunded 0.21 USD ref_", "refund.created", "charge.refunded"],
        request: refunded.request
      },
      {
        says: ["Captured 43.21 USD ch_", "charge.captured", "payment_intent.succeeded", "(developer) in the dashboard"]
      },
      { says: ["Authorized 43.21 USD, not captured yet Visa ···· ", "by the payer charge.succeeded", "Request req_"] },
      {
        says: ["Waiting for the payer to confirm with their bank", "payment_intent.requires_action"],
        request: challenged.request
      },
      {
        says: [
          "Declined: the bank gave no reason Visa ···· ",
          "charge.failed",
          "payment_intent.payment_failed",
          "idempotency key decline"
        ],
        request: declined.request
      },
      {
        says: ["Payment of 43.21 USD created", "payment_intent.created", "idempotency key make"],
        request: made.request
      }
    ]
    assert.strictEqual(items.length, expected.length, JSON.stringify(items))
    for (const [i, { request, says }] of expected.entries()) {
      for (const text of says) assert.include(items[i]!.text, text)
      if (request !== undefined) assert.include(items[i]!.links, `/dashboard/test/requests/${request}`)
    }
    // Entries of the exhausted delivery and of the resent one.
    const told = items.find(({ links }) => links.includes(`/dashboard/test/events/${event}`))!
    assert.include(told.text, "pending shop.example/w exhausted responded 500, shop.example/w")
    assert.include(told.links, `/dashboard/test/webhooks/${endpoint}/${delivery}`)
    assert.isUndefined(linkIn(page, "next"))
  })

  it("shows its checkout session, and automatic changes", async () => {
    const session = await openSession(server)
    const confirming = { payment_method: "pm_card_processing_success", customer_details: { email: "ada@example.com" } }
    await server.post(`/v1/checkout_sessions/${session.id}/confirm`, confirming)
    const id = (await server.get(`/v1/checkout_sessions/${session.id}`)).payment_intent
    await server.post("/v1/test_helpers/clock/advance", { seconds: 60 })
    const items = itemsIn(await pageOf(id))
    const says = [/^Payment of .* succeeded Visa/, /automatically .*checkout\.session\.async_payment_succeeded/]
    for (const text of says) assert.match(items[0]!.text, text)
    assert.match(items[1]!.text, new RegExp(`^Payment of .* is processing Visa .* Checkout completed ${session.id} `))
    assert.match(items.at(-1)!.text, new RegExp(`^Checkout of .* opened ${session.id} `))
  })

  it("shows any number of records, page by page in both directions, in a busy account", async () => {
    const { id } = await pay()
    for (let n = 0; n < 60; n++) {
      await Promise.all([pay(), pay()])
      await count(id, n)
    }
    await Promise.all(Array.from({ length: 120 }, pay))
    const pages = [await pageOf(id)]
    for (let next = linkIn(pages[0]!, "next"); next !== undefined; next = linkIn(pages.at(-1)!, "next")) {
      pages.push(await tab.get(next))
    }
    const shown = pages.map(itemsIn)
    assert.deepStrictEqual(
      shown.map(({ length }) => length),
      [50, 11]
    )
    const requests = shown.flat().map(({ text }) => /req_\w+/.exec(text)![0])
    assert.strictEqual(new Set(requests).size, 61)
    assert.deepStrictEqual(requests.toSorted().toReversed(), requests)
    const back = await tab.get(linkIn(pages[1]!, "prev")!)
    assert.deepStrictEqual(itemsIn(back), shown[0])
    // Invalid cursors are ignored.
    for (const cursor of ["pi_1", "12", "9".repeat(17)]) {
      assert.deepStrictEqual(itemsIn(await tab.get(`/dashboard/test/payments/${id}?after=${cursor}`)), shown[0])
    }
    assert.deepStrictEqual(itemsIn(await tab.get(`/dashboard/test/payments/${id}?after=${"0".repeat(16)}`)), [])
  })

  it("has a history like customers, products, charges, refunds and sessions", async () => {
    const textsOf = async (path: string) => itemsIn(await tab.get(`/dashboard/test${path}`)).map(({ text }) => text)
    const { id } = await server.post("/v1/customers", { name: "Ada <b>" })
    await server.post(`/v1/customers/${id}`, { email: "ada@example.com", description: "Countess" })
    const { id: card } = await server.post("/v1/payment_methods/pm_card_visa/attach", { customer: id })
    const edit = formTo(await tab.get(`/dashboard/test/customers/${id}`), "/edit")
    await tab.post(edit.action, { ...edit.values, name: "Ada" })
    const customer = await textsOf(`/customers/${id}`)
    assert.lengthOf(customer, 4)
    assert.match(
      customer[0]!,
      /^Customer Ada changed name .* by \S+.*\(developer\) in the dashboard customer\.updated /
    )
    assert.match(customer[1]!, new RegExp(`^Visa ···· 4242 saved ${card} .* payment_method\\.attached `))
    assert.match(
      customer[2]!,
      /^Customer Ada &lt;b&gt; changed (email, description|description, email) .* by your server customer\.updated /
    )
    assert.match(customer[3]!, /^Customer Ada &lt;b&gt; created .* customer\.created /)

    const product = await server.post("/v1/products", { name: "Mug" })
    const terms = { product: product.id, currency: "usd", unit_amount: 900, nickname: "Each" }
    const { id: price } = await server.post("/v1/prices", terms)
    await server.post(`/v1/prices/${price}`, { active: false })
    const sold = await textsOf(`/products/${product.id}`)
    assert.lengthOf(sold, 3)
    assert.match(sold[0]!, new RegExp(`^Price Each archived active ${price} .* price\\.updated `))
    assert.match(sold[1]!, new RegExp(`^Price Each created ${price} .*price\\.created `))
    assert.match(sold[2]!, /^Product Mug created .* product\.created /)
    assert.lengthOf(await textsOf(`/prices/${price}`), 2)

    const payment = await pay()
    const charge = payment.charges.data[0].id
    const refund = await server.post("/v1/refunds", { payment_intent: payment.id, amount: 21 })
    await server.post(`/v1/refunds/${refund.id}`, { metadata: { note: "x" } })
    const charged = await textsOf(`/charges/${charge}`)
    assert.match(charged[0]!, new RegExp(`^Refunded 0\\.21 USD ${refund.id} .* charge\\.refunded `))
    assert.match(charged[1]!, /^Payment of 43\.21 USD succeeded Visa ···· 4242 .* charge\.succeeded /)
    const refunded = await textsOf(`/refunds/${refund.id}`)
    assert.match(refunded[0]!, /^Refund of 0\.21 USD changed metadata .* refund\.updated /)
    assert.match(refunded[1]!, /^Refunded 0\.21 USD .* refund\.created /)
    const { id: session } = await openSession(server)
    await server.post(`/v1/checkout_sessions/${session}/expire`, {})
    const [expired, opened] = await textsOf(`/checkout-sessions/${session}`)
    assert.match(expired!, /^Checkout expired .* checkout\.session\.expired /)
    assert.match(opened!, /^Checkout of .* opened /)
  })

  it("summarizes the payment in headlines, each once", async () => {
    const headlinesOf = async (id: string): Promise<ReadonlyArray<string>> =>
      itemsIn(await pageOf(id)).map(({ text }) =>
        / (?=\d{4}-)/[Symbol.split](text)[0]!.replaceAll(/ (?:ch|ref|cs)_\w+/g, "")
      )
    const paid = async (parameters: object = {}, status = 200): Promise<string> => {
      const made: Answer = await server.post(
        "/v1/payment_intents",
        { amount: 4321, currency: "usd", payment_method: "pm_card_visa", confirm: true, ...parameters },
        { status }
      )
      return made.id ?? made.error.payment_intent.id
    }
    const held = async (): Promise<string> => paid({ capture_method: "manual" })
    const authorized = "Authorized 43.21 USD, not captured yet Visa ···· 4242"
    const captured = await held()
    await server.post(`/v1/payment_intents/${captured}/capture`, { amount_to_capture: 4000 })
    assert.deepStrictEqual(await headlinesOf(captured), [
      "Captured 40.00 USD of 43.21 USD; the rest was released to the payer",
      authorized
    ])
    const released = await held()
    await server.post(`/v1/payment_intents/${released}/cancel`, { cancellation_reason: "fraudulent" })
    assert.deepStrictEqual(await headlinesOf(released), [
      "Canceled: 43.21 USD was released to the payer fraudulent",
      authorized
    ])
    const abandoned = await paid({ confirm: false, payment_method: undefined, amount: 1234, currency: "jpy" })
    await server.post(`/v1/payment_intents/${abandoned}`, { metadata: { note: "x" } })
    await server.post(`/v1/payment_intents/${abandoned}/cancel`, { cancellation_reason: "abandoned" })
    assert.deepStrictEqual(await headlinesOf(abandoned), [
      "Canceled abandoned",
      "Payment changed",
      "Payment of 1,234 JPY created"
    ])
    const poor = await paid({ payment_method: "pm_card_insufficient_funds" }, 402)
    assert.deepStrictEqual(await headlinesOf(poor), ["Declined: insufficient funds Visa ···· 9995"])
    const [failing, pending, expiring] = [
      await paid({ payment_method: "pm_card_refundFail" }),
      await paid({ payment_method: "pm_card_pendingRefund" }),
      await held()
    ]
    for (const payment_intent of [failing, pending]) {
      await server.post("/v1/refunds", { payment_intent, reason: "duplicate" })
    }
    await server.post("/v1/test_helpers/clock/advance", { seconds: 8 * 86_400 })
    const refundsOf = async (id: string) => (await headlinesOf(id)).slice(0, 2)
    const [failed, ended] = [await refundsOf(failing), await refundsOf(pending)]
    assert.strictEqual(failed[0], "Refund of 43.21 USD failed expired or canceled card")
    assert.match(failed[1]!, /^(Refunded 43\.21 USD|Refund of 43\.21 USD is pending) duplicate$/)
    assert.deepStrictEqual(ended, ["Refunded 43.21 USD duplicate", "Refund of 43.21 USD is pending duplicate"])
    assert.deepStrictEqual(await headlinesOf(expiring), [
      "The authorization expired: 43.21 USD was released to the payer",
      authorized
    ])
    const challenged = await paid({ payment_method: "pm_card_3ds_required", return_url: "https://shop.example/" })
    await server.post(`/v1/test_helpers/payment_intents/${challenged}/authenticate`, { outcome: "failure" })
    assert.deepStrictEqual(await headlinesOf(challenged), [
      "The payer did not confirm the payment with their bank",
      "Waiting for the payer to confirm with their bank"
    ])
  })

  it("shows nothing of another merchant's or a wiped payment", async () => {
    const { id } = await pay()
    const run = <A, E>(effect: Effect.Effect<A, E, Accounts>): Promise<A> =>
      Effect.runPromise(Effect.orDie(Effect.provideService(effect, Accounts, server.accounts)))
    const stranger = openTab(server)
    await stranger.signIn(await linkFor({ ...server, ...(await run(createMerchant("Stranger"))) }))
    for (const query of ["", `?after=${"9".repeat(16)}`]) {
      const page = await stranger.get(`/dashboard/test/payments/${id}${query}`)
      assert.deepStrictEqual([page.status, itemsIn(page)], [404, []])
    }
    const account = `${server.merchantId}:test`
    await run(
      Accounts.use((accounts) =>
        accounts.run(
          account,
          Effect.map(Transaction, (it) => it.wipe())
        )
      )
    )
    assert.strictEqual((await pageOf(id)).status, 404)
    const later = await pay()
    assert.strictEqual(itemsIn(await pageOf(later.id)).length, 1)
    const { entries } = await run(Accounts.use((accounts) => accounts.history(account, { ids: [id], limit: 10 })))
    assert.deepStrictEqual(entries, [])
  })
})
