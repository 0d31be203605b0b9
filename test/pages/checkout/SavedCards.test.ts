/** Semantics pages.saved_cards, without a browser: the page of a session whose customer has saved cards. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type Answer, type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import {
  answerChallenge,
  CARDS,
  filledIn,
  openSession,
  pay,
  send,
  tokenIn,
  visit
} from "../../support/fixtures/CheckoutPages.ts"

let server: MemoryTillWithPages
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const customerWith = async (...cards: ReadonlyArray<string>): Promise<{ id: string; cards: ReadonlyArray<string> }> => {
  const { id } = await server.post("/v1/customers", { email: "ana@example.com" })
  const held: Array<string> = []
  for (const card of cards) held.push((await attach(card, id)).id)
  return { id, cards: held }
}
const attach = (card: string, customer: string): Promise<Answer> =>
  server.post(`/v1/payment_methods/${card}/attach`, { customer })
const stateOf = (session: Answer): Promise<Answer> => server.get(`/v1/checkout_sessions/${session.id}`)
const paymentOf = async (session: Answer): Promise<Answer> =>
  server.get(`/v1/payment_intents/${(await stateOf(session)).payment_intent}`)

/** The choices of a page, and the selected one. */
const choicesIn = (text: string) =>
  [...text.matchAll(/<input type="radio" name="payment_method" value="([^"]*)"([^>]*)>(.*?)<\/label/gs)].map(
    ([, value, attributes, label]) => ({
      value: value!,
      isChosen: attributes!.includes("checked"),
      label: label!
        .replaceAll(/<[^>]+>/g, "")
        .replaceAll(/\s+/g, " ")
        .trim()
    })
  )
const errorIn = (text: string): string | undefined => /id="payment_method-error">([^<]*)</.exec(text)?.[1]
const choosing = (payment_method: string) => ({ email: "ana@example.com", name: "Ana Lima", payment_method })

