/** Helpers for tests of pages in a browser. */
import { assert } from "@effect/vitest"
import type { AxeResults, RunOptions } from "axe-core"
import axe from "axe-core"
import type { Browser, BrowserContextOptions, Frame, Page } from "playwright-core"

export { connect, hasBrowser } from "../support/Chromium.ts"

/** Opens a page in a context of its own. An error in one of its scripts fails the test. */
export const openPage = async (browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Page> => {
  const context = await browser.newContext({ locale: "en-US", ...options })
  context.setDefaultTimeout(120_000)
  const page = await context.newPage()
  page.on("pageerror", (error) => assert.fail(String(error)))
  await page.goto(url)
  return page
}

/** Sets the reader's default text size in pixels. */
export const setTextSize = async (page: Page, pixels: number): Promise<void> => {
  const session = await page.context().newCDPSession(page)
  await session.send("Page.setFontSizes", { fontSizes: { standard: pixels } })
}

/** Accessibility problems that axe-core finds in a page or a frame, one per line. */
export const accessibilityProblems = async (page: Page | Frame): Promise<ReadonlyArray<string>> => {
  // Runs in the debugger, because the page's own policy blocks foreign scripts.
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe.source)
  // Without lists of passed elements, which would take half of the time.
  const { violations } = await page.evaluate(() =>
    (globalThis as unknown as { axe: { run: (options: RunOptions) => Promise<AxeResults> } }).axe.run({
      resultTypes: ["violations"],
      selectors: false
    })
  )
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`)
}

/** True if a page is wider than its window. */
export const overflows = (page: Page): Promise<boolean> =>
  page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)

/** Longer names may exceed a phone's line; their words are checked instead. */
const NAME_CHARACTERS_MAX = 40

/** Names on a page that break across lines. */
export const brokenNames = (page: Page): Promise<ReadonlyArray<string>> =>
  page.evaluate((longest) => {
    const broken = new Set<string>()
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    const all: Array<Text> = []
    while (texts.nextNode() !== null) all.push(texts.currentNode as Text)
    const isFirst = ({ previousSibling }: Text) => previousSibling?.nodeName !== "WBR"
    for (const first of all.filter(isFirst)) {
      // Line-break opportunities do not split a name.
      const parts = [first]
      for (let at: ChildNode = first; at.nextSibling?.nodeName === "WBR" && at.nextSibling.nextSibling !== null;) {
        at = at.nextSibling.nextSibling
        parts.push(at as Text)
      }
      const place = (offset: number): readonly [Text, number] => {
        let [index, rest] = [0, offset]
        while (rest > parts[index]!.length) rest -= parts[index++]!.length
        return [parts[index]!, rest]
      }
      for (const { 0: name, index } of parts
        .map(({ data }) => data)
        .join("")
        .matchAll(/[\w.]+/g)) {
        let start = index
        for (const word of name.length > longest ? name.split(/(?<=[a-z])(?=[A-Z])/) : [name]) {
          const range = document.createRange()
          range.setStart(...place(start + 1))
          range.setEnd(...place((start += word.length)))
          if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) broken.add(word)
        }
      }
    }
    return [...broken]
  }, NAME_CHARACTERS_MAX)
