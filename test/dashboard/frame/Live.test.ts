/** Open pages receive changes, and closed pages release their resources (semantics dashboard.live). */
import { afterAll, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import { PERSON_STREAMS_MAX } from "../../../src/dashboard/frame/Live.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import * as People from "../../../src/payments/team/People.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { formTo, linkTo, openTab, signedIn, type Tab } from "../People.ts"

describe("a page's stream", () => {
  let server: MemoryTillWithPages
  beforeAll(async () => {
    server = await start()
  })
  afterAll(() => server.close())

  /** Opens a page's stream; returns its output so far, and whether it has ended. */
  const listen = async ({ cookie }: Tab, mode = "test") => {
    const abort = new AbortController()
    const response = await fetch(`${server.url}/dashboard/${mode}/live`, { headers: { cookie }, signal: abort.signal })
    const heard = { status: response.status, text: "", ended: false, close: () => abort.abort() }
    const read = async () => {
      for await (const chunk of response.body ?? []) heard.text += Buffer.from(chunk).toString()
      heard.ended = true
    }
    read().catch(() => (heard.ended = true))
    return heard
  }
  const until = (check: () => void) => vi.waitFor(check, { timeout: 120_000, interval: 20 })
  const streams = () => server.openStreams()

  it("reports changes of its account only", async () => {
    const tab = await signedIn(server)
    const [test, live] = [await listen(tab), await listen(tab, "live")]
    await until(() => assert.include(test.text, "retry:"))
    await server.post("/v1/payment_intents", {
      amount: 100,
      currency: "usd",
      payment_method: "pm_card_visa",
      confirm: true
    })
    await until(() => assert.match(test.text, /^event: changed\ndata: \{"kinds":\[.*"payment_intent"/m))
    assert.include(test.text, '"event"')
    await server.post("/v1/customers", {}, { key: server.secretLive })
    await until(() => assert.include(live.text, '"customer"'))
    assert.notInclude(live.text, "payment_intent")
    for (const heard of [test, live]) heard.close()
    await until(() => assert.strictEqual(streams(), 0))
  })

  it("ends with its session", async () => {
    const [tab, other] = [await signedIn(server), await signedIn(server)]
    const [heard, stays] = [await listen(tab), await listen(other)]
    const { action, values } = formTo(await tab.get("/dashboard/test"), "/sign-out")
    await tab.post(action, values)
    await until(() => assert.isTrue(heard.ended))
    assert.include(heard.text, "event: ended")
    assert.isFalse(stays.ended)
    stays.close()
    await until(() => assert.strictEqual(streams(), 0))
  })

  it("releases its resources, and is limited per person over all sessions", async () => {
    const person = await Effect.runPromise(
      Effect.orDie(server.accounts.run(INSTALLATION, People.add(server.merchantId, { email: null, role: "support" })))
    )
    const sessionOf = async () => {
      const tab = openTab(server)
      await tab.signIn(await linkTo(server, Effect.succeed(person)))
      return tab
    }
    const tabs = [await sessionOf(), await sessionOf(), await sessionOf()]
    const [others, theirs] = [await signedIn(server, "support"), PERSON_STREAMS_MAX]
    const heard = await Promise.all(Array.from({ length: theirs }, (_, i) => listen(tabs[i % 3]!)))
    heard.push(...(await Promise.all(Array.from({ length: 10 }, () => listen(others)))))
    assert.deepStrictEqual([...new Set(heard.map(({ status }) => status))], [200])
    for (const tab of [...tabs, await sessionOf()]) assert.strictEqual((await listen(tab)).status, 503)
    await server.post("/v1/customers", {})
    await until(() => assert.isTrue(heard.every(({ text }) => text.includes('"customer"'))))
    for (const { close } of heard) close()
    await until(() => assert.strictEqual(streams(), 0))
  })
})
