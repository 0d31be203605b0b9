/** No page, file or stream of the dashboard contains a secret, for any role (semantics dashboard.secrets). */
import { afterAll, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import * as ApiKeys from "../../src/payments/merchants/ApiKeys.ts"
import { type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { CARDS, openSession } from "../support/fixtures/CheckoutPages.ts"
import { layerFreshLog } from "../support/RequestLog.ts"
import { signedIn, type Tab } from "./People.ts"
import { makeWorld, type World } from "../support/fixtures/World.ts"

const LISTS = ["customers", "events", "payments", "requests"]

/** All readings of a page or file: without tags, and decoded as often as possible. */
const readingsOf = (text: string): ReadonlySet<string> => {
  const readings = new Set([text, text.replaceAll(/<[^>]*>/g, "")])
  for (const reading of readings) {
    if (readings.size > 40) break
    for (const decode of DECODERS) readings.add(reading.replaceAll(...decode))
  }
  return readings
}

const DECODERS: ReadonlyArray<readonly [RegExp, (found: string, code: string) => string]> = [
  [/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code))],
  [/&(lt|gt|quot|amp);/g, (_, name) => ({ lt: "<", gt: ">", quot: '"', amp: "&" })[name]!],
  [/%([0-7][0-9a-fA-F])/g, (_, code) => String.fromCodePoint(Number.parseInt(code, 16))],
  [/\\u([0-9a-fA-F]{4})/g, (_, code) => String.fromCodePoint(Number.parseInt(code, 16))],
  [/\b([0-9A-Za-z+/]{24,}={0,2})/g, (_, code) => Buffer.from(code, "base64").toString("latin1")]
]

