/** Checkout pages of a merchant whose processor is behind a network (semantics pages.card_frame). */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { ProcessorsShape } from "../../../src/payments/processing/Processor.ts"
import { VirtualProcessor } from "../../models/Operations.ts"
import { filledIn, openSession, pay, send, tokenIn, visit } from "../../support/fixtures/CheckoutPages.ts"
import { type Answer, type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"

const FRAME = "https://gateway.example:8443/fields?v=1"

/** Processors of an installation whose accounts have one with this page, or without one. */
const processorsWith = (fieldsUrl: string | null): ProcessorsShape => {
  const virtual = new VirtualProcessor()
  const remote = { ...virtual.remote, fieldsUrl }
  return { ...virtual.processors, of: () => remote, byId: (id) => (id === remote.id ? remote : null) }
}

const linkTo = async ({ post }: MemoryTillWithPages): Promise<Answer> => {
  const product = await post("/v1/products", { name: "Tea" })
  const line = { price_data: { currency: "usd", product: product.id, unit_amount: 500 }, quantity: 1 }
  return post("/v1/payment_links", { line_items: [line] })
}

const details = (token?: string) => ({
  email: "ana@example.com",
  name: "Ana Lima",
  ...(token !== undefined && { card_token: token })
})

describe("pages.card_frame: a checkout by a processor with a page for cards", () => {
  let server: MemoryTillWithPages
  beforeAll(async () => {
    server = await start({ processors: processorsWith(FRAME) })
  })
  afterAll(() => server.close())

  it("has a place for that page, and no card fields or test cards of its own", async () => {
    const { headers, text } = await visit((await openSession(server)).url)
    assert.include(text, `data-url="${FRAME}"`)
    assert.include(text, '<input type="hidden" name="card_token" />')
    for (const part of ["card_number", "card_cvc", "cc-number", "test-card"]) assert.notInclude(text, part)
    assert.include(text, '<noscript><p class="error">This card form needs JavaScript.')
    assert.match(headers.get("content-security-policy")!, /; frame-src https:\/\/gateway\.example:8443$/)
    // A script fills in the frame, so that nothing of the processor is loaded without one.
    assert.notInclude(text, "<iframe")
  })

  it("pays with a token", async () => {
    const session = await openSession(server)
    const { headers, status } = await pay(session, details("tok_approve"))
    assert.deepStrictEqual([status, headers.get("location")], [303, `${server.url}/healthz?session=${session.id}`])
    assert.strictEqual((await server.get(`/v1/checkout_sessions/${session.id}`)).payment_status, "paid")
  })

  it("leads to Till's address of the challenge", async () => {
    const { headers, status } = await pay(await openSession(server), details("tok_challenge"))
    assert.strictEqual(status, 303)
    assert.isTrue(headers.get("location")!.startsWith(`${server.url}/authenticate/pi_`))
  })

  it.each([
    ["without a token", undefined, "This card form needs JavaScript."],
    ["with an unknown token", "tok_other", "The card was not accepted. Check its details."],
    ["with what is no token", "4242 4242", "The card was not accepted. Check its details."]
  ])("shows a form %s again, with the reason", async (_, token, reason) => {
    const session = await openSession(server)
    const { status, text } = await pay(session, details(token))
    assert.strictEqual(status, 400)
    assert.include(text, `role="alert">${reason}`)
    assert.isNull((await server.get(`/v1/payment_intents/${session.payment_intent}`)).latest_charge)
    assert.strictEqual((await send(session.url, { token: tokenIn(text), ...details("tok_approve") })).status, 303)
  })

  it("says beside the frame what to do after a decline", async () => {
    const session = await openSession(server)
    const form = { token: tokenIn((await visit(session.url)).text), ...details("tok_decline") }
    const { status, text } = await send(session.url, form, { accept: "application/json" })
    assert.strictEqual(status, 402)
    assert.deepInclude(JSON.parse(text), {
      errors: { card_token: "Pay with another card, or top this one up first." },
      again: []
    })
  })

  it("does not read card fields that it does not have", async () => {
    const { status } = await pay(await openSession(server), { ...filledIn(), card_token: "tok_approve" })
    assert.strictEqual(status, 303)
    assert.notInclude(await server.journal(), "4242424242424242")
  })

  it("follows a payment link", async () => {
    const link = await linkTo(server)
    const { text } = await visit(link.url)
    assert.include(text, "Continue to payment")
  })
})

describe("pages.card_frame: a checkout by a processor without a page for cards", () => {
  let server: MemoryTillWithPages
  beforeAll(async () => {
    server = await start({ processors: processorsWith(null) })
  })
  afterAll(() => server.close())

  it("says that no cards can be taken, and has no form", async () => {
    const session = await openSession(server)
    const link = await linkTo(server)
    for (const url of [session.url, link.url]) {
      const { status, text } = await visit(url)
      assert.strictEqual(status, 200)
      assert.include(text, "This shop cannot take cards yet")
      assert.notInclude(text, "<form")
    }
  })

  it("takes no card that is sent all the same", async () => {
    const session = await openSession(server)
    const { status } = await send(session.url, { token: "a.b", ...filledIn() })
    assert.strictEqual(status, 400)
    assert.isNull((await server.get(`/v1/payment_intents/${session.payment_intent}`)).latest_charge)
    assert.notInclude(await server.journal(), "4242424242424242")
  })
})
