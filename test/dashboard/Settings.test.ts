/**
 * Brand and test clock on the dashboard: saving, refusing, and timers that become due (semantics dashboard.settings).
 */
import { assert, describe, it } from "@effect/vitest"
import { openSession } from "../support/fixtures/CheckoutPages.ts"
import { formTo, signedIn } from "./People.ts"
import { openDashboard } from "./support.ts"

const { server, tab } = await openDashboard("developer")

describe("settings", () => {
  const submit = async (path: string, end: string, entered: Readonly<Record<string, string>>) => {
    const { action, values } = formTo(await tab.get(path), end)
    return await tab.post(action, { ...values, ...entered })
  }

  it("saves the brand, shows it, and removes settings", async () => {
    const saved = await submit("/dashboard/test/developers/brand", "/set", {
      name: "Lumen <b>",
      icon: "https://cdn.example/icon.png",
      accent: "#FFDD00",
      support: "mailto:help@lumen.example"
    })
    assert.include(saved.text, "Brand saved.")
    assert.include(saved.text, `fill="#ffdd00"`)
    assert.include(saved.text, "Lumen &lt;b&gt;")
    assert.match(saved.headers.get("content-security-policy")!, /img-src 'self' data: https:\/\/cdn\.example;/)
    const without = await submit("/dashboard/test/developers/brand", "/set", { icon: "", accent: "" })
    assert.notInclude(without.text, "cdn.example")
    assert.notInclude(without.text, "A button in")
    assert.include(without.text, "mailto:help@lumen.example")
  })

  it("refuses invalid settings beside the field, and saves nothing", async () => {
    const wrong = { name: "", icon: "javascript:alert(1)", accent: "red", terms: "/terms" }
    const refused = await submit("/dashboard/test/developers/brand", "/set", wrong)
    assert.strictEqual(refused.status, 400)
    for (const name of Object.keys(wrong))
      assert.match(refused.text, new RegExp(`class="error" id="[^"]*-${name}-error"`))
    assert.notInclude((await tab.get("/dashboard/test/developers/brand")).text, "javascript:")
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
    await submit("/dashboard/test/developers/brand", "/set", { name: "Lumen <b>" })
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
})
