/**
 * Invitations and forgotten passwords by mail (semantics mail.invitations, mail.password_resets, mail.secrets,
 * mail.off), with a real mail server.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ADDRESS_RESETS_MAX, PERSON_RESETS_MAX } from "../../../src/dashboard/team/ResetLimits.ts"
import { Accounts } from "../../../src/engine/Accounts.ts"
import type { AttemptOutcome } from "../../../src/engine/Deliveries.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import * as People from "../../../src/payments/team/People.ts"
import * as WebhookOutages from "../../../src/payments/webhooks/WebhookOutages.ts"
import { createMerchant } from "../../support/fixtures/Merchants.ts"
import { type Answer, type RunningMailServer, startMailServer } from "../../support/MailServer.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { clockOf } from "../../support/SettableClock.ts"
import { formTo, openTab, type Page, signedIn, type Tab } from "../People.ts"
import { textOf } from "../support.ts"

const PASSWORD = "correct horse battery"
const LINK = /http:\/\/127\.0\.0\.1:\d+\/dashboard\/link\/(\w{32})\?to=%2Ftest%2Faccount/

let mails: RunningMailServer
let server: MemoryTillWithPages
let owner: Tab
let later = 0
let answer: Answer = null

beforeAll(async () => {
  mails = await startMailServer({ onData: () => answer })
  // Requests are counted per quarter of an hour, so this file starts with a new one.
  const ago = Date.now() % (15 * 60_000)
  const clock = clockOf(() => Date.now() - ago + later)
  const from = { name: "Till", address: "till@pay.example" }
  server = await start({ mail: { server: mails.server, from }, clock })
  owner = await signedIn(server)
})
afterAll(async () => {
  await server.close()
  await mails.close()
})

const submit = async (tab: Tab, path: string, end: string, entered: Readonly<Record<string, string>> = {}) => {
  const { action, values } = formTo(await tab.get(path), end)
  return await tab.post(action, { ...values, ...entered })
}

/** The newest mail to an address, once so many have arrived. */
const mailTo = async (address: string, count = 1) => {
  for (let tries = 0; tries < 1000; tries++) {
    const found = mails.received.filter(({ to }) => to.includes(address))
    if (found.length >= count) return found.at(-1)!
    // After a step of the clock the scheduler sleeps for up to 30 seconds.
    for (const account of [INSTALLATION, `${server.merchantId}:live`]) {
      await Effect.runPromise(server.accounts.wake(account))
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`No mail to ${address} has arrived`)
}

/** All journals, once no mail is on its way: what an attempt records comes after the mail itself. */
const journalAtRest = async () => {
  for (let tries = 0; tries < 1000; tries++) {
    const journal = await server.journalOfAll()
    const statuses = new Map<string, string>()
    for (const [, id, rest] of journal.matchAll(/"kind":"mail","document":\{"id":"(\w+)"([^}]*)\}/g)) {
      statuses.set(id!, /"status":"(\w+)"/.exec(rest!)![1]!)
    }
    if (![...statuses.values()].includes("pending")) return journal
    await Effect.runPromise(server.accounts.wake(INSTALLATION))
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error("A mail is still on its way")
}

const linkIn = ({ text }: { readonly text: string }): string => LINK.exec(text)![0]

const invite = (email: string, role = "support") => submit(owner, "/dashboard/test/team", "/add", { email, role })

/** Invites a person, who accepts and sets a password. */
const withPassword = async (email: string, role = "support") => {
  await invite(email, role)
  const tab = openTab(server)
  await tab.signIn(linkIn(await mailTo(email)))
  const page = await submit(tab, "/dashboard/test/account", "/credentials", { email, password: PASSWORD })
  assert.strictEqual(page.status, 200)
  return tab
}

const forget = (email: string, tab = openTab(server)): Promise<Page> =>
  submit(tab, "/dashboard/forgot", "/forgot", { email })

describe("an invitation", () => {
  it("is mailed, and its link signs the person in where a password is set", async () => {
    const page = await invite("new@example.com", "developer")
    assert.include(page.url, "/team/per_")
    assert.include(textOf(page), "new@example.com")
    assert.notMatch(page.text, /\/dashboard\/link\//)
    const mail = await mailTo("new@example.com")
    assert.strictEqual(mail.headers.get("subject"), "You are invited to the dashboard of Lumen Coffee")
    assert.include(mail.text, "dashboard of Lumen Coffee, as developer.")
    assert.include(mail.text, "Accept within 7 days")
    const tab = openTab(server)
    const account = await tab.signIn(linkIn(mail))
    assert.strictEqual(new URL(account.url).pathname, "/dashboard/test/account")
    assert.include(textOf(account), "Set an email and password")
    assert.strictEqual((await openTab(server).get(linkIn(mail))).status, 410)
  })

  it("can be accepted within 7 days, and no later", async () => {
    await invite("slow@example.com")
    const link = linkIn(await mailTo("slow@example.com"))
    const day = 24 * 3600 * 1000
    later += 7 * day - 60_000
    assert.strictEqual((await openTab(server).get(link)).status, 200)
    later += 60_001
    assert.strictEqual((await openTab(server).get(link)).status, 410)
    owner = await signedIn(server)
  })

  it("can be sent again until the person has a password, and shows what became of it", async () => {
    const page = await invite("again@example.com")
    await mailTo("again@example.com")
    const { pathname } = new URL(page.url)
    assert.include(textOf(await submit(owner, pathname, "/invite")), "The invitation is on its way.")
    const tab = openTab(server)
    await tab.signIn(linkIn(await mailTo("again@example.com", 2)))
    assert.match(textOf(await owner.get(pathname)), /Invitations .*again@example\.com sent .*again@example\.com sent/)
    await submit(tab, "/dashboard/test/account", "/credentials", { email: "again@example.com", password: PASSWORD })
    assert.notInclude((await owner.get(pathname)).text, "/invite")
  })

  it("is not sent once its link no longer works, and says so", async () => {
    answer = 451
    const { pathname } = new URL((await invite("moved@example.com")).url)
    const shows = async (text: string) => {
      for (let tries = 0; tries < 500; tries++) {
        if (textOf(await owner.get(pathname)).includes(text)) return
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      assert.fail(`${pathname} does not show: ${text}`)
    }
    await shows("The mail server answered: 451")
    answer = null
    await submit(owner, pathname, "/role", { role: "developer" })
    later += 60_000
    await shows("moved@example.com failed Its object was deleted, or its link no longer works.")
    assert.lengthOf(
      mails.received.filter(({ to }) => to.includes("moved@example.com")),
      1
    )
  })

  it("is refused for an address that mail cannot be sent to", async () => {
    const page = await invite("a,b@example.com")
    assert.strictEqual(page.status, 400)
    assert.include(textOf(page), "Mail cannot be sent to this address.")
  })
})

describe("a forgotten password", () => {
  it("gets a link by mail, which signs in once, within an hour, where a new password is set", async () => {
    await withPassword("forgetful@example.com")
    assert.include((await openTab(server).get("/dashboard/sign-in")).text, "Forgot your password?")
    const page = await forget("FORGETFUL@example.com")
    assert.include(textOf(page), "If somebody signs in with this address, a mail with a link is on its way.")
    const mail = await mailTo("forgetful@example.com", 2)
    assert.strictEqual(mail.headers.get("subject"), "Sign in to Lumen Coffee and choose a new password")
    const tab = openTab(server)
    assert.strictEqual(new URL((await tab.signIn(linkIn(mail))).url).pathname, "/dashboard/test/account")
    const changed = { email: "forgetful@example.com", password: "another horse battery" }
    assert.strictEqual((await submit(tab, "/dashboard/test/account", "/credentials", changed)).status, 200)
    const signedInAgain = await submit(openTab(server), "/dashboard/sign-in", "/sign-in", changed)
    assert.strictEqual(new URL(signedInAgain.url).pathname, "/dashboard/test")

    await forget("forgetful@example.com")
    const late = linkIn(await mailTo("forgetful@example.com", 3))
    later += 3600_001
    assert.strictEqual((await openTab(server).get(late)).status, 410)
    owner = await signedIn(server)
  })

  it("is answered alike for everybody, and writes nothing for an address without a person", async () => {
    await withPassword("known@example.com")
    const before = await journalAtRest()
    const stranger = await forget("stranger@example.com")
    const nonsense = await forget(`${"x".repeat(400)}@example.com`)
    assert.strictEqual(await server.journalOfAll(), before)
    const known = await forget("known@example.com")
    await mailTo("known@example.com", 2)
    for (const page of [stranger, nonsense]) {
      assert.strictEqual(page.status, known.status)
      assert.strictEqual(page.text, known.text)
    }
    assert.deepStrictEqual(
      mails.received.filter(({ to }) => !to[0]!.endsWith("@example.com") || to[0] === "stranger@example.com"),
      []
    )
  })

  it("leads to one mail per merchant with that address, each to its own dashboard", async () => {
    await withPassword("two@example.com")
    const { merchantId } = await Effect.runPromise(
      Effect.provideService(createMerchant("Second Shop"), Accounts, server.accounts)
    )
    const second = { email: "two@example.com", role: "owner" } as const
    await Effect.runPromise(Effect.orDie(server.accounts.run(INSTALLATION, People.add(merchantId, second))))
    await forget("two@example.com")
    await mailTo("two@example.com", 3)
    const subjects = mails.received
      .filter(({ to }) => to.includes("two@example.com"))
      .map(({ headers }) => headers.get("subject")!)
    assert.deepStrictEqual(subjects.slice(1).toSorted(), [
      "Sign in to Lumen Coffee and choose a new password",
      "Sign in to Second Shop and choose a new password"
    ])
    // The owner of one merchant sees nothing of requests that may concern another.
    const member = /\bper_\w+/.exec(
      (await owner.get("/dashboard/test/team")).text.split("two@example.com")[0]!.split("<tr").at(-1)!
    )![0]
    assert.notInclude(textOf(await owner.get(`/dashboard/test/team/${member}`)), "choose a new password")
  })

  it("is limited per address and per person, whether the person exists or not", async () => {
    later += 15 * 60_000
    const statuses = async (emails: ReadonlyArray<string>) => {
      const all: Array<number> = []
      for (const email of emails) all.push((await forget(email)).status)
      return all
    }
    for (const email of ["nobody@example.com", "known@example.com"]) {
      const times = Array<string>(PERSON_RESETS_MAX + 1).fill(email)
      assert.deepStrictEqual(await statuses(times), [...Array<number>(PERSON_RESETS_MAX).fill(200), 429])
    }
    const rest = ADDRESS_RESETS_MAX - 2 * PERSON_RESETS_MAX
    const others = Array.from({ length: rest + 1 }, (_, i) => `other${i}@example.com`)
    assert.deepStrictEqual(await statuses(others), [...Array<number>(rest).fill(200), 429])
    // Signing in has its own counters.
    const known = { email: "known@example.com", password: PASSWORD }
    assert.strictEqual((await submit(openTab(server), "/dashboard/sign-in", "/sign-in", known)).status, 200)
    later += 15 * 60_000
    assert.strictEqual((await forget("nobody@example.com")).status, 200)
  })

  it("is refused to forms from elsewhere", async () => {
    const tab = openTab(server)
    const { action, values } = formTo(await tab.get("/dashboard/forgot"), "/forgot")
    const { token: _, ...without } = values
    const email = "known@example.com"
    const evil = { origin: "https://evil.example", "sec-fetch-site": "cross-site" }
    const before = await journalAtRest()
    for (const [sent, headers] of [
      [{ ...values, email }, evil],
      [{ ...without, email }, {}]
    ] as const) {
      assert.strictEqual((await tab.post(action, sent, headers)).status, 403)
    }
    assert.strictEqual(await server.journalOfAll(), before)
  })
})

describe("a live webhook endpoint that fails for an hour (semantics mail.webhook_alert)", () => {
  it("leads to one mail to each owner and developer who has signed up, and to no other", async () => {
    owner = await signedIn(server)
    for (const [email, role] of [
      ["boss@example.com", "owner"],
      ["dev@example.com", "developer"]
    ] as const) {
      await withPassword(email, role)
    }
    await withPassword("help@example.com", "support")
    await invite("pending@example.com", "developer")
    await mailTo("pending@example.com")
    const url = "https://shop.example/hooks?<b>"
    const endpoint = { url, enabled_events: ["*"] }
    const { id } = await server.post("/v1/webhook_endpoints", endpoint, { key: server.secretLive })
    const account = `${server.merchantId}:live`
    const attempt = (next: AttemptOutcome["next"]): AttemptOutcome => ({
      id: "whd_1",
      destination: id,
      attempt: 1,
      startedAt: 0,
      durationMillis: 1,
      status: next === "delivered" ? 200 : 500,
      error: null,
      next
    })
    const note = (next: AttemptOutcome["next"]) =>
      Effect.runPromise(server.accounts.run(account, WebhookOutages.note([attempt(next)])))
    const wake = () => Effect.runPromise(server.accounts.wake(account))
    await note({ retryAfterMillis: 60_000 })
    const page = `/dashboard/live/webhooks/${id}`
    assert.include(textOf(await owner.get(page)), "Failing since")
    later += 3600_000
    await wake()
    const mail = await mailTo("boss@example.com", 2)
    await mailTo("dev@example.com", 2)
    assert.strictEqual(mail.headers.get("subject"), "Webhooks of Lumen Coffee are failing")
    for (const part of [`Endpoint: ${url}`, `${server.url}${page}`, "has failed since 20"]) {
      assert.include(mail.text, part)
    }
    assert.notInclude(mail.html, "<b>")
    // The outage goes on, ends, and another begins.
    await note({ retryAfterMillis: 60_000 })
    later += 3600_000
    await wake()
    await note("delivered")
    assert.notInclude(textOf(await owner.get(page)), "Failing since")
    const counts = () =>
      ["boss", "dev", "help", "pending"].map(
        (name) => mails.received.filter(({ to }) => to[0] === `${name}@example.com`).length
      )
    assert.deepStrictEqual(counts(), [2, 2, 1, 1])
    await note({ retryAfterMillis: 60_000 })
    later += 3600_000
    await wake()
    await mailTo("boss@example.com", 3)
    await mailTo("dev@example.com", 3)
    assert.deepStrictEqual(counts(), [3, 3, 1, 1])
    owner = await signedIn(server)
  })
})

describe("the secret of a mailed link", () => {
  it("is in no record, page or file", async () => {
    const secrets = mails.received.flatMap(({ text }) => LINK.exec(text)?.[1] ?? [])
    assert.isAbove(secrets.length, 5)
    const journal = await server.journalOfAll()
    const team = (await owner.get("/dashboard/test/team")).text
    for (const secret of secrets) for (const text of [journal, team]) assert.notInclude(text, secret)
  })
})

describe("without a mail server", () => {
  it("a person gets a link to hand out, and nobody is offered a mail", async () => {
    const without = await start()
    const tab = await signedIn(without)
    const added = await submit(tab, "/dashboard/test/team", "/add", { email: "new@example.com", role: "support" })
    assert.match(added.text, /\/dashboard\/link\/\w{32}/)
    assert.notInclude((await openTab(without).get("/dashboard/sign-in")).text, "Forgot")
    assert.include((await openTab(without).get("/dashboard/forgot")).url, "/sign-in")
    assert.include((await tab.get("/dashboard/test/developers/mail")).text, "TILL_SMTP_URL")
    const payment = { amount: 100, currency: "usd", payment_method: "pm_card_visa", confirm: true }
    const { id } = await without.post("/v1/payment_intents", payment)
    assert.notInclude((await tab.get(`/dashboard/test/payments/${id}`)).text, "/receipt")
    assert.notInclude(await without.journalOfAll(), '"mail"')
    await without.close()
  })
})
