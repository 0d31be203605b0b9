/** A payer follows a payment link in a real browser (semantics pages.payment_link). */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { accessibilityProblems, connect, hasBrowser, openPage, overflows } from "../Browser.ts"
import { type Answer, type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { makeLink } from "../../support/fixtures/PaymentLinks.ts"

const DESK = { viewport: { width: 1280, height: 900 } }
const PHONE = { viewport: { width: 360, height: 740 } }

describe.skipIf(!hasBrowser)("a payment link in a browser", () => {
  let server: MemoryTillWithPages
  let browser: Browser
  beforeAll(async () => {
    ;[server, browser] = await Promise.all([start(), connect()])
  })
  afterAll(async () => {
    await browser.close()
    await server.close()
  })
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())))

  const adjustable = (parameters: object = {}): Promise<Answer> =>
    makeLink(server, parameters, { line: { adjustable_quantity: { enabled: true, maximum: 5 } } })

  const sound = async (page: Page): Promise<void> => {
    assert.deepStrictEqual(await accessibilityProblems(page), [])
    assert.isFalse(await overflows(page))
  }

  const pay = async (page: Page): Promise<void> => {
    await page.getByLabel("Email").fill("ana@example.com")
    await page.getByLabel("Card number").fill("4242424242424242")
    await page.getByLabel("Expiry date").fill("12 / 34")
    await page.getByLabel("Security code").fill("123")
    await page.getByRole("button", { name: /^Pay/ }).click()
  }

  it.each([
    ["on a desk", DESK],
    ["on a phone in the dark", { ...PHONE, colorScheme: "dark" }],
    ["without a script", { ...DESK, javaScriptEnabled: false }]
  ] as ReadonlyArray<readonly [string, BrowserContextOptions]>)(
    "sells the quantity that the payer chooses, %s",
    async (_, options) => {
      const link = await adjustable()
      const page = await openPage(browser, link.url, options)
      if (options.javaScriptEnabled !== false) await sound(page)
      await page.getByLabel("House Espresso").fill("9")
      await page.getByRole("button", { name: "Continue to payment" }).click()
      await page.getByText("Enter a whole number from 1 to 5.").waitFor()
      assert.strictEqual(await page.getByLabel("House Espresso").getAttribute("aria-invalid"), "true")
      if (options.javaScriptEnabled !== false) await sound(page)
      await page.getByLabel("House Espresso").fill("3")
      await page.getByRole("button", { name: "Continue to payment" }).click()
      await page.waitForURL(/\/checkout\/cs_/)
      await page.getByRole("button", { name: "Pay $36.00" }).waitFor()
      await pay(page)
      await page.getByText("This order is paid").waitFor()
      const [session] = (await server.get(`/v1/checkout_sessions?payment_link=${link.id}`)).data
      assert.deepInclude(session, { status: "complete", payment_status: "paid", amount_total: 3600 })
    }
  )

  it("works by keyboard alone, and leads back to the link", async () => {
    const page = await openPage(browser, (await adjustable()).url, DESK)
    const link = page.url()
    for (let presses = 0; presses < 20; presses++) {
      await page.keyboard.press("Tab")
      const name = await page.evaluate(() => (document.activeElement as HTMLElement).getAttribute("name"))
      if (name === "quantity_0") break
    }
    await page.keyboard.press("ControlOrMeta+a")
    await page.keyboard.type("2")
    await page.keyboard.press("Enter")
    await page.waitForURL(/\/checkout\/cs_/)
    await page.getByRole("link", { name: "Back to Lumen Coffee" }).click()
    await page.waitForURL(link)
    assert.strictEqual(await page.getByLabel("House Espresso").inputValue(), "1")
  })

  it("says in the payer's language that it is not active", async () => {
    const link = await adjustable()
    await server.post(`/v1/payment_links/${link.id}`, { active: false })
    for (const [locale, title, direction] of [
      ["de-DE", "Dieser Zahlungslink ist nicht aktiv", "ltr"],
      ["ar", "رابط الدفع هذا غير نشط", "rtl"]
    ] as const) {
      const page = await openPage(browser, link.url, { ...PHONE, locale })
      await page.getByRole("heading", { name: title }).waitFor()
      assert.strictEqual(await page.locator("html").getAttribute("dir"), direction)
      await sound(page)
    }
  })
})
