/**
 * Every action of the dashboard works by keyboard alone (semantics dashboard.keyboard): reached by Tab, filled in by
 * typing and arrow keys, sent by Enter or Space. The tests never point or set the focus.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser, BrowserContext, Locator, Page } from "playwright-core"
import { actionNames } from "../../src/dashboard/frame/Page.ts"
import { connect, hasBrowser } from "../pages/Browser.ts"
import { type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { layerFreshLog } from "../support/RequestLog.ts"
import { ACTIONS, MAIL, type TriedAction } from "./Actions.ts"
import { formTo, linkFor, openTab, signInBy } from "./People.ts"

const PASSWORD = "correct horse battery"
const STEPS_MAX = 150

/** Presses Tab until the element has the focus. */
const tabTo = async (page: Page, wanted: Locator) => {
  for (let steps = 0; steps < STEPS_MAX; steps++) {
    if (await wanted.evaluate((element) => element === document.activeElement)) return
    await page.keyboard.press("Tab")
  }
  assert.fail(`${page.url()}: Tab does not come to ${String(wanted)}`)
}

/** Skips the navigation like keyboard users. */
const skipToContent = async (page: Page) => {
  await tabTo(page, page.getByRole("link", { name: "Skip to content" }))
  await page.keyboard.press("Enter")
}

const fill = async (page: Page, field: Locator, value: string | Blob) => {
  const heading = field.locator('xpath=ancestor::details[@class="more" and not(@open)]/summary')
  if ((await heading.count()) > 0) {
    await tabTo(page, heading)
    await page.keyboard.press("Enter")
  }
  await tabTo(page, field)
  if (typeof value !== "string") {
    // The dialog that chooses a file is the system's.
    const buffer = Buffer.from(await value.arrayBuffer())
    return await field.setInputFiles({ name: "file", mimeType: value.type, buffer })
  }
  if ((await field.getAttribute("type")) === "color") return await field.fill(value)
  if ((await field.getAttribute("type")) === "checkbox") {
    await page.keyboard.press("Space")
    assert.isTrue(await field.isChecked())
    return
  }
  if ((await field.evaluate(({ tagName }) => tagName)) === "SELECT") {
    await page.keyboard.press("Home")
    const options = await field.locator("option").count()
    for (let i = 0; i < options && (await field.inputValue()) !== value; i++) await page.keyboard.press("ArrowDown")
  } else {
    await page.keyboard.press("Control+A")
    await page.keyboard.type(value)
  }
  assert.strictEqual(await field.inputValue(), value)
}

const fillAll = async (page: Page, form: Locator, entered: TriedAction["entered"]) => {
  // In form order, because Tab moves forward.
  const names = await form.locator("[name]").evaluateAll((fields) => fields.map((field) => field.getAttribute("name")!))
  for (const name of names.filter((name) => name in entered)) {
    await fill(page, form.locator(`[name="${name}"]`), entered[name]!)
  }
}

/** Opens the form if it is behind a button, fills it in and sends it. */
const send = async (page: Page, form: Locator, entered: TriedAction["entered"], key: "Enter" | "Space") => {
  const opener = page.locator("details:not([open]) > summary").and(form.locator("xpath=ancestor::details/summary"))
  if ((await opener.count()) > 0) {
    await tabTo(page, opener)
    await page.keyboard.press("Enter")
  }
  await fillAll(page, form, entered)
  await tabTo(page, form.locator("button[type=submit]:not([name])").first())
  await page.keyboard.press(key)
}

