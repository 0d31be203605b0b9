/**
 * Two-step verification in a real browser by the keyboard alone (semantics dashboard.two_step, dashboard.keyboard):
 * its pages are accessible and fit their window in light and dark mode, on desktop and phone, with and without scripts.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser, Page } from "playwright-core"
import * as Totp from "../../../src/domain/Totp.ts"
import { accessibilityProblems, connect, hasBrowser, overflows } from "../../pages/Browser.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { clockOf } from "../../support/SettableClock.ts"
import { linkFor, signInBy } from "../People.ts"

const PASSWORD = "correct horse battery"
const STEPS_MAX = 80
const DESK = { width: 1280, height: 720 }
const PHONE = { width: 360, height: 740 }

const bytesOf = (key: string): Uint8Array => {
  const bits = [...key.replaceAll(/\s/g, "")]
    .map((digit) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(digit).toString(2).padStart(5, "0"))
    .join("")
  return Uint8Array.from(bits.match(/.{8}/g)!, (byte) => Number.parseInt(byte, 2))
}

describe.skipIf(!hasBrowser)("two-step verification", () => {
  let server: MemoryTillWithPages
  let browser: Browser
  let now = Date.now()
  beforeAll(async () => {
    ;[server, browser] = await Promise.all([
      start({ merchantName: "Lumen Coffee", clock: clockOf(() => now) }),
      connect()
    ])
  })
  afterAll(async () => {
    await browser.close()
    await server.close()
  })

  const address = (path: string) => `${server.url}/dashboard${path}`

  /** Checks a page in light and dark mode, on desktop and phone. Only with scripts can axe run. */
  const lookAt = async (page: Page, hasScripts: boolean) => {
    for (const [colorScheme, size] of [
      ["light", DESK],
      ["dark", PHONE]
    ] as const) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize(size)
      if (hasScripts) assert.deepStrictEqual(await accessibilityProblems(page), [], `${page.url()} in ${colorScheme}`)
      assert.isFalse(await overflows(page), `${page.url()} at ${size.width}`)
    }
    await page.setViewportSize(DESK)
  }

  const tabTo = async (page: Page, selector: string) => {
    const wanted = page.locator(selector).first()
    for (let steps = 0; steps < STEPS_MAX; steps++) {
      if (await wanted.evaluate((element) => element === document.activeElement)) return
      await page.keyboard.press("Tab")
    }
    assert.fail(`${page.url()}: Tab does not come to ${selector}`)
  }
  const enter = async (page: Page, name: string, text: string) => {
    await tabTo(page, `main [name="${name}"]:not([type=hidden])`)
    await page.keyboard.type(text)
  }
  const send = (page: Page) => page.keyboard.press("Enter")
  const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name }).waitFor()
  /** Opens the form behind a button and sends it. */
  const sendDialog = async (page: Page, end: string) => {
    await tabTo(page, `main details:has(form[action$="${end}"]) > summary`)
    await page.keyboard.press("Enter")
    await tabTo(page, `main form[action$="${end}"] button`)
    await page.keyboard.press("Enter")
  }

  it.each([true, false])(
    "is set up, asked for, renewed and turned off by keyboard; with a script: %s",
    async (script) => {
      const context = await browser.newContext({ locale: "en-US", reducedMotion: "reduce", javaScriptEnabled: script })
      context.setDefaultTimeout(120_000)
      const page = await context.newPage()
      const look = (page: Page) => lookAt(page, script)
      const email = `keys-${script}@example.com`
      await signInBy(page, await linkFor(server, "support"))
      await page.goto(address("/test/account"))
      await enter(page, "email", email)
      await enter(page, "password", PASSWORD)
      await send(page)
      await page.locator("main > .said").waitFor()

      await page.goto(address("/test/account/two-step"))
      await look(page)
      const secret = bytesOf((await page.locator("main .steps code").first().textContent())!)
      const code = () => Totp.codeOf(secret, Totp.stepAt(now / 1000))
      await enter(page, "code", "12345x")
      await send(page)
      await page.locator("main .error").waitFor()
      await look(page)
      await enter(page, "code", code())
      await send(page)
      await heading(page, "Recovery codes")
      await look(page)
      const recovery = (await page.locator("main pre").textContent())!.trim().split("\n")
      assert.strictEqual(recovery.length, 10)

      await page.goto(address("/test/account/two-step"))
      await look(page)
      now += 30_000
      await sendDialog(page, "/recovery-codes")
      await heading(page, "Confirm it's you")
      await look(page)
      await enter(page, "confirm_password", PASSWORD)
      await enter(page, "confirm_code", recovery[0]!)
      await send(page)
      await heading(page, "Recovery codes")
      const renewed = (await page.locator("main pre").textContent())!.trim().split("\n")

      await context.clearCookies()
      await page.goto(address("/test/payments?status=succeeded"))
      await enter(page, "email", email)
      await enter(page, "password", PASSWORD)
      await send(page)
      await heading(page, "Enter a code")
      await look(page)
      await enter(page, "code", "12345x")
      await send(page)
      await page.locator("main .error").waitFor()
      await look(page)
      await enter(page, "code", code())
      await send(page)
      await page.waitForURL(address("/test/payments?status=succeeded"))

      await page.goto(address("/test/account"))
      await look(page)
      await page.goto(address("/test/account/two-step"))
      await sendDialog(page, "/two-step/off")
      await enter(page, "confirm_password", PASSWORD)
      await enter(page, "confirm_code", renewed[0]!)
      await send(page)
      await page.getByText("Two-step verification is off.").waitFor()
      await context.close()
    }
  )
})
