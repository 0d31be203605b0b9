/**
 * Access to the dashboard, and refused requests (semantics dashboard.people, dashboard.roles, dashboard.audit,
 * dashboard.browser, dashboard.guessing).
 */
import { afterAll, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import { get } from "node:http"
import { Effect } from "effect"
import { Accounts } from "../../src/engine/Accounts.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import * as Audit from "../../src/payments/team/Audit.ts"
import { DASHBOARD_SESSION } from "../../src/payments/team/DashboardSessions.ts"
import { ADDRESS_FAILURES_MAX, PERSON_ATTEMPTS_MAX } from "../../src/dashboard/frame/SignInLimits.ts"
import { clockOf } from "../support/SettableClock.ts"
import { basic } from "../support/HttpExchange.ts"
import { createMerchant } from "../support/fixtures/Merchants.ts"
import { type Answer, type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { visit } from "../support/fixtures/CheckoutPages.ts"
import { ACTIONS, MAIL, type TriedAction } from "./Actions.ts"
import { formsIn, formTo, linkFor, linkTo, openTab, type Page, signedIn, type Tab } from "./People.ts"

const PASSWORD = "correct horse battery"

describe("the dashboard", () => {
  let server: MemoryTillWithPages
  let owner: Tab
  let another: Tab
  let support: Tab
  beforeAll(async () => {
    // Attempts are counted per quarter of an hour, so this file starts with a new one.
    const ago = Date.now() % (15 * 60_000)
    const clock = clockOf(() => Date.now() - ago)
    server = await start({ clock })
    owner = await signedIn(server)
    another = await signedIn(server, "owner")
    support = await signedIn(server, "support")
  })
  afterAll(() => server.close())

  const payment = (parameters: object = {}): Promise<Answer> =>
    server.post("/v1/payment_intents", {
      amount: 4321,
      currency: "usd",
      payment_method: "pm_card_visa",
      confirm: true,
      ...parameters
    })

  const audits = async (account: string, { accounts } = server): Promise<ReadonlyArray<string>> => {
    const { documents } = await Effect.runPromise(
      accounts.list(account, { kind: Audit.AUDIT_ENTRY.name, prefix: "aud", limit: 100 })
    )
    return documents.map(({ value }) => (value as unknown as { action: string }).action)
  }

  /** Sets a new person's email and password, and answers with the tab in which that was done. */
  const withPassword = async (
    email: string,
    password: string = PASSWORD,
    of: MemoryTillWithPages = server
  ): Promise<Tab> => {
    const tab = await signedIn(of, "support")
    await setPassword(tab, email, password)
    return tab
  }
  const setPassword = async (tab: Tab, email: string, password: string = PASSWORD) => {
    const { action, values } = formTo(await tab.get("/dashboard/test/account"), "/credentials")
    const page = await tab.post(action, { ...values, email, password })
    assert.include(page.text, "Saved. Use this email and password")
  }

  /** Id of the merchant's person with this email. */
  const idOf = async (email: string): Promise<string> => {
    const { text } = await owner.get("/dashboard/test/team")
    return /\bper_\w+/.exec(text.split(email)[0]!.split("<tr").at(-1)!)![0]
  }

  const signIn = async (tab: Tab, email: string, password: string, more: Readonly<Record<string, string>> = {}) => {
    const { action, values } = formTo(await tab.get("/dashboard/sign-in"), "/sign-in")
    return await tab.post(action, { ...values, email, password, ...more })
  }

  describe("signing in", () => {
    it("accepts the button of a link, once, and no request that only opens the link", async () => {
      const link = await linkFor(server)
      const before = await server.journalOfAll()
      assert.strictEqual((await fetch(link, { method: "HEAD" })).status, 200)
      for (const headers of [{}, { "sec-purpose": "prefetch" }, { "sec-fetch-site": "cross-site" }]) {
        const { headers: answered, status } = await visit(link, headers)
        assert.deepStrictEqual([status, answered.getSetCookie()], [200, []])
      }
      const tab = openTab(server)
      const page = await tab.get(link)
      assert.include(page.text, "Sign in to Lumen Coffee")
      assert.include(page.text, "You are signing in as owner, with no email yet.")
      assert.notInclude(page.text, "<script")
      const { action, values } = formTo(page, new URL(link).pathname)
      const elsewhere = { origin: "https://evil.example", "sec-fetch-site": "cross-site" }
      for (const [sent, headers] of [
        [{}, {}],
        [{ token: formTo(await tab.get("/dashboard/sign-in"), "/sign-in").values["token"]! }, {}],
        [values, elsewhere],
        [values, { origin: "null" }],
        [values, { "sec-fetch-site": "same-site" }],
        [values, { "content-type": "text/plain" }]
      ] as const) {
        assert.strictEqual((await tab.post(action, sent, headers)).status, 403)
      }
      // The link contains the token, so the browser's headers have to prove the origin.
      const silent = await fetch(link, { method: "POST", body: new URLSearchParams(values) })
      assert.strictEqual(silent.status, 403)
      assert.strictEqual(await server.journalOfAll(), before)
      assert.strictEqual(tab.cookie, "")

      const home = await tab.post(action, values)
      assert.deepStrictEqual([home.status, new URL(home.url).pathname], [200, "/dashboard/test"])
      for (const name of ["Payments", "Developers"])
        assert.match(home.text, new RegExp(`<a href="[^"]+"\\s*>${name}</a>`))
      const other = openTab(server)
      for (const late of [await other.get(link), await other.post(action, values)]) {
        assert.strictEqual(late.status, 410)
        assert.include(late.text, "A link works once")
      }
      assert.strictEqual(other.cookie, "")
      // A signed-in person is redirected.
      assert.strictEqual(new URL((await tab.get(link)).url).pathname, "/dashboard/test")
    })

    it("opens one session per link for concurrent forms", async () => {
      const link = await linkFor(server)
      const tabs = Array.from({ length: 8 }, () => openTab(server))
      const { action, values } = formTo(await tabs[0]!.get(link), new URL(link).pathname)
      const statuses = (await Promise.all(tabs.map((tab) => tab.post(action, values)))).map(({ status }) => status)
      assert.deepStrictEqual(statuses.toSorted(), [200, ...Array<number>(7).fill(410)])
    })

    it("names the person whose session a link would end", async () => {
      const tab = await withPassword("before@example.com")
      const page = await tab.get(await linkFor(server, "developer"))
      assert.match(page.text, /This browser is signed in to <bdi>Lumen Coffee<\/bdi> as <b><bdi>before@example.com/)
      assert.include(page.text, "You are signing in as developer, with no email yet.")
    })

    it("rejects a link from before a new password or role", async () => {
      const email = "again@example.com"
      const tab = await withPassword(email)
      const id = await idOf(email)
      const linkOf = () => linkTo(server, Effect.succeed({ id }))
      const [first, second] = [await linkOf(), await linkOf()]
      assert.strictEqual((await openTab(server).get(first)).status, 200)
      await setPassword(tab, email)
      assert.strictEqual((await openTab(server).get(first)).status, 410)
      const third = await linkOf()
      const { action, values } = formTo(await owner.get(`/dashboard/test/team/${id}`), "/role")
      await owner.post(action, { ...values, role: "developer" })
      for (const link of [second, third]) assert.strictEqual((await openTab(server).get(link)).status, 410)
      assert.strictEqual((await openTab(server).get(await linkOf())).status, 200)
    })

    it("shows nothing without a session, and leads back to the requested page", async () => {
      const { id } = await payment()
      for (const path of ["/dashboard", "/dashboard/test", `/dashboard/test/payments/${id}`, "/dashboard/nothing"]) {
        const page = await openTab(server).get(path)
        assert.include(page.url, "/dashboard/sign-in")
        assert.notInclude(page.text, "4321")
      }
      const tab = await withPassword("back@example.com")
      tab.cookie = ""
      const asked = await tab.get(`/dashboard/test/payments/${id}`)
      const { action, values } = formTo(asked, "/sign-in")
      const page = await tab.post(action, { ...values, email: "BACK@example.com", password: PASSWORD })
      assert.strictEqual(new URL(page.url).pathname, `/dashboard/test/payments/${id}`)
      assert.include(page.text, "43.21")
    })

    it.each(["https://evil.example/", "//evil.example", "/\\evil.example", "/test/../../x", "javascript:alert(1)"])(
      "does not redirect to %s",
      async (to) => {
        const tab = openTab(server)
        const shown = await tab.get(`/dashboard/sign-in?to=${encodeURIComponent(to)}`)
        assert.strictEqual(formTo(shown, "/sign-in").values["to"], "")
        const answer = await visit(`${server.url}/dashboard/sign-in?to=${encodeURIComponent(to)}`, {
          cookie: owner.cookie
        })
        assert.strictEqual(answer.headers.get("location"), "../dashboard/test")
      }
    )

    it("creates a new session and ends the previous one", async () => {
      const tab = await withPassword("fixed@example.com")
      const before = tab.cookie
      const attacker = openTab(server)
      attacker.cookie = before
      tab.cookie = ""
      await signIn(tab, "fixed@example.com", PASSWORD)
      assert.notStrictEqual(tab.cookie, before)
      // Another person's link, opened in the same browser.
      const held = tab.cookie
      await tab.signIn(await linkFor(server))
      assert.notStrictEqual(tab.cookie, held)
      attacker.cookie = held
      assert.include((await attacker.get("/dashboard/test")).url, "/sign-in")
      // A planted cookie value is not accepted.
      const planted = openTab(server)
      planted.cookie = tab.cookie.replace(/\..*$/, `.${"x".repeat(32)}`)
      assert.include((await planted.get("/dashboard/test")).url, "/sign-in")
    })

    it("answers a wrong password and an unknown person the same", async () => {
      await withPassword("known@example.com")
      const [wrong, nobody] = await Promise.all(
        ["known@example.com", "unknown@example.com"].map((email) => signIn(openTab(server), email, "wrong"))
      )
      assert.deepStrictEqual([wrong!.status, nobody!.status], [401, 401])
      const plain = (text: string) => text.replaceAll(/value="[^"]*"/g, "")
      assert.strictEqual(plain(wrong!.text), plain(nobody!.text))
    })

    it("blocks only those who guess", async () => {
      const email = "guessed@example.com"
      await withPassword(email)
      const tab = openTab(server)
      const { action, values } = formTo(await tab.get("/dashboard/sign-in"), "/sign-in")
      const attempts = Array.from({ length: 12 }, () => tab.post(action, { ...values, email, password: "wrong" }))
      const statuses = (await Promise.all(attempts)).map(({ status }) => status).toSorted()
      assert.deepStrictEqual(statuses, [...Array<number>(10).fill(401), 429, 429])
      assert.strictEqual((await signIn(openTab(server), email, PASSWORD)).status, 429)
      assert.strictEqual((await signIn(openTab(server), "known@example.com", PASSWORD)).status, 200)
    })

    it("accepts links and right passwords from any number of people at an address", async () => {
      const tab = openTab(server)
      for (let i = 0; i <= ADDRESS_FAILURES_MAX; i++) {
        assert.strictEqual((await visit(`${server.url}/dashboard/link/${"x".repeat(32)}`)).status, 410)
      }
      const people = Array.from(
        { length: ADDRESS_FAILURES_MAX / PERSON_ATTEMPTS_MAX + 1 },
        (_, i) => `o${i}@example.com`
      )
      for (const email of people) {
        await withPassword(email)
        for (let i = 0; i < PERSON_ATTEMPTS_MAX; i++) {
          assert.strictEqual((await signIn(openTab(server), email, PASSWORD)).status, 200)
        }
        assert.strictEqual((await signIn(openTab(server), email, PASSWORD)).status, 429)
      }
      assert.strictEqual((await tab.signIn(await linkFor(server, "support"))).status, 200)
    })

    it("sends a cookie for this host only, which scripts cannot read", async () => {
      const tab = openTab(server)
      const link = await linkFor(server)
      const { values } = formTo(await tab.get(link), new URL(link).pathname)
      const headers = { origin: server.url }
      const body = new URLSearchParams(values)
      const response = await fetch(link, { method: "POST", redirect: "manual", headers, body })
      assert.deepStrictEqual([response.status, response.headers.get("location")], [303, "../../dashboard/test"])
      const [cookie] = response.headers.getSetCookie()
      assert.match(cookie!, /^till_dashboard_\d+=dse_\w{24}\.\w{32}; /)
      for (const term of ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"]) assert.include(cookie!, term)
      assert.notInclude(cookie!, "Domain")
    })
  })

  describe("an email address that people of two merchants have", () => {
    let stranger: MemoryTillWithPages
    beforeAll(async () => {
      const keys = await Effect.runPromise(Effect.provideService(createMerchant("Stranger"), Accounts, server.accounts))
      stranger = { ...server, ...keys }
    })
    const merchantIn = (page: Page) => /<p class="merchant"><bdi>([^<]+)</.exec(page.text)?.[1]
    const plain = ({ status, text }: Page) => [
      status,
      text.replaceAll(/\b(?:per|mer|dse)_\w+|value="[^"]*"|link\/\w+|<time.*?<\/time>|id="[^"]*"/g, "")
    ]

    it("leads each of them to their own merchant, by their own password", async () => {
      await withPassword("both@example.com", "the first password")
      await withPassword("BOTH@example.com", "the other password", stranger)
      const [first, other] = [openTab(server), openTab(server)]
      assert.strictEqual(merchantIn(await signIn(first, "both@example.com", "the first password")), "Lumen Coffee")
      assert.strictEqual(merchantIn(await signIn(other, "both@example.com", "the other password")), "Stranger")
    })

    it("asks for the merchant if one password is right for both, and only then", async () => {
      const [email, to] = ["same@example.com", "/test/payments"]
      const tab = await withPassword(email)
      await withPassword(email, PASSWORD, stranger)
      await withPassword(email, "another password", {
        ...server,
        ...(await Effect.runPromise(Effect.provideService(createMerchant("Third"), Accounts, server.accounts)))
      })
      const other = openTab(server)
      const page = await signIn(other, email, PASSWORD, { to })
      assert.strictEqual(page.status, 200)
      assert.strictEqual(other.cookie, "")
      const forms = formsIn(page)
      assert.deepStrictEqual(
        [...page.text.matchAll(/<button[^>]*><bdi>([^<]*)</g)].map(([, name]) => name),
        ["Lumen Coffee", "Stranger"]
      )
      const entered = await other.post(forms[1]!.action, forms[1]!.values)
      assert.strictEqual(merchantIn(entered), "Stranger")
      assert.strictEqual(new URL(entered.url).pathname, "/dashboard/test/payments")
      await vi.waitFor(async () => {
        const { text } = await other.get("/dashboard/test/account")
        assert.match(text, /Sign-ins, newest first[^]*?<td[^>]*>\s*<time[^]*?<td[^>]*>\s*password\b/)
      })
      assert.strictEqual((await openTab(server).post(forms[1]!.action, forms[1]!.values)).status, 410)
      // The other button is a link too, and expires like one.
      await setPassword(tab, email)
      assert.strictEqual((await openTab(server).post(forms[0]!.action, forms[0]!.values)).status, 410)
    })

    it("is not transferred, and reveals nothing about the other merchant", async () => {
      await withPassword("theirs@example.com", "the password of a stranger", stranger)
      const add = async (email: string) => {
        const { action, values } = formTo(await owner.get("/dashboard/test/team"), "/add")
        return await owner.post(action, { ...values, email, role: "support" })
      }
      const [known, unknown] = [await add("theirs@example.com"), await add("nobody@example.com")]
      const named = (page: Page) => plain(page).map((part) => String(part).replaceAll(/(?:theirs|nobody)@/g, "@"))
      assert.deepStrictEqual(named(known), named(unknown))
      assert.strictEqual(known.status, 200)
      // One merchant's owner learns nothing about the other merchant's person, with or without a password.
      for (const page of [known, unknown]) {
        const email = page === known ? "theirs@example.com" : "nobody@example.com"
        const tab = openTab(server)
        await tab.signIn(new RegExp(`${server.url}/dashboard/link/\\w{32}`).exec(page.text)![0])
        await setPassword(tab, email, "what an owner has made up")
      }
      const answers = async (email: string) => {
        const made: Array<unknown> = []
        for (const password of ["what an owner has made up", "wrong", "what an owner has made up"]) {
          const page = await signIn(openTab(server), email, password)
          made.push(...named(page), merchantIn(page))
        }
        return made
      }
      assert.deepStrictEqual(await answers("theirs@example.com"), await answers("nobody@example.com"))
      const found = await signIn(openTab(server), "theirs@example.com", "the password of a stranger")
      assert.strictEqual(merchantIn(found), "Stranger")
    })

    it("has the usual limit of guesses, also for a person with one of the passwords", async () => {
      await withPassword("guess@example.com", "the password of a stranger", stranger)
      await withPassword("guess@example.com", "what an owner has made up")
      for (let i = 0; i < PERSON_ATTEMPTS_MAX; i++) {
        const page = await signIn(openTab(server), "guess@example.com", "what an owner has made up")
        assert.strictEqual(merchantIn(page), "Lumen Coffee")
      }
      const page = await signIn(openTab(server), "guess@example.com", "what an owner has made up")
      assert.strictEqual(page.status, 429)
    })

    it("leaves nothing about wrong passwords in the journal", async () => {
      await withPassword("tried@example.com")
      const before = await server.journalOfAll()
      for (const email of ["tried@example.com", "untried@example.com", "x".repeat(400)]) {
        assert.strictEqual((await signIn(openTab(server), email, "wrong")).status, 401)
      }
      assert.strictEqual(await server.journalOfAll(), before)
    })
  })

  it("answers to this machine's own names only, without a public address", async () => {
    const { port } = new URL(server.url)
    const statusAs = (host: string | undefined, path: string) =>
      new Promise<readonly [number, number]>((resolve, reject) => {
        const headers = { cookie: owner.cookie, authorization: basic(server.secretTest), ...(host && { host }) }
        get({ host: "127.0.0.1", port, path, headers }, (response) => {
          response.resume()
          resolve([response.statusCode!, response.headers["set-cookie"]?.length ?? 0])
        }).on("error", reject)
      })
    for (const host of ["localhost", `localhost:${port}`, "127.0.0.1", "[::1]:8080", "till.localhost", "192.0.2.7"]) {
      assert.deepStrictEqual(await statusAs(host, "/dashboard/test"), [200, 0], host)
    }
    for (const host of [
      "evil.example",
      `evil.example:${port}`,
      "127.0.0.1.evil.example",
      "localhost.evil.example",
      "é"
    ]) {
      for (const path of ["/dashboard/test", "/dashboard/sign-in", "/dashboard/link/x", "/dashboard/test/live"]) {
        assert.deepStrictEqual(await statusAs(host, path), [403, 0], `${host} ${path}`)
      }
      // API requests are accepted under any host name.
      assert.deepStrictEqual(await statusAs(host, "/v1/customers"), [200, 0], host)
    }
  })

  it("ends a session with a sign-out, so a stolen cookie is useless", async () => {
    const tab = await signedIn(server)
    const stolen = openTab(server)
    stolen.cookie = tab.cookie
    const home = await tab.get("/dashboard/test")
    const developers = await stolen.get("/dashboard/test/developers")
    const { action, values } = formTo(home, "/sign-out")
    assert.strictEqual((await stolen.post(action, { token: "nonsense" })).status, 403)
    assert.include((await tab.post(action, values)).url, "/sign-in")
    assert.include((await stolen.get("/dashboard/test/payments")).url, "/sign-in")
    const form = formTo(developers, "/version")
    const left = await stolen.post(form.action, form.values)
    assert.strictEqual(left.status, 401)
    // Signing in again leads back to the form's page.
    const back = new URL(/href="([^"]*\/sign-in[^"]*)"/.exec(left.text)![1]!, left.url)
    assert.strictEqual(back.searchParams.get("to"), "/test/developers/version")
    const again = await signedIn(server)
    const page = await again.get(`/dashboard${back.searchParams.get("to")}`)
    assert.strictEqual(new URL(page.url).pathname, "/dashboard/test/developers")
    assert.strictEqual((await visit(`${server.url}/dashboard/test/live`, { cookie: stolen.cookie })).status, 401)
  })

  it("shows no session that a new password has ended", async () => {
    const [tab, other] = [await withPassword("shown@example.com"), openTab(server)]
    await signIn(other, "shown@example.com", PASSWORD)
    const member = `/dashboard/test/team/${await idOf("shown@example.com")}`
    const endsIn = async (tab: Tab, path: string) =>
      [...(await tab.get(path)).text.matchAll(/<form[^>]*action="[^"]*\/end"/g)].length
    assert.deepStrictEqual([await endsIn(tab, "/dashboard/test/account"), await endsIn(owner, member)], [1, 2])
    await setPassword(tab, "shown@example.com")
    assert.deepStrictEqual([await endsIn(tab, "/dashboard/test/account"), await endsIn(owner, member)], [0, 1])
    assert.include((await other.get("/dashboard/test")).url, "/sign-in")
  })

  it("ends a person's own sessions only", async () => {
    const [tab, other] = [await withPassword("two@example.com"), openTab(server)]
    await signIn(other, "two@example.com", PASSWORD)
    const stranger = await signedIn(server)
    const page = await tab.get("/dashboard/test/account")
    const { action, values } = formTo(page, "/end")
    assert.strictEqual((await stranger.post(action, values)).status, 403)
    assert.strictEqual((await other.get("/dashboard/test")).status, 200)
    assert.include((await tab.post(action, values)).text, "The session is signed out.")
    assert.include((await other.get("/dashboard/test")).url, "/sign-in")
  })

  it("is not cached, and runs no foreign scripts", async () => {
    const { id } = await payment()
    for (const path of [
      "/dashboard/test",
      `/dashboard/test/payments/${id}`,
      "/dashboard/test/nothing",
      "/dashboard/sign-in"
    ]) {
      const { headers } = await visit(server.url + path, { cookie: owner.cookie })
      assert.strictEqual(headers.get("cache-control"), "no-store")
      if (headers.has("location")) continue
      const policy = headers.get("content-security-policy")!
      assert.include(policy, "default-src 'self'")
      assert.notInclude(policy, "unsafe")
      assert.include(policy, "frame-ancestors 'none'")
    }
  })

  describe("an action", () => {
    // Some actions exist only with a mail server.
    let server: MemoryTillWithPages
    let owner: Tab
    let another: Tab
    let support: Tab
    beforeAll(async () => {
      server = await start({ mail: MAIL })
      owner = await signedIn(server)
      another = await signedIn(server, "owner")
      support = await signedIn(server, "support")
    })
    afterAll(() => server.close())

    describe.each(ACTIONS)("$name", ({ account, end, entered, name, page, support: may }) => {
      const accountId = () => (account === "installation" ? INSTALLATION : `${server.merchantId}:${account}`)
      const fill = async () => {
        const form = formTo(await owner.get(`/dashboard/test${await page(server)}`), end)
        return { action: form.action, values: { ...form.values, ...entered } }
      }
      const countOf = async () => (await audits(accountId(), server)).filter((action) => action === name).length

      it("runs once per form, and leaves an entry in the audit log", async () => {
        const before = await countOf()
        const { action, values } = await fill()
        const first = await owner.post(action, values)
        assert.strictEqual(first.status, 200)
        assert.include(first.text, 'class="said"')
        assert.strictEqual((await owner.post(action, values)).status, 200)
        assert.strictEqual(await countOf(), before + 1)
      })

      it("does not run without its token, with another token, from another site, or without a session", async () => {
        const before = await countOf()
        const { action, values } = await fill()
        const { token: _, ...without } = values
        const signOut = formTo(await owner.get("/dashboard/test"), "/sign-out").values["token"]!
        const refused = [
          await owner.post(action, without),
          await owner.post(action, { ...values, token: signOut }),
          await another.post(action, values),
          await owner.post(action, values, { origin: "https://evil.example", "sec-fetch-site": "cross-site" }),
          await owner.post(action, values, { origin: "null" }),
          await owner.post(action, values, { origin: "https://evil.example" }),
          await owner.post(action, values, { "sec-fetch-site": "same-site" }),
          await owner.post(action.replace("/test/", "/live/"), values),
          await owner.post(action, values, { "content-type": "application/json" })
        ]
        assert.deepStrictEqual([...new Set(refused.map(({ status }) => status))], [403])
        assert.strictEqual((await openTab(server).post(action, values)).status, 401)
        assert.strictEqual(await countOf(), before)
      })

      it(`is ${may ? "" : "not "}allowed for support`, async () => {
        const before = await countOf()
        const path = `/dashboard/test${await page(server)}`
        const shown = await support.get(path)
        if (may) {
          const form = formTo(shown, end)
          assert.strictEqual((await support.post(form.action, { ...form.values, ...entered })).status, 200)
        } else {
          assert.throws(() => formTo(shown, end))
          const form = formTo(await owner.get(path), end)
          assert.strictEqual((await support.post(form.action, { ...form.values, ...entered })).status, 403)
        }
        assert.strictEqual(await countOf(), before + (may ? 1 : 0))
      })
    })

    it("asks for the password before an invitation", async () => {
      const tab = await signedIn(server, "owner")
      await setPassword(tab, "asked-to-invite@example.com")
      const { end, entered, page } = ACTIONS.find(({ name }) => name === "person.invite")!
      const done = await askingOf(tab, server)(`/dashboard/test${await page(server)}`, end, entered)
      assert.include(done.text, "The invitation is on its way.")
    })
  })

  it("previews a price only with the right to add it, and only for its own form", async () => {
    const { id } = await server.post("/v1/products", { name: "Tea" })
    const form = formTo(await owner.get(`/dashboard/test/products/${id}/prices`), "/prices/create")
    const { action } = form
    const { token = "", ...fields } = form.values
    const without = { ...fields, unit_amount: "15", preview: "on" }
    const values = { ...without, token }
    const before = await server.journal()
    for (const [status, page] of [
      [200, await owner.post(action, values)],
      [403, await owner.post(action, without)],
      [403, await another.post(action, values)],
      [403, await support.post(action, values)],
      [403, await owner.post(action, values, { "sec-fetch-site": "same-site" })],
      [403, await owner.post(action, values, { origin: "https://evil.example" })],
      [403, await owner.post(action.replace("/test/", "/live/"), values)],
      [401, await openTab(server).post(action, values)]
    ] as const) {
      assert.strictEqual(page.status, status)
      assert.strictEqual(page.text.includes("This price is not added yet."), status === 200)
    }
    assert.strictEqual(await server.journal(), before)
  })

  it("shows and changes nothing of another merchant or environment", async () => {
    const { id } = await payment()
    const stranger = await Effect.runPromise(
      Effect.provideService(
        createMerchant("Stranger"),
        (await import("../../src/engine/Accounts.ts")).Accounts,
        server.accounts
      )
    )
    const tab = openTab(server)
    await tab.signIn(await linkFor({ ...server, merchantId: stranger.merchantId }))
    const own = await owner.get(`/dashboard/test/payments/${id}`)
    const { action, values } = formTo(own, "/refund")
    for (const path of [`/dashboard/test/payments/${id}`, `/dashboard/live/payments/${id}`]) {
      const page = await tab.get(path)
      assert.strictEqual(page.status, 404)
      assert.notInclude(page.text, "43.21")
    }
    assert.strictEqual((await owner.get(`/dashboard/live/payments/${id}`)).status, 404)
    assert.strictEqual((await tab.post(action, values)).status, 403)
    assert.strictEqual((await owner.get(`/dashboard/test/payments/${stranger.merchantId}`)).status, 404)
    assert.strictEqual((await server.get(`/v1/payment_intents/${id}`)).charges.data[0].amount_refunded, 0)
  })

  it("reports errors beside the field, with the API's status and words", async () => {
    const { id } = await payment()
    const { action, values } = formTo(await owner.get(`/dashboard/test/payments/${id}`), "/refund")
    const tooMuch = await owner.post(action, { ...values, amount: "43.22" })
    assert.strictEqual(tooMuch.status, 400)
    assert.match(tooMuch.text, /<p class="error" id="[^"]*-amount-error">/)
    assert.include(tooMuch.text, 'value="43.22"')
    const nonsense = await owner.post(action, { ...values, amount: "<script>" })
    assert.strictEqual(nonsense.status, 400)
    assert.include(nonsense.text, "&lt;script&gt;")
    // Messages use labels instead of parameter names.
    for (const [path, end, entered, said] of [
      ["/customers", "/create", { email: "x" }, "This must be a valid email address of at most 320 characters."],
      ["/products", "/create", { name: "" }, "This is required."]
    ] as const) {
      const made = formTo(await owner.get(`/dashboard/test${path}`), end)
      const refused = await owner.post(made.action, { ...made.values, ...entered })
      assert.deepStrictEqual(/class="error" id="[^"]*">([^<]*)</.exec(refused.text)?.[1], said)
    }
    const version = formTo(await owner.get("/dashboard/test/developers"), "/version")
    const wrong = await owner.post(version.action, { ...version.values, version: "1999-01-01" })
    assert.strictEqual(wrong.status, 400)
    assert.include(wrong.text, "Unknown version.")
  })

  it("shows the error of a form that a concurrent change has removed", async () => {
    const { id } = await payment()
    const tabs = [await signedIn(server, "owner"), await signedIn(server, "support")]
    const pages = await Promise.all(tabs.map((tab) => tab.get(`/dashboard/test/payments/${id}`)))
    const forms = pages.map((page) => formTo(page, "/refund"))
    assert.strictEqual((await tabs[0]!.post(forms[0]!.action, forms[0]!.values)).status, 200)
    const refused = await tabs[1]!.post(forms[1]!.action, forms[1]!.values)
    const { error } = await server.post("/v1/refunds", { payment_intent: id, amount: 4321 }, { status: refused.status })
    assert.deepStrictEqual(/<p class="message" role="alert">([^<]*)</.exec(refused.text)?.[1], error.message)
    // The message is shown once, beside the form while the page has it.
    const other = await payment()
    const tooMuch = formTo(await tabs[1]!.get(`/dashboard/test/payments/${other.id}`), "/refund")
    const beside = await tabs[1]!.post(tooMuch.action, { ...tooMuch.values, amount: "43.22" })
    assert.notInclude(beside.text, 'role="alert"')
  })

  it("moves no money for an amount that is zero, negative or invalid", async () => {
    const paid = await payment()
    const held: Answer = await server.post("/v1/payment_intents", {
      amount: 4321,
      currency: "usd",
      payment_method: "pm_card_visa",
      capture_method: "manual",
      confirm: true
    })
    for (const [id, end, field] of [
      [paid.id, "/refund", "amount"],
      [held.id, "/capture", "amount_to_capture"]
    ] as const) {
      const before = await server.get(`/v1/payment_intents/${id}`)
      const form = formTo(await owner.get(`/dashboard/test/payments/${id}`), end)
      for (const entered of ["0", "0.00", "-1", "-0", "0.001", "1e2", "0x10", "１.２.３", "∞", "43.22"]) {
        const refused = await owner.post(form.action, { ...form.values, [field]: entered })
        assert.strictEqual(refused.status, 400, `${end} of ${entered}`)
        assert.match(refused.text, new RegExp(`<p class="error" id="[^"]*-${field}-error">`))
      }
      assert.deepStrictEqual(await server.get(`/v1/payment_intents/${id}`), before)
    }
  })

  it("rejects weak passwords and emails in use", async () => {
    await withPassword("taken@example.com")
    const tab = await signedIn(server, "developer")
    const { action, values } = formTo(await tab.get("/dashboard/test/account"), "/credentials")
    const short = await tab.post(action, { ...values, email: "free@example.com", password: "short" })
    assert.strictEqual(short.status, 400)
    assert.include(short.text, "Use at least 12 characters")
    const taken = await tab.post(action, { ...values, email: "TAKEN@example.com", password: PASSWORD })
    assert.strictEqual(taken.status, 400)
    assert.include(taken.text, "an address that no other person in the team signs in with")
  })

  /** Simulates a last confirmation a while ago. */
  const forgetProof = async ({ accounts }: MemoryTillWithPages, { cookie }: Tab) => {
    const session = /dse_\w+/.exec(cookie)![0]
    const forget = Effect.gen(function* () {
      const transaction = yield* Transaction
      const { hidden, value } = (yield* transaction.get(DASHBOARD_SESSION, session))!
      transaction.put(DASHBOARD_SESSION, { ...value, confirmed_at: 0 }, hidden)
    })
    await Effect.runPromise(accounts.run(INSTALLATION, forget))
  }

  it("asks a person without a password for a new link, without a redirect loop", async () => {
    const tab = await signedIn(server, "owner")
    await forgetProof(server, tab)
    const { action, values } = formTo(await tab.get("/dashboard/test/account"), "/credentials")
    const entered = { ...values, email: "late@example.com", password: "correct horse battery" }
    const asked = (await tab.post(action, entered)).text.replaceAll(/\s+/g, " ")
    for (const text of [
      "<h1>Sign in with a new link first</h1>",
      "Get a new link from <code>till dashboard</code> or from an owner"
    ]) {
      assert.include(asked, text)
    }
    assert.include((await tab.get("/dashboard/test")).text.replaceAll(/\s+/g, " "), "</a> in the next 10 minutes")
  })

  it("asks for the old password before each change, unless somebody has just signed in with a link", async () => {
    const email = "changes@example.com"
    const byLink = await withPassword(email)
    const tab = openTab(server)
    const signIn = formTo(await tab.get("/dashboard/sign-in"), "/sign-in")
    await tab.post(signIn.action, { ...signIn.values, email, password: PASSWORD })
    const changed = "another long password"
    const { action, values } = formTo(await tab.get("/dashboard/test/account"), "/credentials")
    const change = (more: Readonly<Record<string, string>> = {}) =>
      tab.post(action, { ...values, email, password: changed, ...more })
    assert.include((await change()).text, "Enter your current password to continue.")
    assert.strictEqual((await change({ confirm_password: changed })).status, 403)
    assert.include((await change({ confirm_password: PASSWORD })).text, "Saved. Use this email and password")
    // The change has signed out the tab of the link.
    assert.include((await byLink.get("/dashboard/test/account")).url, "/sign-in")
    const person = { id: await idOf(email) }
    const forgetful = openTab(server)
    await forgetful.signIn(await linkTo(server, Effect.succeed(person)))
    await setPassword(forgetful, email, "a third long password")
  })

  /** Sends forms that have to ask for the password, with and without it. */
  const askingOf = (tab: Tab, of = server) => {
    const entriesOf = async () =>
      [...(await audits(INSTALLATION, of)), ...(await audits(`${of.merchantId}:test`, of))].length
    return async (path: string, end: string, entered: TriedAction["entered"]) => {
      await forgetProof(of, tab)
      const { action, values } = formTo(await tab.get(path), end)
      const before = await entriesOf()
      const asked = await tab.post(action, { ...values, ...entered })
      assert.include(asked.text, "Confirm it&#39;s you", path)
      assert.strictEqual(formTo(asked, "/sign-out").action, "/dashboard/sign-out")
      assert.strictEqual(await entriesOf(), before, path)
      const done = await tab.post(action, { ...values, ...entered, confirm_password: PASSWORD })
      assert.strictEqual(done.status, 200, path)
      assert.notInclude(done.text, "Confirm it&#39;s you", path)
      return done
    }
  }

  it("asks for the password before live keys, the team, credentials and a wipe, but not before test keys", async () => {
    const tab = await signedIn(server, "owner")
    await setPassword(tab, "asked@example.com")
    const asks = askingOf(tab)
    const keys = "/dashboard/live/developers/keys"
    const made = await asks(keys, "/create", { type: "secret" })
    const key = `${keys}/${/key_\w+/.exec(made.text)![0]}`
    await asks(key, "/roll", { expires_in: "300" })
    await asks(key, "/revoke", {})
    await asks("/dashboard/test/account", "/credentials", { email: "asked@example.com", password: PASSWORD })
    // Another person, who has ten more attempts.
    const next = await signedIn(server, "owner")
    await setPassword(next, "asked-next@example.com")
    const asksNext = askingOf(next)
    for (const { end, entered, name, page } of ACTIONS) {
      if (!/^person\.|^test_data/.test(name) || /^person\.(?:set_time_zone|invite)$/.test(name)) continue
      // An email belongs to one person.
      const own = "email" in entered ? { email: "asked-too@example.com" } : {}
      await asksNext(`/dashboard/test${await page(server)}`, end, { ...entered, ...own })
    }
    await forgetProof(server, tab)
    const { action, values } = formTo(await tab.get("/dashboard/test/developers/keys"), "/create")
    assert.notInclude((await tab.post(action, { ...values, type: "secret" })).text, "Confirm it&#39;s you")
  })

  it("asks for the password before each action on processors, and before a decision about an operation", async () => {
    const tab = await signedIn(server, "owner")
    await setPassword(tab, "asked-for-processors@example.com")
    const asks = askingOf(tab)
    const actions = ACTIONS.filter(({ name }) => /^processor\.|^operation\.decide/.test(name))
    assert.lengthOf(actions, 6)
    for (const { end, entered, page } of actions) await asks(`/dashboard/test${await page(server)}`, end, entered)
  })

  it("asks for the password before a large live refund, continues with it, and does not ask again", async () => {
    const live = await start({ merchantName: "Live", liveProcessor: "simulator" })
    const pay = () =>
      live.post(
        "/v1/payment_intents",
        {
          amount: 200_000,
          currency: "usd",
          confirm: true,
          payment_method_data: {
            type: "card",
            card: { number: "4242424242424242", exp_month: 12, exp_year: 2034, cvc: "123" }
          }
        },
        { key: live.secretLive }
      )
    const refunded = async (id: string) =>
      (await live.get(`/v1/payment_intents/${id}`, live.secretLive)).charges.data[0].amount_refunded
    const tab = await signedIn(live)
    await setPassword(tab, "live@example.com")
    await forgetProof(live, tab)
    const formFor = async (id: string) => formTo(await tab.get(`/dashboard/live/payments/${id}`), "/refund")

    const [small, large] = [await pay(), await pay()]
    const less = await formFor(small.id)
    assert.strictEqual((await tab.post(less.action, { ...less.values, amount: "1000" })).status, 200)
    assert.strictEqual(await refunded(small.id), 100_000)

    const { action, values } = await formFor(large.id)
    const asked = await tab.post(action, { ...values, amount: "" })
    assert.include(asked.text, "Confirm it&#39;s you")
    assert.strictEqual(await refunded(large.id), 0)
    const kept = { ...values, amount: "" }
    const wrong = await tab.post(action, { ...kept, confirm_password: "wrong" })
    assert.strictEqual(wrong.status, 403)
    assert.notInclude(wrong.text, "wrong&quot;")
    assert.strictEqual(await refunded(large.id), 0)
    const done = await tab.post(action, { ...kept, confirm_password: PASSWORD })
    assert.include(done.text, "Refund created.")
    assert.strictEqual(await refunded(large.id), 200_000)
    const another = await pay()
    const again = await formFor(another.id)
    assert.include((await tab.post(again.action, { ...again.values, amount: "" })).text, "Refund created.")
    await live.close()
  })
})

describe("an installation without a private connection", () => {
  it("refuses sign-in with the reason", async () => {
    const server = await start({ merchantName: "Open", refusal: "Till listens on 0.0.0.0" })
    const link = await linkFor(server)
    for (const path of [link, `${server.url}/dashboard/sign-in`]) {
      const { headers, status, text } = await visit(path)
      assert.deepStrictEqual([status, headers.getSetCookie()], [403, []])
      assert.include(text, "Till listens on 0.0.0.0")
    }
    await server.close()
  })
})
