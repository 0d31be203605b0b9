/** The order in a real browser: images, folding, brand, and a pending result. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { Accounts } from "../../src/engine/Accounts.ts"
import { administer } from "../../src/payments/administration/Administration.ts"
import { accessibilityProblems, connect, hasBrowser, overflows } from "./Browser.ts"
import { type Answer, type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { CARDS, filledIn, openSession, pay } from "../support/fixtures/CheckoutPages.ts"

/** The merchant's image server, which records its requests. */
const servePictures = async () => {
  const requests: Array<http.IncomingMessage> = []
  const server = http.createServer((request, response) => {
    requests.push(request)
    if (!request.url!.endsWith(".svg")) return void response.writeHead(404).end()
    response.setHeader("content-type", "image/svg+xml")
    response.end(
      '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="300"><rect width="900" height="300"/></svg>'
    )
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const close = () => (server.closeAllConnections(), server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, close }
}

const DESK = { viewport: { width: 1280, height: 900 } }
const PHONE = { viewport: { width: 360, height: 740 } }

describe.skipIf(!hasBrowser)("the goods in a browser", () => {
  let server: MemoryTillWithPages
  let cdn: Awaited<ReturnType<typeof servePictures>>
  let browser: Browser
  beforeAll(async () => {
    ;[server, cdn, browser] = await Promise.all([start(), servePictures(), connect()])
  })
  afterAll(async () => {
    await browser.close()
    cdn.close()
    await server.close()
  })
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())))

  const brand = (settings: Readonly<Record<string, string | null>>) =>
    administer({ _tag: "BrandMerchant", merchant: server.merchantId, brand: settings }).pipe(
      Effect.provideService(Accounts, server.accounts),
      Effect.runPromise
    )

  /** Lines with an image, a broken image and no image, in turn. */
  const sell = async (count: number, parameters: object = {}): Promise<Answer> => {
    const names = ["/cup.svg", "/broken.png"].map((path) => [`${cdn.url}${path}`])
    const products = await Promise.all(
      [...names, []].map((images, at) =>
        server.post("/v1/products", { name: `House Espresso ${at}`, images, description: "Dark roast of a rare kind" })
      )
    )
    const line_items = Array.from({ length: count }, (_, at) => ({
      quantity: at + 1,
      price_data: { currency: "usd", product: products[at % 3].id, unit_amount: 1200, recurring: { interval: "month" } }
    }))
    return openSession(server, { line_items, ...parameters })
  }

  const open = async (url: string, options: BrowserContextOptions = DESK): Promise<Page> => {
    const context = await browser.newContext({ locale: "en-US", ...options })
    context.setDefaultTimeout(120_000)
    const page = await context.newPage()
    await page.goto(url)
    return page
  }

  const lines = (page: Page) => page.locator(".lines")

  it("pages.order: are requested without a referrer, and only if visible", async () => {
    const session = await sell(3)
    cdn.requests.length = 0
    const phone = await open(session.url, PHONE)
    await phone.waitForLoadState("networkidle")
    assert.deepStrictEqual(
      cdn.requests.map(({ url }) => url),
      [],
      "folded away"
    )
    await phone.locator(".order summary").click()
    await phone.waitForFunction(() => document.querySelector("img")?.naturalWidth === 900)
    await brand({ icon: `${cdn.url}/icon.svg` })
    const embedded = await sell(1, { ui_mode: "embedded", cancel_url: null })
    const query = new URLSearchParams({ client_secret: embedded.client_secret })
    const desk = await open(`${server.url}/checkout/${embedded.id}?${query}`)
    await desk.waitForFunction(() => [...document.images].every((image) => image.naturalWidth === 900))
    await brand({ icon: null })
    assert.includeMembers(
      cdn.requests.map(({ url }) => url!),
      ["/cup.svg", "/icon.svg", "/broken.png"]
    )
    for (const { headers } of cdn.requests) {
      assert.isUndefined(headers.referer)
      assert.isUndefined(headers.origin)
      for (const id of [session.id, embedded.id]) assert.notInclude(JSON.stringify(headers), id)
    }
  })

  it("pages.order: reserve the same space for images of any size and broken ones", async () => {
    const page = await open((await sell(2)).url)
    await page.waitForFunction(() => [...document.images].every((image) => image.complete))
    const sizes = await page
      .locator(".picture")
      .evaluateAll((places) =>
        places.map((place) => [place.getBoundingClientRect().width, place.getBoundingClientRect().height])
      )
    assert.deepStrictEqual(sizes, [
      [64, 64],
      [64, 64]
    ])
    assert.isFalse(await overflows(page))
  })

  const ways: ReadonlyArray<readonly [string, BrowserContextOptions]> = [
    ["with script", {}],
    ["without script", { javaScriptEnabled: false }]
  ]

  describe.each(ways)("%s", (_, options) => {
    it("pages.order: fold on a phone, and unfold by keyboard", async () => {
      const page = await open((await sell(3)).url, { ...PHONE, ...options })
      const summary = page.locator(".order summary")
      assert.strictEqual((await summary.innerText()).replaceAll(/\s+/g, " "), "Total · show order (3) $72.00")
      assert.isFalse(await lines(page).isVisible())
      assert.isFalse(await page.locator(".total").isVisible())
      await page.keyboard.press("Tab")
      for (let tabs = 0; !(await summary.evaluate((element) => element === document.activeElement)); tabs++) {
        assert.isBelow(tabs, 10, "the keyboard does not come to the order")
        await page.keyboard.press("Tab")
      }
      await page.keyboard.press("Enter")
      assert.isTrue(await lines(page).isVisible())
      assert.match(await summary.innerText(), /hide order/)
      await page.keyboard.press("Space")
      assert.isFalse(await lines(page).isVisible())
    })

    it("pages.order: are open on desktop up to eight lines, and fold from nine on", async () => {
      const eight = await open((await sell(8)).url, { ...DESK, ...options })
      assert.isTrue(await lines(eight).isVisible())
      assert.isFalse(await eight.locator(".order summary").isVisible())
      assert.isTrue(await eight.getByText("Subtotal").isVisible())
      const nine = await open((await sell(9)).url, { ...DESK, ...options })
      assert.isFalse(await lines(nine).isVisible())
      await nine.getByText("show order").click()
      assert.isTrue(await lines(nine).isVisible())
      assert.strictEqual(await nine.locator(".lines li").count(), 9)
    })
  })

  // Colours differ by merchant and scheme, the layout by window and text size.
  it.each([
    ["on a desk", null, DESK, ""],
    ["on a desk, in the dark", "#ffe600", { ...DESK, colorScheme: "dark" }, ""],
    ["on a desk, in text twice as large", "#ffe600", DESK, "200%"],
    ["on a phone", "#ffe600", PHONE, ""],
    ["on a phone, in the dark", null, { ...PHONE, colorScheme: "dark" }, ""],
    ["on a phone, in text twice as large", null, PHONE, "200%"]
  ] as const)(
    "pages.brand: can be seen by everybody %s, with %s for a colour",
    async (_, accent, options, textSize) => {
      const links = { support: "mailto:help@shop.example", terms: "https://shop.example/terms" }
      await brand({ accent, icon: `${cdn.url}/icon.svg`, ...links })
      const page = await open((await sell(3)).url, options)
      await page.evaluate((size) => (document.documentElement.style.fontSize = size), textSize)
      if (options.viewport === PHONE.viewport) await page.locator(".order summary").click()
      assert.isFalse(await overflows(page))
      assert.deepStrictEqual(await accessibilityProblems(page), [])
      assert.isTrue(await lines(page).isVisible())
      const linesOfLabel = await page.locator(".sum.part span:first-child").evaluate((label) => {
        const { height } = label.getBoundingClientRect()
        return Math.round(height / Number.parseFloat(getComputedStyle(label).lineHeight))
      })
      assert.strictEqual(linesOfLabel, 1, "the word Subtotal is broken")
    }
  )

  it("pages.brand: have the merchant's colour on the button and the focus ring", async () => {
    await brand({ accent: "#ffe600" })
    const page = await open((await sell(1)).url)
    const button = page.getByRole("button", { name: /^Pay / })
    const colors = await button.evaluate((element) => {
      const { backgroundColor, color } = getComputedStyle(element)
      return [backgroundColor, color]
    })
    assert.deepStrictEqual(colors, ["rgb(255, 230, 0)", "rgb(0, 0, 0)"])
    await page.getByLabel("Email").focus()
    const ring = await page.getByLabel("Email").evaluate((element) => getComputedStyle(element).outlineColor)
    assert.notStrictEqual(ring, "rgb(255, 230, 0)")
    await brand({ accent: null, icon: null, support: null, terms: null })
  })

  describe("a payment that is processing", () => {
    const processing = async (): Promise<Answer> => {
      const session = await openSession(server)
      await pay(session, filledIn(CARDS.processing))
      return session
    }
    const settle = () => server.post("/v1/test_helpers/clock/advance", { seconds: 60 })

    it("pages.processing: shows its result when it is known, and does not reload before", async () => {
      const session = await processing()
      const page = await (await browser.newContext()).newPage()
      let loads = 0
      page.on("domcontentloaded", () => loads++)
      await page.goto(session.url)
      await page.getByRole("heading", { name: "Your payment is being processed" }).waitFor()
      const before = await page.content()
      // The script's first poll fails, the second finds nothing new.
      const answers = [
        { status: 503, body: "<main>Please try again</main>" },
        { status: 410, body: before }
      ]
      let asked = 0
      await page.route(session.url, (route) => {
        const answer = route.request().resourceType() === "fetch" ? answers[asked++] : undefined
        return answer === undefined ? route.continue() : route.fulfill({ ...answer, contentType: "text/html" })
      })
      await settle()
      await page.getByRole("heading", { name: "This order is paid" }).waitFor()
      assert.deepStrictEqual([asked, loads], [3, 2])
      // A final result neither polls nor refreshes.
      assert.notInclude(await page.content(), "refresh")
      assert.strictEqual(await page.locator("script").count(), 0)
    })

    it("shows its result without scripts too", async () => {
      const session = await processing()
      const page = await open(session.url, { javaScriptEnabled: false })
      await page.getByRole("heading", { name: "Your payment is being processed" }).waitFor()
      await settle()
      await page.getByRole("heading", { name: "This order is paid" }).waitFor()
      assert.notInclude(await page.content(), "refresh")
    })
  })
})
