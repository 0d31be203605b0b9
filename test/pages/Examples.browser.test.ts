/**
 * The example shops in a real browser: hosted, embedded and custom checkout, from the shop's page to its thank-you
 * page.
 */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser, FrameLocator, Page } from "playwright-core"
import { accessibilityProblems, connect, hasBrowser, overflows } from "./Browser.ts"
import { type ExampleShop, openExample } from "../support/fixtures/ExampleShop.ts"
import { type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { CARDS, openSession } from "../support/fixtures/CheckoutPages.ts"

describe.skipIf(!hasBrowser)("the example shops in a browser", () => {
  let server: MemoryTillWithPages
  let browser: Browser
  let shops: Readonly<Record<"hosted" | "embedded" | "custom", ExampleShop>>
  beforeAll(async () => {
    ;[server, browser] = await Promise.all([start(), connect()])
    const names = ["hosted", "embedded", "custom"] as const
    const [hosted, embedded, custom] = await Promise.all(names.map((name) => openExample(name, server)))
    shops = { hosted: hosted!, embedded: embedded!, custom: custom! }
  })
  afterAll(async () => {
    await browser.close()
    await Promise.all([server.close(), ...Object.values(shops).map((shop) => shop.close())])
  })
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())))

  interface Watched {
    readonly page: Page
    /** Errors that the browser logged. */
    readonly complaints: Array<string>
    /** Request bodies that the browser sent to the shop. */
    readonly sentToShop: Array<string>
  }

  const open = async (url: string, width = 1280): Promise<Watched> => {
    const context = await browser.newContext({ locale: "en-US", viewport: { width, height: 800 } })
    context.setDefaultTimeout(120_000)
    const page = await context.newPage()
    const complaints: Array<string> = []
    const sentToShop: Array<string> = []
    page.on("pageerror", (error) => complaints.push(String(error)))
    page.on("console", (message) => {
      // Expected: refusals by status, and the shop's missing icon.
      if (message.type() === "error" && !/status of 4\d\d/.test(message.text())) complaints.push(message.text())
    })
    page.on("request", (request) => {
      if (request.url().startsWith("http://localhost")) sentToShop.push(request.url() + (request.postData() ?? ""))
    })
    await page.goto(url)
    return { page, complaints, sentToShop }
  }

  const fill = async (place: Page | FrameLocator, number: string = CARDS.approved) => {
    await place.getByLabel("Email").fill("ana@example.com")
    await place.getByLabel("Card number").fill(number)
    await place.getByLabel("Expiry date").fill("12 / 34")
    await place.getByLabel("Security code").fill("123")
  }

  const thanks = (page: Page) => page.getByText("Thank you, it is paid").waitFor()

  /** The newest session and its number of charges. */
  const newest = async () => {
    const session = (await server.get("/v1/checkout_sessions?limit=1")).data[0]
    const intent = await server.get(`/v1/payment_intents/${session.payment_intent}`)
    return { ...session, charges: intent.charges.data.length as number }
  }

  const assertPaidOnce = async () => {
    const { charges, payment_status } = await newest()
    assert.strictEqual(payment_status, "paid")
    assert.strictEqual(charges, 1)
  }

  describe("hosted", () => {
    it("leads to Till and back", async () => {
      const { complaints, page } = await open(shops.hosted.url)
      await page.getByRole("button", { name: "Buy" }).click()
      await fill(page)
      await page.getByRole("button", { name: "Pay $24.50" }).click()
      await page.waitForURL(`${shops.hosted.url}/thanks?session=cs_*`)
      await thanks(page)
      await assertPaidOnce()
      assert.deepStrictEqual(complaints, [])
    })
  })

  describe("embedded", () => {
    const buy = async (width?: number) => {
      const watched = await open(shops.embedded.url, width)
      await watched.page.getByRole("button", { name: "Buy" }).click()
      return { ...watched, frame: watched.page.frameLocator("iframe") }
    }
    const payIn = (frame: FrameLocator) => frame.getByRole("button", { name: "Pay $24.50" }).click()

    it("pays inside the shop's page, which never sees the card", async () => {
      const { complaints, frame, page, sentToShop } = await buy()
      await fill(frame)
      await payIn(frame)
      await page.waitForURL(`${shops.embedded.url}/thanks?session=cs_*`)
      await thanks(page)
      await assertPaidOnce()
      assert.deepStrictEqual(complaints, [])
      assert.notInclude(sentToShop.join("\n").replaceAll(/[^0-9]/g, ""), CARDS.approved)
    })

    it("keeps the form after a decline, and accepts another card", async () => {
      const { frame, page } = await buy()
      await fill(frame, CARDS.declined)
      await payIn(frame)
      await frame.getByText("Your card was declined.").waitFor()
      await fill(frame)
      await payIn(frame)
      await thanks(page)
    })

    it.each(["Complete", "Fail"])("leaves the frame for an authentication: %s", async (answer) => {
      const { frame, page } = await buy()
      await fill(frame, CARDS.challenged)
      await payIn(frame)
      await page.getByRole("button", { name: `${answer} authentication` }).click()
      if (answer === "Fail") {
        await page.getByText("Your bank could not confirm that it was you.").waitFor()
        await fill(page)
        await page.getByRole("button", { name: "Pay $24.50" }).click()
      }
      await page.waitForURL(`${shops.embedded.url}/thanks?session=cs_*`)
      await thanks(page)
    })

    it.each([360, 1280])("is as high as its content and no wider than its place, at %i px", async (width) => {
      const { frame, page } = await buy(width)
      await frame.getByRole("button", { name: "Pay $24.50" }).waitFor()
      const fits = () => {
        const element = document.querySelector("iframe")!
        return element.dataset["ready"] === "" && element.clientHeight > 0
      }
      await page.waitForFunction(fits)
      const inner = page.frames()[1]!
      const isWhole = () => document.documentElement.scrollHeight <= window.innerHeight
      await inner.waitForFunction(isWhole)
      // The frame grows and shrinks with its content.
      await frame.getByText("Test cards").click()
      await inner.waitForFunction(isWhole)
      const open = await page.locator("iframe").evaluate((element) => element.clientHeight)
      await frame.getByText("Test cards").click()
      await page.waitForFunction((height) => document.querySelector("iframe")!.clientHeight < height, open)
      assert.isFalse(await overflows(page))
      assert.isFalse(await inner.evaluate(() => document.documentElement.scrollWidth > window.innerWidth))
    })

    it("is accessible within the frame", async () => {
      const { frame, page } = await buy()
      await frame.getByRole("button", { name: "Pay $24.50" }).waitFor()
      assert.deepStrictEqual(await accessibilityProblems(page), [])
      assert.deepStrictEqual(await accessibilityProblems(page.frames()[1]!), [])
    })

    it("accepts messages from the frame only", async () => {
      const { frame, page } = await buy()
      await frame.getByRole("button", { name: "Pay $24.50" }).waitFor()
      await page.evaluate(() => {
        for (const message of [
          { till: "checkout", type: "complete" },
          { till: "checkout", type: "leave", location: "https://other.example/" },
          { till: "checkout", type: "resize", height: 1 }
        ]) {
          window.postMessage(message, "*")
        }
      })
      // Messages arrive in order: after the last one, all others have been handled.
      await page.evaluate(
        () =>
          new Promise((resolve) => {
            addEventListener("message", ({ data }) => data === "last" && resolve(null))
            window.postMessage("last", "*")
          })
      )
      assert.isAbove(await page.locator("iframe").evaluate((element) => element.clientHeight), 1)
      // The page is unchanged, and the payment still possible.
      await fill(frame)
      await payIn(frame)
      await thanks(page)
    })

    it("is blocked in a frame of another origin", async () => {
      const { client_secret, id } = await openSession(server, { ui_mode: "embedded", cancel_url: null })
      const { page } = await open(shops.embedded.url)
      const query = new URLSearchParams({ client_secret, origin: "https://other.example" })
      await page.evaluate((src) => {
        const frame = document.createElement("iframe")
        frame.src = src
        document.body.append(frame)
        return new Promise((resolve) => frame.addEventListener("load", resolve))
      }, `${server.url}/checkout/${id}?${query}`)
      assert.notInclude(await page.frames()[1]!.content(), "House Espresso")
    })
  })

  describe("custom", () => {
    const pay = (page: Page) => page.getByRole("button", { name: "Pay" }).click()

    it("pays with the shop's own form, whose card goes to Till only", async () => {
      const { complaints, page, sentToShop } = await open(shops.custom.url)
      await fill(page, "4242 4242 4242 4242")
      await pay(page)
      await thanks(page)
      await assertPaidOnce()
      assert.deepStrictEqual(complaints, [])
      assert.notInclude(sentToShop.join("\n").replaceAll(/[^0-9]/g, ""), CARDS.approved)
    })

    it("starts again if the session is gone, and accepts years as browsers fill them in", async () => {
      const { page } = await open(shops.custom.url)
      await page.locator("button:enabled").waitFor()
      await page.evaluate(() => {
        sessionStorage["clientSecret"] = sessionStorage["clientSecret"].replace(/^cs_.{9}/, "cs_000000000")
      })
      await page.reload()
      await fill(page)
      await page.getByLabel("Expiry date").fill("12/2034")
      await pay(page)
      await thanks(page)
      await assertPaidOnce()
    })

    it("survives a short outage of Till without a second payment", async () => {
      const { page } = await open(shops.custom.url)
      const secret = async () => {
        await page.locator("button:enabled").waitFor()
        return page.evaluate(() => sessionStorage["clientSecret"])
      }
      const before = await secret()
      await page.route("**/v1/checkout_sessions/**", (route) => route.abort())
      const failed = page.waitForEvent("pageerror")
      await page.reload()
      await failed
      await page.unroute("**/v1/checkout_sessions/**")
      await page.reload()
      assert.strictEqual(await secret(), before)
    })

    it("cannot be sent before Till has loaded", async () => {
      const { page } = await open("about:blank")
      const wanted = Promise.withResolvers<void>()
      const held = Promise.withResolvers<void>()
      await page.route("**/sessions", async (route) => {
        wanted.resolve()
        await held.promise
        return route.fallback()
      })
      await page.goto(shops.custom.url)
      await wanted.promise
      await fill(page)
      assert.isTrue(await page.getByRole("button", { name: "Pay" }).isDisabled())
      held.resolve()
      await pay(page)
      await thanks(page)
      await assertPaidOnce()
    })

    it("shows the reason of a decline, and accepts another card", async () => {
      const { page } = await open(shops.custom.url)
      await fill(page, CARDS.insufficientFunds)
      await pay(page)
      await page.getByText("Your card has insufficient funds.").waitFor()
      await fill(page)
      await pay(page)
      await thanks(page)
      assert.strictEqual((await newest()).charges, 2)
    })

    it("shows the error of a card, and accepts another one", async () => {
      const { page } = await open(shops.custom.url)
      await fill(page, "4242424242424241")
      await pay(page)
      await page.getByText("Check the card number.").waitFor()
      await fill(page)
      await pay(page)
      await thanks(page)
    })

    it("pays once for a double click", async () => {
      const { page } = await open(shops.custom.url)
      let sent = 0
      page.on("request", (request) => {
        if (request.method() === "POST" && request.url().endsWith("/confirm")) sent++
      })
      await fill(page)
      await page.getByRole("button", { name: "Pay" }).dblclick()
      await thanks(page)
      assert.strictEqual(sent, 1)
      await assertPaidOnce()
    })

    it("pays once if a response is lost", async () => {
      const { page } = await open(shops.custom.url)
      let lost = 0
      await page.route("**/confirm", async (route) => {
        if (route.request().method() === "POST" && lost++ === 0) {
          await route.fetch()
          return route.abort()
        }
        return route.fallback()
      })
      await fill(page)
      await pay(page)
      await thanks(page)
      assert.isAbove(lost, 1)
      await assertPaidOnce()
    })

    it("accepts another card after an outage of Till, and pays once", async () => {
      const { page } = await open(shops.custom.url)
      let isCut = true
      await page.route("**/confirm", async (route) => {
        if (!isCut) return route.fallback()
        if (route.request().method() === "POST") await route.fetch()
        return route.abort()
      })
      await fill(page, CARDS.declined)
      await pay(page)
      await page.getByText("you will not be charged twice").waitFor()
      isCut = false
      await fill(page)
      await pay(page)
      await thanks(page)
      // The declined attempt had reached Till, and was made once in spite of the retries.
      assert.strictEqual((await newest()).charges, 2)
    })

    it("is paid after an authentication", async () => {
      const { page } = await open(shops.custom.url)
      await fill(page, CARDS.challenged)
      await pay(page)
      await page.getByRole("button", { name: "Complete authentication" }).click()
      await page.waitForURL(`${shops.custom.url}/**`)
      await thanks(page)
      await assertPaidOnce()
    })

    it("shows why an authentication failed, without a secret in the address", async () => {
      const { page } = await open(shops.custom.url)
      await fill(page, CARDS.challenged)
      await pay(page)
      await page.getByRole("button", { name: "Fail authentication" }).click()
      await page.getByText("Your bank could not confirm that it was you.").waitFor()
      assert.strictEqual(page.url(), `${shops.custom.url}/`)
      await fill(page)
      await pay(page)
      await thanks(page)
    })

    it("refuses a secret key in a page", async () => {
      const { page } = await open(shops.custom.url)
      const refused = await page.evaluate(
        async ([url, key]) => {
          const headers = { authorization: `Basic ${btoa(`${key}:`)}` }
          const read = await fetch(`${url}/v1/customers`, { headers }).catch(String)
          const till = globalThis as unknown as { Till: (key: string) => unknown }
          try {
            return [String(read), till.Till(key!)]
          } catch (error) {
            return [String(read), String(error)]
          }
        },
        [server.url, server.secretTest]
      )
      assert.include(refused[0] as string, "Failed to fetch")
      assert.include(refused[1] as string, "publishable key")
    })
  })
})
