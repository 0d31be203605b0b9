/**
 * The API reference and the error pages in a real browser: accessible in light and dark mode, and no wider than a
 * phone.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser } from "playwright-core"
import { accessibilityProblems, brokenNames, connect, hasBrowser, overflows } from "../Browser.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"

describe.skipIf(!hasBrowser)("the documentation in a browser", () => {
  let server: MemoryTillWithPages
  let browser: Browser
  beforeAll(async () => {
    ;[server, browser] = await Promise.all([start(), connect()])
  })
  afterAll(() => Promise.all([browser.close(), server.close()]))

  it.each(["light", "dark"] as const)("says what there is to call, on a phone too: %s", async (colorScheme) => {
    const context = await browser.newContext({ colorScheme, viewport: { width: 360, height: 740 } })
    const page = await context.newPage()
    await page.goto(`${server.url}/docs`)
    assert.isFalse(await overflows(page))
    assert.deepStrictEqual(await accessibilityProblems(page), [])
    await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)))
    assert.isFalse(await overflows(page))
    await context.close()
  })

  it.each(["light", "dark"] as const)("says what errors mean: %s", async (colorScheme) => {
    const context = await browser.newContext({ colorScheme, viewport: { width: 360, height: 740 } })
    const page = await context.newPage()
    await page.goto(`${server.url}/docs/errors`)
    assert.deepStrictEqual(await accessibilityProblems(page), [])
    assert.isFalse(await overflows(page))
    await page.getByRole("link", { name: "payment_intent_authentication_failure" }).click()
    await page.getByRole("heading", { name: "payment_intent_authentication_failure" }).waitFor()
    assert.isFalse(await overflows(page))
    await page.getByRole("link", { name: "Errors" }).click()
    await page.getByRole("link", { name: "card_declined" }).click()
    await page.getByRole("heading", { name: "Decline codes" }).waitFor()
    assert.deepStrictEqual(await accessibilityProblems(page), [])
    assert.isFalse(await overflows(page))
    await context.close()
  })

  it.each([360, 1280])("breaks no name, and is no wider than a window of %d", async (width) => {
    const page = await (await browser.newContext({ viewport: { width, height: 740 } })).newPage()
    const codes = ["card_declined", "payment_intent_authentication_failure", "parameter_invalid", "no_such_code"]
    for (const path of ["/docs", "/docs/errors", ...codes.map((code) => `/docs/errors/${code}`)]) {
      await page.goto(server.url + path)
      await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)))
      assert.deepStrictEqual(await brokenNames(page), [], path)
      assert.isFalse(await overflows(page), path)
    }
    await page.context().close()
  })
})
