/**
 * Makes the screenshots of README.md and of the examples from the running programs. Run it after a change to what they
 * show: `node test/pages/screenshots.ts`. It needs a Chromium and a Python.
 */
import { execFile, spawn } from "node:child_process"
import { createHmac } from "node:crypto"
import { once } from "node:events"
import * as fs from "node:fs"
import * as os from "node:os"
import * as Path from "node:path"
import { createInterface } from "node:readline"
import { promisify } from "node:util"
import type { Browser, BrowserContextOptions, FrameLocator, Page } from "playwright-core"
import { escape } from "../../src/html/Html.ts"
import { openExample } from "../support/fixtures/ExampleShop.ts"
import { openSession } from "../support/fixtures/CheckoutPages.ts"
import { type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { connect } from "./Browser.ts"
import { dashboardPictures } from "./DashboardPictures.ts"

const ROOT = Path.join(import.meta.dirname, "../..")
const DESK: BrowserContextOptions = { viewport: { width: 1120, height: 800 } }
const PHONE: BrowserContextOptions = { viewport: { width: 380, height: 800 }, colorScheme: "dark" }

const run = promisify(execFile)

/** Takes a screenshot of a page as it is after some steps. */
const shoot = async (
  browser: Browser,
  file: string,
  options: BrowserContextOptions,
  steps: (page: Page) => Promise<void>
) => {
  const context = await browser.newContext({ locale: "en-US", reducedMotion: "reduce", ...options })
  const page = await context.newPage()
  await steps(page)
  await page.screenshot({ path: Path.join(ROOT, file) })
  await context.close()
}

const fill = async (place: Page | FrameLocator, number = "4242424242424242") => {
  await place.getByLabel("Email").fill("jenny@example.com")
  await place.getByLabel("Card number").fill(number)
  await place.getByLabel(/Expiry date/).fill("12 / 34")
  await place.getByLabel("Security code").fill("123")
}

/** The pictures of README.md: a cart of two products, and a card number that is not valid. */
const readme = async (browser: Browser, server: MemoryTillWithPages) => {
  const [espresso, cups] = await Promise.all([
    server.post("/v1/products", { name: "House Espresso, 1 kg", description: "Chocolate, hazelnut, a little orange" }),
    server.post("/v1/products", { name: "Two cups" })
  ])
  const line_items = [
    { price_data: { currency: "usd", product: espresso.id, unit_amount: 2450 }, quantity: 1 },
    { price_data: { currency: "usd", product: cups.id, unit_amount: 1200 }, quantity: 2 }
  ]
  const open = async (page: Page) => void (await page.goto((await openSession(server, { line_items })).url))
  await shoot(browser, ".readme/checkout-desk.png", DESK, async (page) => {
    await open(page)
    await fill(page)
  })
  await shoot(browser, ".readme/checkout-phone.png", PHONE, async (page) => {
    await open(page)
    await page.getByLabel("Email").fill("jenny@example.com")
    await page.getByLabel("Card number").fill("4242424242424241")
    await page.getByLabel("Expiry date").fill("12 / 34")
    await page.locator(".card").scrollIntoViewIfNeeded()
  })
}

/** The three example shops. */
const shops = async (browser: Browser, server: MemoryTillWithPages) => {
  const steps = {
    hosted: async (page: Page) => {
      await page.getByRole("button", { name: "Buy" }).click()
      await fill(page)
    },
    embedded: async (page: Page) => {
      await page.getByRole("button", { name: "Buy" }).click()
      await fill(page.frameLocator("iframe"))
    },
    custom: async (page: Page) => fill(page)
  }
  for (const name of ["hosted", "embedded", "custom"] as const) {
    const shop = await openExample(name, server)
    const options = name === "custom" ? { viewport: { width: 560, height: 400 } } : DESK
    await shoot(browser, `examples/${name}/screenshot.png`, options, async (page) => {
      await page.goto(shop.url)
      await steps[name](page)
    })
    await shop.close()
  }
}

/** A picture of a terminal. */
const terminal = (browser: Browser, file: string, command: string, output: string) =>
  shoot(browser, file, { viewport: { width: 800, height: 60 + 22 * (1 + output.trim().split("\n").length) } }, (page) =>
    page.setContent(
      `<body style="margin:0;background:#14181f;color:#e9ecf1;font:14px/22px monospace;padding:16px 20px">` +
        `<pre style="margin:0;font:inherit;white-space:pre-wrap"><b style="color:#7fd8a3">$ ${escape(command)}</b>\n${escape(output.trim())}</pre>`
    )
  )

const api = async (browser: Browser, { secretTest, url }: MemoryTillWithPages) => {
  const env = { ...process.env, TILL_URL: url, TILL_API_KEY: secretTest }
  const { stdout } = await run("python3", ["till.py"], { cwd: Path.join(ROOT, "examples/api"), env })
  await terminal(browser, "examples/api/screenshot.png", "TILL_API_KEY=sk_test_… python3 till.py", stdout)
}

/** The receiver prints the events of a payment, signed as Till signs them. */
const webhooks = async (browser: Browser, server: MemoryTillWithPages) => {
  const secret = "whsec_of_this_screenshot"
  await server.post("/v1/payment_intents", {
    amount: 2450,
    currency: "usd",
    payment_method: "pm_card_visa",
    confirm: true
  })
  const { data } = await server.get("/v1/events?limit=3")
  const env = { ...process.env, PORT: "0", TILL_WEBHOOK_SECRET: secret }
  const receiver = spawn(process.execPath, [Path.join(ROOT, "examples/webhooks/receiver.mjs")], { env })
  const lines: Array<string> = []
  const reader = createInterface(receiver.stdout).on("line", (line) => lines.push(line))
  await once(reader, "line")
  const url = /http:\/\/\S+/.exec(lines[0]!)![0]
  for (const event of data.toReversed()) {
    const [body, time] = [JSON.stringify(event), Math.floor(Date.now() / 1000)]
    const signature = createHmac("sha256", secret).update(`v1=${time}.${body}`).digest("hex")
    await fetch(url, { method: "POST", headers: { "x-signature": `t=${time},v1=${signature}` }, body })
  }
  receiver.kill()
  await once(receiver, "close")
  const shown = [lines[0]!.replace(/:\d+/, ":3000"), ...lines.slice(1)].join("\n")
  await terminal(
    browser,
    "examples/webhooks/screenshot.png",
    "TILL_WEBHOOK_SECRET=whsec_… PORT=3000 node receiver.mjs",
    shown
  )
}

/** The tests run on a Till of their own. */
const testing = async (browser: Browser) => {
  const folder = fs.mkdtempSync(Path.join(os.tmpdir(), "till-screenshots-"))
  const config = {
    root: Path.join(ROOT, "examples/testing"),
    cacheDir: folder,
    resolve: { alias: { "till-payments-client": Path.join(ROOT, "src/client/index.ts") } },
    test: { globalSetup: "till.setup.mjs", include: ["*.test.mjs"], reporters: ["verbose"], hookTimeout: 60_000 }
  }
  const file = Path.join(folder, "vitest.config.mjs")
  fs.writeFileSync(file, `export default ${JSON.stringify(config)}`)
  const env = { PATH: process.env["PATH"], TMPDIR: folder, TILL_COMMAND: Path.join(ROOT, "src/cli/till.sh") }
  const vitest = Path.join(ROOT, "node_modules/vitest/vitest.mjs")
  const { stdout } = await run(process.execPath, [vitest, "run", "--no-color", "--config", file], { env, cwd: folder })
  fs.rmSync(folder, { recursive: true })
  // The times are those of this machine.
  const shown = stdout
    .replace(Path.join(ROOT, "examples/testing"), "shop")
    .replaceAll(/^ *(?:Start at|Duration) .*\n| \d+m?s$/gm, "")
    .replaceAll(/\n\n+/g, "\n\n")
  await terminal(browser, "examples/testing/screenshot.png", "npx vitest run", shown)
}

const [browser, server] = await Promise.all([connect(), start({ merchantName: "Lumen Coffee" })])
await readme(browser, server)
await dashboardPictures(browser, Path.join(ROOT, ".readme"))
await shops(browser, server)
await api(browser, server)
await webhooks(browser, server)
await testing(browser)
await browser.close()
await server.close()
// The browser, which tests share, ends with the process.
process.exit()
