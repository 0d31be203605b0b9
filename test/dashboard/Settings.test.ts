/**
 * Brand, logo and test clock on the dashboard: saving, refusing, and timers that become due (semantics
 * dashboard.settings, dashboard.brand, pages.logo).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { IMAGE_BYTES_MAX, readImage } from "../../src/domain/RasterImage.ts"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import * as Logos from "../../src/payments/merchants/Logos.ts"
import { openSession, visit } from "../support/fixtures/CheckoutPages.ts"
import { png } from "../support/fixtures/Images.ts"
import { formTo, signedIn } from "./People.ts"
import { openDashboard, textOf } from "./support.ts"

const { UPLOADS_MAX } = Logos

const { server, tab } = await openDashboard("developer")

describe("settings", () => {
  const submit = async (path: string, end: string, entered: Readonly<Record<string, string | Blob | undefined>>) => {
    const { action, values } = formTo(await tab.get(path), end)
    const all = Object.entries({ ...values, ...entered })
    return await tab.post(
      action,
      Object.fromEntries(all.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
    )
  }

  it("saves the brand, shows it, and removes settings", async () => {
    const saved = await submit("/dashboard/test/settings", "/set", {
      name: "Lumen <b>",
      icon: "https://cdn.example/icon.png",
      has_accent: "on",
      accent: "#FFDD00",
      support: "mailto:help@lumen.example"
    })
    assert.include(saved.text, "Brand saved.")
    assert.include(saved.text, `fill="#ffdd00"`)
    assert.include(saved.text, "Lumen &lt;b&gt;")
    assert.match(saved.headers.get("content-security-policy")!, /img-src 'self' data: https:\/\/cdn\.example;/)
    const without = await submit("/dashboard/test/settings", "/set", {
      icon: "",
      // An unchecked box is not sent.
      has_accent: undefined
    })
    assert.notInclude(without.text, "cdn.example")
    assert.notInclude(without.text, "A button in")
    assert.include(without.text, "mailto:help@lumen.example")
  })

  it("refuses invalid settings beside the field, and saves nothing", async () => {
    const wrong = { name: "", icon: "javascript:alert(1)", accent: "red", terms: "/terms" }
    const refused = await submit("/dashboard/test/settings", "/set", { ...wrong, has_accent: "on" })
    assert.strictEqual(refused.status, 400)
    for (const name of Object.keys(wrong))
      assert.match(refused.text, new RegExp(`class="error" id="[^"]*-${name}-error"`))
    assert.notInclude((await tab.get("/dashboard/test/settings")).text, "javascript:")
  })

  it("shows scheduled events, and advances the clock past them", async () => {
    const empty = await tab.get("/dashboard/test/developers/clock")
    assert.include(empty.text, "Nothing is scheduled")
    const { id } = await server.post("/v1/payment_intents", {
      amount: 4321,
      currency: "usd",
      payment_method: "pm_card_visa",
      capture_method: "manual",
      confirm: true
    })
    const due = await tab.get("/dashboard/test/developers/clock")
    assert.include(due.text, "An authorization expires")
    assert.include(due.text, `payments/${id}`)
    const session = await openSession(server)
    const opened = await tab.get("/dashboard/test/developers/clock")
    assert.include(opened.text, `/checkout-sessions/${session.id}`)
    await server.post(`/v1/checkout_sessions/${session.id}/expire`, {})
    const { action, values } = formTo(due, "/advance")
    const moved = await tab.post(action, { ...values, step: "next" })
    assert.include(moved.text, "Everything due until then has happened.")
    assert.include(moved.text, "Nothing is scheduled")
    assert.strictEqual((await server.get(`/v1/payment_intents/${id}`)).status, "canceled")
    const aheadIn = (text: string) => /([\d,]+) seconds/.exec(text)![1]
    // A repeated submission does not move the clock.
    assert.strictEqual(aheadIn((await tab.post(action, { ...values, step: "next" })).text), aheadIn(moved.text))
  })

  it("moves the clock neither back nor too far, and not in live mode", async () => {
    for (const seconds of ["0", "-5", "1.5", "soon", "63072001"]) {
      const refused = await submit("/dashboard/test/developers/clock", "/advance", { seconds })
      assert.strictEqual(refused.status, 400, seconds)
      assert.match(refused.text, /class="error" id="[^"]*-seconds-error"/)
    }
    assert.strictEqual((await tab.get("/dashboard/live/developers/clock")).status, 404)
  })

  it("wipes test data after the merchant's name was entered, once, with an audit entry", async () => {
    const pay = () => server.post("/v1/payment_intents", { amount: 4321, currency: "usd" })
    const { id } = await pay()
    await submit("/dashboard/test/settings", "/set", { name: "Lumen <b>" })
    const { action, values } = formTo(await tab.get("/dashboard/test/developers/wipe"), "/wipe/data")
    const mistaken = await tab.post(action, { ...values, name: "Another" })
    assert.strictEqual(mistaken.status, 400)
    assert.match(mistaken.text, /class="error" id="[^"]*-name-error"/)
    assert.strictEqual((await server.get(`/v1/payment_intents/${id}`)).id, id)
    const name = "Lumen <b>"
    const wiped = await tab.post(action, { ...values, name })
    assert.include(wiped.text, "Test data wiped.")
    assert.strictEqual((await server.get(`/v1/payment_intents/${id}`)).error.code, "resource_missing")
    // A repeated submission deletes no newer data and leaves no second entry.
    const later = await pay()
    assert.include((await tab.post(action, { ...values, name })).text, "Test data wiped.")
    assert.strictEqual((await server.get(`/v1/payment_intents/${later.id}`)).id, later.id)
    const owner = await signedIn(server, "owner")
    const audit = await owner.get("/dashboard/test/team/audit?action=test_data.wipe")
    assert.strictEqual(audit.text.match(/<code class="whole">test_data\.wipe<\/code>/g)!.length, 1)
    assert.match(audit.text, /<code>req_\w+<\/code>/)
    assert.strictEqual((await tab.get("/dashboard/live/developers/wipe")).status, 404)
  })

  it("dashboard.brand: judges the contrast of a colour, and previews it without saving", async () => {
    const before = await server.journalOfAll()
    const look = async (accent: string | undefined) =>
      await submit("/dashboard/test/settings", "/set", {
        name: "Another name",
        accent,
        has_accent: accent === undefined ? undefined : "on",
        preview: "on"
      })
    const dark = await look("#1b7f5e")
    assert.strictEqual(dark.status, 200)
    assert.match(textOf(dark), /Text on buttons White, 4\.9:1 Links on light pages A darker shade \(#1b7d5d\), because/)
    assert.match(textOf(dark), /Links on dark pages A lighter shade \(#5ba38b\), because your colour would be hard/)
    const light = await look("#ffdd00")
    assert.match(textOf(light), /Text on buttons Black, 15\.6:1 Links on light pages A darker shade \(#7c6b00\)/)
    assert.match(textOf(light), /Links on dark pages Your colour, \d+\.\d:1/)
    assert.notInclude(textOf(await look(undefined)), "Text on buttons")
    assert.strictEqual(await server.journalOfAll(), before)
    const [, address] = /<iframe\s+class="preview"\s+src="([^"]*)"/.exec(light.text)!
    const shown = await tab.get(new URL(address!.replaceAll("&amp;", "&"), light.url).href)
    assert.include(shown.text, "<bdi>Another name</bdi>")
    assert.include(shown.text, "/accent/ffdd00.css")
    assert.notInclude(shown.text, "<script")
    assert.include(shown.headers.get("content-security-policy")!, "frame-ancestors 'self'")
    assert.isNull(shown.headers.get("x-frame-options"))
    const hostile = await tab.get(
      "/dashboard/test/settings/preview?name=%00%1b&accent=%23fff%3Bx&icon=https://evil.example"
    )
    assert.notInclude(hostile.text, "evil.example")
    assert.notMatch(hostile.text, /accent\//)
  })

  describe("the logo", () => {
    const image = png({ width: 8, height: 6 })
    const send = async (file: Blob | undefined) =>
      await submit("/dashboard/test/settings", "/settings/logo", { logo: file ?? new Blob([]) })
    const logoIn = ({ text, url }: { readonly text: string; readonly url: string }) => {
      const [, src] = /<img\s+src="([^"]*logos[^"]*)"/.exec(text) ?? []
      return src === undefined ? undefined : new URL(src, url).href
    }

    it("pages.logo: is uploaded, shown to payers, served for good, replaced, and removed", async () => {
      // The name and the type that a browser sends count for nothing.
      const saved = await send(new File([image], "logo.svg", { type: "image/svg+xml" }))
      assert.include(saved.text, "Logo saved.")
      const address = logoIn(saved)!
      const session = await openSession(server)
      const page = { ...(await visit(session.url)), url: session.url }
      assert.strictEqual(logoIn(page), address)
      assert.include(page.headers.get("content-security-policy")!, "img-src 'self' data:;")
      const served = await fetch(address)
      assert.deepStrictEqual(Buffer.from(await served.arrayBuffer()), image)
      assert.deepInclude(Object.fromEntries(served.headers), {
        "content-type": "image/png",
        "cache-control": "public, max-age=31536000, immutable",
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff"
      })
      const again = await fetch(address, { headers: { "if-none-match": served.headers.get("etag")! } })
      assert.strictEqual(again.status, 304)
      const replaced = logoIn(await send(new Blob([png({ width: 8, height: 6, shade: 90 })])))!
      assert.notStrictEqual(replaced, address)
      assert.strictEqual((await fetch(replaced)).status, 200)
      // An address that showed an image shows no other one.
      for (const gone of [
        address,
        address.replace("mer_", "mer_x"),
        `${replaced}x`,
        replaced.replace("mer_", "dse_")
      ]) {
        assert.strictEqual((await fetch(gone)).status, 404, gone)
      }
      const removed = await submit("/dashboard/test/settings", "/remove-logo", {})
      assert.include(removed.text, "Logo removed.")
      assert.isUndefined(logoIn(removed))
      assert.isUndefined(logoIn({ ...(await visit(session.url)), url: session.url }))
      assert.strictEqual((await fetch(replaced)).status, 404)
    })

    it("pages.logo: is shown instead of an image from another server, and is in live mode, too", async () => {
      await submit("/dashboard/test/settings", "/set", { icon: "https://cdn.example/icon.png" })
      await send(new Blob([image]))
      const live = await openSession(server, {}, { key: server.secretLive })
      const { text } = await visit(live.url)
      assert.include(text, "/logos/")
      assert.notInclude(text, "cdn.example")
      await submit("/dashboard/test/settings", "/remove-logo", {})
      assert.include((await visit(live.url)).text, "cdn.example")
      await submit("/dashboard/test/settings", "/set", { icon: "" })
    })

    it("dashboard.brand: is refused beside its field, and nothing is saved", async () => {
      const before = await server.journalOfAll()
      for (const [file, message] of [
        [undefined, "Choose an image file first."],
        [new Blob(["<svg xmlns='http://www.w3.org/2000/svg'/>"], { type: "image/png" }), "Choose a PNG, JPEG or WebP"],
        [new Blob([image.subarray(0, -20)]), "This file is damaged."],
        [new Blob([image, Buffer.alloc(IMAGE_BYTES_MAX)]), "Choose one of at most 256 KB."],
        [new Blob([png({ width: 2049, height: 1 })]), "Choose one of at most 2048 × 2048 pixels."]
      ] as const) {
        const refused = await send(file)
        assert.strictEqual(refused.status, 400)
        assert.match(refused.text, new RegExp(`-logo-error">[^<]*${message}`))
        assert.notInclude(refused.text, 'role="alert"')
      }
      const huge = await send(new Blob([Buffer.alloc(2 * 1_048_576)]))
      assert.strictEqual(huge.status, 413)
      assert.include(huge.text, "That was too large")
      const [, back] = /<a class="button primary" href="([^"]*)">Go back/.exec(huge.text)!
      assert.strictEqual(
        new URL((await tab.get(new URL(back!, huge.url).href)).url).pathname,
        "/dashboard/test/settings"
      )
      assert.strictEqual(await server.journalOfAll(), before)
    })

    it("dashboard.brand: can be changed twenty times a day", async () => {
      const { accounts, merchantId } = server
      const upload = (shade: number) => {
        const read = readImage(png({ width: 4, height: 4, shade }))
        if (typeof read === "string") throw new Error(read)
        return Effect.runPromise(Effect.exit(accounts.run(INSTALLATION, Logos.upload(merchantId, read))))
      }
      let changed = 0
      for (let shade = 100; shade < 130; shade++) if (Exit.isSuccess(await upload(shade))) changed++
      // The tests before have uploaded some.
      assert.isBelow(changed, UPLOADS_MAX)
      const refused = await send(new Blob([png({ width: 4, height: 4, shade: 200 })]))
      assert.strictEqual(refused.status, 400)
      assert.include(refused.text, "This must be changed at most 20 times in 24 hours.")
      // The image that is there already is no change.
      assert.isTrue(Exit.isSuccess(await upload(100 + changed - 1)))
    })
  })
})