describe.skipIf(!hasBrowser)("whoever has no pointer", () => {
  let server: MemoryTillWithPages
  let browser: Browser
  let context: BrowserContext
  beforeAll(async () => {
    const log = layerFreshLog({ batchMillis: 20 })
    ;[server, browser] = await Promise.all([start({ merchantName: "Lumen", requestLog: log, mail: MAIL }), connect()])
    context = await browser.newContext({ locale: "en-US", reducedMotion: "reduce" })
    context.setDefaultTimeout(120_000)
    const page = await context.newPage()
    await signInBy(page, await linkFor(server))
    await page.close()
    // Empty lists have no filters.
    const customer = await server.post("/v1/customers", { email: "ada@example.com", name: "Ada" })
    await server.post("/v1/payment_intents", { amount: 4321, currency: "usd", customer: customer.id })
  })
  afterAll(async () => {
    await browser.close()
    await server.close()
  })

  const address = (path: string) => `${server.url}/dashboard/test${path}`
  const saidIn = (page: Page) => page.locator("main > .said")

  it("filters every list, and searches", async () => {
    const page = await context.newPage()
    for (const [path, entered] of [
      ["/payments", { query: "amount>5", status: "succeeded" }],
      ["/customers", { email: "ada@example.com" }],
      ["/events", { type: "charge.*" }],
      ["/requests", { status: "4xx", method: "POST" }],
      ["/team/audit", { of: "environment" }]
    ] as const) {
      await page.goto(address(path))
      await skipToContent(page)
      const form = page.locator("form.filters")
      await fillAll(page, form, entered)
      await tabTo(page, form.getByRole("button", { name: "Filter" }))
      await page.keyboard.press("Enter")
      await page.waitForURL((url) =>
        Object.entries(entered).every(([name, value]) => url.searchParams.get(name) === value)
      )
    }
    await fill(page, page.locator(".find input"), "Ada")
    await page.keyboard.press("Enter")
    await page.waitForURL(address("/find?query=Ada"))
    await fill(page, page.locator("form.filters input"), "Ada Nobody")
    await tabTo(page, page.getByRole("button", { name: "Search" }))
    await page.keyboard.press("Enter")
    await page.waitForURL(address("/find?query=Ada+Nobody"))
    assert.include(await page.locator("main").textContent(), "Nothing matches")
    await page.close()
  })

  it("turns single-key shortcuts off and on again", async () => {
    const page = await context.newPage()
    await page.goto(address("/customers"))
    const list = page.locator("dialog.keys")
    await page.keyboard.press("?")
    await list.waitFor()
    const setting = list.getByRole("checkbox")
    await tabTo(page, setting)
    assert.isTrue(await setting.isChecked())
    await page.keyboard.press("Space")
    await page.keyboard.press("Escape")
    await list.waitFor({ state: "hidden" })
    for (const key of ["/", "j", "?", "g", "p"]) await page.keyboard.press(key)
    assert.isTrue(await page.evaluate(() => document.activeElement === document.body))
    assert.isFalse(await list.isVisible())
    assert.strictEqual(page.url(), address("/customers"))
    // Other pages share the setting, and the account page can change it back.
    await page.goto(address("/account"))
    const again = page.locator("main").getByRole("checkbox")
    assert.isFalse(await again.isChecked())
    await tabTo(page, again)
    await page.keyboard.press("Space")
    await page.goto(address("/customers"))
    await page.keyboard.press("/")
    assert.strictEqual(await page.evaluate(() => document.activeElement?.getAttribute("name")), "query")
    await page.close()
  })

  it("has a test for every action", () => {
    // `TwoStep.browser` has those of two-step verification.
    const twoStep = ["person.renew_recovery_codes", "person.turn_off_two_step", "person.turn_on_two_step"]
    const own = ["dashboard_session.end", "dashboard_session.end_others", "person.set_credentials", ...twoStep]
    assert.deepStrictEqual([...new Set([...ACTIONS.map(({ name }) => name), ...own])].toSorted(), actionNames())
  })

  describe("does every action", () => {
    let page: Page
    beforeAll(async () => {
      page = await context.newPage()
    })
    afterAll(() => page.close())

    // A wipe deletes the objects of the other actions, so it runs last.
    const isWipe = ({ name }: TriedAction) => name === "test_data.wipe"
    const ordered = [...ACTIONS.filter((action) => !isWipe(action)), ...ACTIONS.filter(isWipe)]
    for (const [index, { end, entered, name, page: pathOf }] of ordered.entries()) {
      const key = index % 2 === 0 ? "Enter" : "Space"
      it(`${name}, by ${key}`, async () => {
        await page.goto(address(await pathOf(server)))
        await skipToContent(page)
        await send(page, page.locator(`main form[action$="${end}"]`).first(), entered, key)
        await saidIn(page).waitFor()
        assert.isNotEmpty(await saidIn(page).innerText())
      })
    }
  })

  it("previews a price before adding it", async () => {
    const { id } = await server.post("/v1/products", { name: "Seat" })
    const page = await context.newPage()
    await page.goto(address(`/products/${id}/prices`))
    await skipToContent(page)
    await tabTo(page, page.getByText("Price that depends on the quantity"))
    await page.keyboard.press("Enter")
    await fillAll(page, page.locator("main form"), {
      tiers_mode: "volume",
      "tiers[0][up_to]": "10",
      "tiers[0][unit_amount]": "5.00",
      "tiers[1][unit_amount]": "4.00"
    })
    // The button keeps the rows, and the focus is in the new one.
    await tabTo(page, page.getByRole("button", { name: "Add a row" }))
    await page.keyboard.press("Space")
    await page.locator('[name="tiers[3][up_to]"]:focus').waitFor()
    await tabTo(page, page.getByRole("button", { name: "Preview" }))
    await page.keyboard.press("Space")
    const preview = page.getByRole("heading", { name: "Preview" }).locator("xpath=ancestor::section")
    await preview.getByRole("row", { name: "11 44.00 USD" }).waitFor()
    // The focus is on the preview: a browser sets it after it has shown the page.
    await preview.and(page.locator(":focus")).waitFor()
    assert.deepStrictEqual((await server.get(`/v1/prices?product=${id}`)).data, [])
    await page.close()
  })

  it("sets a password, ends another session, signs out and signs in", async () => {
    const link = await linkFor(server, "support")
    await context.clearCookies()
    const page = await context.newPage()
    await signInBy(page, link)
    await page.goto(address("/account"))
    await skipToContent(page)
    const credentials = { email: "keys@example.com", password: PASSWORD }
    await send(page, page.locator('main form[action$="/credentials"]'), credentials, "Enter")
    await saidIn(page).waitFor()
    const other = openTab(server)
    const { action, values } = formTo(await other.get("/dashboard/sign-in"), "/sign-in")
    await other.post(action, { ...values, ...credentials })
    await page.goto(address("/account"))
    await skipToContent(page)
    await send(page, page.locator('main form[action$="/end"]'), {}, "Space")
    await saidIn(page).getByText("The session is signed out.").waitFor()
    assert.include((await other.get("/dashboard/test")).url, "/sign-in")
    const third = openTab(server)
    const again = formTo(await third.get("/dashboard/sign-in"), "/sign-in")
    await third.post(again.action, { ...again.values, ...credentials })
    await page.goto(address("/account"))
    await skipToContent(page)
    await send(page, page.locator('main form[action$="/end-others"]'), {}, "Enter")
    await saidIn(page).getByText("All other sessions are signed out.").waitFor()
    assert.include((await third.get("/dashboard/test")).url, "/sign-in")
    await tabTo(page, page.getByRole("button", { name: "Sign out" }))
    await page.keyboard.press("Enter")
    await page.getByLabel("Password").waitFor()
    await send(page, page.locator("main form"), credentials, "Enter")
    await page.waitForURL(address(""))
    await page.close()
  })
})
