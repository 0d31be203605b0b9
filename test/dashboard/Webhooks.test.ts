/** Webhooks and events as people see them (semantics 9.75). */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { PagesServer } from "../pages/PagesServer.ts"
import { start } from "../pages/PagesServer.ts"
import { fail } from "./FailedDelivery.ts"
import type { Page, Tab } from "./People.ts"
import { formTo, signedIn } from "./People.ts"

/** Where the link of a row leads to that has this text in its cell. */
const linkTo = ({ text, url }: Page, pattern: RegExp): string => {
  const href = [...text.matchAll(/href="([^"]+)"/g)].map(([, href]) => href!).find((href) => pattern.test(href))
  assert.isDefined(href, `${String(pattern)} in ${text}`)
  return new URL(href!, url).pathname
}

describe("webhooks in the dashboard", () => {
  let server: PagesServer
  let tab: Tab
  beforeAll(async () => {
    server = await start()
    tab = await signedIn(server)
  })
  afterAll(() => server.close())

  const endpointOf = (types: ReadonlyArray<string> = ["*"]) =>
    server.post("/v1/webhook_endpoints", { url: "https://shop.example/hooks", enabled_events: types })
  const pay = () =>
    server.post("/v1/payment_intents", {
      amount: 4321,
      currency: "usd",
      payment_method: "pm_card_visa",
      confirm: true
    })
  const deliveriesOf = async (id: string) => (await server.get(`/v1/webhook_endpoints/${id}/deliveries`)).data

  it("lead from a delivery that failed to its answers and its body, and send it again", async () => {
    const endpoint = await endpointOf(["payment_intent.succeeded"])
    const payment = await pay()
    const { delivery, event } = await fail(server, endpoint.id)
    const webhooks = await tab.get("/dashboard/test/webhooks")
    assert.include(webhooks.text, "exhausted")
    const page = await tab.get(linkTo(webhooks, new RegExp(delivery)))
    assert.strictEqual(new URL(page.url).pathname, `/dashboard/test/webhooks/${endpoint.id}/${delivery}`)
    for (const shown of ["payment_intent.succeeded", payment.id, event, ">500<", "12 ms"])
      assert.include(page.text, shown)
    const { action, values } = formTo(page, "/resend")
    await tab.post(action, values)
    const [again, first] = await deliveriesOf(endpoint.id)
    assert.deepInclude(again, { event, status: "pending", attempt_count: 0 })
    assert.deepInclude(first, { id: delivery, status: "exhausted" })
  })

  it("send again what has failed for good in a window of time, and nothing else", async () => {
    const endpoint = await endpointOf(["payment_intent.succeeded"])
    await pay()
    const { event } = await fail(server, endpoint.id)
    await pay()
    const page = await tab.get(`/dashboard/test/webhooks/${endpoint.id}`)
    const { action, values } = formTo(page, "/resend")
    const none = await tab.post(action, { ...values, from: "2001-01-01", until: "2001-01-02" })
    assert.strictEqual(none.status, 400)
    assert.include(none.text, "No delivery of that time")
    for (const field of ["from", "until"]) {
      const { action, values } = formTo(await tab.get(`/dashboard/test/webhooks/${endpoint.id}`), "/resend")
      const refused = await tab.post(action, { ...values, [field]: "yesterday" })
      assert.strictEqual(refused.status, 400, "a day that is none must not send all of them")
      assert.include(refused.text, `${field}-error`)
    }
    const fresh = formTo(await tab.get(`/dashboard/test/webhooks/${endpoint.id}`), "/resend")
    assert.strictEqual((await tab.post(fresh.action, fresh.values)).status, 200)
    const deliveries = await deliveriesOf(endpoint.id)
    assert.strictEqual(deliveries.length, 3)
    assert.deepInclude(deliveries[0], { event, status: "pending" })
  })

  it("show a secret once, to whoever may see it, and never in a list", async () => {
    const { action, values } = formTo(await tab.get("/dashboard/test/webhooks"), "/add")
    const made = await tab.post(action, { ...values, url: "https://shop.example/secret", enabled_events: "*" })
    const secret = /whsec_[0-9A-Za-z]{32}/.exec(made.text)![0]
    const page = await tab.get(linkTo(made, /\/webhooks\/we_/))
    assert.include(page.text, "https://shop.example/secret")
    assert.notInclude(page.text, "whsec_")
    assert.notInclude((await tab.get("/dashboard/test/webhooks")).text, secret)
    assert.notInclude(await server.journal(), secret)
    const roll = formTo(page, "/roll-secret")
    const rolled = await tab.post(roll.action, { ...roll.values, hours: "2" })
    assert.notStrictEqual(/whsec_[0-9A-Za-z]{32}/.exec(rolled.text)![0], secret)
    const again = formTo(await tab.get(new URL(page.url).pathname), "/roll-secret")
    assert.strictEqual((await tab.post(again.action, { ...again.values, hours: "25" })).status, 400)
  })

  it.each([
    [{ url: "ftp://shop.example", enabled_events: "*" }, "url-error"],
    [{ url: "https://shop.example", enabled_events: "no.such_event" }, "enabled_events-error"],
    [{ url: "https://shop.example", enabled_events: "" }, "enabled_events-error"]
  ])("refuse %o beside its field", async (entered, id) => {
    const { action, values } = formTo(await tab.get("/dashboard/test/webhooks"), "/add")
    const page = await tab.post(action, { ...values, ...entered })
    assert.strictEqual(page.status, 400)
    assert.include(page.text, id)
  })

  it("filter deliveries by their state, in the address", async () => {
    const endpoint = await endpointOf(["payment_intent.succeeded"])
    await pay()
    const { delivery } = await fail(server, endpoint.id)
    const shown = async (state: string) =>
      (await tab.get(`/dashboard/test/webhooks/${endpoint.id}?state=${state}`)).text.includes(delivery)
    assert.deepStrictEqual(await Promise.all(["failed", "exhausted", "delivered", "pending"].map(shown)), [
      true,
      true,
      false,
      false
    ])
  })

  it("show events by type, and what an update has changed", async () => {
    const customer = await server.post("/v1/customers", { name: "Before" })
    await server.post(`/v1/customers/${customer.id}`, { name: "After" })
    const list = await tab.get("/dashboard/test/events?type=customer.*")
    assert.include(list.text, "customer.updated")
    assert.notInclude(list.text, "payment_intent.succeeded")
    const page = await tab.get(linkTo(list, /\/events\/evt_/))
    for (const shown of ["customer.updated", "Before", "After", customer.id, "What changed"]) {
      assert.include(page.text, shown)
    }
  })

  it("are nothing to another environment", async () => {
    const endpoint = await endpointOf()
    await pay()
    const { delivery, event } = await fail(server, endpoint.id)
    for (const path of [`/webhooks/${endpoint.id}`, `/webhooks/${endpoint.id}/${delivery}`, `/events/${event}`]) {
      assert.strictEqual((await tab.get(`/dashboard/test${path}`)).status, 200)
      assert.strictEqual((await tab.get(`/dashboard/live${path}`)).status, 404)
    }
    assert.strictEqual((await tab.get(`/dashboard/test/webhooks/${endpoint.id}/whd_none`)).status, 404)
  })
})
