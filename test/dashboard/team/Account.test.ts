/**
 * A person's sessions and time zone on the dashboard (semantics dashboard.sessions, dashboard.time_zone), and the way
 * back to the page where a session ended (semantics dashboard.return).
 */
import { assert, describe, it, vi } from "@effect/vitest"
import { returnPathOf } from "../../../src/dashboard/frame/Links.ts"
import { start } from "../../support/MemoryTillWithPages.ts"
import { clockOf } from "../../support/SettableClock.ts"
import { cellsIn } from "../Csv.ts"
import { formsIn, formTo, linkFor, openTab, type Page, signedIn, type Tab } from "../People.ts"
import { textOf } from "../support.ts"

const PASSWORD = "correct horse battery"
const ACCOUNT = "/dashboard/test/account"
const MINUTE = 60_000

const submit = async (tab: Tab, path: string, end: string, entered: Readonly<Record<string, string>> = {}) => {
  const { action, values } = formTo(await tab.get(path), end)
  return await tab.post(action, { ...values, ...entered })
}

/** The rows of a file by the names of its columns. */
const recordsIn = (file: string): ReadonlyArray<Readonly<Record<string, string>>> => {
  const [names = [], ...rows] = cellsIn(file.replace("\ufeff", ""))
  return rows.map((row) => Object.fromEntries(names.map((name, i) => [name, row[i]!])))
}

describe("the way back after a sign-in", () => {
  it.each([
    ["/test", "/test"],
    ["/live/webhooks/we_1/whd_2", "/live/webhooks/we_1/whd_2"],
    ["/test/payments?status=succeeded&query=amount%3E5", "/test/payments?status=succeeded&query=amount%3E5"],
    ["/test/payments?query=%22%3Cb%3E%22%0d%0aset-cookie", "/test/payments?query=%22%3Cb%3E%22%0D%0Aset-cookie"],
    ["/test/payments?done=refund.create&status=x", "/test/payments?status=x"],
    ["/test/payments?done=refund.create", "/test/payments"],
    ["/test/payments.csv?status=x", "/test/payments?status=x"],
    [`/test/payments?query=${"x".repeat(2000)}`, "/test/payments"],
    ["/test/payments?to=//evil.example#x", "/test/payments?to=%2F%2Fevil.example%23x"],
    ["", ""],
    ["?a=b", ""],
    ["/sign-in?to=x", ""],
    ["//evil.example", ""],
    ["https://evil.example/test", ""],
    ["/test/../../x", ""],
    ["/test//evil.example", ""],
    ["/test\\evil.example", ""],
    ["/test\n/x", ""],
    ["/test?", "/test"],
    ["javascript:alert(1)", ""]
  ])("number %# is a page of the dashboard, or none", (asked, path) => {
    assert.strictEqual(returnPathOf(asked), path)
  })

  it("leads to the page with its filters, also after a mistake and for a file", async () => {
    const server = await start()
    const tab = await signedIn(server)
    await submit(tab, ACCOUNT, "/credentials", { email: "back@example.com", password: PASSWORD })
    const back = async (path: string) => {
      tab.cookie = ""
      const asked = await tab.get(path)
      const form = formTo(asked, "/sign-in")
      const entered = { ...form.values, email: "back@example.com" }
      const wrong = formTo(await tab.post(form.action, { ...entered, password: "wrong" }), "/sign-in")
      const page = await tab.post(wrong.action, { ...wrong.values, email: "back@example.com", password: PASSWORD })
      const { pathname, search } = new URL(page.url)
      return pathname + search
    }
    const filtered = "/dashboard/live/payments?status=succeeded&metadata=a%3Ab"
    assert.strictEqual(await back(filtered), filtered)
    assert.strictEqual(await back("/dashboard/test/payments.csv?currency=usd"), "/dashboard/test/payments?currency=usd")
    assert.strictEqual(await back("/dashboard/nothing?x=y"), "/dashboard/test")
    await server.close()
  })
})

