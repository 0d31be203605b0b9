// Tests a shop's payments against a running Till instead of a mock.
import { once } from "node:events"
import { createServer } from "node:http"
import { buffer } from "node:stream/consumers"
import { PaymentError, TillClient, verifyWebhook } from "till-payments-client"
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest"
import { makeMerchant } from "./till.mjs"

let till
let secret
/** The received webhooks, verified. */
const events = []
const receiver = createServer(async (request, response) => {
  events.push(verifyWebhook({ body: await buffer(request), header: request.headers["x-signature"], secret }))
  response.writeHead(204).end()
})

beforeAll(async () => {
  const { secretKey } = await makeMerchant(inject("till"), "shop.test")
  till = new TillClient({ apiKey: secretKey, baseUrl: inject("till").url })
  await once(receiver.listen(0, "127.0.0.1"), "listening")
  const url = `http://127.0.0.1:${receiver.address().port}`
  secret = (await till.webhook_endpoints.create({ url, enabled_events: ["*"] })).secret
})
afterAll(() => receiver.close())

const pay = (payment_method) =>
  till.payment_intents.create({ amount: 2450, currency: "usd", payment_method, confirm: true })

test("a payment that its payer has to authenticate", async () => {
  const { id, status } = await pay("pm_card_threeDSecure2Required")
  expect(status).toBe("requires_action")
  const paid = await till.test_helpers.authenticate(id, { outcome: "success" })
  expect(paid.amount_received).toBe(2450)
  await vi.waitUntil(
    () => events.some(({ type, data }) => type === "payment_intent.succeeded" && data.object.id === id),
    { timeout: 4000 }
  )
})

test("a card that is declined", async () => {
  const declined = await pay("pm_card_insufficient_funds").catch((error) => error)
  expect(declined).toBeInstanceOf(PaymentError)
  expect(declined.decline_code).toBe("insufficient_funds")
})

test("a payment that settles later, and its refund", async () => {
  const { id, status } = await pay("pm_card_processing_success")
  expect(status).toBe("processing")
  await till.test_helpers.advance_clock({ seconds: 60 })
  expect((await till.payment_intents.retrieve(id)).status).toBe("succeeded")
  const refund = await till.refunds.create({ payment_intent: id, amount: 450 })
  expect(refund.status).toBe("succeeded")
})
