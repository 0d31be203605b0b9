/**
 * A payer's way through the page of a processor behind a network, and back (semantics operations.challenge,
 * operations.return).
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type OperationHidden } from "../../../src/payments/shared/Documents.ts"
import { VirtualProcessor } from "../../models/Operations.ts"
import { openSession, visit } from "../../support/fixtures/CheckoutPages.ts"
import { type Answer, type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"

const BANK = "https://bank.example/3ds"

let server: MemoryTillWithPages
let lost = false
let looks = 0
const virtual = new VirtualProcessor({
  fault: (call) => {
    if (call === "look") looks++
    return call === "look" && lost ? "answer lost" : "none"
  }
})
beforeAll(async () => {
  server = await start({ processors: virtual.processors })
})
afterAll(() => server.close())

const payWith = (token: string, parameters: Readonly<Record<string, unknown>> = {}): Promise<Answer> =>
  server.post("/v1/payment_intents", {
    amount: 2000,
    currency: "eur",
    confirm: true,
    payment_method_data: { type: "card", token },
    return_url: "https://shop.example/back?order=1",
    ...parameters
  })

const challenged = (parameters?: Readonly<Record<string, unknown>>) => payWith("tok_challenge", parameters)

const current = ({ id }: Answer): Promise<Answer> => server.get(`/v1/payment_intents/${id}`)

/** The address of Till's page that the processor of a payment's newest attempt has. */
const returnPageOf = async ({ id }: Answer): Promise<string> => {
  const account = `${server.merchantId}:test`
  const query = { kind: "operation", prefix: "op", labels: { payment_intent: id }, limit: 1 }
  const { documents } = await Effect.runPromise(server.accounts.list(account, query))
  return (documents[0]!.hidden as OperationHidden).request.returnUrl!
}

describe("operations.challenge: the address of a challenge", () => {
  it("is Till's, and leads on to the processor's page", async () => {
    const payment = await challenged()
    assert.strictEqual(payment.status, "requires_action")
    const { return_url, url } = payment.next_action.redirect_to_url
    assert.strictEqual(return_url, "https://shop.example/back?order=1")
    assert.isTrue(url.startsWith(`${server.url}/authenticate/${payment.id}?client_secret=`))
    const { headers, status } = await visit(url)
    assert.deepStrictEqual([status, headers.get("location")], [303, BANK])
    assert.strictEqual(headers.get("referrer-policy"), "no-referrer")
    assert.strictEqual(headers.get("cache-control"), "no-store")
  })

  it("shows the processor's page to nobody without the client secret, and in no answer or record", async () => {
    const payment = await challenged()
    const base = `${server.url}/authenticate/${payment.id}`
    for (const url of [base, `${base}?client_secret=wrong`]) assert.strictEqual((await visit(url)).status, 404)
    assert.notInclude(JSON.stringify(await current(payment)), "bank.example")
    assert.notInclude(await server.journal(), "bank.example")
  })

  it("has a notice once the payer has an outcome", async () => {
    const payment = await challenged()
    virtual.answer(payment.id, true)
    await visit(await returnPageOf(payment))
    const { status, text } = await visit(payment.next_action.redirect_to_url.url)
    assert.strictEqual(status, 200)
    assert.include(text, "Your payment went through")
  })

  it("takes no answer of a form: only the processor has the payer's", async () => {
    const payment = await challenged()
    const response = await fetch(`${server.url}/authenticate/${payment.id}`, {
      method: "POST",
      redirect: "manual",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ client_secret: payment.client_secret, outcome: "success", token: "a.b" })
    })
    assert.strictEqual(response.status, 400)
    assert.strictEqual((await current(payment)).status, "requires_action")
  })
})

