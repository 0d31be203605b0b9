/** The dashboard in a real browser: signing in, finding and refunding a payment, with and without scripts. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { TcpProxy } from "../faults/TcpProxy.ts"
import { connect, hasBrowser, overflows } from "../pages/Browser.ts"
import { type Answer, type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { fail } from "../support/fixtures/FailedDelivery.ts"
import { linkFor, signInBy } from "./People.ts"

interface ScrollWidths {
  readonly scrollWidth: number
  readonly clientWidth: number
}

describe.skipIf(!hasBrowser)("the dashboard in a browser", () => {
  let server: MemoryTillWithPages
  let browser: Browser
  let payment: Answer
  beforeAll(async () => {
    ;[server, browser] = await Promise.all([start(), connect()])
    await server.post("/v1/webhook_endpoints", { url: "http://127.0.0.1:9/hook", enabled_events: ["*"] })
    payment = await pay({ description: "A long description of an order, as merchants write them" })
  })
  afterAll(async () => {
    await browser.close()
    await server.close()
  })

  const pay = (parameters: object = {}): Promise<Answer> =>
    server.post("/v1/payment_intents", {
      amount: 4321,
      currency: "usd",
      payment_method: "pm_card_visa",
      confirm: true,
      ...parameters
    })

  /** A page of a person who has just signed in by a link, with the browser's errors. */
  const enter = async (options: BrowserContextOptions = {}) => {
    const context = await browser.newContext({ locale: "en-US", ...options })
    context.setDefaultTimeout(120_000)
    const page = await context.newPage()
    const complaints: Array<string> = []
    page.on("pageerror", (error) => complaints.push(String(error)))
    page.on("console", (message) => {
      if (message.type() === "error" && !/status of 4\d\d/.test(message.text())) complaints.push(message.text())
    })
    await signInBy(page, await linkFor(server))
    return { page, complaints }
  }
  const address = (path: string) => `${server.url}/dashboard/test${path}`
  const refund = async (page: Page, amount: string) => {
    await page.locator("summary", { hasText: "Refund" }).click()
    await page.getByRole("textbox", { name: "Amount" }).fill(amount)
    await page.getByRole("button", { name: "Refund", exact: true }).click()
  }

  it("works with links and forms alone", async () => {
    const { page } = await enter({ javaScriptEnabled: false })
    const names = await page.getByRole("navigation", { name: "Dashboard" }).getByRole("link").allTextContents()
    assert.includeMembers(names, ["Home", "Payments", "Developers"])
    await page.getByRole("link", { name: "Payments", exact: true }).click()
    await page.getByLabel("Status").selectOption("succeeded")
    await page.getByRole("textbox", { name: "Amount" }).fill("43.21")
    await page.getByRole("button", { name: "Filter" }).click()
    assert.include(page.url(), "status=succeeded")
    await page.getByRole("link", { name: "43.21 USD" }).first().click()
    assert.include(page.url(), `/payments/${payment.id}`)
    for (const text of ["payment_intent.succeeded", "charge.succeeded"]) await page.getByText(text).first().waitFor()
    // Request ids and keys are folded.
    await page.getByText("For developers").first().click()
    await page.getByText(/^req_/).first().waitFor()
    await page.getByText("Pending").or(page.getByText("pending")).first().waitFor()
    await refund(page, "99999")
    await page
      .getByRole("group")
      .getByText(/refund/i)
      .first()
      .waitFor()
    assert.strictEqual(await page.getByRole("textbox", { name: "Amount" }).inputValue(), "99999")
    await page.getByRole("textbox", { name: "Amount" }).fill("1.21")
    await page.getByRole("button", { name: "Refund", exact: true }).click()
    await page.getByRole("status").getByText("Refund created.").waitFor()
    await page.getByText("refund.created").waitFor()
    await page.getByRole("button", { name: "Sign out" }).click()
    await page.getByLabel("Password").waitFor()
    await page.goto(address("/payments"))
    await page.getByLabel("Password").waitFor()
    await page.context().close()
  })

  it("updates without a reload, and navigates by shortcuts", async () => {
    const { complaints, page } = await enter()
    await page.keyboard.press("g")
    await page.keyboard.press("p")
    await page.waitForURL(address("/payments"))
    await page.locator("html[data-live=on]").waitFor()
    await page.evaluate(() => ((globalThis as { stayed?: boolean }).stayed = true))
    const made = await pay({ amount: 987_654 })
    await page.getByText("9,876.54 USD").waitFor()
    // The focused row keeps the focus when new rows move it.
    await page.keyboard.press("j")
    const newer = await pay({ amount: 987_654 })
    await page.locator(`a[href$="${newer.id}"]`).first().waitFor()
    await page.keyboard.press("j")
    await page.keyboard.press("k")
    const focused = await page.evaluate(() => document.activeElement?.getAttribute("href"))
    assert.isTrue(focused?.endsWith(made.id), `${focused} has the focus`)
    await page.keyboard.press("k")
    assert.isTrue(await page.evaluate(() => (globalThis as { stayed?: boolean }).stayed))
    await page.keyboard.press("?")
    await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor()
    await page.keyboard.press("Escape")
    // The browser closes the dialog a moment later; until then the dialog receives the keys.
    await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor({ state: "hidden" })
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.waitForURL(address(`/payments/${made.id}`))
    // An open form is not replaced.
    await page.locator("html[data-live=on]").waitFor()
    await page.locator("summary", { hasText: "Refund" }).click()
    await page.getByRole("textbox", { name: "Amount" }).fill("5")
    await server.post("/v1/refunds", { payment_intent: made.id, amount: 100 })
    await page.waitForTimeout(500)
    assert.strictEqual(await page.getByRole("textbox", { name: "Amount" }).inputValue(), "5")
    await page.locator("summary", { hasText: "Refund" }).click()
    await page.getByText("refund.created").waitFor()
    assert.deepStrictEqual(complaints, [])
    await page.context().close()
  })

  it("makes no requests while hidden, and updates when visible again, with or without its stream", async () => {
    const { complaints, page } = await enter()
    const proxy = await TcpProxy.start(Number(new URL(server.url).port))
    await page.goto(`http://127.0.0.1:${proxy.port}/dashboard/test/payments`)
    const isLive = page.locator("html[data-live=on]")
    const isCut = page.locator("html:not([data-live])")
    const fetched: Array<string> = []
    page.on("request", (request) => request.resourceType() === "fetch" && fetched.push(request.url()))
    for (const cuts of [false, true]) {
      await isLive.waitFor()
      await setHidden(page, true)
      fetched.length = 0
      if (cuts) {
        proxy.cut()
        await isCut.waitFor({ state: "attached" })
      }
      const made = await pay({ amount: 555_500 })
      await page.waitForFunction(() => (globalThis as Hideable).isAsked)
      await isLive.waitFor()
      assert.deepStrictEqual(fetched, [])
      await setHidden(page, false)
      await page.locator(`a[href$="${made.id}"]`).first().waitFor()
    }
    // The browser itself reports the lost connection.
    assert.isTrue(complaints.every((complaint) => complaint.includes("ERR_")))
    await page.context().close()
    proxy.close()
  })

  it("never resubmits a refused form during updates", async () => {
    const { page } = await enter()
    const held = await pay({ capture_method: "manual", amount: 2000 })
    await page.goto(address(`/payments/${held.id}`))
    await page.locator("summary", { hasText: "Capture" }).click()
    await page.getByRole("textbox", { name: "Amount" }).fill("20.01")
    await page.getByRole("button", { name: "Capture", exact: true }).click()
    await page.waitForURL(address(`/payments/${held.id}/capture`))
    await page.locator(".error, .message").first().waitFor()
    const sent: Array<string> = []
    page.on("request", (request) => request.method() === "POST" && sent.push(request.url()))
    await page.locator("html[data-live=on]").waitFor()
    await server.post(`/v1/payment_intents/${held.id}`, { metadata: { order: "6735" } })
    await page.waitForTimeout(500)
    await page.locator("summary", { hasText: "Capture" }).click()
    await page.locator("dd", { hasText: "6735" }).waitFor()
    assert.strictEqual(page.url(), address(`/payments/${held.id}`))
    assert.deepStrictEqual(sent, [])
    await page.context().close()
  })

  it("saves edited fields only, in spite of the browser's rewriting", async () => {
    const written = {
      name: " Ada\tLovelace ",
      description: "Two\nlines\r\nand three",
      metadata: { "a\nb": "x\r\ny\n", "  <b>&amp;\t": "\n\nspaced  ", __proto: "\u00a0\ud83d\ude42\u2028" }
    }
    for (const javaScriptEnabled of [true, false]) {
      const { complaints, page } = await enter({ javaScriptEnabled })
      const { id } = await server.post("/v1/customers", { ...written, email: "ada@example.com" })
      await page.goto(address(`/customers/${id}`))
      await page.locator("summary", { hasText: /^Edit$/ }).click()
      await page.getByRole("textbox", { name: "Email" }).fill("countess@example.com")
      await page.getByRole("button", { name: "Save" }).click()
      await page.getByText("Customer updated.").waitFor()
      await page.locator("summary", { hasText: "Edit metadata" }).click()
      await page.getByLabel("New key").first().fill("size")
      await page.getByLabel("Value", { exact: true }).first().fill("L\nor XL")
      await page.getByRole("button", { name: "Save" }).click()
      await page.getByText("Metadata saved.").waitFor()
      assert.deepInclude(await server.get(`/v1/customers/${id}`), {
        ...written,
        email: "countess@example.com",
        metadata: { ...written.metadata, size: "L\nor XL" }
      })
      assert.deepStrictEqual(complaints, [])
      await page.context().close()
    }
  })

  it("resends selected deliveries, whose selection survives updates", async () => {
    const { complaints, page } = await enter()
    const url = "http://127.0.0.1:9/chosen"
    const endpoint = await server.post("/v1/webhook_endpoints", { url, enabled_events: ["payment_intent.succeeded"] })
    for (let i = 0; i < 3; i++) {
      await pay()
      await fail(server, endpoint.id)
    }
    const deliveries = async () => (await server.get(`/v1/webhook_endpoints/${endpoint.id}/deliveries`)).data
    const before: ReadonlyArray<Answer> = await deliveries()
    await page.goto(address(`/webhooks/${endpoint.id}`))
    await page.locator("html[data-live=on]").waitFor()
    const boxes = page.getByRole("checkbox", { name: "Select payment_intent.succeeded" })
    const all = page.getByRole("checkbox", { name: "Select all on this page" })
    const chosen = () => page.getByRole("checkbox", { name: "Select payment_intent", checked: true }).count()
    await all.check()
    assert.strictEqual(await chosen(), 3)
    await page.getByRole("button", { name: "Resend selected (3)" }).waitFor()
    await boxes.nth(1).click()
    assert.isFalse(await all.isChecked())
    assert.isTrue(await all.evaluate((box) => "indeterminate" in box && box.indeterminate))
    await pay()
    await page.waitForTimeout(500)
    assert.strictEqual(await chosen(), 2)
    await page.getByRole("button", { name: "Resend selected (2)" }).click()
    await page.getByRole("status").getByText("The deliveries are being sent again.").waitFor()
    await page.locator("html[data-live=on]").waitFor()
    await page.evaluate(() => (document.getElementById("heard")!.textContent = ""))
    await pay()
    await page.getByText("Page updated").waitFor({ state: "attached" })
    assert.isTrue(await page.getByRole("status").getByText("The deliveries are being sent again.").isVisible())
    const after: ReadonlyArray<Answer> = await deliveries()
    assert.sameMembers(
      after.slice(1, 3).map(({ event }) => event as string),
      [before[0]!.event, before[2]!.event]
    )
    assert.deepStrictEqual(complaints, [])
    await page.context().close()
  })

  it("keeps entered filters and the error of a form during updates", async () => {
    const { page } = await enter()
    await page.goto(address("/payments"))
    await page.locator("html[data-live=on]").waitFor()
    await page.getByLabel("Search", { exact: true }).fill("half a wor")
    await page.getByLabel("Status").selectOption("canceled")
    await page.getByLabel("Search", { exact: true }).blur()
    await pay({ amount: 135_791 })
    await page.getByText("1,357.91 USD").waitFor()
    assert.strictEqual(await page.getByLabel("Search", { exact: true }).inputValue(), "half a wor")
    assert.strictEqual(await page.getByLabel("Status").inputValue(), "canceled")
    const held = await pay({ capture_method: "manual" })
    await page.goto(address(`/payments/${held.id}`))
    await page.locator("summary", { hasText: "Capture" }).click()
    await server.post(`/v1/payment_intents/${held.id}/capture`, {})
    await page.getByRole("button", { name: "Capture", exact: true }).click()
    const refusal = page.locator("main > .message")
    await refusal.waitFor()
    await page.locator("html[data-live=on]").waitFor()
    await server.post("/v1/refunds", { payment_intent: held.id, amount: 1 })
    await page.waitForTimeout(500)
    assert.isTrue(await refusal.isVisible())
    await page.context().close()
  })

  it("shows the time zone, also after an update", async () => {
    const shownOn = async (page: Page) => ({
      zone: await page.locator(".zone").innerText(),
      at: await page
        .locator("tbody time")
        .last()
        .evaluate((it) => [it.getAttribute("datetime"), it.textContent] as const)
    })
    const { page: plain } = await enter({ javaScriptEnabled: false })
    await plain.goto(address("/payments"))
    const {
      at: [iso, utc],
      zone
    } = await shownOn(plain)
    assert.deepStrictEqual([zone, utc], ["Times are in UTC. Change", iso!.slice(0, 19).replace("T", " ")])
    const { page } = await enter({ timezoneId: "Australia/Adelaide" })
    await page.goto(address("/payments"))
    await page.locator("html[data-live=on]").waitFor()
    await pay({ amount: 246_810 })
    await page.getByText("2,468.10 USD").waitFor()
    const {
      at: [same, local],
      ...there
    } = await shownOn(page)
    assert.deepStrictEqual([there.zone, same], ["Times are in Australia/Adelaide. Change", iso])
    // The time zone is half an hour off UTC.
    const minutes = (text: string, place: RegExp) => Number(place.exec(text)![1])
    assert.strictEqual((minutes(iso!, /:(\d\d):/) + 30) % 60, minutes(local!, /:(\d\d) [AP]M$/))
    for (const opened of [plain, page]) await opened.context().close()
  })

  it("switches between environments, with and without scripts, on live and other pages", async () => {
    for (const javaScriptEnabled of [true, false]) {
      const { page } = await enter({ javaScriptEnabled })
      for (const part of ["", "/payments", "/developers"]) {
        await page.goto(address(part))
        const widths = []
        for (const name of ["Live", "Test"]) {
          const links = page.getByRole("group", { name: "Environment" }).getByRole("link")
          for (const link of await links.all()) widths.push((await link.boundingBox())!.width)
          await links.filter({ hasText: name }).click()
          await page.waitForURL(`${server.url}/dashboard/${name.toLowerCase()}${part}`)
        }
        assert.strictEqual(new Set(widths.map(Math.round)).size, 1, `${part}: ${widths.join(", ")}`)
      }
      await page.context().close()
    }
  })

  it("shows event types in full on desktop, and selects deliveries without scripts", async () => {
    const { page } = await enter({ javaScriptEnabled: false, viewport: { width: 1280, height: 800 } })
    const type = "payment_intent.amount_capturable_updated"
    const endpoint = await server.post("/v1/webhook_endpoints", {
      url: "http://127.0.0.1:9/all",
      enabled_events: [type]
    })
    await pay({ capture_method: "manual" })
    await fail(server, endpoint.id, "exhausted", "The server's certificate is self-signed.")
    await page.goto(address(`/webhooks/${endpoint.id}`))
    const cell = page.getByRole("cell", { name: type })
    assert.isTrue(await cell.evaluate((it: ScrollWidths) => it.scrollWidth <= it.clientWidth))
    assert.isFalse(await page.getByText("Select all on this page").isVisible())
    await page.getByRole("checkbox", { name: `Select ${type}` }).check()
    await page.getByRole("button", { name: "Resend selected" }).click()
    await page.getByRole("status").getByText("The deliveries are being sent again.").waitFor()
    await page.context().close()
  })

  it("signs out on a phone, from the menu, without scripts", async () => {
    const { page } = await enter({ javaScriptEnabled: false, viewport: { width: 360, height: 740 } })
    assert.isFalse(await page.getByRole("link", { name: "Payments", exact: true }).isVisible())
    await page.getByText("Menu").click()
    await page.getByRole("link", { name: "Payments", exact: true }).click()
    await page.waitForURL(address("/payments"))
    await page.getByText("Filters").click()
    await page.getByLabel("Status").selectOption("succeeded")
    await page.getByText("Menu").click()
    await page.getByRole("button", { name: "Sign out" }).click()
    await page.getByLabel("Password").waitFor()
    assert.isFalse(await overflows(page))
    await page.context().close()
  })
})

interface Hideable {
  /** True after the page has queried its visibility. */
  isAsked?: boolean
}

/** Simulates a tab in the background or in front. */
const setHidden = (page: Page, isHidden: boolean): Promise<void> =>
  page.evaluate((hidden) => {
    const hideable = globalThis as Hideable
    const get = () => (hideable.isAsked = hidden)
    Object.defineProperty(document, "hidden", { configurable: true, get })
    document.dispatchEvent(new Event("visibilitychange"))
    hideable.isAsked = false
  }, isHidden)