describe("sessions", () => {
  const sessionsIn = ({ text }: Page) =>
    [
      ...text
        .split("Active sessions, newest first")[2]!
        .split("</table>")[0]!
        .matchAll(/<tr role="row">([\s\S]*?)<\/tr>/g)
    ]
      .slice(1)
      .map(([, row]) => textOf({ text: `<main${row!}` }))

  it("show browser, address, sign-in and last use, noted every ten minutes at most", async () => {
    let now = Date.UTC(2026, 10, 27, 12)
    const server = await start({ clock: clockOf(() => now) })
    const tab = await signedIn(server)
    await submit(tab, ACCOUNT, "/credentials", { email: "used@example.com", password: PASSWORD })
    const other = openTab(server)
    const { action, values } = formTo(await other.get("/dashboard/sign-in"), "/sign-in")
    const agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    const entered = { ...values, email: "used@example.com", password: PASSWORD }
    await other.post(action, entered, { "user-agent": agent })
    const listed = async () => sessionsIn(await tab.get(ACCOUNT))
    assert.match(
      (await listed())[0]!,
      /^Firefox on Linux \S+ 2026-11-27 12:00:00 2026-11-27 12:00:00 2026-11-28 00:00:00 Sign out/
    )
    assert.match((await listed())[1]!, / now 2026-11-27 12:00:00 2026-11-28 00:00:00 this session$/)
    // Ten minutes later a page is opened; one that loads itself again does not count.
    now += 10 * MINUTE
    const before = await server.journalOfAll()
    await other.get("/dashboard/test", { "sec-fetch-dest": "empty" })
    await other.get("/dashboard/test/live-not", { "sec-fetch-dest": "empty" })
    assert.strictEqual(await server.journalOfAll(), before)
    await other.get("/dashboard/test")
    await vi.waitFor(async () => assert.match((await listed())[0]!, / 2026-11-27 12:10:00 2026-11-27 12:00:00 /))
    // The tab that looks is noted too; then nothing is written for ten minutes.
    await vi.waitFor(async () =>
      assert.strictEqual((await server.journalOfAll()).match(/"last_used":\{"at":1795781400/g)?.length, 2)
    )
    now += 9 * MINUTE
    const noted = await server.journalOfAll()
    for (let i = 0; i < 5; i++) await other.get("/dashboard/test/payments")
    await new Promise((resolve) => setTimeout(resolve, 50))
    assert.strictEqual(await server.journalOfAll(), noted)
    await server.close()
  })

  it("are signed out one by one, or all others at once", async () => {
    const server = await start()
    const tab = await signedIn(server)
    await submit(tab, ACCOUNT, "/credentials", { email: "many@example.com", password: PASSWORD })
    const others: Array<Tab> = []
    for (let i = 0; i < 4; i++) {
      const other = openTab(server)
      const { action, values } = formTo(await other.get("/dashboard/sign-in"), "/sign-in")
      await other.post(action, { ...values, email: "many@example.com", password: PASSWORD })
      others.push(other)
    }
    const stranger = await signedIn(server, "owner")
    const open = async () =>
      (await Promise.all(others.map((other) => other.get("/dashboard/test")))).filter(
        ({ url }) => !url.includes("sign-in")
      ).length
    const one = await submit(tab, ACCOUNT, "/end")
    assert.include(one.text, "The session is signed out.")
    assert.strictEqual(await open(), 3)
    const { action, values } = formTo(await tab.get(ACCOUNT), "/end-others")
    assert.strictEqual((await stranger.post(action, values)).status, 403)
    assert.strictEqual(await open(), 3)
    assert.include((await tab.post(action, values)).text, "All other sessions are signed out.")
    assert.strictEqual(await open(), 0)
    assert.strictEqual((await stranger.get("/dashboard/test")).status, 200)
    const alone = await tab.get(ACCOUNT)
    assert.strictEqual(sessionsIn(alone).length, 1)
    assert.isFalse(formsIn(alone).some(({ action }) => action.endsWith("/end-others")))
    const log = textOf(await tab.get("/dashboard/test/team/audit?action=dashboard_session.end_others"))
    assert.include(log, "many@example.com")
    await server.close()
  })
})

describe("a person's time zone", () => {
  it("is that of times, charts, filters and files, on days of 25 hours too", async () => {
    let now = Date.parse("2026-10-23T22:30:00Z")
    const server = await start({ clock: clockOf(() => now) })
    // In Lisbon clocks are set back on 2026-10-25, at 01:00 UTC.
    const payments = [
      ["2026-10-23T22:30:00Z", 100, "2026-10-23 23:30:00"],
      ["2026-10-23T23:30:00Z", 200, "2026-10-24 00:30:00"],
      ["2026-10-24T23:30:00Z", 400, "2026-10-25 00:30:00"],
      ["2026-10-25T00:30:00Z", 800, "2026-10-25 01:30:00"],
      ["2026-10-25T23:30:00Z", 1600, "2026-10-25 23:30:00"],
      ["2026-10-26T00:30:00Z", 3200, "2026-10-26 00:30:00"]
    ] as const
    for (const [at, amount] of payments) {
      now = Date.parse(at)
      await server.post("/v1/payment_intents", {
        amount,
        currency: "usd",
        payment_method: "pm_card_visa",
        confirm: true
      })
    }
    const tab = await signedIn(server)
    const volumes = async () => {
      const { text } = await tab.get("/dashboard/test?range=7d")
      const [, table = ""] = /Volume per day[\s\S]*?<tbody>([\s\S]*?)<\/tbody>/.exec(text)!
      return [...table.matchAll(/<td>([^<]*)<\/td>\s*<td class="end">([^<]*)</g)].map(
        ([, day, amount]) => `${day} ${amount}`
      )
    }
    const found = async (query: string) => {
      const file = await tab.get(`/dashboard/test/payments.csv?${query}`)
      return recordsIn(file.text).map((row) => Number(row["Amount"]) * 100)
    }
    assert.deepStrictEqual((await volumes()).slice(-4), [
      "2026-10-23 3.00 USD",
      "2026-10-24 4.00 USD",
      "2026-10-25 24.00 USD",
      "2026-10-26 32.00 USD"
    ])
    assert.deepStrictEqual(await found("from=2026-10-25&until=2026-10-25"), [1600, 800])

    const saved = await submit(tab, ACCOUNT, "/time-zone", { time_zone: "Europe/Lisbon" })
    assert.include(saved.text, "Time zone saved.")
    assert.match(saved.text, /<option value="Europe\/Lisbon" selected="">/)
    assert.deepStrictEqual((await volumes()).slice(-4), [
      "2026-10-23 1.00 USD",
      "2026-10-24 2.00 USD",
      "2026-10-25 28.00 USD",
      "2026-10-26 32.00 USD"
    ])
    assert.deepStrictEqual(await found("from=2026-10-25&until=2026-10-25"), [1600, 800, 400])
    assert.deepStrictEqual(await found("from=2026-10-26"), [3200])
    assert.deepStrictEqual(await found("until=2026-10-23"), [100])
    const list = await tab.get("/dashboard/test/payments")
    for (const text of ["From (Europe/Lisbon)", "Until (Europe/Lisbon)"]) assert.include(textOf(list), text)
    assert.match(textOf(list), /Times are in Europe\/Lisbon/)
    assert.include(list.text, 'data-zone="Europe/Lisbon"')
    const file = recordsIn((await tab.get("/dashboard/test/payments.csv")).text)
    for (const [i, [at, , local]] of payments.toReversed().entries()) {
      assert.include(list.text, `>${local}</time>`)
      assert.include(list.text, `datetime="${at.replace("Z", ".000Z")}"`)
      assert.strictEqual(file[i]!["Created (Europe/Lisbon)"], local)
    }
    // It is one person's own.
    const colleague = await signedIn(server, "support")
    assert.include((await colleague.get("/dashboard/test/payments")).text, ">2026-10-25 00:30:00</time>")
    assert.include(textOf(await colleague.get("/dashboard/test/payments")), "From (UTC)")
    const log = textOf(await tab.get("/dashboard/test/team/audit?action=person.set_time_zone"))
    assert.include(log, "Europe/Lisbon")
    await server.close()
  })

  it("may be half an hour off, and then says when its days begin", async () => {
    let now = Date.parse("2026-11-26T18:45:00Z")
    const server = await start({ clock: clockOf(() => now) })
    const pay = () =>
      server.post("/v1/payment_intents", {
        amount: 100,
        currency: "usd",
        payment_method: "pm_card_visa",
        confirm: true
      })
    // 00:15 and 00:45 on 2026-11-27 in Kolkata.
    await pay()
    now = Date.parse("2026-11-26T19:15:00Z")
    await pay()
    const tab = await signedIn(server)
    await submit(tab, ACCOUNT, "/time-zone", { time_zone: "Asia/Kolkata" })
    const home = textOf(await tab.get("/dashboard/test?range=7d"))
    assert.include(home, "Days begin at 00:30: Till counts in whole hours of UTC.")
    assert.match(home, /2026-11-26 1\.00 USD 2026-11-27 1\.00 USD/)
    const found = await tab.get("/dashboard/test/payments.csv?from=2026-11-27")
    assert.strictEqual(recordsIn(found.text).length, 2)
    await server.close()
  })

  it("is one that exists, and can be removed again", async () => {
    const server = await start()
    const tab = openTab(server)
    await tab.signIn(await linkFor(server, "support"))
    for (const time_zone of ["Mars/Olympus", "toString", "europe/lisbon", "+02:00"]) {
      const refused = await submit(tab, ACCOUNT, "/time-zone", { time_zone })
      assert.strictEqual(refused.status, 400, time_zone)
      assert.include(refused.text, "Choose a time zone.")
    }
    const zoned = async (time_zone: string) => {
      await submit(tab, ACCOUNT, "/time-zone", { time_zone })
      return /data-zone="([^"]*)"/.exec((await tab.get(ACCOUNT)).text)?.[1]
    }
    assert.strictEqual(await zoned("Asia/Tokyo"), "Asia/Tokyo")
    // UTC that was chosen is no default: the script leaves it.
    assert.strictEqual(await zoned("UTC"), "UTC")
    assert.isUndefined(await zoned(""))
    await server.close()
  })
})
