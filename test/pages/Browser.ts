/**
 * A real browser for the tests of pages: the machine's own Chromium. Where there is none, the tests that need it are
 * left out, and say so.
 */
import type { AxeResults } from "axe-core"
import axe from "axe-core"
import type { Browser, Frame, Page } from "playwright-core"
import { chromium } from "playwright-core"
import * as fs from "node:fs"

const PLACES = [
  process.env["CHROMIUM"],
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium"
]

const executablePath = PLACES.find((place) => place !== undefined && place !== "" && fs.existsSync(place))

export const hasBrowser: boolean = executablePath !== undefined

if (!hasBrowser) {
  console.warn(
    "The browser tests are left out: there is no Chromium on this machine. On Debian or Ubuntu, " +
      "`apt-get install chromium` brings one; elsewhere, set CHROMIUM to the path of a Chromium or Chrome."
  )
}

/** Nothing of the browser's own leaves the machine, and it works in a container without a sandbox or a GPU. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync"
]

/** Starts the browser, with an empty profile. */
export const launch = (): Promise<Browser> =>
  chromium.launch({ ...(executablePath !== undefined && { executablePath }), args: FLAGS })

/** What axe-core finds wrong with a page or a frame, a line each. */
export const accessibilityProblems = async (page: Page | Frame): Promise<ReadonlyArray<string>> => {
  // Evaluated by the browser's debugger: the page's own policy lets no script in.
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate(() =>
    (globalThis as unknown as { axe: { run: () => Promise<AxeResults> } }).axe.run()
  )
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`)
}

/** Whether a page is wider than its window. */
export const overflows = (page: Page): Promise<boolean> =>
  page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)
