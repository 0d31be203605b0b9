/** Semantics pages.amount, without a browser: the page of a session whose payer chooses the amount. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as vm from "node:vm"
import type { TillCheckout } from "till/checkout"
import * as Assets from "../../src/html/Assets.ts"
import { type Answer, type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { CARDS, filledIn, openSession, pay, send, tokenIn, visit } from "../support/fixtures/CheckoutPages.ts"

let server: MemoryTillWithPages
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

/** A session for a gift and further items. */
const gift = async (
  terms: object = {},
  parameters: Readonly<Record<string, unknown>> = {},
  { currency = "usd", others = 0 } = {}
): Promise<Answer> => {
  const product = await server.post("/v1/products", { name: "Gift" })
  const body = { product: product.id, currency, custom_unit_amount: { enabled: true, ...terms } }
  const price = await server.post("/v1/prices", body)
  const other = { price_data: { currency, product: product.id, unit_amount: others } }
  const line_items = [{ price: price.id }, ...(others === 0 ? [] : [other])]
  return openSession(server, { line_items, ...parameters })
}

const giving = (amount: string, number?: string) => ({ ...filledIn(number), amount })
const stateOf = (session: Answer): Promise<Answer> => server.get(`/v1/checkout_sessions/${session.id}`)
const buttonIn = (text: string): string => /class="action">([^<]*)</.exec(text)![1]!
const valueIn = (text: string): string | undefined => /id="amount"[^>]*?\svalue="([^"]*)"/.exec(text)?.[1]
const errorIn = (text: string): string => /id="amount-error">([^<]*)</.exec(text)![1]!
/** The total, or all totals if they differ. */
const totalIn = (text: string): string =>
  [...new Set(Array.from(text.matchAll(/data-amount="total"[^>]*>([^<]*)</g), ([, total]) => total))].join()

describe("the page of a session whose payer chooses the amount", () => {
  it("asks for an amount without a suggestion, and does not offer a free order", async () => {
    const { text } = await visit((await gift()).url)
    assert.strictEqual(buttonIn(text), "Pay")
    assert.strictEqual(totalIn(text), "Your amount")
    assert.include(text, `<label for="amount">Amount in USD</label>`)
    assert.include(text, "You choose how much.")
    assert.match(text, /id="amount"[^>]*inputmode="decimal"/)
    assert.match(text, /aria-describedby="amount-hint amount-error"/)
    assert.isUndefined(valueIn(text))
    assert.notInclude(text, "Complete order")
  })

  it.each([
    [{ preset: 1050, minimum: 300, maximum: 90_000 }, "usd", "10.50", "From $3.00 to $900.00.", "Pay $10.50"],
    [{ minimum: 300 }, "usd", "3.00", "At least $3.00.", "Pay $3.00"],
    [{ preset: 500, maximum: 900 }, "usd", "5.00", "Up to $9.00.", "Pay $5.00"],
    [{ minimum: 500, maximum: 500 }, "usd", "5.00", "Exactly $5.00.", "Pay $5.00"],
    [{ preset: 1050, maximum: 90_000 }, "jpy", "1050", "Up to ¥90,000.", "Pay ¥1,050"],
    [{ preset: 1050, minimum: 500 }, "kwd", "1.050", "At least KWD 0.500.", "Pay KWD 1.050"]
  ])("suggests the preset or the minimum: %j in %s", async (terms, currency, value, hint, button) => {
    const { text } = await visit((await gift(terms, {}, { currency })).url)
    assert.strictEqual(valueIn(text), value)
    assert.include(text.replaceAll("\u00a0", " "), hint)
    assert.strictEqual(buttonIn(text).replaceAll("\u00a0", " "), button)
    assert.include(text, `inputmode="${currency === "jpy" ? "numeric" : "decimal"}"`)
  })

  it("charges the amount and shows it afterwards", async () => {
    const session = await gift()
    const { headers, status } = await pay(session, giving("$1,234.5"))
    assert.strictEqual(status, 303)
    assert.strictEqual(headers.get("location"), `${server.url}/healthz?session=${session.id}`)
    const { amount_total, payment_intent, payment_status } = await stateOf(session)
    assert.deepStrictEqual([amount_total, payment_status], [123_450, "paid"])
    const { amount_received } = await server.get(`/v1/payment_intents/${payment_intent}`)
    assert.strictEqual(amount_received, 123_450)
    assert.include((await visit(session.url)).text, "You paid $1,234.50 to Lumen Coffee.")
  })

  it("reads the amount in the payer's language", async () => {
    const session = await gift({ preset: 1050 }, {}, { currency: "eur" })
    const german = { "accept-language": "de-DE,de;q=0.9" }
    const { text } = await visit(session.url, german)
    assert.strictEqual(valueIn(text), "10,50")
    const { status } = await send(session.url, { token: tokenIn(text), ...giving("1.234,50 €") }, german)
    assert.strictEqual(status, 303)
    assert.strictEqual((await stateOf(session)).amount_total, 123_450)
  })

  it.each([
    ["", "Enter an amount."],
    ["ten", "Enter an amount such as 10.50."],
    ["4.999", "Enter at most 2 decimals, as in 10.50."],
    ["2.99", "Enter at least $3.00."],
    ["0", "Enter at least $3.00."],
    ["6.01", "Enter at most $6.00."]
  ])("shows the error and everything but the card again: %j, %s", async (entered, said) => {
    const session = await gift({ minimum: 300, maximum: 600 })
    const { status, text } = await pay(session, giving(entered))
    assert.strictEqual(status, 400)
    assert.strictEqual(errorIn(text), said)
    assert.match(text, /id="amount"[^>]*aria-invalid="true"[^>]*autofocus/)
    assert.strictEqual(valueIn(text), entered === "" ? undefined : entered)
    assert.include(text, `value="ana@example.com"`)
    assert.notInclude(text, "4242424242424242")
    assert.deepStrictEqual([buttonIn(text), totalIn(text)], ["Pay", "Your amount"])
    assert.deepInclude(await stateOf(session), { status: "open", amount_total: 300 })
  })

  it("never charges zero or an amount that was not shown", async () => {
    const session = await gift()
    const { amount: _, ...without } = giving("5")
    for (const values of [without, giving("0.00"), giving("-5")]) {
      assert.strictEqual((await pay(session, values)).status, 400)
    }
    assert.deepInclude(await stateOf(session), { status: "open", payment_status: "unpaid", payment_intent: null })
    // A session without an amount to choose ignores the form's amount.
    const fixed = await openSession(server)
    assert.strictEqual((await pay(fixed, giving("1"))).status, 303)
    assert.strictEqual((await stateOf(fixed)).amount_total, 2450)
  })

  it("keeps the amount after a decline, and accepts another", async () => {
    const session = await gift({}, {}, { others: 250 })
    const opened = await visit(session.url)
    assert.strictEqual(totalIn(opened.text), "$2.50 + your amount")
    assert.include(opened.text, "Amount in USD for <bdi>Gift</bdi>")
    const declined = await pay(session, giving("5.5", CARDS.declined))
    assert.strictEqual(declined.status, 402)
    assert.strictEqual(valueIn(declined.text), "5.5")
    assert.strictEqual(buttonIn(declined.text), "Pay $8.00")
    assert.strictEqual(totalIn(declined.text), "$8.00")
    const again = await visit(session.url)
    assert.strictEqual(valueIn(again.text), "5.50")
    assert.strictEqual((await pay(session, giving("8"))).status, 303)
    assert.deepInclude(await stateOf(session), { status: "complete", amount_total: 1050 })
  })

  it("charges one amount per form", async () => {
    const session = await gift()
    const token = tokenIn((await visit(session.url)).text)
    assert.strictEqual((await send(session.url, { token, ...giving("5", CARDS.declined) })).status, 402)
    const second = await send(session.url, { token, ...giving("500") })
    assert.strictEqual(second.status, 409)
    assert.deepInclude(await stateOf(session), { status: "open", amount_total: 500 })
  })

  it("serves the module that reads amounts", async () => {
    const { text } = await visit((await gift()).url)
    const path = /data-script="\.\.([^"]+)"/.exec(text)![1]!
    const response = await fetch(server.url + path)
    assert.strictEqual(await response.text(), Assets.amountScript.text)
    assert.match(response.headers.get("content-type")!, /javascript/)
    assert.match(response.headers.get("cache-control")!, /immutable/)
  })
})

