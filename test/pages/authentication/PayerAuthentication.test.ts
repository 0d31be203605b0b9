/**
 * The authentication page (semantics payment_intents.manual_confirmation, payment_intents.authentication,
 * pages.not_found), and a payer's way through it.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type Answer, type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import {
  answerChallenge,
  CARDS,
  filledIn,
  formIn,
  linksIn,
  openSession,
  pay,
  send,
  tokenIn,
  visit
} from "../../support/fixtures/CheckoutPages.ts"

let server: MemoryTillWithPages
beforeAll(async () => {
  server = await start()
})
afterAll(() => server.close())

const challenged = (parameters: Readonly<Record<string, unknown>> = {}): Promise<Answer> =>
  server.post("/v1/payment_intents", {
    amount: 2000,
    currency: "eur",
    confirm: true,
    payment_method: "pm_card_3ds_required",
    return_url: "https://shop.example/back?order=1",
    ...parameters
  })

const addressOf = (paymentIntent: Answer): string => paymentIntent.next_action.redirect_to_url.url

describe("the authentication page", () => {
  it("shows merchant and amount, and is neither cached nor framed", async () => {
    const { headers, status, text } = await visit(addressOf(await challenged()))
    assert.strictEqual(status, 200)
    for (const part of ["Lumen Coffee", "€20.00", "Complete authentication", "Fail authentication"]) {
      assert.include(text, part)
    }
    assert.strictEqual(headers.get("cache-control"), "no-store")
    assert.strictEqual(headers.get("x-frame-options"), "DENY")
    assert.include(headers.get("content-security-policy")!, "form-action 'self' https:;")
  })

  // Semantics payment_intents.authentication.
  it("redirects back with the outcome, and the payment is made", async () => {
    const paymentIntent = await challenged()
    const { headers, status } = await answerChallenge(addressOf(paymentIntent), "success")
    assert.strictEqual(status, 303)
    const url = new URL(headers.get("location")!)
    assert.strictEqual(url.origin + url.pathname, "https://shop.example/back")
    assert.deepStrictEqual(Object.fromEntries(url.searchParams), {
      order: "1",
      payment_intent: paymentIntent.id,
      payment_intent_client_secret: paymentIntent.client_secret,
      redirect_status: "succeeded"
    })
    assert.strictEqual((await server.get(`/v1/payment_intents/${paymentIntent.id}`)).status, "succeeded")
  })

  // Semantics payment_intents.authentication, pages.redirects.
  it("keeps a signed return_url byte for byte, and fills in a session's id", async () => {
    const return_url =
      "https://shop.example/r?next=/orders/7&token=exp=16~acl=/live/*&q=a%20b&flag#{CHECKOUT_SESSION_ID}"
    const paymentIntent = await challenged({ return_url })
    const { client_secret, id } = paymentIntent
    const outcome = `&payment_intent=${id}&payment_intent_client_secret=${client_secret}&redirect_status=succeeded`
    const { headers } = await answerChallenge(addressOf(paymentIntent), "success")
    assert.strictEqual(headers.get("location"), return_url.replace("#", `${outcome}#`))

    const session = await openSession(server, { ui_mode: "custom", success_url: null, cancel_url: null })
    const confirmed = await server.post(`/v1/checkout_sessions/${session.id}/confirm`, {
      payment_method: "pm_card_3ds_required",
      customer_details: { email: "ana@example.com" },
      return_url
    })
    const ofSession = await server.get(`/v1/payment_intents/${confirmed.payment_intent}`)
    const back = await answerChallenge(addressOf(ofSession), "failure")
    assert.match(back.headers.get("location")!, new RegExp(`&flag&payment_intent=.*=failed#${session.id}$`))
  })

  it.each([
    ["a payer who fails", "pm_card_3ds_required", "failure", "payment_intent_authentication_failure"],
    [
      "a card that is declined afterwards (semantics payment_intents.authentication)",
      "pm_card_authenticationRequiredChargeDeclinedInsufficientFunds",
      "success",
      "card_declined"
    ]
  ])("leads %s back with redirect_status=failed", async (_, payment_method, outcome, code) => {
    const paymentIntent = await challenged({ payment_method })
    const { headers, status } = await answerChallenge(addressOf(paymentIntent), outcome)
    assert.strictEqual(status, 303)
    assert.strictEqual(new URL(headers.get("location")!).searchParams.get("redirect_status"), "failed")
    const after = await server.get(`/v1/payment_intents/${paymentIntent.id}`)
    assert.strictEqual(after.status, "requires_payment_method")
    assert.strictEqual(after.last_payment_error.code, code)
  })

  // Semantics payment_methods.usable.
  it("redirects back with redirect_status=failed if the card was detached in between", async () => {
    const { id: customer } = await server.post("/v1/customers", {})
    const { id: payment_method } = await server.post("/v1/payment_methods/pm_card_3ds_required/attach", { customer })
    const paymentIntent = await challenged({ customer, payment_method })
    await server.post(`/v1/payment_methods/${payment_method}/detach`, {})
    const { headers, status } = await answerChallenge(addressOf(paymentIntent), "success")
    assert.strictEqual(status, 303)
    assert.strictEqual(new URL(headers.get("location")!).searchParams.get("redirect_status"), "failed")
    const after = await server.get(`/v1/payment_intents/${paymentIntent.id}`)
    assert.deepInclude(after, { status: "requires_payment_method", latest_charge: null })
  })

  it("takes a form once, and answers repeated submissions the same", async () => {
    const paymentIntent = await challenged()
    const { text } = await visit(addressOf(paymentIntent))
    const url = `${server.url}/authenticate/${paymentIntent.id}`
    const form = { ...formIn(text), outcome: "success" }
    const answers = await Promise.all([send(url, form), send(url, form), send(url, form)])
    for (const { headers, status } of answers) {
      assert.strictEqual(status, 303)
      assert.include(headers.get("location")!, "redirect_status=succeeded")
    }
    // The other button of the same form comes too late.
    const other = await send(url, { ...form, outcome: "failure" })
    assert.strictEqual(other.status, 200)
    assert.include(other.text, "Your payment went through")
    const { charges } = await server.get(`/v1/payment_intents/${paymentIntent.id}`)
    assert.strictEqual(charges.data.length, 1)
  })

  it.each([
    ["amount", { amount: 999_900 }, "€9,999.00"],
    ["currency", { currency: "usd" }, "$20.00"],
    ["payment method", { payment_method: "pm_card_authenticationRequired" }, "€20.00"]
  ])("takes an answer for the shown terms only, and asks again after another %s", async (_, changes, shown) => {
    const before = await challenged()
    const { id } = before
    const url = addressOf(before)
    const shownBefore = await visit(url)
    const form = { ...formIn(shownBefore.text), outcome: "success" }
    await server.post(`/v1/payment_intents/${id}`, changes)
    const again = await server.post(`/v1/payment_intents/${id}/confirm`, { return_url: "https://shop.example/back" })
    assert.strictEqual(again.status, "requires_action")
    for (let i = 0; i < 2; i++) {
      const { status, text } = await send(url.split("?")[0]!, form)
      assert.strictEqual(status, 200)
      assert.include(text, `<strong>${shown}</strong>`)
    }
    const script = await send(url.split("?")[0]!, form, { accept: "application/json" })
    assert.deepStrictEqual(JSON.parse(script.text), { reload: true })
    assert.strictEqual((await server.get(`/v1/payment_intents/${id}`)).status, "requires_action")
    assert.strictEqual((await answerChallenge(url, "success")).status, 303)
    assert.strictEqual((await server.get(`/v1/payment_intents/${id}`)).status, "succeeded")
  })

  it("shows the result itself without a return_url (semantics payment_intents.return_url)", async () => {
    const [good, bad] = [await challenged({ return_url: null }), await challenged({ return_url: null })]
    assert.include((await answerChallenge(addressOf(good), "success")).text, "Your payment went through")
    const failed = (await answerChallenge(addressOf(bad), "failure")).text
    assert.include(failed, "Your bank could not confirm that it was you.")
    assert.deepStrictEqual(linksIn(failed), [])
  })

  // Semantics payment_intents.manual_confirmation.
  it("leaves the confirmation to the server where the server wants that", async () => {
    const paymentIntent = await challenged({ confirmation_method: "manual" })
    const { headers } = await answerChallenge(addressOf(paymentIntent), "success")
    assert.include(headers.get("location")!, "redirect_status=succeeded")
    assert.strictEqual((await server.get(`/v1/payment_intents/${paymentIntent.id}`)).status, "requires_confirmation")
  })

  it("shows a notice if there is no challenge", async () => {
    const paymentIntent = await challenged()
    const url = addressOf(paymentIntent)
    await answerChallenge(url, "success")
    const { status, text } = await visit(url)
    assert.strictEqual(status, 200)
    assert.include(text, "Your payment went through")
    assert.notInclude(text, "<form")
  })

  it("accepts another question mark in the query", async () => {
    const url = addressOf(await challenged()).replace("?", "?from=a?b&")
    assert.strictEqual((await visit(url)).status, 200)
  })

  // Semantics pages.not_found.
  it("is not found without the client secret, whether the PaymentIntent exists or not", async () => {
    const { id } = await challenged()
    const none = `${server.url}/authenticate/pi_000000000000000000000000`
    const there = `${server.url}/authenticate/${id}`
    const pages = await Promise.all(
      [there, `${there}?client_secret=`, `${there}?client_secret=${id}_secret_x`, `${none}?client_secret=a`].map(
        (url) => visit(url)
      )
    )
    const posts = await Promise.all(
      [there, none].map((url) => send(url, { client_secret: "wrong", outcome: "success", token: "a.b" }))
    )
    for (const { status, text } of [...pages, ...posts]) {
      assert.strictEqual(status, 404)
      assert.strictEqual(text, pages[0]!.text)
    }
  })

  it("takes no answer from another page", async () => {
    const paymentIntent = await challenged()
    const url = `${server.url}/authenticate/${paymentIntent.id}`
    const form = { ...formIn((await visit(addressOf(paymentIntent))).text), outcome: "success" }
    assert.strictEqual((await send(url, { ...form, token: "a.b" })).status, 400)
    assert.strictEqual((await send(url, { ...form, terms: "1 eur pm_1" })).status, 400)
    assert.strictEqual((await send(url, { ...form, outcome: "maybe" })).status, 400)
    assert.strictEqual((await send(url, form, { "sec-fetch-site": "cross-site" })).status, 403)
    assert.strictEqual((await server.get(`/v1/payment_intents/${paymentIntent.id}`)).status, "requires_action")
  })
})

describe("a checkout whose card asks for authentication", () => {
  it("is redirected there and back, and ends at the success_url", async () => {
    const session = await openSession(server)
    const challenge = await pay(session, filledIn(CARDS.challenged))
    assert.strictEqual(challenge.status, 303)
    const page = challenge.headers.get("location")!
    assert.isTrue(page.startsWith(`${server.url}/authenticate/${session.payment_intent}?client_secret=`))
    const back = await answerChallenge(page, "success")
    assert.isTrue(back.headers.get("location")!.startsWith(`${session.url}?`))
    const end = await visit(back.headers.get("location")!)
    assert.strictEqual(end.status, 303)
    assert.strictEqual(end.headers.get("location"), `${server.url}/healthz?session=${session.id}`)
    assert.strictEqual((await server.get(`/v1/checkout_sessions/${session.id}`)).payment_status, "paid")
    // A later visit without the secret gets a notice with a link instead of a redirect.
    assert.strictEqual((await visit(session.url)).status, 410)
  })

  it.each([
    ["a failure", CARDS.challenged, "failure", "Your bank could not confirm that it was you."],
    ["a decline", CARDS.challengedThenDeclined, "success", "Your card has insufficient funds."]
  ])(
    "returns from %s with the reason and the entered values, and can continue",
    async (_, number, outcome, message) => {
      const session = await openSession(server)
      const challenge = await pay(session, filledIn(number))
      const back = await answerChallenge(challenge.headers.get("location")!, outcome)
      const first = await visit(back.headers.get("location")!)
      // The secret is removed from the address bar.
      assert.strictEqual(first.headers.get("location"), session.url)
      const { status, text } = await visit(session.url)
      assert.strictEqual(status, 200)
      assert.include(text, message)
      assert.include(text, 'value="Ana Lima"')
      assert.strictEqual((await send(session.url, { ...filledIn(), token: tokenIn(text) })).status, 303)
    }
  )

  it("has a link to the checkout if the challenge is opened again, whatever its outcome", async () => {
    const session = await openSession(server)
    for (const [outcome, title] of [
      ["failure", "Your payment did not go through"],
      ["success", "Your payment went through"]
    ] as const) {
      const challenge = (await pay(session, filledIn(CARDS.challenged))).headers.get("location")!
      await answerChallenge(challenge, outcome)
      const { text } = await visit(challenge)
      assert.include(text, title)
      assert.include(text, "Go back to Lumen Coffee</a>")
      assert.deepStrictEqual(linksIn(text), [session.url])
    }
  })

  it.each(["embedded", "custom"])("has no link to a checkout on the shop's own page: %s", async (ui_mode) => {
    const session = await openSession(server, { ui_mode, cancel_url: null })
    const { next_action } = await server.post(`/v1/payment_intents/${session.payment_intent}/confirm`, {
      payment_method: "pm_card_3ds_required"
    })
    const { text } = await answerChallenge(next_action.redirect_to_url.url, "failure")
    assert.include(text, "Your payment did not go through")
    assert.deepStrictEqual(linksIn(text), [])
  })

  it("accepts another card during the authentication", async () => {
    const session = await openSession(server)
    await pay(session, filledIn(CARDS.challenged))
    assert.strictEqual((await pay(session)).status, 303)
    assert.strictEqual((await server.get(`/v1/checkout_sessions/${session.id}`)).payment_status, "paid")
  })

  it("ends if the session expires during the authentication", async () => {
    const session = await openSession(server)
    const url = (await pay(session, filledIn(CARDS.challenged))).headers.get("location")!
    const { text } = await visit(url)
    await server.post(`/v1/checkout_sessions/${session.id}/expire`, {})
    const late = await send(url.split("?")[0]!, { ...formIn(text), outcome: "success" })
    assert.strictEqual(late.status, 200)
    assert.include(late.text, "You have not been charged")
    assert.include((await visit(session.url)).text, "This checkout has expired")
  })
})
