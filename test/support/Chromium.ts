/**
 * The Chromium of the tests, one for the whole run: the machine's own, best without its windows (the headless shell),
 * which takes a fifth of the time for a page. Vitest runs this file's setup for the tests that need it; where there is
 * no Chromium, these are left out, and say so.
 */
import * as fs from "node:fs"
import { chromium } from "playwright-core"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  export interface ProvidedContext {
    /** Undefined in a run without tests that need it, and on a machine without one. */
    readonly chromiumEndpoint: string | undefined
  }
}

const PLACES = [
  process.env["CHROMIUM"],
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium"
]

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

/** Starts the Chromium of the run. The function that it returns ends it. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const executablePath = PLACES.find((place) => place !== undefined && place !== "" && fs.existsSync(place))
  if (executablePath === undefined) {
    console.warn(
      "The browser tests are left out: there is no Chromium on this machine. On Debian or Ubuntu, " +
        "`apt-get install chromium-headless-shell`, or `chromium`, brings one; elsewhere, set CHROMIUM to the path of a Chromium or Chrome."
    )
    return undefined
  }
  const server = await chromium.launchServer({ executablePath, args: FLAGS })
  project.provide("chromiumEndpoint", server.wsEndpoint())
  return () => server.close()
}
