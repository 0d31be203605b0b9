/**
 * Semantics pages.saved_cards: a payer chooses a saved card in a real browser, with and without scripts, and by
 * keyboard alone.
 */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { accessibilityProblems, connect, hasBrowser, openPage, overflows } from "../Browser.ts"
import { type Answer, type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { CARDS, openSession } from "../../support/fixtures/CheckoutPages.ts"

describe.skipIf(!hasBrowser)("saved cards, in a browser", () => {
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

  const sessionOf = async (...cards: ReadonlyArray<string>): Promise<Answer> => {
    const { id } = await server.post("/v1/customers", { email: "ana@example.com", name: "Ana Lima" })
    for (const card of cards) await server.post(`/v1/payment_methods/${card}/attach`, { customer: id })
    return openSession(server, { customer: id })
  }

  const open = (session: Answer, options?: BrowserContextOptions): Promise<Page> =>
    openPage(browser, session.url, options)

  const assertPaid = async (page: Page, session: Answer) => {
    await page.waitForURL(`${server.url}/healthz?session=${session.id}`)
    assert.strictEqual((await server.get(`/v1/checkout_sessions/${session.id}`)).payment_status, "paid")
  }

  const enterCard = async (page: Page, number: string) => {
    await page.getByLabel("Card number").fill(number)
    await page.getByLabel("Expiry date").fill("12 / 34")
    await page.getByLabel("Security code").fill("123")
  }

  const PHONE = { viewport: { width: 360, height: 740 } }
  const ways: ReadonlyArray<readonly [string, BrowserContextOptions]> = [
    ["with script", {}],
    ["without script, on a phone", { ...PHONE, javaScriptEnabled: false }]
  ]

  describe.each(ways)("%s", (_, options) => {
    it("pays with one click, without asking for a card", async () => {
      const session = await sessionOf("pm_card_visa")
      const page = await open(session, options)
      assert.isTrue(await page.getByLabel("Visa •••• 4242").isChecked())
      assert.isFalse(await page.getByLabel("Card number").isVisible())
      await page.locator("button[type=submit]").click()
      await assertPaid(page, session)
    })

    it("accepts another card, also after a decline", async () => {
      const session = await sessionOf("pm_card_chargeDeclined")
      const page = await open(session, options)
      await page.locator("button[type=submit]").click()
      await page.getByText("Choose another card, or ask your bank about this one.").waitFor()
      assert.strictEqual(await page.locator(":focus").getAttribute("name"), "payment_method")
      assert.include((await page.getByRole("alert").textContent())!, "You have not been charged.")
      await page.getByLabel("Another card").check()
      await enterCard(page, CARDS.insufficientFunds)
      await page.locator("button[type=submit]").click()
      await page.getByText("Pay with another card, or top this one up first.").waitFor()
      assert.isTrue(await page.getByLabel("Another card").isChecked())
      assert.strictEqual(await page.locator(":focus").getAttribute("name"), "card_number")
      await enterCard(page, CARDS.approved)
      await page.locator("button[type=submit]").click()
      await assertPaid(page, session)
    })
  })

  it("works by keyboard alone", async () => {
    const session = await sessionOf("pm_card_visa", "pm_card_mastercard")
    const page = await open(session)
    await page.getByLabel("Full name").focus()
    await page.keyboard.press("Tab")
    assert.strictEqual(await page.locator(":focus").inputValue(), await page.locator("#payment_method").inputValue())
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    assert.isTrue(await page.getByLabel("Another card").isChecked())
    await page.keyboard.press("Tab")
    assert.strictEqual(await page.locator(":focus").getAttribute("name"), "card_number")
    await page.keyboard.press("Shift+Tab")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("Enter")
    await assertPaid(page, session)
    const { payment_intent } = await server.get(`/v1/checkout_sessions/${session.id}`)
    const { charges } = await server.get(`/v1/payment_intents/${payment_intent}`)
    assert.strictEqual(charges.data[0].payment_method_details.card.brand, "visa")
  })

  it("offers test cards in test mode", async () => {
    const page = await open(await sessionOf("pm_card_visa"))
    await page.getByText("Test cards").first().click()
    await page.locator(".test-card").first().click()
    assert.isTrue(await page.getByLabel("Another card").isChecked())
    assert.strictEqual(await page.getByLabel("Card number").inputValue(), "4242 4242 4242 4242")
  })

  it.each([
    ["on a desk", {}],
    ["on a phone, in the dark", { ...PHONE, colorScheme: "dark" as const }]
  ])("is accessible %s", async (name, options: BrowserContextOptions) => {
    const session = await sessionOf("pm_card_chargeDeclined", "pm_card_visa", "pm_card_amex")
    const page = await open(session, options)
    assert.deepStrictEqual(await accessibilityProblems(page), [])
    assert.isFalse(await overflows(page))
    const shots = process.env["TILL_TEST_SCREENSHOTS"]
    if (shots !== undefined) await page.screenshot({ path: `${shots}/saved ${name}.png`, fullPage: true })
    await page.getByLabel("•••• 0002").check()
    await page.locator("button[type=submit]").click()
    await page.getByText("Choose another card, or ask your bank").waitFor()
    assert.deepStrictEqual(await accessibilityProblems(page), [])
    if (shots !== undefined) await page.screenshot({ path: `${shots}/declined ${name}.png`, fullPage: true })
  })
})