describe("the page of a session whose customer holds cards", () => {
  it("offers them with the newest selected, and shows only brand, last four and expiry", async () => {
    const { cards, id } = await customerWith("pm_card_visa", "pm_card_amex")
    const { text } = await visit((await openSession(server, { customer: id })).url)
    assert.deepStrictEqual(choicesIn(text), [
      { value: cards[1]!, isChosen: true, label: "American Express •••• 0005 Expires 12 / 34" },
      { value: cards[0]!, isChosen: false, label: "Visa •••• 4242 Expires 12 / 34" },
      { value: "", isChosen: false, label: "Another card" }
    ])
    const { card } = await server.get(`/v1/payment_methods/${cards[0]}`)
    assert.notInclude(text, card.fingerprint)
  })

  it("offers five at most, each number once, and none that has expired", async () => {
    const cards = ["discover", "visa", "mastercard", "amex", "diners", "jcb", "visa"]
    const { cards: held, id } = await customerWith(...cards.map((name) => `pm_card_${name}`))
    const old = await server.post("/v1/payment_methods", {
      type: "card",
      card: { number: "4000056655665556", exp_month: 1, exp_year: 2024 }
    })
    await attach(old.id, id)
    const { text } = await visit((await openSession(server, { customer: id })).url)
    const offered = [6, 5, 4, 3, 2].map((index) => held[index]!)
    assert.deepStrictEqual(
      choicesIn(text).map(({ value }) => value),
      [...offered, ""]
    )
    assert.notInclude(text, "•••• 5556")
  })

  it("asks other payers for a card", async () => {
    const { id } = await customerWith()
    for (const parameters of [{}, { customer: id }]) {
      const { text } = await visit((await openSession(server, parameters)).url)
      assert.deepStrictEqual(choicesIn(text), [])
      assert.include(text, 'id="card_number"')
    }
  })

  it("charges the selected card, whatever the fields of a new card contain", async () => {
    const { cards, id } = await customerWith("pm_card_visa", "pm_card_mastercard")
    const session = await openSession(server, { customer: id })
    const { status } = await pay(session, { ...choosing(cards[0]!), card_number: "12", card_expiry: "", card_cvc: "x" })
    assert.strictEqual(status, 303)
    assert.strictEqual((await stateOf(session)).payment_status, "paid")
    assert.strictEqual((await paymentOf(session)).payment_method, cards[0])
  })

  it("is paid once for repeated submissions", async () => {
    const { cards, id } = await customerWith("pm_card_visa")
    const session = await openSession(server, { customer: id })
    const form = { token: tokenIn((await visit(session.url)).text), ...choosing(cards[0]!) }
    const first = await send(session.url, form)
    const again = await send(session.url, form)
    assert.strictEqual(again.status, 303)
    assert.strictEqual(again.headers.get("location"), first.headers.get("location"))
    assert.strictEqual((await paymentOf(session)).charges.data.length, 1)
  })

  it("charges another card without saving it", async () => {
    const { cards, id } = await customerWith("pm_card_visa")
    const session = await openSession(server, { customer: id })
    assert.strictEqual((await pay(session, { ...filledIn(), payment_method: "" })).status, 303)
    assert.notStrictEqual((await paymentOf(session)).payment_method, cards[0])
    const { data } = await server.get(`/v1/payment_methods?customer=${id}`)
    assert.deepStrictEqual(data.length, 1)
  })

  it("is saved with one payment and chosen for the next", async () => {
    const { id } = await customerWith()
    const payment = { amount: 500, currency: "usd", customer: id, setup_future_usage: "off_session" }
    const { payment_method } = await server.post("/v1/payment_intents", {
      ...payment,
      payment_method: "pm_card_visa",
      confirm: true
    })
    const session = await openSession(server, { customer: id })
    const page = await visit(session.url)
    assert.strictEqual(choicesIn(page.text)[0]!.value, payment_method)
    assert.strictEqual(
      (await send(session.url, { token: tokenIn(page.text), ...choosing(payment_method) })).status,
      303
    )
    assert.strictEqual((await stateOf(session)).status, "complete")
  })

  it("shows advice beside the choice after a decline, and keeps the rest", async () => {
    const { cards, id } = await customerWith("pm_card_chargeDeclined")
    const session = await openSession(server, { customer: id })
    const { status, text } = await pay(session, choosing(cards[0]!))
    assert.strictEqual(status, 402)
    assert.strictEqual(errorIn(text), "Choose another card, or ask your bank about this one.")
    assert.match(text, /id="payment_method"[^>]*aria-invalid="true"[^>]*autofocus/)
    assert.match(text, /name="email"[^>]*value="ana@example.com"/)
    assert.include(text, "You have not been charged.")
    assert.isTrue(choicesIn(text)[0]!.isChosen)
    // Another visit shows the same.
    assert.strictEqual(errorIn((await visit(session.url)).text), errorIn(text))
  })

  it("shows the fields of a new card again after its decline", async () => {
    const { id } = await customerWith("pm_card_visa")
    const session = await openSession(server, { customer: id })
    const { text } = await pay(session, { ...filledIn(CARDS.declined), payment_method: "" })
    for (const page of [text, (await visit(session.url)).text]) {
      assert.strictEqual(choicesIn(page).find(({ isChosen }) => isChosen)!.value, "")
      assert.match(page, /id="card_number"[^>]*aria-invalid="true"/)
    }
  })

  it("redirects to the bank for authentication, and back", async () => {
    const { cards, id } = await customerWith("pm_card_threeDSecure2Required")
    const session = await openSession(server, { customer: id })
    const { headers, status } = await pay(session, choosing(cards[0]!))
    assert.strictEqual(status, 303)
    await answerChallenge(headers.get("location")!, "success")
    assert.strictEqual((await stateOf(session)).payment_status, "paid")
  })

  it.each([
    ["another customer's", async () => (await customerWith("pm_card_visa")).cards[0]!],
    [
      "nobody's",
      async () =>
        (
          await server.post("/v1/payment_methods", {
            type: "card",
            card: { number: CARDS.approved, exp_month: 1, exp_year: 2034 }
          })
        ).id as string
    ],
    ["a built-in one", async () => "pm_card_visa"],
    ["none at all", async () => "<script>"]
  ])("refuses a card that was not offered: %s", async (_, other) => {
    const { id } = await customerWith("pm_card_visa")
    const session = await openSession(server, { customer: id })
    const { status, text } = await pay(session, choosing(await other()))
    assert.strictEqual(status, 400)
    assert.strictEqual(errorIn(text), "This card is no longer saved. Choose another card.")
    assert.notInclude(text, '<script>"')
    assert.strictEqual((await stateOf(session)).payment_status, "unpaid")
    assert.strictEqual((await paymentOf(session)).status, "requires_payment_method")
  })

  it("reports a detached card, to the script too", async () => {
    const { cards, id } = await customerWith("pm_card_visa")
    const session = await openSession(server, { customer: id })
    const token = tokenIn((await visit(session.url)).text)
    await server.post(`/v1/payment_methods/${cards[0]}/detach`, {})
    const form = { token, ...choosing(cards[0]!) }
    const { status, text } = await send(session.url, form)
    assert.strictEqual(status, 400)
    assert.include(text, "This card is no longer saved. Choose another card.")
    assert.deepStrictEqual(choicesIn(text), [])
    const answer = await send(session.url, { ...form, token: tokenIn(text) }, { accept: "application/json" })
    assert.strictEqual(answer.status, 400)
    assert.deepInclude(JSON.parse(answer.text).errors, {
      payment_method: "This card is no longer saved. Choose another card."
    })
  })
})
