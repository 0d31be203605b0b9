/**
 * A real browser for the tests of pages: the machine's own Chromium, preferably the headless shell, which takes a fifth
 * of the time for a page. Without a Chromium, the tests that need it are skipped, and vitest prints that.
 *
 * Each worker starts one browser for all of its files. One browser per run, behind Playwright's server, took a fifth
 * more CPU time, because every message then passes through another process.
 */
import * as fs from "node:fs"
import { type Browser, chromium } from "playwright-core"

const PLACES = [
  process.env["CHROMIUM"],
  "/usr/bin/chromium-headless-shell",
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
      "`apt-get install chromium-headless-shell`, or `chromium`, brings one; elsewhere, set CHROMIUM to the path of a Chromium or Chrome."
  )
}

/** The browser sends nothing of its own, and runs in a container without a sandbox or a GPU. */
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

let running: Promise<Browser> | undefined

/**
 * Connects a test file to its worker's browser. Each context is a profile of its own. `close` ends the contexts; the
 * browser ends with the worker.
 */
export const connect = async (): Promise<Browser> => {
  const options = executablePath === undefined ? {} : { executablePath }
  const browser = await (running ??= chromium.launch({ ...options, args: FLAGS }))
  const close = async () => void (await Promise.all(browser.contexts().map((context) => context.close())))
  return Object.create(browser, { close: { value: close } })
}
