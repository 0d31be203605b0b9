/** The page of a payment link for a browser without scripts, and the link's sessions (semantics payment_links.*). */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { PAGE_LANGUAGES } from "../../../src/domain/CheckoutSession.ts"
import { escape } from "../../../src/html/Html.ts"
import { CATALOGUES } from "../../../src/html/Translation.ts"
import { FORMS_MAX } from "../../../src/pages/checkout/PaymentLink.ts"
import { type Answer, type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import {
  answerChallenge,
  CARDS,
  filledIn,
  formIn,
  openSession,
  pay,
  send,
  visit
} from "../../support/fixtures/CheckoutPages.ts"
import { clockOf } from "../../support/SettableClock.ts"
import { follow, makeLink, open } from "../../support/fixtures/PaymentLinks.ts"

let server: MemoryTillWithPages
beforeAll(async () => {
  server = await start()
})
afterAll(() => server.close())

/** A time at which no window ends. */
const NOW = Date.now()

const NOT_CHARGED = "You have not been charged."
const retrieve = (id: string): Promise<Answer> => server.get(`/v1/payment_links/${id}`)
const update = (id: string, body: object) => server.post(`/v1/payment_links/${id}`, body)
const sessionsOf = async (id: string): Promise<ReadonlyArray<Answer>> =>
  (await server.get(`/v1/checkout_sessions?payment_link=${id}&limit=100`)).data
const chargesOf = async ({ payment_intent }: Answer): Promise<ReadonlyArray<Answer>> =>
  (await server.get(`/v1/charges?payment_intent=${payment_intent}`)).data

describe("the page of a payment link", () => {
  it("pages.payment_link, payment_links.url: shows what is sold, at a short address", async () => {
    const link = await makeLink(server)
    assert.match(link.url, /\/pay\/[0-9A-Za-z]{24}$/)
    const { headers, status, text } = await visit(link.url)
    assert.strictEqual(status, 200)
    for (const part of ["Lumen Coffee", "House Espresso", "Dark roast", "$12.00", "Test mode", "Continue to payment"]) {
      assert.include(text, part)
    }
    assert.match(text, /<details class="order" open="">/)
    assert.notInclude(text, "card_number")
    assert.notInclude(text, 'name="quantity_0"')
    assert.strictEqual(headers.get("cache-control"), "no-store")
    assert.strictEqual(headers.get("x-frame-options"), "DENY")
    const appended = await visit(`${link.url}?utm_source=poster`)
    assert.deepStrictEqual([appended.status, appended.headers.get("location")], [303, link.url])
  })

  it.each(["000000000000000000000000", "x", "plink_1", "cs_%2F..%2F", "'%22<script>", "a/b", ""])(
    "payment_links.url, pages.not_found: is not found at /pay/%s",
    async (token) => {
      const { status, text } = await visit(`${server.url}/pay/${token}`)
      assert.strictEqual(status, 404)
      assert.include(text, "Page not found")
    }
  )

  it.each(PAGE_LANGUAGES)("pages.payment_link: is in the browser's language: %s", async (language) => {
    const link = await makeLink(server, {}, { line: { adjustable_quantity: { enabled: true } } })
    const headers = { "accept-language": language }
    const shown = await visit(link.url, headers)
    for (const key of ["link.quantity", "link.continue", "link.next"] as const) {
      assert.include(shown.text, escape(CATALOGUES[language][key]))
    }
    await update(link.id, { active: false })
    const inactive = await visit(link.url, headers)
    assert.include(inactive.text, escape(CATALOGUES[language]["inactive.title"]))
    assert.include(inactive.text, escape(CATALOGUES[language]["failure.not_charged"]))
  })

  it("payment_links.visit, dashboard.browser: makes a session by its button only, once per form", async () => {
    const link = await makeLink(server)
    const before = await server.journal()
    const { text } = await visit(link.url)
    await fetch(link.url, { method: "HEAD" })
    assert.strictEqual(await server.journal(), before)
    const form = formIn(text)
    const [first, second] = [await send(link.url, form), await send(link.url, form)]
    assert.deepStrictEqual([first.status, second.status], [303, 303])
    assert.strictEqual(second.headers.get("location"), first.headers.get("location"))
    assert.lengthOf(await sessionsOf(link.id), 1)
    const foreign = await send(link.url, form, { "sec-fetch-site": "cross-site" })
    assert.strictEqual(foreign.status, 403)
    for (const token of ["", "x", formIn((await visit((await makeLink(server)).url)).text)["token"]!]) {
      const wrong = await send(link.url, { token })
      assert.strictEqual(wrong.status, 400)
      assert.include(wrong.text, "Please check your order and continue again.")
    }
    assert.strictEqual((await fetch(link.url, { method: "POST", body: "{}" })).status, 400)
    assert.lengthOf(await sessionsOf(link.id), 1)
  })

  it("payment_links.sessions: makes a session with the link's terms, whose events name the link", async () => {
    const link = await makeLink(server, {
      after_completion: { type: "redirect", redirect: { url: `${server.url}/healthz?s={CHECKOUT_SESSION_ID}` } },
      customer_creation: "always",
      phone_number_collection: { enabled: true },
      payment_intent_data: { description: "Coffee", statement_descriptor: "COFFEE", metadata: { a: "b" } },
      metadata: { shop: "1" }
    })
    const session = await open(server, link)
    assert.deepInclude(session, {
      payment_link: link.id,
      ui_mode: "hosted",
      status: "open",
      amount_total: 1200,
      success_url: `${server.url}/healthz?s={CHECKOUT_SESSION_ID}`,
      cancel_url: link.url,
      customer_creation: "always",
      phone_number_collection: { enabled: true },
      metadata: { shop: "1" },
      expires_at: session.created + 86_400
    })
    const paid = await pay(session, { ...filledIn(), phone: "+351 1" })
    assert.strictEqual(paid.headers.get("location"), `${server.url}/healthz?s=${session.id}`)
    assert.deepInclude(await server.get(`/v1/payment_intents/${session.payment_intent}`), {
      description: "Coffee",
      statement_descriptor: "COFFEE",
      metadata: { a: "b" }
    })
    const [completed] = (await server.get("/v1/events?type=checkout.session.completed&limit=1")).data
    assert.deepInclude(completed.data.object, { id: session.id, payment_link: link.id })
    const plain = await openSession(server)
    assert.notProperty(await server.get(`/v1/checkout_sessions/${plain.id}`), "payment_link")
  })

  it("payment_links.after_completion: confirms on the session's own page unless it redirects", async () => {
    const session = await open(server, await makeLink(server))
    assert.isNull(session.success_url)
    const paid = await pay(session)
    assert.strictEqual(paid.headers.get("location"), session.url)
    const confirmed = await visit(session.url)
    assert.include(confirmed.text, "This order is paid")
    assert.notInclude(confirmed.text, "Go back to")
  })

  it("payment_links.quantity, pages.payment_link: takes the payer's quantity within its bounds", async () => {
    const line = { quantity: 2, adjustable_quantity: { enabled: true, minimum: 2, maximum: 5 } }
    const link = await makeLink(server, {}, { line })
    const { text } = await visit(link.url)
    assert.match(text, /name="quantity_0"[^>]*\svalue="2"/)
    assert.include(text, "From 2 to 5.")
    assert.strictEqual((await open(server, link, { quantity_0: "5" })).amount_total, 6000)
    assert.strictEqual((await open(server, link)).amount_total, 2400)
    for (const quantity_0 of ["1", "6", "0", "-2", "3.5", "1e1", "many", "", "9999999"]) {
      const { status, text } = await follow(link, { quantity_0 })
      assert.strictEqual(status, 400, quantity_0)
      assert.include(text, "Enter a whole number from 2 to 5.")
      assert.match(text, new RegExp(`value="${quantity_0.replace(".", "\\.")}"`))
    }
    const form = formIn(text)
    await send(link.url, { ...form, quantity_0: "3" })
    const changed = await send(link.url, { ...form, quantity_0: "4" })
    assert.strictEqual(changed.status, 409)
    // A field that the link does not have changes nothing.
    const fixed = await makeLink(server)
    assert.strictEqual((await open(server, fixed, { quantity_0: "9" })).amount_total, 1200)
  })

  it("pages.payment_link: refuses a quantity whose total is above the cap", async () => {
    const line = { adjustable_quantity: { enabled: true } }
    const link = await makeLink(server, {}, { line, unit_amount: 999_999_999_999 })
    const { status, text } = await follow(link, { quantity_0: "2" })
    assert.strictEqual(status, 400)
    assert.include(text, "Choose a smaller quantity.")
  })

  it("payment_links.line_items: leads to a session whose payer chooses the amount", async () => {
    const product = await server.post("/v1/products", { name: "Tip" })
    const terms = { product: product.id, currency: "usd", custom_unit_amount: { enabled: true } }
    const price = await server.post("/v1/prices", terms)
    const link = await server.post("/v1/payment_links", { line_items: [{ price: price.id }] })
    assert.include((await visit(link.url)).text, "Your amount")
    const session = await open(server, link)
    assert.strictEqual((await pay(session, { ...filledIn(), amount: "7.50" })).status, 303)
    assert.strictEqual((await server.get(`/v1/checkout_sessions/${session.id}`)).amount_total, 750)
  })

  it("pages.payment_link: sells nothing that is archived", async () => {
    const product = await server.post("/v1/products", { name: "Tea" })
    const price = await server.post("/v1/prices", { product: product.id, currency: "usd", unit_amount: 100 })
    const link = await server.post("/v1/payment_links", { line_items: [{ price: price.id }] })
    const form = formIn((await visit(link.url)).text)
    for (const path of [`/v1/prices/${price.id}`, `/v1/products/${product.id}`]) {
      await server.post(path, { active: false })
      for (const { status, text } of [await visit(link.url), await send(link.url, form)]) {
        assert.strictEqual(status, 410)
        assert.include(text, NOT_CHARGED)
      }
      await server.post(path, { active: true })
      assert.strictEqual((await visit(link.url)).status, 200)
    }
    assert.deepStrictEqual(await sessionsOf(link.id), [])
  })

  it("pages.payment_link: says that the shop cannot take cards, and has no form", async () => {
    const key = server.secretLive
    const link = await makeLink(server, {}, { key })
    const { status, text } = await visit(link.url)
    assert.strictEqual(status, 200)
    assert.include(text, "This shop cannot take cards yet")
    assert.notInclude(text, "<form")
    assert.notInclude(text, "Test mode")
    assert.strictEqual((await send(link.url, { token: "x" })).status, 400)
  })
})

describe("a payment link that takes no more payments", () => {
  it("payment_links.late: says so in the merchant's words or in Till's, and takes none until it is active", async () => {
    const link = await makeLink(server)
    const form = formIn((await visit(link.url)).text)
    await update(link.id, { active: false })
    for (const { status, text } of [await visit(link.url), await send(link.url, form)]) {
      assert.strictEqual(status, 410)
      assert.include(text, "This payment link is not active")
      assert.include(text, NOT_CHARGED)
      assert.include(text, "To buy from Lumen Coffee, get in touch with the shop.")
    }
    await update(link.id, { inactive_message: "Sold out <b>until</b> May" })
    assert.include((await visit(link.url)).text, "Sold out &lt;b&gt;until&lt;/b&gt; May")
    assert.deepStrictEqual(await sessionsOf(link.id), [])
    await update(link.id, { active: true })
    assert.strictEqual((await visit(link.url)).status, 200)
  })

  it("payment_links.late, payment_links.states: refuses open sessions before any charge", async () => {
    const link = await makeLink(server)
    const session = await open(server, link)
    await update(link.id, { active: false })
    const confirmation = { payment_method: "pm_card_visa", customer_details: { email: "a@b.co" } }
    const { error } = await server.post(`/v1/checkout_sessions/${session.id}/confirm`, confirmation, { status: 400 })
    assert.deepInclude(error, {
      code: "payment_link_inactive",
      param: "id",
      message: `The payment link '${link.id}' takes no more payments: it is not active, or its limit is reached.`
    })
    const path = `/v1/payment_intents/${session.payment_intent}/confirm`
    const payment = await server.post(path, { payment_method: "pm_card_visa" }, { status: 400 })
    assert.strictEqual(payment.error.code, "payment_link_inactive")
    const shown = await visit(session.url)
    assert.strictEqual(shown.status, 410)
    assert.include(shown.text, "This payment link is not active")
    const posted = await send(session.url, { token: "x", ...filledIn() })
    assert.strictEqual(posted.status, 410)
    assert.deepStrictEqual(await chargesOf(session), [])
    assert.strictEqual((await server.get(`/v1/checkout_sessions/${session.id}`)).status, "open")
    await update(link.id, { active: true })
    assert.strictEqual((await pay(session)).status, 303)
    assert.strictEqual((await server.get(`/v1/checkout_sessions/${session.id}`)).status, "complete")
  })

  it("payment_links.late: refuses a form that was open before, and an authentication that passes too late", async () => {
    const link = await makeLink(server)
    const [open1, challenged] = [await open(server, link), await open(server, link)]
    const token = formIn((await visit(open1.url)).text)
    const challenge = await pay(challenged, filledIn(CARDS.challenged))
    await update(link.id, { active: false })
    const late = await send(open1.url, { ...token, ...filledIn() })
    assert.strictEqual(late.status, 410)
    assert.include(late.text, NOT_CHARGED)
    const answered = await answerChallenge(challenge.headers.get("location")!, "success")
    assert.strictEqual(answered.status, 303)
    assert.include(answered.headers.get("location")!, "redirect_status=failed")
    const back = await visit(answered.headers.get("location")!)
    assert.strictEqual(back.status, 410)
    assert.include(back.text, NOT_CHARGED)
    assert.deepStrictEqual(await chargesOf(challenged), [])
    const payment = await server.get(`/v1/payment_intents/${challenged.payment_intent}`)
    assert.strictEqual(payment.status, "requires_payment_method")
    assert.deepInclude(payment.last_payment_error, {
      code: "payment_intent_authentication_failure",
      message: "The payment link takes no more payments."
    })
  })

  it("payment_links.limit, payment_links.late: takes exactly as many payments as allowed, from payers at once", async () => {
    const link = await makeLink(server, { restrictions: { completed_sessions: { limit: 3 } } })
    const sessions = await Promise.all(Array.from({ length: 10 }, () => open(server, link)))
    const answers = await Promise.all(sessions.map((session) => pay(session)))
    const statuses = answers.map(({ status }) => status).toSorted()
    assert.deepStrictEqual(statuses, [303, 303, 303, ...Array.from({ length: 7 }, () => 410)])
    const restrictions = { completed_sessions: { count: 3, limit: 3 } }
    assert.deepInclude(await retrieve(link.id), { restrictions, active: true })
    const all = await sessionsOf(link.id)
    const complete = all.filter(({ status }) => status === "complete")
    assert.lengthOf(complete, 3)
    for (const session of all) {
      assert.lengthOf(await chargesOf(session), complete.includes(session) ? 1 : 0)
    }
    assert.strictEqual((await visit(link.url)).status, 410)
    // A higher limit takes two more.
    await update(link.id, { restrictions: { completed_sessions: { limit: 5 } } })
    const more = await Promise.all(all.filter(({ status }) => status === "open").map((session) => pay(session)))
    assert.lengthOf(
      more.filter(({ status }) => status === 303),
      2
    )
    assert.strictEqual((await retrieve(link.id)).restrictions.completed_sessions.count, 5)
  })

  it("payment_links.limit: counts completed sessions for good, also before there is a limit", async () => {
    const link = await makeLink(server)
    const session = await open(server, link)
    await pay(session, filledIn(CARDS.declined))
    await pay(session)
    await server.post("/v1/refunds", { payment_intent: session.payment_intent })
    const free = await makeLink(server, {}, { unit_amount: 0 })
    const nothing = await open(server, free)
    await send(nothing.url, { ...formIn((await visit(nothing.url)).text), email: "a@b.co" })
    for (const { id } of [link, free]) {
      const { restrictions } = await update(id, { restrictions: { completed_sessions: { limit: 1 } } })
      assert.deepStrictEqual(restrictions, { completed_sessions: { count: 1, limit: 1 } })
    }
    assert.strictEqual((await visit(link.url)).status, 410)
  })

  it("payment_links.late: lets a complete session keep its place, through a failed settlement", async () => {
    const link = await makeLink(server, { restrictions: { completed_sessions: { limit: 1 } } })
    const session = await open(server, link)
    await pay(session, filledIn(CARDS.processingThenDeclined))
    assert.strictEqual((await retrieve(link.id)).restrictions.completed_sessions.count, 1)
    await server.post("/v1/test_helpers/clock/advance", { seconds: 3 })
    const path = `/v1/payment_intents/${session.payment_intent}/confirm`
    await server.post(path, { payment_method: "pm_card_visa" })
    const { payment_status, status } = await server.get(`/v1/checkout_sessions/${session.id}`)
    assert.deepStrictEqual([status, payment_status], ["complete", "paid"])
    assert.strictEqual((await retrieve(link.id)).restrictions.completed_sessions.count, 1)
  })
})

describe("strangers", () => {
  it("payment_links.visit.rate: write no more than some sessions from one address", async () => {
    const crowded = await start({ clock: clockOf(() => NOW) })
    try {
      const link = await makeLink(crowded)
      const forms = await Promise.all(Array.from({ length: FORMS_MAX + 2 }, () => visit(link.url)))
      const answers = await Promise.all(forms.map(({ text }) => send(link.url, formIn(text))))
      const refused = answers.filter(({ status }) => status === 429)
      assert.lengthOf(
        answers.filter(({ status }) => status === 303),
        FORMS_MAX
      )
      assert.lengthOf(refused, 2)
      for (const { headers, text } of refused) {
        assert.include(text, "Too many checkouts were opened from your network.")
        assert.include(text, NOT_CHARGED)
        assert.isAtLeast(Number(headers.get("retry-after")), 1)
        assert.isAtMost(Number(headers.get("retry-after")), 900)
      }
      assert.strictEqual((await visit(link.url)).status, 200)
    } finally {
      await crowded.close()
    }
  })
})
