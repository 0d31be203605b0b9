/** A merchant's program with `till-payments-client`, against the real process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Stream } from "effect"
import { Till } from "../../src/client/effect.ts"
import { InvalidRequestError, PaymentError, TillClient } from "../../src/client/index.ts"
import { KEYS, startTill } from "../support/TillProcess.ts"

const clientOf = (baseUrl: string, apiKey: string = KEYS.secretTest) =>
  new TillClient({ apiKey, baseUrl, retriesMax: 12 })

/** A shop's calls: a catalog, a cart, a payment, and a refund of half of it. */
const sell = async (till: TillClient) => {
  const product = await till.products.create({ name: "Tea", default_price_data: { currency: "eur", unit_amount: 450 } })
  const bulk = await till.prices.create({
    product: product.id,
    currency: "eur",
    billing_scheme: "tiered",
    tiers_mode: "volume",
    tiers: [{ up_to: 10, unit_amount: 400 }, { unit_amount: 350 }],
    lookup_key: "bulk"
  })
  const prices: Array<object> = []
  for await (const price of till.prices.list({ limit: 1, active: true, product: product.id })) prices.push(price)
  const single = await till.prices.retrieve(product.default_price as string)
  assert.deepStrictEqual(prices, [bulk, single])

  const session = await till.checkout_sessions.create({
    mode: "payment",
    success_url: "https://shop.example.com/{CHECKOUT_SESSION_ID}",
    line_items: [{ price: bulk.id, quantity: 20 }, { price: single.id }]
  })
  assert.strictEqual(session.amount_total, 7450)
  const amounts: Array<number> = []
  for await (const line of till.checkout_sessions.line_items(session.id, { limit: 1 })) amounts.push(line.amount_total)
  assert.deepStrictEqual(amounts, [7000, 450])
  const complete = await till.checkout_sessions.confirm(session.id, {
    payment_method: "pm_card_visa",
    customer_details: { email: "jenny@example.com" }
  })
  assert.deepInclude(complete, { status: "complete", payment_status: "paid" })
  const again = await till.checkout_sessions.expire(session.id).catch((error: unknown) => error)
  assert.isTrue(again instanceof InvalidRequestError && again.code === "checkout_session_unexpected_state")

  const payment_intent = complete.payment_intent!
  const refund = await till.refunds.create({ payment_intent, amount: 3725, reason: "requested_by_customer" })
  assert.strictEqual(refund.status, "succeeded")
  assert.strictEqual((await till.charges.retrieve(refund.charge)).amount_refunded, 3725)
  assert.deepStrictEqual((await till.refunds.list({ payment_intent })).data, [refund])
}

describe("the client", () => {
  it.live("runs a shop", () =>
    Effect.gen(function* () {
      const { baseUrl } = yield* startTill()
      yield* Effect.promise(() => sell(clientOf(baseUrl)))
    })
  )

  it.live("takes a payment from the customer to the events", () =>
    Effect.gen(function* () {
      const { baseUrl } = yield* startTill()
      yield* Effect.promise(async () => {
        const till = clientOf(baseUrl)
        const customer = await till.customers.create({ email: "jenny@example.com" })
        const payment = { amount: 2000, currency: "usd", customer: customer.id }
        const intent = await till.payment_intents.create(payment)
        const declined = await till.payment_intents
          .confirm(intent.id, { payment_method: "pm_card_declined" })
          .catch((error: unknown) => error)
        assert.instanceOf(declined, PaymentError)
        assert.strictEqual(declined.decline_code, "generic_decline")
        const challenged = await till.payment_intents.confirm(intent.id, { payment_method: "pm_card_3ds_required" })
        assert.strictEqual(challenged.status, "requires_action")
        const paid = await till.test_helpers.authenticate(intent.id, { outcome: "success" })
        assert.strictEqual(paid.status, "succeeded")
        assert.deepStrictEqual(await till.payment_intents.retrieve(intent.id), paid)
        assert.isEmpty((await clientOf(baseUrl, KEYS.secretLive).customers.list()).data)
      })
      const types = yield* Effect.gen(function* () {
        const till = yield* Till
        return yield* Stream.runCollect(Stream.map(till.events.list.stream({ limit: 2 }), ({ type }) => type))
      }).pipe(Effect.provide(Till.layerFetch({ apiKey: Redacted.make(KEYS.secretTest), baseUrl })))
      assert.deepStrictEqual(types.toReversed(), [
        "customer.created",
        "payment_intent.created",
        "charge.failed",
        "payment_intent.payment_failed",
        "payment_intent.requires_action",
        "charge.succeeded",
        "payment_intent.succeeded"
      ])
    })
  )

  it.live("gets every payment through once, although the process is killed under it", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      yield* Effect.promise(async () => {
        const till = clientOf(server.baseUrl)
        const pay = (description: string) =>
          till.payment_intents.create({
            amount: 100,
            currency: "usd",
            payment_method: "pm_card_visa",
            confirm: true,
            description
          })
        const killed = new AbortController()
        const payments = Array.from({ length: 8 }, async (_, worker) => {
          const paid: Array<string> = []
          for (let i = 0; i < 5 || !killed.signal.aborted; i++) {
            const { id, status } = await pay(`${worker}/${i}`)
            assert.strictEqual(status, "succeeded")
            paid.push(id)
          }
          return paid
        })
        while ((await till.payment_intents.list({ limit: 20 })).data.length < 20);
        await server.kill("SIGKILL")
        killed.abort()
        await server.start()
        const acknowledged = (await Promise.all(payments)).flat()
        const charged: Array<string> = []
        const descriptions = new Set<string | null>()
        for await (const { charges, description, id } of till.payment_intents.list({ limit: 100 })) {
          assert.strictEqual(charges.data.length, 1)
          descriptions.add(description)
          charged.push(id)
        }
        assert.sameMembers(charged, acknowledged)
        assert.strictEqual(descriptions.size, charged.length)
      })
    })
  )
})
