/** Two-step verification on the dashboard, without a script (semantics dashboard.two_step). */
import { afterAll, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import { PERSON_ATTEMPTS_MAX } from "../../../src/dashboard/frame/SignInLimits.ts"
import * as Totp from "../../../src/domain/Totp.ts"
import { Accounts } from "../../../src/engine/Accounts.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import { administer } from "../../../src/payments/administration/Administration.ts"
import * as People from "../../../src/payments/team/People.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { createMerchant } from "../../support/fixtures/Merchants.ts"
import { clockOf } from "../../support/SettableClock.ts"
import { formsIn, formTo, linkFor, linkTo, openTab, type Page, signedIn, type Tab } from "../People.ts"
import { textOf } from "../support.ts"

const PASSWORD = "correct horse battery"
const ACCOUNT = "/dashboard/test/account"
const TWO_STEP = `${ACCOUNT}/two-step`
const RECOVERY = /\b(?:[a-z2-7]{4}-){3}[a-z2-7]{4}\b/g

/** Decodes base32, as an app does with an entered key. */
const bytesOf = (key: string): Uint8Array => {
  const bits = [...key.replaceAll(/\s/g, "")]
    .map((digit) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(digit).toString(2).padStart(5, "0"))
    .join("")
  return Uint8Array.from(bits.match(/.{8}/g)!, (byte) => Number.parseInt(byte, 2))
}

const keyIn = ({ text }: Page): string => /Key: <code class="copy">([A-Z2-7 ]+)</.exec(text)![1]!

describe("two-step verification", () => {
  let server: MemoryTillWithPages
  let owner: Tab
  let now = Date.now()
  const wait = (seconds: number) => void (now += seconds * 1000)
  beforeAll(async () => {
    server = await start({ clock: clockOf(() => now) })
    await signedIn(server)
    owner = await signedIn(server, "owner")
  })
  afterAll(() => server.close())

  const codeOf = (secret: Uint8Array, steps = 0) => Totp.codeOf(secret, Totp.stepAt(now / 1000) + steps)

  const submit = async (tab: Tab, path: string, end: string, entered: Readonly<Record<string, string>> = {}) => {
    const { action, values } = formTo(await tab.get(path), end)
    return await tab.post(action, { ...values, ...entered })
  }
  const withPassword = async (email: string, of: MemoryTillWithPages = server) => {
    const tab = await signedIn(of, "support")
    assert.include((await submit(tab, ACCOUNT, "/credentials", { email, password: PASSWORD })).text, "Saved.")
    return tab
  }
  /** Sets a new person's password and turns the second step on. Its first code is used up. */
  const withTwoStep = async (email: string, of: MemoryTillWithPages = server) => {
    const tab = await withPassword(email, of)
    const page = await tab.get(TWO_STEP)
    const secret = bytesOf(keyIn(page))
    const form = formTo(page, "/two-step/on")
    const made = await tab.post(form.action, { ...form.values, code: codeOf(secret) })
    wait(30)
    return { tab, secret, recovery: made.text.match(RECOVERY)! }
  }
  const enterPassword = async (tab: Tab, email: string, more: Readonly<Record<string, string>> = {}) =>
    await submit(tab, "/dashboard/sign-in", "/sign-in", { email, password: PASSWORD, ...more })
  /** Enters a code on the page that asks for it. */
  const enterCode = async (tab: Tab, asked: Page, code: string) => {
    const form = formsIn(asked).find(({ action }) => action.startsWith("/dashboard/link/"))!
    return await tab.post(form.action, { ...form.values, code })
  }
  const isIn = (page: Page) => page.status === 200 && new URL(page.url).pathname.startsWith("/dashboard/test")
  const audited = async (action: string) =>
    (await owner.get(`/dashboard/test/team/audit?action=${action}`)).text.match(/<code class="whole">/g)?.length ?? 0

  it("is set up with the first code of the app, and shows ten recovery codes once", async () => {
    const byLink = await signedIn(server, "support")
    assert.include(textOf(await byLink.get(TWO_STEP)), "Set an email and password first.")

    const email = "setup@example.com"
    const tab = await withPassword(email)
    const other = openTab(server)
    assert.isTrue(isIn(await enterPassword(other, email)))
    const before = await server.journalOfAll()
    const [page, later] = [await tab.get(TWO_STEP), await tab.get(TWO_STEP)]
    assert.notStrictEqual(keyIn(page), keyIn(later))
    assert.strictEqual(await server.journalOfAll(), before)
    assert.match(page.text, /<svg[^>]*aria-label="QR code for your app"/)
    const { action, values } = formTo(page, "/two-step/on")
    const secret = bytesOf(keyIn(page))
    assert.notInclude(JSON.stringify(values), Buffer.from(secret).toString("hex"))
    for (const code of ["", "000", codeOf(secret, 2), codeOf(bytesOf(keyIn(later)))]) {
      const wrong = await tab.post(action, { ...values, code })
      assert.strictEqual(wrong.status, 400, code)
      assert.include(wrong.text, "This must be the six digits that your app shows now.")
      assert.strictEqual(keyIn(wrong), keyIn(page))
    }
    // The form of another person's page has another secret.
    const foreign = await withPassword("foreign@example.com")
    const theirs = formTo(await foreign.get(TWO_STEP), "/two-step/on").values["secret"]!
    assert.strictEqual((await tab.post(action, { ...values, secret: theirs, code: codeOf(secret) })).status, 400)
    assert.isTrue(isIn(await other.get("/dashboard/test")))

    const sent = { ...values, code: codeOf(secret) }
    const made = await tab.post(action, sent)
    assert.strictEqual(made.status, 200)
    assert.strictEqual(new Set(made.text.match(RECOVERY)).size, 10)
    const again = await tab.post(action, sent)
    assert.notMatch(again.text, RECOVERY)
    assert.include(again.text, "already shown")
    assert.include(textOf(await tab.get(ACCOUNT)), "On. 10 of 10 recovery codes left.")
    assert.notMatch((await tab.get(TWO_STEP)).text, RECOVERY)
    assert.include((await other.get("/dashboard/test")).url, "/sign-in")
    assert.strictEqual(await audited("person.turn_on_two_step"), 1)
    // A second set-up needs the first to be turned off.
    const code = codeOf(bytesOf(keyIn(later)))
    const second = await tab.post(action, { ...formTo(later, "/two-step/on").values, code })
    assert.strictEqual(second.status, 400)
    const journal = await server.journalOfAll()
    for (const code of made.text.match(RECOVERY)!) assert.notInclude(journal, code)
    assert.notInclude(journal, Buffer.from(secret).toString("hex"))
  })

  it("asks for a code after the password, and leads back to the page with its filters", async () => {
    const email = "asked@example.com"
    const { secret } = await withTwoStep(email)
    const tab = openTab(server)
    const to = "/test/payments?status=succeeded&currency=usd"
    const asked = await enterPassword(tab, email, { to })
    assert.deepStrictEqual([asked.status, tab.cookie], [200, ""])
    assert.include(textOf(asked), "Enter a code")
    assert.match(asked.text, /<input[^>]*name="code"[^>]*autocomplete="one-time-code"/)
    const before = await server.journalOfAll()
    for (const code of ["000000x", codeOf(secret, 3), codeOf(secret, -3)]) {
      const wrong = await enterCode(tab, asked, code)
      assert.deepStrictEqual([wrong.status, tab.cookie], [403, ""])
      assert.include(textOf(wrong), "This code is wrong.")
    }
    assert.strictEqual(textOf(await enterCode(tab, asked, "")), textOf(asked))
    assert.strictEqual(await server.journalOfAll(), before)
    const home = await enterCode(tab, asked, codeOf(secret))
    assert.strictEqual(new URL(home.url).pathname + new URL(home.url).search, `/dashboard${to}`)
    assert.include(textOf(await tab.get(ACCOUNT)), "password, app")
    // The page that asked has no further use.
    assert.strictEqual((await enterCode(openTab(server), asked, codeOf(secret, 1))).status, 410)
  })

  it("accepts each code once, and those of the step before and after", async () => {
    const email = "once@example.com"
    const { secret } = await withTwoStep(email)
    wait(60)
    const enter = async (code: string) => {
      const tab = openTab(server)
      return await enterCode(tab, await enterPassword(tab, email), code)
    }
    assert.isTrue(isIn(await enter(codeOf(secret, -1))))
    const replayed = await enter(codeOf(secret, -1))
    assert.strictEqual(replayed.status, 403)
    assert.include(textOf(replayed), "This code was already used. Wait for the next one.")
    // Two simultaneous sign-ins with one code.
    const tabs = [openTab(server), openTab(server)]
    const asked = [await enterPassword(tabs[0]!, email), await enterPassword(tabs[1]!, email)]
    const pages = await Promise.all(tabs.map((tab, i) => enterCode(tab, asked[i]!, codeOf(secret))))
    assert.deepStrictEqual(pages.map(({ status }) => status).toSorted(), [200, 403])
    assert.isTrue(isIn(await enter(codeOf(secret, 1))))
    assert.strictEqual((await enter(codeOf(secret, 1))).status, 403)
  })

  it("accepts each recovery code once, however it is written", async () => {
    const email = "lost@example.com"
    const { recovery } = await withTwoStep(email)
    const enter = async (code: string) => {
      const tab = openTab(server)
      return { tab, page: await enterCode(tab, await enterPassword(tab, email), code) }
    }
    const { page, tab } = await enter(recovery[3]!)
    assert.isTrue(isIn(page))
    assert.include(textOf(await tab.get(ACCOUNT)), "9 of 10 recovery codes left")
    assert.include(textOf(await tab.get(ACCOUNT)), "password, recovery code")
    assert.strictEqual((await enter(recovery[3]!)).page.status, 403)
    assert.isTrue(isIn((await enter(` ${recovery[4]!.toUpperCase().replaceAll("-", " ")} `)).page))
    assert.strictEqual((await enter(recovery[5]!.slice(1))).page.status, 403)
  })

  it("limits attempts like those of passwords", async () => {
    const email = "guessed@example.com"
    const { recovery, secret } = await withTwoStep(email)
    const other = await withTwoStep("bystander@example.com")
    const tab = openTab(server)
    const asked = await enterPassword(tab, email)
    for (let i = 0; i < PERSON_ATTEMPTS_MAX; i++) {
      assert.strictEqual((await enterCode(tab, asked, "12345x")).status, 403)
    }
    for (const code of [codeOf(secret), recovery[0]!]) {
      const blocked = await enterCode(tab, asked, code)
      assert.strictEqual(blocked.status, 429)
      assert.include(textOf(blocked), "Too many attempts. Try again in 15 minutes.")
    }
    const bystander = openTab(server)
    const page = await enterPassword(bystander, "bystander@example.com")
    assert.isTrue(isIn(await enterCode(bystander, page, codeOf(other.secret))))
    wait(15 * 60)
    const later = await enterPassword(tab, email)
    assert.isTrue(isIn(await enterCode(tab, later, recovery[0]!)))
  })

  it("asks on the page of a link too, which stays until a right code", async () => {
    const email = "linked@example.com"
    const { secret } = await withTwoStep(email)
    const link = await linkTo(server, Effect.succeed(await personOf(email)))
    const tab = openTab(server)
    const page = await tab.get(link)
    assert.include(page.text, 'name="code"')
    assert.strictEqual((await enterCode(tab, page, "12345x")).status, 403)
    assert.strictEqual((await openTab(server).get(link)).status, 200)
    assert.isTrue(isIn(await enterCode(tab, page, codeOf(secret))))
    assert.strictEqual((await openTab(server).get(link)).status, 410)
    assert.notInclude((await openTab(server).get(await linkFor(server, "support"))).text, 'name="code"')
  })

  /** The person with an email, from the team page. */
  const personOf = async (email: string) => {
    const { text } = await owner.get("/dashboard/test/team")
    return { id: /\bper_\w+/.exec(text.split(email)[0]!.split("<tr").at(-1)!)![0] }
  }

  it("asks for the merchant first, if the password is right for several", async () => {
    const email = "both@example.com"
    const keys = await Effect.runPromise(Effect.provideService(createMerchant("Stranger"), Accounts, server.accounts))
    const { secret } = await withTwoStep(email)
    await withPassword(email, { ...server, ...keys })
    const tab = openTab(server)
    const [with2, without] = formsIn(await enterPassword(tab, email))
    const asked = await tab.post(with2!.action, with2!.values)
    assert.strictEqual(tab.cookie, "")
    assert.isTrue(isIn(await enterCode(tab, asked, codeOf(secret))))
    const other = openTab(server)
    assert.isTrue(isIn(await other.post(without!.action, without!.values)))
  })

  it("is asked for beside the password, and each time before new recovery codes and turning off", async () => {
    const email = "again@example.com"
    const { recovery, secret, tab } = await withTwoStep(email)
    const actionOf = async (end: string) => {
      const { action, values } = formTo(await tab.get(TWO_STEP), end)
      return (more: Readonly<Record<string, string>> = {}) => tab.post(action, { ...values, ...more })
    }
    const send = await actionOf("/recovery-codes")
    const asked = await send()
    assert.include(textOf(asked), "Enter your current password and a code to continue.")
    const sendWith = (password: string, code: string) => send({ confirm_password: password, confirm_code: code })
    assert.include(textOf(await sendWith("wrong password", codeOf(secret))), "Wrong password.")
    for (const code of ["", "12345x"]) {
      const wrong = await sendWith(PASSWORD, code)
      assert.strictEqual(wrong.status, 403)
      assert.include(textOf(wrong), "This code is wrong.")
      assert.notInclude(wrong.text, PASSWORD)
    }
    const made = await sendWith(PASSWORD, codeOf(secret))
    const renewed = made.text.match(RECOVERY)!
    assert.strictEqual(renewed.length, 10)
    // The code of the first form is used up, and so are the old recovery codes.
    const off = await actionOf("/two-step/off")
    const offWith = (code: string) => off({ confirm_password: PASSWORD, confirm_code: code })
    assert.include(textOf(await off()), "and a code")
    assert.include(textOf(await offWith(codeOf(secret))), "This code was already used.")
    assert.strictEqual((await offWith(recovery[0]!)).status, 403)
    assert.include(textOf(await offWith(renewed[0]!)), "Two-step verification is off.")
    assert.isTrue(isIn(await enterPassword(openTab(server), email)))
    for (const action of ["person.renew_recovery_codes", "person.turn_off_two_step"]) {
      assert.strictEqual(await audited(action), 1)
    }
  })

  it("is turned off for another person by an owner, for oneself only with a code", async () => {
    const email = "reset@example.com"
    await withTwoStep(email)
    // Changes of the team take a recent sign-in.
    const fresh = await signedIn(server)
    const { id } = await personOf(email)
    const page = `/dashboard/test/team/${id}`
    assert.match(textOf(await fresh.get(page)), /Two-step verification on/)
    assert.include(textOf(await submit(fresh, page, "/two-step")), "Two-step verification is off for this person.")
    assert.match(textOf(await fresh.get(page)), /Two-step verification off/)
    assert.isTrue(isIn(await enterPassword(openTab(server), email)))
    assert.strictEqual(await audited("person.reset_two_step"), 1)
    // The owner's own.
    await submit(fresh, ACCOUNT, "/credentials", { email: "owner@example.com", password: PASSWORD })
    const setUp = await fresh.get(TWO_STEP)
    const secret = bytesOf(keyIn(setUp))
    await submitted(fresh, setUp, codeOf(secret))
    const self = await personOf("owner@example.com")
    const own = await fresh.get(`/dashboard/test/team/${self.id}`)
    assert.throws(() => formTo(own, "/two-step"))
    const { action, values } = formTo(own, "/link")
    assert.strictEqual((await fresh.post(action.replace("/link", "/two-step"), values)).status, 403)
  })

  const submitted = async (tab: Tab, page: Page, code: string) => {
    const { action, values } = formTo(page, "/two-step/on")
    const made = await tab.post(action, { ...values, code })
    assert.match(made.text, RECOVERY)
  }

  it("is turned off for the first owner by the operator, with a link and an entry of the audit log", async () => {
    const keys = await Effect.runPromise(Effect.provideService(createMerchant("Alone"), Accounts, server.accounts))
    const tab = openTab(server)
    await tab.signIn(await linkFor({ ...server, ...keys }))
    await submit(tab, ACCOUNT, "/credentials", { email: "alone@example.com", password: PASSWORD })
    const page = await tab.get(TWO_STEP)
    await submitted(tab, page, codeOf(bytesOf(keyIn(page))))
    const ask = (turnOffTwoStep: boolean) =>
      Effect.runPromise(
        Effect.provideService(
          Effect.result(administer({ _tag: "LinkToDashboard", merchant: keys.merchantId, turnOffTwoStep })),
          Accounts,
          server.accounts
        )
      )
    const linked = async (turnOffTwoStep: boolean) => {
      const answered = await ask(turnOffTwoStep)
      assert.strictEqual(answered._tag, "Success")
      return await openTab(server).get(server.url + (answered as { success: { link: string } }).success.link)
    }
    assert.include((await linked(false)).text, 'name="code"')
    const open = await linked(true)
    assert.notInclude(open.text, 'name="code"')
    assert.include(textOf(await tab.get(ACCOUNT)), "Off. Your password alone signs you in.")
    const log = textOf(await tab.get("/dashboard/test/team/audit?action=person.reset_two_step"))
    assert.include(log, "with till dashboard")
    const again = await ask(true)
    assert.strictEqual(again._tag, "Failure")
  })

  it("leaves with its person", async () => {
    const email = "gone@example.com"
    await withTwoStep(email)
    const { id } = await personOf(email)
    const kept = () => Effect.runPromise(server.accounts.read(INSTALLATION, `second_factor:${id}`))
    assert.isFalse((await kept())!.deleted)
    await Effect.runPromise(Effect.orDie(server.accounts.run(INSTALLATION, People.remove(server.merchantId, id))))
    await vi.waitFor(async () => assert.isTrue((await kept())!.deleted))
  })
})
