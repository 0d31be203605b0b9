/**
 * API keys and people on the dashboard: secrets shown once, access, and the audit log (semantics dashboard.keys,
 * dashboard.audit, dashboard.team).
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import * as People from "../../../src/payments/team/People.ts"
import { basic } from "../../support/HttpExchange.ts"
import { createMerchant } from "../../support/fixtures/Merchants.ts"
import { Accounts } from "../../../src/engine/Accounts.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { formTo, linkFor, openTab, type Page, signedIn, type Tab } from "../People.ts"

const KEY = /[sp]k_(?:test|live)_[0-9A-Za-z]{32}/

describe("keys and the team", () => {
  let server: MemoryTillWithPages
  let owner: Tab
  beforeAll(async () => {
    server = await start()
    owner = await signedIn(server)
  })
  afterAll(() => server.close())

  const submit = async (tab: Tab, path: string, end: string, entered: Readonly<Record<string, string>> = {}) => {
    const { action, values } = formTo(await tab.get(path), end)
    return await tab.post(action, { ...values, ...entered })
  }
  const statusWith = async (key: string) =>
    (await fetch(`${server.url}/v1/payment_intents`, { headers: { authorization: basic(key) } })).status
  const hrefIn = ({ text, url }: Page, pattern: RegExp): string => new URL(pattern.exec(text)![1]!, url).href

  it("creates a working key, shows it once, rolls it and revokes it", async () => {
    const { action, values } = formTo(await owner.get("/dashboard/test/developers/keys"), "/create")
    const made = await owner.post(action, { ...values, type: "secret" })
    const key = KEY.exec(made.text)![0]
    assert.strictEqual(await statusWith(key), 200)
    const again = await owner.post(action, { ...values, type: "secret" })
    assert.notMatch(again.text, KEY)
    assert.include(again.text, "already shown")
    const page = hrefIn(made, /href="([^"]*\/developers\/keys\/key_\w+)"/)
    assert.notMatch((await owner.get(page)).text, KEY)

    const rolled = await submit(owner, page, "/roll", { expires_in: "0" })
    const next = KEY.exec(rolled.text)![0]
    assert.deepStrictEqual([await statusWith(key), await statusWith(next)], [401, 200])
    assert.strictEqual((await submit(owner, page, "/roll", { expires_in: "86401" })).status, 400)
    const nextPage = hrefIn(rolled, /href="([^"]*\/developers\/keys\/key_\w+)"/)
    assert.include((await submit(owner, nextPage, "/revoke")).text, "Key revoked.")
    assert.strictEqual(await statusWith(next), 401)
    const all = (await owner.get("/dashboard/test/developers/keys")).text
    for (const text of [key, next]) assert.notInclude(all, text)
    for (const text of [key.slice(-4), next.slice(-4)]) assert.include(all, text)
  })

  it("shows live keys to owners only, and no keys of other environments or merchants", async () => {
    const developer = await signedIn(server, "developer")
    assert.strictEqual((await developer.get("/dashboard/test/developers/keys")).status, 200)
    assert.strictEqual((await developer.get("/dashboard/live/developers/keys")).status, 403)
    assert.strictEqual((await developer.post("/dashboard/live/developers/keys/create", { type: "secret" })).status, 403)
    assert.strictEqual((await (await signedIn(server, "support")).get("/dashboard/test/developers/keys")).status, 403)
    const live = await submit(owner, "/dashboard/live/developers/keys", "/create", { type: "secret" })
    assert.match(KEY.exec(live.text)![0], /^sk_live_/)
    const id = /key_\w+/.exec(live.text)![0]
    assert.strictEqual((await owner.get(`/dashboard/live/developers/keys/${id}`)).status, 200)
    assert.strictEqual((await owner.get(`/dashboard/test/developers/keys/${id}`)).status, 404)
  })

  it("adds a person, whose link signs in once with the person's role", async () => {
    const { action, values } = formTo(await owner.get("/dashboard/test/team"), "/add")
    const entered = { ...values, email: "new@example.com", role: "support" }
    const made = await owner.post(action, entered)
    const link = new RegExp(`${server.url}/dashboard/link/\\w{32}`).exec(made.text)![0]
    assert.notMatch((await owner.post(action, entered)).text, /\/dashboard\/link\/\w{32}/)
    const tab = openTab(server)
    assert.strictEqual((await tab.signIn(link)).status, 200)
    assert.strictEqual((await openTab(server).get(link)).status, 410)
    const page = hrefIn(made, /href="([^"]*\/team\/per_\w+)"/)

    assert.strictEqual((await tab.get("/dashboard/test/team")).status, 403)
    assert.include((await submit(owner, page, "/role", { role: "owner" })).text, "Role changed.")
    assert.include((await tab.get("/dashboard/test/team")).text, "new@example.com")
    assert.strictEqual((await submit(owner, page, "/role", { role: "king" })).status, 400)

    assert.include((await submit(owner, page, "/end")).text, "No active sessions.")
    assert.include((await tab.get("/dashboard/test/team")).url, "/sign-in")
    const another = await submit(owner, page, "/link")
    await tab.signIn(new RegExp(`${server.url}/dashboard/link/\\w{32}`).exec(another.text)![0])
    assert.strictEqual((await tab.get("/dashboard/test/team")).status, 200)
    const taken = await submit(owner, "/dashboard/test/team", "/add", { email: "NEW@example.com", role: "owner" })
    assert.strictEqual(taken.status, 400)

    assert.include((await submit(owner, page, "/remove")).text, "Person removed.")
    assert.include((await tab.get("/dashboard/test")).url, "/sign-in")
    assert.strictEqual((await owner.get(page)).status, 404)
    const log = await owner.get("/dashboard/test/team/audit?action=person.remove")
    assert.include(log.text, "new@example.com")
    assert.notInclude(log.text, '<code class="whole">person.add</code>')
  })

  it("keeps the last owner", async () => {
    const alone = await start({ merchantName: "Alone" })
    const tab = await signedIn(alone)
    const page = hrefIn(await tab.get("/dashboard/test/team"), /href="([^"]*\/team\/per_\w+)"/)
    for (const [end, entered] of [
      ["/role", { role: "developer" }],
      ["/remove", {}]
    ] as const) {
      const { action, values } = formTo(await tab.get(page), end)
      const refused = await tab.post(action, { ...values, ...entered })
      assert.strictEqual(refused.status, 400)
      assert.include(refused.text, "an owner is left")
    }
    await alone.close()
  })

  it("shows and changes nothing of another merchant's people, sessions and actions", async () => {
    const stranger = await Effect.runPromise(
      Effect.provideService(createMerchant("Stranger"), Accounts, server.accounts)
    )
    const tab = openTab(server)
    await tab.signIn(await linkFor({ ...server, merchantId: stranger.merchantId }))
    const theirs = /dse_\w+/.exec(tab.cookie)![0]
    const person = People.ensureOwner(stranger.merchantId)
    const { id } = await Effect.runPromise(Effect.orDie(server.accounts.run(INSTALLATION, person)))
    assert.strictEqual((await owner.get(`/dashboard/test/team/${id}`)).status, 404)
    assert.notInclude((await owner.get("/dashboard/test/team")).text, id)
    const own = hrefIn(await owner.get("/dashboard/test/team"), /href="([^"]*\/team\/per_\w+)"/)
    const { action, values } = formTo(await owner.get(own), "/end")
    assert.notStrictEqual((await owner.post(action, { ...values, session: theirs })).status, 200)
    assert.strictEqual((await tab.get("/dashboard/test/team")).status, 200)
    assert.notInclude((await owner.get(`/dashboard/test/team/audit?person=${id}`)).text, "<td")
    assert.notInclude((await tab.get("/dashboard/test/team/audit")).text, "<td")
  })

  it("pages through the log of the merchant and of the environment", async () => {
    for (let i = 0; i < 26; i++) {
      await submit(owner, "/dashboard/test/developers", "/version", { version: "2026-03-09" })
    }
    const first = await owner.get("/dashboard/test/team/audit?action=merchant.set_version")
    const rows = (page: Page) => page.text.match(/<code class="whole">merchant.set_version<\/code>/g)?.length ?? 0
    assert.strictEqual(rows(first), 25)
    const older = await owner.get(hrefIn(first, /rel="next" href="([^"]+)"/).replaceAll("&amp;", "&"))
    assert.strictEqual(rows(older), 1)
    const payment = await server.post("/v1/payment_intents", {
      amount: 4321,
      currency: "usd",
      payment_method: "pm_card_visa",
      confirm: true
    })
    await submit(owner, `/dashboard/test/payments/${payment.id}`, "/refund", { amount: "1" })
    assert.notInclude((await owner.get("/dashboard/test/team/audit")).text, '<code class="whole">refund.create</code>')
    assert.include((await owner.get("/dashboard/test/team/audit?of=environment")).text, payment.id)
    assert.notInclude((await owner.get("/dashboard/live/team/audit?of=environment")).text, payment.id)
  })

  it("shows a later email in earlier log entries", async () => {
    const tab = await signedIn(server, "developer")
    await submit(tab, "/dashboard/test/developers", "/version", { version: "2026-03-09" })
    const log = async () => (await owner.get("/dashboard/test/team/audit?action=merchant.set_version")).text
    assert.notInclude(await log(), "later@example.com")
    const credentials = { email: "later@example.com", password: "correct horse battery" }
    await submit(tab, "/dashboard/test/account", "/credentials", credentials)
    assert.match(await log(), /\/team\/audit\?[^"]*person=per_\w+"\s*>later@example\.com</)
  })
})
