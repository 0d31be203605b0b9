/**
 * The brand in a real browser: images that the browser itself has encoded are uploaded without a script, lose their
 * metadata, and look the same afterwards (semantics pages.logo, dashboard.brand).
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser, Page } from "playwright-core"
import { connect, hasBrowser } from "../pages/Browser.ts"
import { openSession } from "../support/fixtures/CheckoutPages.ts"
import { type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { linkFor, signInBy } from "./People.ts"

describe.skipIf(!hasBrowser)("the settings of the brand", () => {
  let server: MemoryTillWithPages
  let browser: Browser
  let page: Page
  beforeAll(async () => {
    ;[server, browser] = await Promise.all([start(), connect()])
    page = await (await browser.newContext({ locale: "en-US", javaScriptEnabled: false })).newPage()
    await signInBy(page, await linkFor(server, "developer"))
  })
  afterAll(async () => {
    await browser.close()
    await server.close()
  })

  /** A picture of two colours, encoded by the browser: red on the left, blue on the right. */
  const encode = async (type: string): Promise<Buffer> => {
    const maker = await (await browser.newContext()).newPage()
    await maker.goto(server.url)
    const bytes = await maker.evaluate(async (type) => {
      const canvas = new OffscreenCanvas(40, 20)
      const context = canvas.getContext("2d")!
      context.fillStyle = "#f00"
      context.fillRect(0, 0, 20, 20)
      context.fillStyle = "#00f"
      context.fillRect(20, 0, 20, 20)
      const blob = await canvas.convertToBlob({ type, quality: 1 })
      return [...new Uint8Array(await blob.arrayBuffer())]
    }, type)
    await maker.context().close()
    return Buffer.from(bytes)
  }

  /** Size of the image at this address, and whether its first and last pixels are red and blue. */
  const decode = async (address: string) => {
    const reader = await (await browser.newContext()).newPage()
    await reader.goto(server.url)
    const found = await reader.evaluate(async (address) => {
      const image = await createImageBitmap(await (await fetch(address)).blob())
      const context = new OffscreenCanvas(image.width, image.height).getContext("2d")!
      context.drawImage(image, 0, 0)
      const pixel = (x: number, y: number) => {
        const [red, , blue] = context.getImageData(x, y, 1, 1).data
        return red! > 200 ? "red" : blue! > 200 ? "blue" : "other"
      }
      return {
        size: [image.width, image.height],
        first: pixel(2, 2),
        last: pixel(image.width - 3, image.height - 3)
      }
    }, address)
    await reader.context().close()
    return found
  }

  /** The same JPEG, turned by a quarter by its EXIF part. */
  const turned = (jpeg: Buffer): Buffer => {
    const exif = Buffer.from("ffe100224578696600004d4d002a00000008000101120003000000010006000000000000", "hex")
    return Buffer.concat([jpeg.subarray(0, 2), exif, jpeg.subarray(2)])
  }

  const upload = async (name: string, mimeType: string, buffer: Buffer): Promise<string> => {
    await page.goto(`${server.url}/dashboard/test/settings`)
    await page.getByLabel("Image file").setInputFiles({ name, mimeType, buffer })
    await page.getByRole("button", { name: /^(?:Upload|Replace)$/ }).click()
    await page.getByText("Logo saved.").waitFor()
    return new URL((await page.locator(".logo img").getAttribute("src"))!, page.url()).href
  }

  it.each(["png", "jpeg", "webp"])("pages.logo: shows an uploaded %s as it was", async (kind) => {
    const type = `image/${kind}`
    const address = await upload(`logo.${kind}`, type, await encode(type))
    assert.deepStrictEqual(await decode(address), { size: [40, 20], first: "red", last: "blue" })
    assert.strictEqual((await fetch(address)).headers.get("content-type"), type)
    const payer = await (await browser.newContext()).newPage()
    const blocked: Array<string> = []
    payer.on("console", (message) => message.type() === "error" && blocked.push(message.text()))
    await payer.goto((await openSession(server)).url)
    const shown = payer.locator("h1 img")
    await shown.waitFor()
    await payer.waitForFunction(() => document.querySelector<HTMLImageElement>("h1 img")!.naturalWidth === 40)
    assert.deepStrictEqual(blocked, [])
    await payer.context().close()
  })

  it("pages.logo: shows a photo that was taken with a turned camera upright", async () => {
    const address = await upload("photo.jpg", "image/jpeg", turned(await encode("image/jpeg")))
    assert.deepStrictEqual(await decode(address), { size: [20, 40], first: "red", last: "blue" })
  })

  it("dashboard.brand: previews name and colour in a frame that takes no focus, and saves them", async () => {
    await page.goto(`${server.url}/dashboard/test/settings`)
    await page.getByLabel("Business name").fill("Lumen & Daughters")
    await page.getByLabel("Use my own colour").check()
    await page.getByLabel("Colour", { exact: true }).fill("#ffdd00")
    await page.getByRole("button", { name: "Preview" }).click()
    const frame = page.frameLocator("iframe.preview")
    await frame.getByText("Lumen & Daughters").first().waitFor()
    const button = frame.locator("button.pay")
    assert.strictEqual(
      await button.evaluate((element) => getComputedStyle(element).backgroundColor),
      "rgb(255, 221, 0)"
    )
    assert.strictEqual(await button.evaluate((element) => getComputedStyle(element).color), "rgb(0, 0, 0)")
    await page.getByText(/Links on light pages/).waitFor()
    assert.strictEqual(await page.locator(".merchant").innerText(), "Lumen Coffee")
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press("Tab")
      assert.notStrictEqual(await page.evaluate(() => document.activeElement?.tagName), "IFRAME")
    }
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("Brand saved.").waitFor()
    assert.strictEqual(await page.locator(".merchant").innerText(), "Lumen & Daughters")
    assert.isTrue(await page.getByLabel("Use my own colour").isChecked())
  })
})