describe("a shop's own page whose payer chooses the amount", () => {
  const checkoutOf = ({ client_secret }: Answer) => {
    const page = {
      document: { currentScript: { src: `${server.url}/checkout.js` } },
      location: { href: "https://shop.example/pay", assign: () => {} },
      setTimeout: (then: () => void) => setTimeout(then),
      URL,
      URLSearchParams,
      TypeError,
      btoa,
      fetch,
      console,
      crypto: { getRandomValues: (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes) }
    } as object as { Till: (key: string) => TillCheckout }
    vm.runInNewContext(Assets.checkoutScript.text, page)
    return page.Till(server.publishableTest).checkout({ clientSecret: client_secret })
  }
  const entered = { payment_method: "pm_card_visa", customer_details: { email: "ana@example.com" } }

  it("pays it with `custom_unit_amount`", async () => {
    const checkout = await checkoutOf(await gift({}, { ui_mode: "custom", cancel_url: null }))
    const { session, status } = await checkout.confirm({ ...entered, custom_unit_amount: 1234 })
    assert.strictEqual(status, "complete")
    assert.deepInclude(session, { amount_total: 1234, payment_status: "paid" })
  })

  it.each([undefined, Number.NaN, 0, 299, 4.5, "500", null])("pays nothing for %j", async (amount) => {
    const terms = amount === undefined ? {} : { minimum: 300, preset: 700 }
    const checkout = await checkoutOf(await gift(terms, { ui_mode: "custom", cancel_url: null }))
    const chosen = amount === undefined ? {} : { custom_unit_amount: amount as number }
    const { error, status } = await checkout.confirm({ ...entered, ...chosen })
    assert.strictEqual(status, "open")
    assert.strictEqual(error?.param, "custom_unit_amount")
    assert.strictEqual(error?.message, "Check the amount.")
  })
})
