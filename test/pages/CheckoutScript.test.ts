/**
 * `checkout.js` as a shop loads it: it rejects mistakes immediately, and its types, imported as `till/checkout`, fit
 * the examples.
 */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import * as vm from "node:vm"
import { gzipSync } from "node:zlib"
import type { CheckoutState, ConfirmParameters, TillCheckout } from "till/checkout"
import { PAGE_LANGUAGES } from "../../src/domain/CheckoutSession.ts"
import * as Assets from "../../src/html/Assets.ts"
import { CATALOGUES } from "../../src/html/Translation.ts"
import { type Answer, type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { CARDS, openSession, visit } from "../support/fixtures/CheckoutPages.ts"

/** The `Till` function of a script that was loaded from an address; undefined for a script without one. */
const load = (src?: string, browser: object = {}): typeof Till => {
  const document = { currentScript: src === undefined ? null : { src } }
  const context = { document, URL, TypeError, ...browser } as { Till?: typeof Till }
  vm.runInNewContext(Assets.checkoutScript.text, context)
  return context.Till!
}

/** Only compiled, never run: the types allow a shop all of this. */
export const shop = async (till: TillCheckout): Promise<CheckoutState["status"]> => {
  const embedded = till.embeddedCheckout({
    clientSecret: "cs_1_secret_a",
    onComplete: ({ sessionId }) => sessionId.length
  })
  embedded.mount("#checkout")
  embedded.unmount()
  const card = await till.mountCard("#card", { clientSecret: "pi_1_secret_a", locale: "de" })
  card.unmount()
  const checkout = await till.checkout({ clientSecret: "cs_1_secret_a" })
  const stop = checkout.subscribe(({ error, status }) => `${status} ${error?.message ?? ""}`)
  stop()
  await checkout.confirm({ payment_method: "pm_card_visa", return_url: "https://shop.example/back" })
  // @ts-expect-error -- a card without its expiry is none
  await checkout.confirm({ card: { number: "4242424242424242" } })
  const { session, status } = await checkout.confirm({
    card: { number: "4242424242424242", exp_month: 12, exp_year: 2034, cvc: "123" },
    customer_details: { email: "ana@example.com", address: { country: "PT" } }
  })
  return session.payment_status === "paid" ? "complete" : status
}

describe("checkout.js", () => {
  const Till = load("https://pay.example/till/checkout.js")

  it.each(["sk_test_12345678", "sk_live_12345678", "", "whsec_1"])(
    "rejects the key %j, which is not publishable",
    (key) => {
      assert.throws(() => Till(key), /publishable key/)
    }
  )

  it.each(["", "cs_1", "pi_1_secret_a", "cs_1_secret_a/../x", "cs_1_secret_a?b"])(
    "rejects the client secret %j",
    (clientSecret) => {
      assert.throws(() => Till("pk_test_12345678").embeddedCheckout({ clientSecret }), /client_secret/)
    }
  )

  it("requires Till's address", () => {
    assert.throws(() => load()("pk_test_12345678"), /baseUrl/)
    assert.isFunction(load()("pk_test_12345678", { baseUrl: "https://pay.example/till" }).checkout)
  })

  it("is small, and so are the pages' files", () => {
    const compressed = [Assets.stylesheet, Assets.script, Assets.amountScript, Assets.embeddedScript].map(
      ({ text }) => gzipSync(text).length
    )
    assert.isBelow(
      compressed.reduce((sum, bytes) => sum + bytes),
      20_000
    )
    assert.isBelow(gzipSync(Assets.checkoutScript.text).length, 5000)
  })
})

describe("messages of a custom checkout to the payer", () => {
  let server: MemoryTillWithPages
  beforeAll(async () => void (server = await start()))
  afterAll(() => server.close())

  const PAGE = "https://shop.example/pay"

  /** Console messages for the page's developer. */
  const complaints: Array<string> = []
  afterEach(() => void (complaints.length = 0))

  /** A custom checkout at this address, with retries without delay. */
  const checkoutAt = (address: string, { client_secret }: Answer, browser: object = {}) => {
    const page = {
      location: { href: address, assign: () => {} },
      history: { state: null, replaceState: () => {} },
      setTimeout: (then: () => void) => setTimeout(then),
      URLSearchParams,
      btoa,
      // Pages without TLS have no `randomUUID`.
      crypto: { getRandomValues: (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes) },
      console: { error: (error: unknown) => complaints.push(String(error)) },
      fetch,
      ...browser
    }
    return load(`${server.url}/checkout.js`, page)(server.publishableTest).checkout({ clientSecret: client_secret })
  }

  // Semantics pages.redirects.
  it("returns to its page without the parameters of an earlier authentication", async () => {
    const returned = "payment_intent=pi_1&payment_intent_client_secret=pi_1_secret_a&redirect_status=failed"
    for (const [address, expected] of [
      ["/pay?next=/a&flag&q=a%20b#/c?d", "/pay?next=/a&flag&q=a%20b#/c?d"],
      [`/pay?next=/a&flag&${returned}#/c`, "/pay?next=/a&flag#/c"],
      [`/pay?${returned}`, "/pay"],
      ["/pay?", "/pay?"]
    ] as const) {
      const checkout = await checkoutAt(`https://shop.example${address}`, await openCustom())
      const { session } = await checkout.confirm({ payment_method: "pm_card_3ds_required", customer_details })
      const { next_action } = await server.get(`/v1/payment_intents/${(session as Answer).payment_intent}`)
      assert.strictEqual(next_action.redirect_to_url.return_url, `https://shop.example${expected}`)
    }
  })

  const openCustom = (parameters = {}) => openSession(server, { ui_mode: "custom", cancel_url: null, ...parameters })

  const card = { number: CARDS.approved, exp_month: 12, exp_year: 2034, cvc: "123" }
  const customer_details = { email: "ana@example.com" }

  it.each([
    [{ card: { ...card, number: "4242424242424241" } }, "parameter_invalid", "Check the card number."],
    [{ card: { ...card, exp_month: 13 } }, "parameter_invalid", "Check the expiry date."],
    [{ card: { ...card, exp_year: Number.NaN } }, "parameter_missing", "Check the expiry date."],
    [{ card: { ...card, cvc: "x" } }, "parameter_invalid", "Check the security code."],
    [{ card, customer_details: { email: "nobody" } }, "parameter_invalid", "Check the email address."],
    [{ card, customer_details: {} }, "parameter_missing", "Check the email address."],
    [{ card: { ...card, number: CARDS.insufficientFunds } }, "card_declined", "Your card has insufficient funds."],
    [
      { card: { ...card, number: CARDS.faulty } },
      "processor_unavailable",
      "The card network did not answer. You have not been charged. Please try again."
    ],
    [
      { payment_method: "pm_none" },
      "resource_missing",
      "The payment could not be made. You have not been charged. Please try again."
    ]
  ] satisfies ReadonlyArray<readonly [ConfirmParameters, string, string]>)(
    "%j: %s, %s",
    async (entered, code, said) => {
      const checkout = await checkoutAt(PAGE, await openCustom())
      const { error, status } = await checkout.confirm({ customer_details, ...entered })
      assert.strictEqual(status, "open")
      assert.strictEqual(error?.code, code)
      assert.strictEqual(error?.message, said)
      if (code === "card_declined") assert.strictEqual(error?.decline_code, "insufficient_funds")
      else assert.property(error, "param")
    }
  )

  it("names the part of an address to check", async () => {
    const checkout = await checkoutAt(PAGE, await openCustom({ billing_address_collection: "required" }))
    const { error } = await checkout.confirm({ customer_details: { ...customer_details, address: {} }, card })
    assert.strictEqual(error?.param, "customer_details[address][line1]")
    assert.strictEqual(error?.message, "Check the address.")
  })

  it("reports a mistake of the page as a network problem, and details to the developer", async () => {
    const checkout = await checkoutAt(PAGE, await openCustom())
    const { error } = await checkout.confirm({ card: null as never })
    assert.match(error!.message, /could not be reached/)
    assert.match(complaints.join(), /^TypeError: .*null/)
    // Confirming without a card is an error that the API reports.
    assert.strictEqual((await checkout.confirm()).error?.type, "invalid_request_error")
    assert.lengthOf(complaints, 1)
  })

  it("reports an expired session", async () => {
    const session = await openCustom()
    const checkout = await checkoutAt(PAGE, session)
    await server.post(`/v1/checkout_sessions/${session.id}/expire`, {})
    const { error, status } = await checkout.confirm({ customer_details, card })
    assert.strictEqual(status, "expired")
    assert.strictEqual(error?.message, "This checkout has expired. You have not been charged.")
  })

  it.each([
    [CARDS.challenged, "failure", "Your bank could not confirm that it was you."],
    [CARDS.challengedThenDeclined, "success", "Your card has insufficient funds."]
  ])("reports the outcome of an authentication on return: %s, %s", async (number, outcome, said) => {
    const session = await openCustom()
    const checkout = await checkoutAt(PAGE, session)
    const { status } = await checkout.confirm({ customer_details, card: { ...card, number } })
    assert.strictEqual(status, "requires_action")
    const challenged = await server.get(`/v1/payment_intents/${session.payment_intent}`)
    await server.post(
      `/v1/test_helpers/payment_intents/${challenged.id}/authenticate`,
      { outcome },
      { status: outcome === "success" ? 402 : 200 }
    )
    const query = new URLSearchParams({
      payment_intent: challenged.id,
      payment_intent_client_secret: challenged.client_secret
    })
    const back = await checkoutAt(`${PAGE}?${query}`, session)
    assert.strictEqual(back.state.error?.message, said)
  })

  /** A browser with these languages, on a page in this language. */
  const browserIn = (lang: string, ...languages: ReadonlyArray<string>) => ({
    document: { currentScript: { src: `${server.url}/checkout.js` }, documentElement: { lang } },
    navigator: { languages }
  })
  const insufficient = { customer_details, card: { ...card, number: CARDS.insufficientFunds } }
  const wrong = { customer_details, card: { ...card, number: "4242424242424241" } }

  it.each([
    ["the page", "de-AT", ["fr"], {}, "de"],
    ["the browser, if the page names none", "", ["tlh", "ja-JP", "de"], {}, "ja"],
    ["the browser, if the page's is not offered", "eo", ["pl"], {}, "pl"],
    ["the session", "de", ["fr"], { locale: "ar" }, "ar"],
    ["English, if none is offered", "eo", ["tlh"], {}, "en"],
    ["English, if it comes first", "en-GB", ["de"], {}, "en"]
  ] as const)("pages.languages: are in the language of %s", async (_, lang, languages, parameters, expected) => {
    const checkout = await checkoutAt(PAGE, await openCustom(parameters), browserIn(lang, ...languages))
    const { error } = await checkout.confirm(insufficient)
    assert.strictEqual(error?.message, CATALOGUES[expected]["failure.insufficient_funds"])
    assert.strictEqual(error?.decline_code, "insufficient_funds")
    const { error: mistake } = await checkout.confirm(wrong)
    const english = "Check the card number."
    const message = expected === "en" ? english : CATALOGUES[expected]["card.number_invalid"]
    assert.strictEqual(mistake?.message, message)
  })

  it("pages.languages: are in the payer's language also without the network, and in English without the texts", async () => {
    let isAway = false
    const failing = (url: URL, init: RequestInit) =>
      isAway ? Promise.reject(new TypeError("failed")) : fetch(url, init)
    const checkout = await checkoutAt(PAGE, await openCustom(), { ...browserIn("de"), fetch: failing })
    isAway = true
    const { error } = await checkout.confirm(insufficient)
    assert.strictEqual(error?.message, CATALOGUES.de["problem.unreachable"])
    for (const answer of [
      () => Promise.reject(new TypeError("failed")),
      () => Promise.resolve(new Response("", { status: 404 }))
    ]) {
      const without = (url: URL, init: RequestInit) => (url.pathname.endsWith(".json") ? answer() : fetch(url, init))
      const other = await checkoutAt(PAGE, await openCustom(), { ...browserIn("de"), fetch: without })
      assert.strictEqual((await other.confirm(wrong)).error?.message, "Check the card number.")
    }
  })

  it("pages.languages: are complete in every language, and readable from every origin", async () => {
    const keys: Array<string> = []
    for (const language of PAGE_LANGUAGES.filter((name) => name !== "en")) {
      const { headers, status, text } = await visit(`${server.url}/checkout.${language}.json`)
      assert.strictEqual(status, 200, language)
      assert.strictEqual(headers.get("access-control-allow-origin"), "*")
      assert.strictEqual(headers.get("content-type"), "application/json")
      const texts = JSON.parse(text) as Readonly<Record<string, string>>
      for (const [name, value] of Object.entries(texts)) assert.notMatch(value, /[{}]|^$/u, `${language}: ${name}`)
      keys.push(Object.keys(texts).join())
      assert.isBelow(gzipSync(text).length, 2000, language)
    }
    assert.lengthOf(new Set(keys), 1)
    // Every error with an English text has one in the other languages.
    const [, table] = /const TEXTS = \{([^]*?)\n {2}\}/u.exec(Assets.checkoutScript.text)!
    const names = [...table!.matchAll(/^ {4}"?([\w[\]]+)"?: "/gmu)].map(([, name]) => name!)
    assert.isAbove(names.length, 15)
    for (const name of names) assert.include(keys[0]!.split(","), name)
  })
})
