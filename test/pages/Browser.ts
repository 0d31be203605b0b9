/** What tests of pages do in a browser. */
import type { AxeResults, RunOptions } from "axe-core"
import axe from "axe-core"
import type { Frame, Page } from "playwright-core"

export { connect, hasBrowser } from "../support/Chromium.ts"

/** Sets the size that a page's reader has chosen for text, in pixels. */
export const setTextSize = async (page: Page, pixels: number): Promise<void> => {
  const session = await page.context().newCDPSession(page)
  await session.send("Page.setFontSizes", { fontSizes: { standard: pixels } })
}

/** The problems that axe-core finds in a page or a frame, a line each. */
export const accessibilityProblems = async (page: Page | Frame): Promise<ReadonlyArray<string>> => {
  // Evaluated by the browser's debugger: the page's own policy lets no script in.
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe.source)
  // Lists of what is right, with an address of each element, would take half of the time.
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

/** A name of more characters may be longer than a phone's line. It is held to its words instead. */
const NAME_CHARACTERS_MAX = 40

/** The names of a page that do not stand whole on one line, in whatever place. */
export const brokenNames = (page: Page): Promise<ReadonlyArray<string>> =>
  page.evaluate((longest) => {
    const broken = new Set<string>()
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    const all: Array<Text> = []
    while (texts.nextNode() !== null) all.push(texts.currentNode as Text)
    const isFirst = ({ previousSibling }: Text) => previousSibling?.nodeName !== "WBR"
    for (const first of all.filter(isFirst)) {
      // Places where a name may be broken do not make it two.
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