describe("operations.return: the page to which a processor leads the payer back", () => {
  it.each([
    ["passed", true, "succeeded", "succeeded"],
    ["failed", false, "requires_payment_method", "failed"]
  ])("asks the processor about a %s challenge at once, and leads on", async (_, passed, status, outcome) => {
    const payment = await challenged()
    virtual.answer(payment.id, passed)
    const { headers, status: code } = await visit(await returnPageOf(payment))
    assert.strictEqual(code, 303)
    const url = new URL(headers.get("location")!)
    assert.strictEqual(url.origin + url.pathname, "https://shop.example/back")
    assert.deepStrictEqual(Object.fromEntries(url.searchParams), {
      order: "1",
      payment_intent: payment.id,
      payment_intent_client_secret: payment.client_secret,
      redirect_status: outcome
    })
    assert.strictEqual((await current(payment)).status, status)
  })

  it("leads on with the same outcome after a message was faster, and without another look", async () => {
    const payment = await challenged()
    const page = await returnPageOf(payment)
    virtual.answer(payment.id, true)
    await visit(page)
    looks = 0
    const again = await visit(page)
    assert.include(again.headers.get("location")!, "redirect_status=succeeded")
    assert.strictEqual(looks, 0)
  })

  it("leads on with `pending` if the payer has not answered, after some seconds", { timeout: 60_000 }, async () => {
    const payment = await challenged()
    const before = performance.now()
    const { headers } = await visit(await returnPageOf(payment))
    assert.isBelow(performance.now() - before, 15_000)
    assert.include(headers.get("location")!, "redirect_status=pending")
    assert.strictEqual((await current(payment)).status, "requires_action")
  })

  it("leads on if the processor does not answer", { timeout: 60_000 }, async () => {
    const payment = await challenged()
    virtual.answer(payment.id, true)
    lost = true
    const { headers, status } = await visit(await returnPageOf(payment))
    lost = false
    assert.strictEqual(status, 303)
    assert.include(headers.get("location")!, "redirect_status=pending")
  })

  it("asks at most 20 times a minute", { timeout: 120_000 }, async () => {
    const payment = await challenged()
    const page = await returnPageOf(payment)
    looks = 0
    await Promise.all(Array.from({ length: 15 }, () => visit(page)))
    assert.isAtMost(looks, 40)
    assert.isAtLeast(looks, 4)
  })

  it("shows the outcome itself without a return_url", { timeout: 60_000 }, async () => {
    const payment = await challenged({ return_url: null })
    const page = await returnPageOf(payment)
    const waiting = await visit(page)
    assert.strictEqual(waiting.status, 200)
    assert.include(waiting.text, "Your payment is being processed")
    assert.include(waiting.text, '<link rel="stylesheet" href="../../assets/')
    virtual.answer(payment.id, true)
    assert.include((await visit(page)).text, "Your payment went through")
  })

  it("leads the payer of a checkout to its success_url", async () => {
    const session = await openSession(server, { success_url: "https://shop.example/thanks" })
    await server.post(`/v1/checkout_sessions/${session.id}/confirm`, {
      payment_method_data: { type: "card", token: "tok_challenge" },
      customer_details: { email: "ana@example.com" },
      return_url: session.url
    })
    const payment = await server.get(`/v1/payment_intents/${session.payment_intent}`)
    virtual.answer(payment.id, true)
    const back = await visit(await returnPageOf(payment))
    assert.isTrue(back.headers.get("location")!.startsWith(`${session.url}?`))
    assert.strictEqual(
      (await visit(back.headers.get("location")!)).headers.get("location"),
      "https://shop.example/thanks"
    )
  })

  it("is not found without its secret, nor with that of another payment", async () => {
    const [one, other] = await Promise.all([challenged(), challenged()])
    const [page, foreign] = await Promise.all([returnPageOf(one), returnPageOf(other)])
    const url = new URL(page)
    const without = (name: string) => {
      const made = new URL(url)
      made.searchParams.delete(name)
      return made.href
    }
    const secretOf = (text: string) => new URL(text).searchParams.get("secret")!
    looks = 0
    for (const address of [
      without("secret"),
      without("operation"),
      page.replace(secretOf(page), one.client_secret),
      page.replace(secretOf(page), secretOf(foreign)),
      page.replace(one.id, other.id),
      page.replace(one.id, "pi_000000000000000000000000"),
      `${url.origin}${url.pathname}?operation=&secret=`
    ]) {
      const { status, text } = await visit(address)
      assert.strictEqual(status, 404, address)
      assert.include(text, '<link rel="stylesheet" href="../../assets/')
    }
    assert.strictEqual(looks, 0)
  })

  it("takes no address from its query", async () => {
    const payment = await challenged()
    virtual.answer(payment.id, true)
    const { headers } = await visit(`${await returnPageOf(payment)}&return_url=https://evil.example/`)
    assert.isTrue(headers.get("location")!.startsWith("https://shop.example/back?"))
  })
})
