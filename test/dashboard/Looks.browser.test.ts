/**
 * Every page in light and dark mode, on desktop, tablets and phones, in forced colours, with text of twice the size,
 * and by keyboard. Injecting axe takes most of the time, so each page is loaded once for all checks.
 */
import { afterAll, assert, beforeAll, beforeEach, describe, it, vi } from "@effect/vitest"
import * as fs from "node:fs"
import * as Path from "node:path"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { accessibilityProblems, connect, hasBrowser, setTextSize } from "../pages/Browser.ts"
import { type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { layerFreshLog } from "../support/RequestLog.ts"
import { MAIL } from "./Actions.ts"
import { formTo, linkFor, signedIn, signInBy } from "./People.ts"
import { makeWorld, type World } from "../support/fixtures/World.ts"

const SOURCES = new URL("../../src/dashboard/", import.meta.url)

/** Routes of all pages, as declared in the sources. */
const routes = (): ReadonlyArray<string> =>
  fs
    .readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && name !== Path.join("frame", "Page.ts"))
    .flatMap((name) => {
      const source = fs.readFileSync(new URL(name, SOURCES), "utf8")
      const named = /const PAGE = "([^"]*)"/.exec(source)?.[1]
      return [...source.matchAll(/\bpage(?:<\w+>)?\(\s*(?:"([^"]*)"|PAGE)/g)].map(([, path]) => path ?? named!)
    })

/** Long words, as merchants and payers write them. */
const LONG = "Wilhelmina Featherstonehaugh-Cholmondeley, two_teapots_and_a_kettle_without_a_place_to_break, "

describe.skipIf(!hasBrowser)("every page of the dashboard", () => {
  let shared: MemoryTillWithPages
  let browser: Browser
  let world: World
  beforeAll(async () => {
    const log = layerFreshLog({ batchMillis: 20 })
    ;[shared, browser] = await Promise.all([start({ merchantName: "Lumen", requestLog: log, mail: MAIL }), connect()])
    world = await makeWorld(shared, (max) => LONG.repeat(2).slice(0, Math.min(max, 120)).trim())
    const tab = await signedIn(world.server)
    for (const [path, end] of [
      ["/payments/:id", "/receipt"],
      ["/team/:id", "/invite"]
    ] as const) {
      const { action, values } = formTo(await tab.get(`/dashboard/test${world.pages[path]!}`), end)
      await tab.post(action, { ...values, ...("email" in values && { email: "payer@example.com" }) })
    }
    await vi.waitFor(async () => {
      assert.strictEqual((await tab.get(`/dashboard/test${world.pages["/requests/:id"]!}`)).status, 200)
    }, 120_000)
  })
  afterAll(async () => {
    await browser.close()
    await shared.close()
  })

  /** Returns the problems of an open page. */
  type Look = (page: Page) => Promise<ReadonlyArray<string>>

  /** A test per page in one browser context: the page's own problems and the browser's errors. */
  const eachPage = (options: BrowserContextOptions & { readonly textPixels?: number }, look: Look) => {
    const { textPixels, ...ofContext } = options
    let page: Page
    const problems: Array<string> = []
    beforeAll(async () => {
      const context = await browser.newContext({ locale: "en-US", reducedMotion: "reduce", ...ofContext })
      context.setDefaultTimeout(120_000)
      page = await context.newPage()
      if (textPixels !== undefined) await setTextSize(page, textPixels)
      page.on("pageerror", (error) => problems.push(String(error)))
      page.on("console", (message) => {
        if (message.type() === "error" && !/status of 404/.test(message.text())) problems.push(message.text())
      })
      await signInBy(page, await linkFor(world.server))
    })
    afterAll(() => page.context().close())
    beforeEach(() => void (problems.length = 0))

    const problemsOf = async (path: string): Promise<ReadonlyArray<string>> => {
      await page.goto(`${shared.url}/dashboard${path}`)
      problems.push(...(await look(page)))
      const preview = page.getByRole("button", { name: "Preview" })
      if ((await preview.count()) > 0) {
        await fillForPreview(page)
        await preview.click()
        await page.getByRole("heading", { name: "Preview" }).waitFor()
        problems.push(...(await look(page)).map((problem) => `Preview: ${problem}`))
      }
      return problems
    }

    for (const route of routes()) {
      it(route === "" ? "home" : route, async () => {
        assert.deepStrictEqual(await problemsOf(`/test${world.pages[route]}`), [])
      })
    }
    it("a page that does not exist", async () => assert.deepStrictEqual(await problemsOf("/test/nothing"), []))
    it("the sign-in", async () => {
      await page.context().clearCookies()
      assert.deepStrictEqual(await problemsOf("/sign-in"), [])
    })
    it("the page for a forgotten password", async () => {
      await page.context().clearCookies()
      assert.deepStrictEqual(await problemsOf("/forgot"), [])
    })
  }

  it("is in this list", () => {
    assert.deepStrictEqual(Object.keys(world.pages).toSorted(), [...routes()].toSorted())
  })

  describe("is accessible in light and dark mode, on desktop and phone, with open forms, and by keyboard", () => {
    eachPage({}, async (page) => {
      await page.emulateMedia({ colorScheme: "light" })
      await page.setViewportSize(DESK)
      const atDesk = [...(await tabThrough(page)), ...(await accessibilityProblems(page)), ...(await widths(page))]
      const onTablet: Array<string> = []
      for (const width of [TABLET.height, TABLET.width]) {
        await page.setViewportSize({ ...TABLET, width })
        onTablet.push(...(await widths(page)))
      }
      await page.emulateMedia({ colorScheme: "dark" })
      await page.setViewportSize(PHONE)
      return [...atDesk, ...onTablet, ...(await accessibilityProblems(page)), ...(await widths(page))]
    })
  })

  describe("fits its window in forced colours and large text, with open forms, without scripts", () => {
    eachPage({ forcedColors: "active", javaScriptEnabled: false }, async (page) => {
      await page.evaluate(() => (document.documentElement.style.fontSize = "200%"))
      return await widths(page)
    })
  })

  describe("fits its window with text of twice the size, with open forms, on desktop and phone", () => {
    // Breakpoints follow the reader's text size.
    eachPage({ textPixels: 32 }, async (page) => {
      await page.setViewportSize(DESK)
      assert.isTrue(await page.evaluate(() => matchMedia("(width: 40em)").matches))
      const atDesk = await widths(page)
      await page.setViewportSize(PHONE)
      return [...atDesk, ...(await widths(page))]
    })
  })
})

