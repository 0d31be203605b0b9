/**
 * The documentation in a real browser: accessible in light and dark mode, no wider than a phone, searched by keyboard,
 * with samples that are copied in the chosen language.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { accessibilityProblems, brokenNames, connect, hasBrowser, overflows, setTextSize } from "../Browser.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"

const PATHS = [
  "/docs",
  "/docs/guide/webhooks",
  "/docs/guide/from-stripe",
  "/docs/api/checkout_sessions",
  "/docs/api/webhook_endpoints",
  "/docs/errors",
  "/docs/errors/card_declined",
  "/docs/errors/payment_intent_authentication_failure",
  "/docs/test-cards",
  "/docs/search?q=refund",
  "/"
]

describe.skipIf(!hasBrowser)("the documentation in a browser", () => {
  let server: MemoryTillWithPages
  let browser: Browser
  beforeAll(async () => {
    ;[server, browser] = await Promise.all([start(), connect()])
  })
  afterAll(() => Promise.all([browser.close(), server.close()]))

  const open = async (path: string, options: BrowserContextOptions = {}): Promise<Page> => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
    const page = await context.newPage()
    page.on("pageerror", (error) => assert.fail(String(error)))
    await page.goto(server.url + path)
    return page
  }

  it.each<[string, BrowserContextOptions]>([
    ["a desk", { viewport: { width: 1440, height: 900 } }],
    ["a phone in the dark", { viewport: { width: 360, height: 740 }, colorScheme: "dark" }],
    ["a phone without a script", { viewport: { width: 360, height: 740 }, javaScriptEnabled: false }]
  ])("is accessible and fits %s", async (_, options) => {
    const page = await open("/docs", options)
    for (const path of PATHS) {
      await page.goto(server.url + path)
      assert.isFalse(await overflows(page), path)
      if (options.javaScriptEnabled !== false) assert.deepStrictEqual(await accessibilityProblems(page), [], path)
    }
    await page.context().close()
  })

  it.each([360, 1280])("breaks no name of an error in a window of %d", async (width) => {
    const page = await open("/docs", { viewport: { width, height: 740 } })
    const codes = ["card_declined", "payment_intent_authentication_failure", "parameter_invalid", "no_such_code"]
    for (const path of ["/docs", "/docs/errors", ...codes.map((code) => `/docs/errors/${code}`)]) {
      await page.goto(server.url + path)
      await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)))
      assert.deepStrictEqual(await brokenNames(page), [], path)
      assert.isFalse(await overflows(page), path)
    }
    await page.context().close()
  })

  it("fits a phone with text of twice the size", async () => {
    const page = await open("/docs", { viewport: { width: 360, height: 740 } })
    await setTextSize(page, 32)
    for (const path of PATHS) {
      await page.goto(server.url + path)
      assert.isFalse(await overflows(page), path)
    }
    await page.context().close()
  })

  it("searches by keyboard alone, and opens the place", async () => {
    const page = await open("/docs/errors")
    await page.keyboard.press("/")
    await page.keyboard.type("capture a payment")
    await page.locator(".results").getByRole("link", { name: "Capture a PaymentIntent" }).waitFor()
    await page.keyboard.press("ArrowDown")
    assert.deepStrictEqual(await accessibilityProblems(page), [])
    await page.keyboard.press("Enter")
    await page.waitForURL(`${server.url}/docs/api/payment_intents#capture`)
    await page.keyboard.press("/")
    await page.keyboard.type("nothing at all")
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "Search" }).waitFor()
    await page.context().close()
  })

  it("shows and copies samples in the language that was chosen on another page", async () => {
    const page = await open("/docs/api/refunds", { permissions: ["clipboard-read", "clipboard-write"] })
    const samples = page.locator("#create .samples")
    assert.isTrue(await samples.locator('[data-language="curl"]').isVisible())
    await samples.getByRole("radio", { name: "Python" }).check()
    assert.isFalse(await samples.locator('[data-language="curl"]').isVisible())
    await page.goto(`${server.url}/docs/api/customers`)
    const shown = page.locator('#delete [data-language="python"]')
    assert.isTrue(await shown.isVisible())
    await shown.getByRole("button", { name: "Copy: Request in Python" }).click()
    const copied = await page.evaluate(() => navigator.clipboard.readText())
    assert.include(copied, 'print(till("DELETE", "/v1/customers/" + customer["id"]))')
    assert.notInclude(copied, "Copy")
    await page.context().close()
  })

  it("shows every sample one by one without a script, too", async () => {
    const page = await open("/docs/api/refunds", { javaScriptEnabled: false })
    const samples = page.locator("#create .samples")
    await samples.getByText("PHP", { exact: true }).click()
    assert.isTrue(await samples.locator('[data-language="php"]').isVisible())
    assert.isFalse(await samples.locator('[data-language="curl"]').isVisible())
    await page.context().close()
  })
})
