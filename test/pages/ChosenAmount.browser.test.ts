/**
 * Semantics pages.amount: a payer chooses the amount in a real browser, with and without scripts, on all kinds of
 * pages.
 */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser, BrowserContextOptions, Frame, Page } from "playwright-core"
import { accessibilityProblems, connect, hasBrowser, openPage, overflows } from "./Browser.ts"
import { type Answer, type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { CARDS, openSession } from "../support/fixtures/CheckoutPages.ts"
import { openShop, type ShopWindow } from "../support/fixtures/ShopWindow.ts"

/** The page's error about an amount, and the server's for a form without scripts. */
const readings = async () => {
  const form = document.querySelector("form")!
  const body = new URLSearchParams([...new FormData(form)] as Array<[string, string]>)
  const answer = await fetch(form.action, { method: "POST", headers: { accept: "text/html" }, body })
  const plain = new DOMParser().parseFromString(await answer.text(), "text/html")
  return [document, plain].map((page) =>
    [...page.querySelectorAll("#amount-error, [data-amount], .action")].map((place) => place.textContent)
  ) as [Array<string>, Array<string>]
}

describe.skipIf(!hasBrowser)("an amount that the payer chooses, in a browser", () => {
  let server: MemoryTillWithPages
  let shop: ShopWindow
  let browser: Browser
  beforeAll(async () => {
    ;[server, shop, browser] = await Promise.all([start(), openShop(), connect()])
  })
  afterAll(async () => {
    await browser.close()
    await Promise.all([server.close(), shop.close()])
  })
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())))

  const gift = async (
    terms: object = {},
    { currency = "usd", others = 0, parameters = {} }: { currency?: string; others?: number; parameters?: object } = {}
  ): Promise<Answer> => {
    const product = await server.post("/v1/products", { name: "Gift for the harbour choir" })
    const body = { product: product.id, currency, custom_unit_amount: { enabled: true, ...terms } }
    const price = await server.post("/v1/prices", body)
    const book = await server.post("/v1/products", { name: "Song book" })
    const other = { price_data: { currency, product: book.id, unit_amount: others } }
    return openSession(server, {
      success_url: `${shop.url}/thanks?session={CHECKOUT_SESSION_ID}`,
      cancel_url: `${shop.url}/cart`,
      line_items: [{ price: price.id }, ...(others === 0 ? [] : [other])],
      ...parameters
    })
  }

  const open = (session: Answer, options?: BrowserContextOptions): Promise<Page> =>
    openPage(browser, session.url, options)

  // Found by their ids, because the labels are in the browser's language.
  const amountIn = (page: Page | Frame) => page.locator("#amount")
  const button = (page: Page | Frame) => page.locator("button[type=submit]")
  /** Prices of the line and of the total, each the same everywhere on the page. */
  const pricesOf = async (page: Page): Promise<ReadonlyArray<string>> => {
    const texts = async (kind: string) => [...new Set(await page.locator(`[data-amount=${kind}]`).allTextContents())]
    return [...(await texts("line")), ...(await texts("total"))].map((text) => text.replaceAll("\u00a0", " "))
  }

  const fill = async (page: Page | Frame, number: string = CARDS.approved) => {
    await page.locator("#email").fill("ana@example.com")
    await page.locator("#card_number").fill(number)
    await page.locator("#card_expiry").fill("12 / 34")
    await page.locator("#card_cvc").fill("123")
  }

  const requirePaid = async (session: Answer, amount: number) => {
    const { amount_total, payment_intent, payment_status } = await server.get(`/v1/checkout_sessions/${session.id}`)
    assert.deepStrictEqual([amount_total, payment_status], [amount, "paid"])
    assert.strictEqual((await server.get(`/v1/payment_intents/${payment_intent}`)).amount_received, amount)
  }
  const atShop = async (page: Page, session: Answer, amount: number) => {
    await page.waitForURL(`${shop.url}/thanks?session=${session.id}`)
    await requirePaid(session, amount)
  }

  const PHONE = { viewport: { width: 360, height: 740 } }
  const PLAIN = { javaScriptEnabled: false }
  const ways: ReadonlyArray<readonly [string, BrowserContextOptions]> = [
    ["with script, on a phone", PHONE],
    ["without script, on a desk", PLAIN]
  ]

  it.each([
    ["usd", "12.5", 1250, "on a phone", PHONE],
    ["jpy", "1,250", 1250, "without script", PLAIN],
    ["kwd", "1.25", 1250, "on a desk", {}],
    ["eur", "1.250,5", 125_050, "on a phone, without script", { ...PHONE, ...PLAIN, locale: "de-DE" }]
  ] as const)("is paid in %s: %s is %d, %s", async (currency, entered, amount, _, options) => {
    const session = await gift({}, { currency })
    const page = await open(session, options)
    await amountIn(page).fill(entered)
    await fill(page)
    await button(page).click()
    await atShop(page, session, amount)
  })

  describe.each(ways)("%s", (_, options) => {
    it("shows the error and keeps everything but the card", async () => {
      const session = await gift({ minimum: 300 }, { others: 500 })
      const page = await open(session, options)
      await amountIn(page).fill("2.99")
      await fill(page)
      await button(page).click()
      await page.getByText("Enter at least $3.00.").waitFor()
      assert.strictEqual(await page.locator(":focus").getAttribute("name"), "amount")
      assert.strictEqual(await amountIn(page).inputValue(), "2.99")
      assert.strictEqual(await page.getByLabel("Email").inputValue(), "ana@example.com")
      assert.strictEqual((await button(page).textContent())!.trim(), "Pay")
      await amountIn(page).fill("3")
      await fill(page)
      await button(page).click()
      await atShop(page, session, 800)
    })

    it("accepts another amount after a decline and an authentication", async () => {
      const session = await gift({ preset: 700 })
      const page = await open(session, options)
      await amountIn(page).fill("5")
      await fill(page, CARDS.declined)
      await button(page).click()
      await page.getByText("Your card was declined.").waitFor()
      assert.strictEqual(await amountIn(page).inputValue(), "5")
      await fill(page, CARDS.challenged)
      await button(page).click()
      await page.getByRole("heading", { name: "Confirm your payment" }).waitFor()
      assert.isTrue(await page.getByText("$5.00").isVisible())
      await page.getByRole("button", { name: "Fail authentication" }).click()
      await page.getByText("Your bank could not confirm that it was you.").waitFor()
      assert.strictEqual(await amountIn(page).inputValue(), "5.00")
      await amountIn(page).fill("6")
      await fill(page, CARDS.challenged)
      await button(page).click()
      await page.getByRole("heading", { name: "Confirm your payment" }).waitFor()
      assert.isTrue(await page.getByText("$6.00").isVisible())
      await page.getByRole("button", { name: "Complete authentication" }).click()
      await atShop(page, session, 600)
    })
  })

  it("updates the prices and the button", async () => {
    const session = await gift({ maximum: 99_999_999 }, { others: 500 })
    const page = await open(session)
    const open_ = ["Your amount", "$5.00 + your amount"]
    assert.strictEqual(
      await page.locator("[data-amount=total]").count(),
      4,
      "on top, in the line that opens, twice below"
    )
    assert.deepStrictEqual(await pricesOf(page), open_)
    assert.strictEqual((await button(page).textContent())!.trim(), "Pay")
    for (const [entered, line, total] of [
      ["1", "$1.00", "$6.00"],
      ["12.5", "$12.50", "$17.50"],
      ["999,999.99", "$999,999.99", "$1,000,004.99"],
      ["12,5", "$12.50", "$17.50"]
    ] as const) {
      await amountIn(page).fill("")
      await amountIn(page).pressSequentially(entered)
      assert.deepStrictEqual(await pricesOf(page), [line, total])
      assert.strictEqual((await button(page).textContent())!.trim(), `Pay ${total}`)
      assert.strictEqual(await page.locator(".total .long").count(), total.length > 12 ? 1 : 0)
    }
    await amountIn(page).fill("12,555")
    assert.deepStrictEqual(await pricesOf(page), ["$12,555.00", "$12,560.00"])
    await amountIn(page).fill("1.2345")
    assert.deepStrictEqual(await pricesOf(page), open_)
    await amountIn(page).press("Tab")
    await page.getByText("Enter at most 2 decimals, as in 10.50.").waitFor()
  })

  it("is read the same in the browser and on the server", async () => {
    for (const [currency, locale, entered] of [
      ["usd", "en-US", ["10", "10,5", "1,234", "1.234", "$5", "-1", "1e3", ".5", "€5"]],
      ["jpy", "ja-JP", ["1050", "１０５０", "1,050", "10.5", "￥5"]],
      ["kwd", "ar-EG", ["١٠٫٥٠٠", "1.234", "1,234", "10"]],
      ["eur", "de-CH", ["1’234.50", "1.234,50", "1.234"]]
    ] as const) {
      const page = await open(await gift({}, { currency }), { locale })
      for (const text of entered) {
        await amountIn(page).fill(text)
        await button(page).click()
        const [scripted, plain] = await page.evaluate(readings)
        assert.deepStrictEqual(scripted, plain, `${locale} ${text}`)
        assert.isAtLeast(scripted.length, 5, "what is said of the amount, and four prices")
      }
    }
  })

  it("is paid by keyboard alone, with errors beside the field", async () => {
    const session = await gift({ minimum: 300 })
    const page = await open(session)
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute("name"))
    const reach = async (name: string) => {
      for (let presses = 0; (await focused()) !== name; presses++) {
        assert.isBelow(presses, 12, `${name} is not reached`)
        await page.keyboard.press("Tab")
      }
    }
    await reach("amount")
    await page.keyboard.press("ControlOrMeta+A")
    await page.keyboard.type("1")
    for (const [name, text] of [
      ["email", "ana@example.com"],
      ["card_number", CARDS.approved],
      ["card_expiry", "1234"],
      ["card_cvc", "123"]
    ] as const) {
      await reach(name)
      await page.keyboard.type(text)
    }
    await page.keyboard.press("Enter")
    assert.strictEqual(await focused(), "amount")
    const field = amountIn(page)
    assert.strictEqual(await field.getAttribute("aria-invalid"), "true")
    const described = (await field.getAttribute("aria-describedby"))!.split(" ")
    const texts = await Promise.all(described.map((id) => page.locator(`#${id}`).textContent()))
    assert.deepStrictEqual(texts, ["At least $3.00.", "Enter at least $3.00."])
    await page.keyboard.press("ControlOrMeta+A")
    await page.keyboard.type("4.20")
    await page.keyboard.press("Enter")
    await atShop(page, session, 420)
  })

  it("is read by the server alone if the module cannot be loaded", async () => {
    const session = await gift()
    const context = await browser.newContext({ locale: "en-US" })
    const page = await context.newPage()
    await page.route("**/assets/amount-*.js", (route) => route.abort())
    await page.goto(session.url)
    await fill(page)
    await amountIn(page).fill("0")
    await button(page).click()
    await page.getByText("Enter at least $0.01.").waitFor()
    await amountIn(page).fill("5")
    await fill(page)
    await button(page).click()
    await atShop(page, session, 500)
  })

  it("is paid in a shop's page that embeds the checkout", async () => {
    const session = await gift({ preset: 700 }, { parameters: { ui_mode: "embedded", cancel_url: null } })
    const context = await browser.newContext({ locale: "en-US" })
    const page = await context.newPage()
    await page.goto(`${shop.url}/cart`)
    await page.addScriptTag({ url: `${server.url}/checkout.js` })
    await page.evaluate(
      ([key, clientSecret]) => {
        const place = document.createElement("div")
        document.body.append(place)
        Till(key!).embeddedCheckout({ clientSecret: clientSecret! }).mount(place)
      },
      [server.publishableTest, session.client_secret] as const
    )
    const frame = await (await page.waitForSelector("iframe[data-ready]")).contentFrame()
    await amountIn(frame!).fill("6.66")
    await frame!.getByRole("button", { name: "Pay $6.66" }).waitFor()
    await fill(frame!)
    await button(frame!).click()
    await atShop(page, session, 666)
  })

  describe.each([
    ["a desk", { viewport: { width: 1280, height: 900 } }],
    ["a phone in the dark", { ...PHONE, colorScheme: "dark" }],
    ["a small phone without script", { viewport: { width: 320, height: 640 }, javaScriptEnabled: false }]
  ] satisfies ReadonlyArray<readonly [string, BrowserContextOptions]>)("on %s", (name, options) => {
    const requireGood = async (page: Page, state: string) => {
      const folder = process.env["TILL_TEST_SCREENSHOTS"]
      const path = `${folder}/${name} ${state}.png`.replaceAll(" ", "-")
      if (folder !== undefined) await page.screenshot({ path, fullPage: true })
      assert.isFalse(await overflows(page), `${state} is too wide`)
      // Scripts are off, including the one that checks accessibility.
      if (name.endsWith("without script")) return
      assert.deepStrictEqual(await accessibilityProblems(page), [], state)
    }

    it("is accessible and fits in every state", async () => {
      const page = await open(await gift(), options)
      await requireGood(page, "open")
      await button(page).click()
      await page.getByText("Enter an amount.").waitFor()
      await requireGood(page, "empty")
      await page.goto((await gift({ minimum: 300, preset: 1000, maximum: 99_999_999_999 }, { others: 2450 })).url)
      await requireGood(page, "proposed")
      await page.goto((await gift({ minimum: 300 }, { currency: "kwd", others: 999_999_999_000 })).url)
      await requireGood(page, "large")
      await page.goto((await gift({}, { currency: "usd", others: 999_999_999_000 })).url)
      await requireGood(page, "large and open")
      await amountIn(page).fill("1,23,4")
      await fill(page)
      await button(page).click()
      await page.getByText("Enter an amount such as 10.50.").waitFor()
      await requireGood(page, "wrong")
    })
  })
})
