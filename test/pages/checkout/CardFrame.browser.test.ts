/**
 * Payments through the example gateway in a real browser: the card goes into the gateway's own page, in a frame of
 * Till's checkout or of a shop's page (semantics pages.card_frame, pages.card_mount, gateways.fields), and the payer
 * authenticates on the gateway's page (semantics operations.challenge, operations.return).
 */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import type { Browser, BrowserContextOptions, FrameLocator, Page } from "playwright-core"
import { type GatewayShop, gatewayShop } from "../../support/fixtures/GatewayShop.ts"
import type { Answer } from "../../support/HttpExchange.ts"
import { KEYS, until } from "../../support/TillProcess.ts"
import { accessibilityProblems, connect, hasBrowser, openPage, overflows } from "../Browser.ts"

const NUMBERS = { approved: "4242 4242 4242 4242", declined: "4000 0000 0000 0002", challenged: "4000 0000 0000 3220" }

type Body = Answer["body"]

describe.skipIf(!hasBrowser)("a checkout whose cards go to a gateway", () => {
  const scope = Effect.runSync(Scope.make())
  let shop: GatewayShop
  let browser: Browser
  /** A page of a shop, with an origin of its own. */
  let ownPage: { readonly url: string; readonly server: http.Server }
  let clientSecret = ""

  beforeAll(async () => {
    ownPage = await serveOwnPage()
    const origins = [new URL(ownPage.url).origin]
    ;[shop, browser] = await Promise.all([Effect.runPromise(Scope.provide(gatewayShop(origins), scope)), connect()])
  })
  afterAll(async () => {
    await browser.close()
    ownPage.server.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())))

  const ofSession = () => `
    const show = ({ error, status }) => {
      document.getElementById("status").textContent = error === null ? status : error.code + ": " + error.message
    }
    const checkout = await Till("${KEYS.publishableTest}").checkout({ clientSecret: "${clientSecret}" })
    checkout.subscribe(show)
    const card = await checkout.mountCard("#card")
    window.readToken = () => card.token().catch(({ error }) => error.code)
    const pay = () => checkout.confirm({ card, customer_details: { email: "ana@example.com" } })`

  const ofPayment = (id: string) => `
    const key = "${KEYS.publishableTest}", client_secret = "${clientSecret}"
    const show = (text) => (document.getElementById("status").textContent = text)
    const card = await Till(key).mountCard("#card", { clientSecret: client_secret, locale: "de" })
    const pay = async () => {
      const given = await card.token().catch(({ error }) => show(error.code + ": " + error.message))
      if (given === undefined || !given.startsWith("tok_")) return
      const answer = await fetch("${shop.server.baseUrl}/v1/payment_intents/${id}/confirm", {
        method: "POST",
        headers: {
          authorization: "Basic " + btoa(key + ":"),
          "content-type": "application/json",
          "idempotency-key": crypto.randomUUID()
        },
        body: JSON.stringify({ client_secret, payment_method_data: { type: "card", token: given } })
      })
      show((await answer.json()).status)
    }`

  /** The policy that docs/live.md gives for a page with the inputs of a card. */
  const policy = () => {
    const { baseUrl } = shop.server
    const scripts = `script-src ${baseUrl} 'nonce-shop'; connect-src ${baseUrl}`
    return `default-src 'none'; ${scripts}; frame-src ${new URL(shop.gateway.url).origin}`
  }

  /** Serves a page with a form of the shop's own, which pays the session or PaymentIntent of `clientSecret`. */
  const serveOwnPage = async () => {
    const server = http.createServer((_, response) => {
      const payment = /^pi_\w+?(?=_secret_)/u.exec(clientSecret)?.[0]
      response.setHeader("content-type", "text/html")
      response.setHeader("content-security-policy", policy())
      response.end(`<!doctype html><title>Shop</title>
        <form><div id="card"></div><button>Pay</button></form><p id="status"></p>
        <script src="${shop.server.baseUrl}/checkout.js"></script>
        <script type="module" nonce="shop">
          ${payment === undefined ? ofSession() : ofPayment(payment)}
          document.querySelector("form").addEventListener("submit", (event) => {
            event.preventDefault()
            pay()
          })
        </script>`)
    })
    await new Promise<void>((resolve) => server.listen(0, "localhost", resolve))
    return { server, url: `http://localhost:${(server.address() as AddressInfo).port}/` }
  }

  const openSession = async (parameters: object = {}): Promise<Body> => {
    const { server } = shop
    const { id: product } = await server.post("/v1/products", { name: "House Espresso" })
    return server.post("/v1/checkout_sessions", {
      mode: "payment",
      success_url: `${server.baseUrl}/healthz?session={CHECKOUT_SESSION_ID}`,
      line_items: [{ price_data: { currency: "usd", product, unit_amount: 2450 } }],
      ...parameters
    })
  }

  const stateOf = async ({ id }: Body): Promise<Body> => {
    const session = await shop.server.get(`/v1/checkout_sessions/${id}`)
    const payment = await shop.server.get(`/v1/payment_intents/${session.payment_intent}`)
    return { session, payment }
  }

  const inputs = (page: Page): FrameLocator => page.frameLocator("#card iframe")

  const fill = async (page: Page, number: string) => {
    await page.getByLabel("Email").fill("ana@example.com")
    await inputs(page).getByLabel("Card number").fill(number)
  }

  const pay = (page: Page) => page.getByRole("button", { name: "Pay $24.50" }).click()

  const open = async (options: BrowserContextOptions = {}, parameters: object = {}) => {
    const session = await openSession(parameters)
    const page = await openPage(browser, session.url, options)
    return { page, session }
  }

  const paid = (page: Page, { id }: Body) => page.waitForURL(`**/healthz?session=${id}`)

  it("pays by a token, and Till never sees the card", async () => {
    const session = await openSession()
    const context = await browser.newContext({ locale: "en-US" })
    const page = await context.newPage()
    const sent: Array<string> = []
    const complaints: Array<string> = []
    page.on("request", (request) => {
      if (request.url().startsWith(shop.server.baseUrl)) sent.push(`${request.url()} ${request.postData() ?? ""}`)
    })
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()))
    page.on("pageerror", (error) => complaints.push(String(error)))
    const response = await page.goto(session.url)
    assert.match(
      response!.headers()["content-security-policy"]!,
      new RegExp(`; frame-src ${shop.gateway.url.replaceAll(".", "\\.")}$`)
    )
    const frame = page.locator("#card iframe")
    assert.strictEqual(await frame.getAttribute("sandbox"), "allow-scripts allow-same-origin")
    assert.strictEqual(await page.getByLabel("Card number").count(), 0)
    await fill(page, NUMBERS.approved)
    await pay(page)
    await paid(page, session)
    const { payment, session: after } = await stateOf(session)
    assert.deepStrictEqual([after.payment_status, payment.charges.data.length], ["paid", 1])
    assert.deepInclude(payment.charges.data[0].payment_method_details.card, { brand: "visa", last4: "4242" })
    assert.notInclude(sent.join("\n").replaceAll(/[^0-9]/g, ""), "4242424242424242")
    assert.include(sent.join("\n"), "card_token=tok_")
    assert.deepStrictEqual(complaints, [])
  })

  it("shows the gateway's refusal beside the frame, and then takes another card", async () => {
    const { page, session } = await open()
    await fill(page, "1234")
    await pay(page)
    await page.getByText("This card number is not one of the gateway's test numbers.").waitFor()
    assert.isNull((await stateOf(session)).payment.latest_charge)
    await fill(page, NUMBERS.approved)
    await pay(page)
    await paid(page, session)
  })

  it("says that a card was declined, and takes another one", async () => {
    const { page, session } = await open()
    await fill(page, NUMBERS.declined)
    await pay(page)
    await page.getByText("Your card has insufficient funds. You have not been charged.").waitFor()
    await page.getByText("Pay with another card, or top this one up first.").waitFor()
    await fill(page, NUMBERS.approved)
    await pay(page)
    await paid(page, session)
    assert.deepStrictEqual(
      (await stateOf(session)).payment.charges.data.map(({ status }: Body) => status),
      ["succeeded", "failed"]
    )
  })

  it.each(["Yes", "No"])("leads to the gateway's challenge and back: %s", async (answer) => {
    const { page, session } = await open()
    await fill(page, NUMBERS.challenged)
    await pay(page)
    await page.waitForURL(`${shop.gateway.url}/challenge/op_*`)
    assert.strictEqual((await stateOf(session)).payment.status, "requires_action")
    await page.getByRole("button", { name: answer }).click()
    if (answer === "No") {
      await page.waitForURL(session.url)
      await page.getByText("Your card was declined, because your bank wants to confirm").waitFor()
      assert.notInclude(page.url(), "secret")
      await fill(page, NUMBERS.approved)
      await pay(page)
    }
    await paid(page, session)
    assert.strictEqual((await stateOf(session)).session.payment_status, "paid")
  })

  it("is paid by the gateway's message if the payer never comes back", async () => {
    const { page, session } = await open()
    await fill(page, NUMBERS.challenged)
    await pay(page)
    await page.waitForURL(`${shop.gateway.url}/challenge/op_*`)
    const challenge = page.url()
    await page.context().close()
    const answered = await fetch(challenge, { method: "POST", body: "passed=yes", redirect: "manual" })
    assert.match(
      answered.headers.get("location")!,
      new RegExp(`^${shop.server.baseUrl}/authenticate/pi_\\w+/return\\?`)
    )
    const isPaid = async () => (await stateOf(session)).session.payment_status === "paid"
    await until("the message has arrived", isPaid)
    const events = await shop.server.get("/v1/events?type=payment_intent.succeeded&limit=1")
    assert.strictEqual(events.data[0].data.object.id, session.payment_intent)
  })

  it("says that the card form is missing if the gateway does not let the page frame it", async () => {
    const session = await openSession()
    // The gateway allows the origin of Till's public address alone.
    const url = session.url.replace("//localhost:", "//127.0.0.1:")
    const context = await browser.newContext({ locale: "de-DE" })
    const page = await context.newPage()
    await page.goto(url)
    const missing = page.getByText("Das Kartenformular antwortet nicht. Ihnen wurde nichts berechnet.")
    await missing.waitFor()
    await page.getByLabel("E-Mail").fill("ana@example.com")
    await page.locator("button[type=submit]").click()
    await missing.waitFor()
    assert.isNull((await stateOf(session)).payment.latest_charge)
  })

  it("says without a script that the card form needs one", async () => {
    const { page } = await open({ javaScriptEnabled: false })
    // This browser reads a page without a script as if it had one, and so does not show the text.
    assert.include(await page.locator("#checkout noscript").textContent(), "This card form needs JavaScript.")
    assert.strictEqual(await page.locator("iframe").count(), 0)
    assert.isFalse(await page.locator("#card").isVisible())
  })

  it.each([
    ["a phone in the light", 320, "light"],
    ["a phone in the dark", 360, "dark"],
    ["a desk in the dark", 1280, "dark"]
  ] as const)("fits %s, and is accessible", async (_, width, colorScheme) => {
    const { page } = await open({ viewport: { width, height: 800 }, colorScheme })
    await inputs(page).getByLabel("Card number").waitFor()
    // The frame has the height of its content.
    await page.waitForFunction(() => document.querySelector("#card iframe")!.clientHeight > 50)
    assert.isFalse(await overflows(page))
    assert.deepStrictEqual(await accessibilityProblems(page), [])
    const inner = page.frames().find((frame) => frame.url() === `${shop.gateway.url}/fields`)!
    assert.isTrue(await inner.evaluate(() => document.documentElement.scrollHeight <= innerHeight))
  })

  it("ignores messages of other windows and origins", async () => {
    const { page, session } = await open()
    await fill(page, "1234")
    // The page itself is neither the frame's window nor its origin.
    await page.evaluate(() => {
      setInterval(() => postMessage({ type: "till.token", token: "tok_approve" }, "*"), 20)
    })
    await pay(page)
    await page.getByText("This card number is not one of the gateway's test numbers.").waitFor()
    assert.isNull((await stateOf(session)).payment.latest_charge)
  })

  it("offers a customer's saved card of the gateway, which needs no card form", async () => {
    const { server } = shop
    const { id: customer } = await server.post("/v1/customers", { email: "ana@example.com" })
    const saved = await server.post("/v1/payment_methods", { type: "card", token: "tok_approve" })
    await server.post(`/v1/payment_methods/${saved.id}/attach`, { customer })
    const { page, session } = await open({}, { customer })
    await page.getByText("•••• 4242").waitFor()
    await pay(page)
    await paid(page, session)
    assert.strictEqual((await stateOf(session)).payment.payment_method, saved.id)
  })

  it("is reached by a payment link", async () => {
    const { server } = shop
    const product = await server.post("/v1/products", {
      name: "House Espresso",
      default_price_data: { currency: "usd", unit_amount: 2450 }
    })
    const link = await server.post("/v1/payment_links", { line_items: [{ price: product.default_price, quantity: 1 }] })
    const page = await openPage(browser, link.url)
    await page.getByRole("button", { name: "Continue to payment" }).click()
    await page.waitForURL("**/checkout/cs_*")
    await fill(page, NUMBERS.approved)
    await pay(page)
    await page.getByText("This order is paid").waitFor()
    assert.deepInclude(await server.get("/v1/checkout_sessions?limit=1").then(({ data }) => data[0]), {
      payment_link: link.id,
      payment_status: "paid"
    })
  })

  describe("pages.card_mount: in a page of the shop", () => {
    const openOwn = async () => {
      const session = await openSession({ ui_mode: "custom", success_url: null })
      clientSecret = session.client_secret
      const page = await openPage(browser, ownPage.url)
      await inputs(page).getByLabel("Card number").waitFor()
      return { page, session }
    }

    it("pays by a token", async () => {
      const { page, session } = await openOwn()
      await inputs(page).getByLabel("Card number").fill(NUMBERS.approved)
      await page.getByRole("button").click()
      await page.getByText("complete").waitFor()
      assert.strictEqual((await stateOf(session)).session.payment_status, "paid")
    })

    it("shows a refusal as the checkout's error, and gives the token itself", async () => {
      const { page } = await openOwn()
      const token = () => page.evaluate(() => (window as unknown as { readToken: () => Promise<string> }).readToken())
      await inputs(page).getByLabel("Card number").fill("1234")
      await page.getByRole("button").click()
      await page.getByText("card_refused: This card number is not one of the gateway's test numbers.").waitFor()
      assert.strictEqual(await token(), "card_refused")
      await inputs(page).getByLabel("Card number").fill(NUMBERS.declined)
      assert.match(await token(), /^tok_/)
    })

    it("shows the inputs for a PaymentIntent without a session, whose token the page confirms it with", async () => {
      const payment = await shop.server.post("/v1/payment_intents", { amount: 2450, currency: "usd" })
      clientSecret = payment.client_secret
      const page = await openPage(browser, ownPage.url)
      await inputs(page).getByLabel("Card number").fill("1234")
      await page.getByRole("button").click()
      await page.getByText("card_refused: ").waitFor()
      await inputs(page).getByLabel("Card number").fill(NUMBERS.approved)
      await page.getByRole("button").click()
      await page.getByText("succeeded").waitFor()
      assert.strictEqual((await shop.server.get(`/v1/payment_intents/${payment.id}`)).status, "succeeded")
    })

    it("rejects a text that is no client secret", async () => {
      const { page } = await openOwn()
      const mounted = (clientSecret: string) =>
        page.evaluate(
          ([key, clientSecret]) =>
            (window as unknown as { Till: typeof Till })
              .Till(key!)
              .mountCard("#status", { clientSecret: clientSecret! })
              .then(String, String),
          [KEYS.publishableTest, clientSecret]
        )
      for (const text of ["", "pi_1", "pi_1_secret_a/../x", "pi_1_secret_a?b"]) {
        assert.strictEqual(
          await mounted(text),
          "TypeError: clientSecret must be that of a PaymentIntent or a Checkout Session"
        )
      }
    })

    it("of a PaymentIntent has its address for the client secret alone", async () => {
      const { client_secret, id } = await shop.server.post("/v1/payment_intents", { amount: 2450, currency: "usd" })
      const read = (secret: string) =>
        fetch(`${shop.server.baseUrl}/checkout/${id}/fields?client_secret=${secret}`).then((answer) => answer.json())
      assert.strictEqual((await read(client_secret)).url, `${shop.gateway.url}/fields`)
      assert.isNull((await read("wrong")).url)
    })

    it("has its address and texts for the client secret alone, open to any origin", async () => {
      const session = await openSession({ ui_mode: "custom", success_url: null })
      const read = (secret: string) =>
        fetch(`${shop.server.baseUrl}/checkout/${session.id}/fields?client_secret=${secret}`, {
          headers: { "accept-language": "de" }
        })
      const found = await read(session.client_secret)
      assert.strictEqual(found.headers.get("access-control-allow-origin"), "*")
      assert.deepInclude(await found.json(), { url: `${shop.gateway.url}/fields`, title: "Karte" })
      const missing = await read("wrong")
      assert.deepStrictEqual([missing.status, (await missing.json()).url], [404, null])
    })
  })
})
