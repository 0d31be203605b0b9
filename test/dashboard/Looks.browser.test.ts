/**
 * Every page, for everybody: in light and dark, on a phone, in forced colours, in text of twice the size, and for
 * whoever has no pointer. Axe takes most of the time, so it looks twice: at a desk in light, on a phone in the dark.
 */
import { afterAll, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import * as fs from "node:fs"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { accessibilityProblems, hasBrowser, launch, overflows } from "../pages/Browser.ts"
import type { PagesServer } from "../pages/PagesServer.ts"
import { start } from "../pages/PagesServer.ts"
import { layerFreshLog } from "../support/RequestLog.ts"
import { linkFor, signedIn } from "./People.ts"
import type { World } from "./World.ts"
import { makeWorld } from "./World.ts"

const SOURCES = new URL("../../src/dashboard/", import.meta.url)

/** The routes of all pages, as the sources declare them. */
const routes = (): ReadonlyArray<string> =>
  fs
    .readdirSync(SOURCES)
    .filter((name) => name.endsWith(".ts") && name !== "Screens.ts")
    .flatMap((name) => {
      const source = fs.readFileSync(new URL(name, SOURCES), "utf8")
      const named = /const OF = "([^"]*)"/.exec(source)?.[1]
      return [...source.matchAll(/\bscreen(?:<\w+>)?\(\s*(?:"([^"]*)"|OF)/g)].map(([, path]) => path ?? named!)
    })

/** Long words, as merchants and payers write them. */
const LONG = "Wilhelmina Featherstonehaugh-Cholmondeley, two_teapots_and_a_kettle_without_a_place_to_break, "

describe.skipIf(!hasBrowser)("every page of the dashboard", () => {
  let shared: PagesServer
  let browser: Browser
  let world: World
  beforeAll(async () => {
    const log = layerFreshLog({ batchMillis: 20 })
    ;[shared, browser] = await Promise.all([start("Lumen", undefined, undefined, null, null, null, log), launch()])
    world = await makeWorld(shared, (max) => LONG.repeat(2).slice(0, Math.min(max, 120)).trim())
    const tab = await signedIn(world.server)
    await vi.waitFor(async () => {
      assert.strictEqual((await tab.get(`/dashboard/test${world.pages["/requests/:id"]!}`)).status, 200)
    })
  })
  afterAll(async () => {
    await browser.close()
    await shared.close()
  })

  type Look = (page: Page) => Promise<ReadonlyArray<string>>

  /** Goes through all pages in one context: what is wrong with which, and what the browser complains of. */
  const problemsOf = async (options: BrowserContextOptions, look: Look): Promise<ReadonlyArray<string>> => {
    const context = await browser.newContext({ locale: "en-US", reducedMotion: "reduce", ...options })
    context.setDefaultTimeout(20_000)
    const page = await context.newPage()
    const problems: Array<string> = []
    page.on("pageerror", (error) => problems.push(String(error)))
    page.on("console", (message) => {
      if (message.type() === "error" && !/status of 404/.test(message.text())) problems.push(message.text())
    })
    const lookAt = async (path: string) => {
      await page.goto(`${shared.url}/dashboard${path}`)
      problems.push(...(await look(page)).map((problem) => `${path}: ${problem}`))
      if (await overflows(page)) problems.push(`${path} is wider than its window`)
    }
    await page.goto(await linkFor(world.server))
    for (const path of [...Object.values(world.pages), "/nothing"]) await lookAt(`/test${path}`)
    await context.clearCookies()
    await lookAt("/sign-in")
    await context.close()
    return problems
  }

  it("is among these", () => {
    assert.deepStrictEqual(Object.keys(world.pages).toSorted(), [...routes()].toSorted())
  })

  it("is accessible, with all its forms open, and led through by the keyboard", async () => {
    const problems = await problemsOf({ colorScheme: "light" }, async (page) => [
      ...(await tabThrough(page)),
      ...(await accessibilityProblems(page))
    ])
    assert.deepStrictEqual(problems, [])
  })

  it("is accessible on a phone in the dark, and no wider with a form open", async () => {
    const phone = { colorScheme: "dark", viewport: { width: 360, height: 740 } } as const
    const problems = await problemsOf(phone, async (page) => [
      ...(await accessibilityProblems(page)),
      ...(await page.evaluate(() =>
        [...document.querySelectorAll("details")].flatMap((details) => {
          details.open = true
          const { clientWidth, scrollWidth } = document.documentElement
          details.open = false
          return scrollWidth > clientWidth ? [`too wide: ${details.textContent.slice(0, 50)}`] : []
        })
      ))
    ])
    assert.deepStrictEqual(problems, [])
  })

  it("keeps to its window in forced colours and large text, without a script", async () => {
    const problems = await problemsOf({ forcedColors: "active", javaScriptEnabled: false }, async (page) => {
      await page.evaluate(() => (document.documentElement.style.fontSize = "200%"))
      return []
    })
    assert.deepStrictEqual(problems, [])
  })
})

/**
 * Goes through the content of a page by the keyboard alone, and opens each form that it comes to. Says which buttons it
 * has not come to, and where it could not be seen where it was.
 */
const tabThrough = async (page: Page): Promise<ReadonlyArray<string>> => {
  const problems: Array<string> = []
  await page.locator("main").focus()
  for (let steps = 0; steps < 400; steps++) {
    await page.keyboard.press("Tab")
    const at = await page.evaluate(() => {
      const element = document.activeElement
      if (!(element instanceof HTMLElement) || element.closest("main") === null) return null
      element.dataset["reached"] = ""
      const outlines = [getComputedStyle(element), getComputedStyle(element, "::after")]
      return {
        isClosed: element.matches(".dialog:not([open]) > summary"),
        isSeen: outlines.some(({ outlineStyle }) => outlineStyle !== "none"),
        name: element.outerHTML.slice(0, 100)
      }
    })
    if (at === null) break
    if (!at.isSeen) problems.push(`not seen: ${at.name}`)
    if (at.isClosed) await page.keyboard.press("Enter")
  }
  const missed = await page.evaluate(() =>
    [...document.querySelectorAll("main :is(button, summary, a[href], select)")]
      .filter((element) => element.checkVisibility() && !element.hasAttribute("data-reached"))
      .map((element) => `not reached: ${element.outerHTML.slice(0, 100)}`)
  )
  return [...problems, ...missed]
}