describe("secrets", () => {
  let server: MemoryTillWithPages
  let world: World
  let tabs: ReadonlyArray<readonly [role: string, tab: Tab]>
  /** Secrets by kind, without their public prefixes. */
  const secrets = new Map<string, string>()
  const paths: Array<string> = []

  const keep = (name: string, secret: string) => void secrets.set(name, secret.replace(/^.*_/, ""))

  beforeAll(async () => {
    server = await start({ merchantName: "Lumen", requestLog: layerFreshLog({ batchMillis: 10 }) })
    world = await makeWorld(server, (max) => "plain".slice(0, max))
    const { post, secretTest, secretLive, publishableTest, publishableLive, merchantId } = world.server
    for (const [name, key] of Object.entries({ secretTest, secretLive, publishableTest, publishableLive }))
      keep(name, key)
    paths.push(...Object.values(world.pages))

    // Payments that wait for their payers, in every form in which an address contains the secret.
    const challenged = { amount: 500, currency: "usd", payment_method: "pm_card_authenticationRequired", confirm: true }
    const payment = await post("/v1/payment_intents", { ...challenged, return_url: "https://shop.example/back?a=b" })
    assert.include(payment.next_action.redirect_to_url.url, payment.client_secret)
    keep("payment", payment.client_secret)
    paths.push(`/payments/${payment.id}`, `/charges/${payment.latest_charge}`)
    for (const ui_mode of ["hosted", "embedded", "custom"]) {
      const addresses = ui_mode === "hosted" ? {} : { cancel_url: null }
      const session = await openSession(world.server, { ui_mode, ...addresses })
      if (session.client_secret !== undefined && session.client_secret !== null) keep(ui_mode, session.client_secret)
      const card = { number: CARDS.challenged, exp_month: 12, exp_year: 2034 }
      const payment_method_data = { type: "card", card }
      const customer_details = { email: "ana@example.com" }
      await post(`/v1/checkout_sessions/${session.id}/confirm`, { payment_method_data, customer_details })
      const { client_secret, id } = await world.server.get(`/v1/payment_intents/${session.payment_intent}`)
      keep(`payment of ${ui_mode}`, client_secret)
      paths.push(`/checkout-sessions/${session.id}`, `/payments/${id}`)
    }
    const endpoint = await post("/v1/webhook_endpoints", { url: "http://127.0.0.1:9/", enabled_events: ["*"] })
    keep("endpoint", endpoint.secret)
    keep("rolled endpoint", (await post(`/v1/webhook_endpoints/${endpoint.id}/roll_secret`, { expires_in: 60 })).secret)
    const issued = ApiKeys.issue(merchantId, { type: "secret", livemode: false })
    const key = await Effect.runPromise(server.accounts.run(INSTALLATION, issued))
    keep("key", Redacted.value(key.secret))
    paths.push(`/webhooks/${endpoint.id}`)
    // A payer's browser sends its secret in addresses and bodies.
    const secret = payment.client_secret.replace("_secret_", "%5fsecret%5F")
    await world.server.get(`/v1/payment_intents/${payment.id}?client_secret=${secret}`, publishableTest)
    const confirmation = {
      client_secret: payment.client_secret,
      payment_method: "pm_card_visa",
      return_url: "https://a.b/"
    }
    await post(`/v1/payment_intents/${payment.id}/confirm`, confirmation, { key: publishableTest })
    await post("/v1/payment_intents", { ...challenged, currency: payment.client_secret }, { status: 400 })

    tabs = await Promise.all(
      (["owner", "developer", "support"] as const).map(
        async (role) => [role, await signedIn(world.server, role)] as const
      )
    )
    const [, owner] = tabs[0]!
    await vi.waitFor(async () => {
      assert.include((await owner.get("/dashboard/test/requests")).text, "roll_secret")
    })
    for (const list of ["/events", "/requests"]) {
      for (let at: string | undefined = list; at !== undefined;) {
        const page: string = (await owner.get(`/dashboard/test${at}`)).text
        paths.push(
          ...[...page.matchAll(/href="[^"]*(\/(?:events|requests)\/(?:evt|req)_\w+)"/g)].map(([, path]) => path!)
        )
        const next: string | undefined = /href="[^"?]*\?([^"]*after=[^"]+)"/.exec(page)?.[1]
        at = next === undefined ? undefined : `${list}?${next.replaceAll("&amp;", "&")}`
      }
    }
  })
  afterAll(() => server.close())

  const assertNone = (text: string, where: string) => {
    for (const reading of readingsOf(text)) {
      for (const [name, secret] of secrets)
        assert.isFalse(reading.includes(secret), `${where} has the secret of ${name}`)
    }
  }

  it.each([0, 1, 2])(
    "are on no page, for role %i",
    async (i) => {
      const [role, tab] = tabs[i]!
      let count = 0
      for (const path of new Set(paths)) {
        const { status, text } = await tab.get(`/dashboard/test${path}`)
        if (status === 200) count++
        assertNone(text, `${role}: ${path}`)
      }
      assert.isAbove(count, 60)
      assert.isAbove(secrets.size, 10)
    },
    60_000
  )

  it.each(LISTS)("are in no %s.csv", async (list) => {
    for (const [role, tab] of tabs) {
      const file = await tab.get(`/dashboard/test/${list}.csv`)
      assert.strictEqual(file.status, 200)
      assert.match(file.text, /^\ufeff?"[A-Z][a-z]+ ID"/)
      assertNone(file.text, `${role}: ${list}.csv`)
    }
  })

  it("are in no live stream", async () => {
    for (const [role, tab] of tabs) {
      const aborted = new AbortController()
      const { body } = await fetch(`${server.url}/dashboard/test/live`, {
        headers: { cookie: tab.cookie },
        signal: aborted.signal
      })
      const { post } = world.server
      const payment = await post("/v1/payment_intents", { amount: 1, currency: "usd" })
      keep(`payment beside ${role}`, payment.client_secret)
      let text = ""
      for await (const chunk of body!) {
        text += Buffer.from(chunk).toString()
        if (text.includes("payment_intent")) break
      }
      aborted.abort()
      assertNone(text, role)
    }
  })
})