const DESK = { width: 1280, height: 720 }
const TABLET = { width: 768, height: 1024 }
const PHONE = { width: 360, height: 740 }

/** Fills in a form with a preview: that of a price with tiers, or that of the brand. */
const fillForPreview = async (page: Page) => {
  if ((await page.locator('[name="tiers_mode"]').count()) === 0) {
    await page.getByLabel("Use my own colour").check()
    await page.getByLabel("Colour", { exact: true }).fill("#ffdd00")
    return
  }
  await page.getByText("Price that depends on the quantity").click()
  await page.locator('[name="tiers_mode"]').selectOption("volume")
  for (const [name, value] of [
    ["tiers[0][up_to]", "10"],
    ["tiers[0][unit_amount]", "999999999.99"],
    ["tiers[0][flat_amount]", "0.01"],
    ["tiers[1][unit_amount]", "12345678.90"]
  ] as const) {
    await page.locator(`[name="${name}"]`).fill(value)
  }
}

/** Parts of a page that are wider than its window: the page, or one of its forms, opened one at a time. */
const widths: (page: Page) => Promise<ReadonlyArray<string>> = (page) =>
  page.evaluate(() => {
    const { documentElement } = document
    // Parts beyond the left edge cannot be scrolled to, or cover the navigation.
    const leftOf = (element: Element) => element.getBoundingClientRect().left
    const edge = leftOf(document.querySelector("main")!)
    const isCut = () => [...document.querySelectorAll("[open] > .sheet")].some((sheet) => leftOf(sheet) < edge)
    const isTooWide = () => documentElement.scrollWidth > documentElement.clientWidth || isCut()
    const all = [...document.querySelectorAll("details")]
    for (const details of all) details.open = false
    const forms = all.flatMap((details) => {
      details.open = true
      const found = isTooWide() ? [`too wide: ${details.textContent.trim().replaceAll(/\s+/g, " ").slice(0, 50)}`] : []
      details.open = false
      return found
    })
    return isTooWide() ? ["wider than its window", ...forms] : forms
  })

/** Number of Tab presses at a time. */
const TABS = 20

/**
 * Goes through a page's content by Tab with all forms open. Returns buttons without focus, and places where the focus
 * was hidden. `Keyboard.browser` opens the forms by keyboard.
 */
const tabThrough = async (page: Page): Promise<ReadonlyArray<string>> => {
  await page.evaluate(() => {
    const main = document.querySelector("main")!
    for (const details of main.querySelectorAll("details")) details.open = true
    main.focus()
    addEventListener("focusin", ({ target }) => {
      const element = target as HTMLElement
      if (element.closest("main") === null) main.dataset["left"] = ""
      if ("left" in main.dataset) return
      const outlines = [getComputedStyle(element), getComputedStyle(element, "::after")]
      const isSeen = outlines.some(({ outlineStyle }) => outlineStyle !== "none")
      element.dataset["reached"] = isSeen ? "seen" : "unseen"
    })
    addEventListener("focusout", ({ relatedTarget }) => {
      if (relatedTarget === null) main.dataset["left"] = ""
    })
  })
  for (let pressed = 0; pressed < 600; pressed += TABS) {
    await Promise.all(Array.from({ length: TABS }, () => page.keyboard.press("Tab")))
    if (await page.locator("main").evaluate((main) => "left" in main.dataset)) break
  }
  return await page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>("main :is(button, summary, a[href], select, [data-reached=unseen])")]
      .filter((element) => element.checkVisibility() && element.dataset["reached"] !== "seen")
      .map((element) => `${element.dataset["reached"] ?? "not reached"}: ${element.outerHTML.slice(0, 100)}`)
  )
}
