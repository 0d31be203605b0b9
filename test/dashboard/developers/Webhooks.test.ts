/** Webhooks and events on the dashboard (semantics dashboard.resend). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { LOOKED_THROUGH_MAX } from "../../../src/dashboard/developers/Resending.ts"
import * as Customers from "../../../src/payments/lifecycles/Customers.ts"
import type { Answer } from "../../support/MemoryTillWithPages.ts"
import { fail } from "../../support/fixtures/FailedDelivery.ts"
import { formTo, type Page } from "../People.ts"
import { openDashboard } from "../support.ts"

/** The link of the row with this text in a cell. */
const linkTo = ({ text, url }: Page, pattern: RegExp): string => {
  const href = [...text.matchAll(/href="([^"]+)"/g)].map(([, href]) => href!).find((href) => pattern.test(href))
  assert.isDefined(href, `${String(pattern)} in ${text}`)
  return new URL(href!, url).pathname
}

const { server, tab } = await openDashboard()

describe("webhooks in the dashboard", () => {
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

  it("show a failed delivery with its responses and body, and resend it", async () => {
    const endpoint = await endpointOf(["payment_intent.succeeded"])
    const payment = await pay()
    const { delivery, event } = await fail(server, endpoint.id)
    const webhooks = await tab.get("/dashboard/test/webhooks")
    assert.include(webhooks.text, "exhausted")
    const [, below] = new RegExp(`/${delivery}">[^]*?class="under">([^<]*)<`).exec(webhooks.text)!
    assert.strictEqual(below, endpoint.url)
    const page = await tab.get(linkTo(webhooks, new RegExp(delivery)))
    assert.strictEqual(new URL(page.url).pathname, `/dashboard/test/webhooks/${endpoint.id}/${delivery}`)
    for (const shown of [
      "payment_intent.succeeded",
      payment.id,
      event,
      ">500<",
      "12 ms",
      "the database is &lt;down&gt;"
    ])
      assert.include(page.text, shown)
    const { action, values } = formTo(page, "/resend")
    await tab.post(action, values)
    const [again, first] = await deliveriesOf(endpoint.id)
    assert.deepInclude(again, { event, status: "pending", attempt_count: 0 })
    assert.deepInclude(first, { id: delivery, status: "exhausted" })
  })

  it("resend failed deliveries of a time window, unless resent since", async () => {
    const endpoint = await endpointOf(["payment_intent.succeeded"])
    const failed: Array<{ readonly delivery: string; readonly event: string }> = []
    for (const next of ["exhausted", { retryAfterMillis: 60_000 }] as const) {
      await pay()
      failed.push(await fail(server, endpoint.id, next))
    }
    await pay()
    const path = `/dashboard/test/webhooks/${endpoint.id}`
    const sent = async (values: Readonly<Record<string, string>>) => {
      const form = formTo(await tab.get(path), "/resend")
      return await tab.post(form.action, { ...form.values, ...values })
    }
    const [day = "", hour = ""] = new Date(Date.now() - 3_600_000).toISOString().split(/T|:/)
    for (const window of [
      { from: "2001-01-01", until: "2001-01-02" },
      { from: "2100-01-01T00:00" },
      { until: `${day}T${hour}:00` }
    ]) {
      const none = await sent(window)
      assert.strictEqual(none.status, 400)
      assert.include(none.text, "earlier than a failed delivery that was not sent again since")
    }
    for (const field of ["from", "until"]) {
      for (const time of ["yesterday", "2026-13-01", "2026-11-25T25:00"]) {
        const refused = await sent({ [field]: time })
        assert.strictEqual(refused.status, 400, "a time that is none must not send all of them")
        assert.include(refused.text, `${field}-error`)
      }
    }
    assert.strictEqual((await sent({ from: `${day}T${hour}:00`, until: "" })).status, 200)
    const deliveries = await deliveriesOf(endpoint.id)
    assert.strictEqual(deliveries.length, 4)
    assert.deepInclude(deliveries[0], { event: failed[0]!.event, status: "pending", attempt_count: 0 })
    assert.deepInclude(deliveries[2], { id: failed[1]!.delivery, status: "pending", attempt_count: 1 })
    assert.isAtMost(deliveries[2].next_attempt_at, Date.now() / 1000, "what is still tried is tried now")
    assert.strictEqual((await sent({})).status, 200)
    assert.strictEqual((await deliveriesOf(endpoint.id)).length, 4, "what is on its way is not sent once more")
    assert.notInclude((await tab.get("/dashboard/test/webhooks")).text, failed[0]!.delivery)
  })

  it("resend selected deliveries of their endpoint: ended ones as new, pending ones now", async () => {
    const endpoint = await endpointOf(["payment_intent.succeeded"])
    const other = await endpointOf(["charge.refunded"])
    for (const next of ["exhausted", { retryAfterMillis: 86_400_000 }, "delivered"] as const) {
      await pay()
      await fail(server, endpoint.id, next)
    }
    await pay()
    const before = await deliveriesOf(endpoint.id)
    const path = `/dashboard/test/webhooks/${endpoint.id}`
    const sent = async (values: Readonly<Record<string, string>>) => {
      const form = formTo(await tab.get(path), "/resend-chosen")
      return await tab.post(form.action, { ...form.values, ...values })
    }
    for (const values of [{}, { "chosen[0]": "on", "delivery[0]": "whd_none" }, { "chosen[24]": "on" }]) {
      const refused = await sent(values)
      assert.strictEqual(refused.status, 400)
      assert.include(refused.text, "Select at least one delivery.")
    }
    const all = { "chosen[0]": "on", "chosen[1]": "on", "chosen[2]": "on", "chosen[3]": "on" }
    assert.include((await sent(all)).text, "The deliveries are being sent again.")
    const after = await deliveriesOf(endpoint.id)
    assert.sameMembers(
      after.slice(0, 2).map(({ event }: Answer) => event),
      [before[1].event, before[3].event]
    )
    const { next_attempt_at, ...tried } = after[4]
    assert.deepStrictEqual({ ...tried, next_attempt_at: before[2].next_attempt_at }, before[2])
    assert.isAtMost(next_attempt_at, Date.now() / 1000)
    assert.deepStrictEqual([after[2], after[3], ...after.slice(5)], [before[0], before[1], before[3]])
    await sent(all)
    assert.strictEqual((await deliveriesOf(endpoint.id)).length, after.length, "all of them are on their way")
    const none = await tab.get(`/dashboard/test/webhooks/${other.id}`)
    assert.throws(() => formTo(none, "/resend-chosen"))
  })

  it("attempt a pending delivery now, and create no second one after its arrival", async () => {
    const endpoint = await endpointOf(["payment_intent.succeeded"])
    await pay()
    const { delivery, event } = await fail(server, endpoint.id, { retryAfterMillis: 86_400_000 })
    const path = `/dashboard/test/webhooks/${endpoint.id}/${delivery}`
    const [page, stale] = [await tab.get(path), await tab.get(path)]
    assert.include(page.text, "Attempt now")
    const { action, values } = formTo(page, "/resend")
    const nextAttempt = async () => {
      const deliveries = await deliveriesOf(endpoint.id)
      assert.strictEqual(deliveries.length, 1)
      return deliveries[0].next_attempt_at
    }
    assert.isAbove(await nextAttempt(), Date.now() / 1000 + 80_000)
    await tab.post(action, values)
    assert.isAtMost(await nextAttempt(), Date.now() / 1000)
    await fail(server, endpoint.id, "delivered", null, 2)
    const again = await tab.post(action, values)
    assert.strictEqual(again.status, 200, "the same form is answered as the first time")
    const late = formTo(stale, "/resend")
    const refused = await tab.post(late.action, late.values)
    assert.strictEqual(refused.status, 400)
    assert.include(refused.text, "a pending delivery, and this one has ended")
    assert.isNull(await nextAttempt())
    const anew = formTo(await tab.get(path), "/resend")
    assert.include((await tab.post(anew.action, anew.values)).text, "The event is being sent again.")
    assert.deepInclude((await deliveriesOf(endpoint.id))[0], { event, status: "pending", attempt_count: 0 })
  })

  it("attempt pending deliveries now, and create the rest, when an event is resent to all", async () => {
    const [tried, over] = [await endpointOf(["price.created"]), await endpointOf(["price.created"])]
    const product = await server.post("/v1/products", { name: "Mug" })
    await server.post("/v1/prices", { product: product.id, currency: "usd", unit_amount: 100 })
    const { event } = await fail(server, tried.id, { retryAfterMillis: 86_400_000 })
    await fail(server, over.id)
    const { action, values } = formTo(await tab.get(`/dashboard/test/events/${event}`), "/resend")
    await tab.post(action, values)
    const [[now, ...none], [anew, ...before]] = [await deliveriesOf(tried.id), await deliveriesOf(over.id)]
    assert.isAtMost(now.next_attempt_at, Date.now() / 1000)
    assert.isEmpty(none)
    assert.deepInclude(anew, { event, status: "pending", attempt_count: 0 })
    assert.strictEqual(before.length, 1)
  })

  it("show how many deliveries a filter has read, and continue with older ones", async () => {
    const endpoint = await endpointOf(["customer.created"])
    await server.post("/v1/customers", {})
    const { delivery } = await fail(server, endpoint.id)
    const account = `${server.merchantId}:test`
    const many = Effect.replicateEffect(Customers.create({}), LOOKED_THROUGH_MAX)
    await Effect.runPromise(Effect.orDie(server.accounts.run(account, many)))
    const page = await tab.get(`/dashboard/test/webhooks/${endpoint.id}?state=exhausted`)
    assert.notInclude(page.text, delivery)
    assert.include(page.text, "Continue with older ones.")
    const next = /<a rel="next" href="([^"]+)"/.exec(page.text)![1]!.replaceAll("&amp;", "&")
    assert.include((await tab.get(new URL(next, page.url).href)).text, delivery)
  })

  it("show a secret once, with the right to see it, and never in a list", async () => {
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

  it("filter deliveries by state in the address", async () => {
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

  it("show events by type, and changed fields", async () => {
    const customer = await server.post("/v1/customers", { name: "Before" })
    await server.post(`/v1/customers/${customer.id}`, { name: "After" })
    const wrong = await tab.get("/dashboard/test/events?type=customer.sneezed")
    assert.strictEqual(wrong.status, 400)
    assert.include(wrong.text, "Unknown event type.")
    assert.notInclude(wrong.text, "customer.created")
    const list = await tab.get("/dashboard/test/events?type=customer.*")
    assert.include(list.text, "customer.updated")
    assert.notInclude(list.text, "payment_intent.succeeded")
    const page = await tab.get(linkTo(list, /\/events\/evt_/))
    for (const shown of ["customer.updated", "Before", "After", customer.id, "Changes"]) {
      assert.include(page.text, shown)
    }
    const { endpoint, ...failed } = await (async () => {
      const endpoint = await endpointOf(["payment_intent.succeeded"])
      await pay()
      return { endpoint, ...(await fail(server, endpoint.id)) }
    })()
    const event = await tab.get(`/dashboard/test/events/${failed.event}`)
    assert.include(event.text, "responded 500")
    const delivery = await tab.get(linkTo(event, new RegExp(failed.delivery)))
    assert.include(delivery.text, endpoint.url)
  })

  it("are a 404 in another environment", async () => {
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
