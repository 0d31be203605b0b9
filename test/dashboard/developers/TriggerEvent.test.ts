/** Every event type can be triggered on the dashboard, as by `till trigger` (semantics dashboard.try_out). */
import { assert, describe, it } from "@effect/vitest"
import { TRIGGERABLE_EVENT_TYPES as types } from "../../../src/domain/TriggerRecipes.ts"
import { formTo, type Page } from "../People.ts"
import { openDashboard } from "../support.ts"

const { server, tab } = await openDashboard("developer")

describe("a triggered event", () => {
  const trigger = async (type: string): Promise<Page> => {
    const { action, values } = formTo(await tab.get("/dashboard/test/developers/trigger"), "/make")
    return await tab.post(action, { ...values, type })
  }

  /** Settlements happen two seconds later. */
  const shown = async (page: Page, type: string): Promise<Page> => {
    const until = Date.now() + 10_000
    for (let again = page; ; again = await tab.get(page.url)) {
      if (again.text.includes(`<code>${type}</code>`)) return again
      if (Date.now() > until) throw new Error(`No ${type} in ${again.text}`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  const ahead = types.filter((type) => type !== "charge.expired")
  it.concurrent.each(ahead)("of type %s is shown with its object", async (type) => {
    const page = await shown(await trigger(type), type)
    const id = /\/developers\/trigger\/(\w+)/.exec(page.url)![1]!
    const event = /href="([^"]*\/events\/evt_\w+)"/.exec(page.text)![1]!
    assert.include((await tab.get(new URL(event, page.url).href)).text, id)
  })

  it("of an expiring authorization happens after the clock is advanced", async () => {
    const page = await trigger("charge.expired")
    assert.include(page.text, "payment_intent.amount_capturable_updated")
    assert.notInclude(page.text, "charge.expired")
    assert.include(page.text, "/developers/clock")
    await server.post("/v1/test_helpers/clock/advance", { seconds: 7 * 86_400 + 1 })
    await shown(page, "charge.expired")
  })

  it("is sent to the endpoint, with a type that it receives", async () => {
    const enabled_events = ["customer.created", "customer.deleted"]
    const { id } = await server.post("/v1/webhook_endpoints", { url: "https://shop.example/w", enabled_events })
    const { action, values } = formTo(await tab.get(`/dashboard/test/webhooks/${id}`), "/test")
    const refused = await tab.post(action, { ...values, type: "charge.succeeded" })
    assert.strictEqual(refused.status, 400)
    const sent = await tab.post(action, { ...values, type: "customer.deleted" })
    assert.include(sent.text, "Event triggered. Its delivery is on its way.")
    for (const type of enabled_events) assert.include(sent.text, `<strong>${type}</strong>`)
  })

  it("cannot have an unknown type, or be in live mode", async () => {
    assert.strictEqual((await trigger("price.deleted")).status, 400)
    assert.strictEqual((await trigger("toString")).status, 400)
    assert.strictEqual((await tab.get("/dashboard/live/developers/trigger")).status, 404)
  })
})
