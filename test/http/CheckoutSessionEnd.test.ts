/** Semantics checkout.expire, through a real socket: sessions end unpaid. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import { CHECKOUT_SESSION } from "../../src/payments/shared/Documents.ts"
import { timer } from "../../src/payments/shared/TimerNames.ts"
import { assertError, assertOk } from "./Assertions.ts"
import {
  confirm,
  create,
  eventsSince,
  get,
  intent,
  newestEvent,
  openShop,
  post,
  server,
  session,
  state
} from "../support/fixtures/CheckoutSessions.ts"

openShop()

const PAID = ["charge.succeeded", "payment_intent.succeeded", "checkout.session.completed"]
const EXPIRED = ["payment_intent.canceled", "checkout.session.expired"]

describe("the end of a session", () => {
  it("checkout.expire: expires by request, and cancels the payment", async () => {
    const { id, payment_intent } = await create()
    const since = await newestEvent()
    assertError(await post(`checkout_sessions/${id}/expire`, { reason: "x" }), 400, "parameter_unknown", "reason")
    assertError(await post(`checkout_sessions/${id}/expire`, []), 400, "parameter_invalid")
    const expired = await post(`checkout_sessions/${id}/expire`)
    assertOk(expired)
    assert.deepInclude(expired.body, { status: "expired", payment_status: "unpaid", url: null })
    assert.deepInclude(await intent(payment_intent), { status: "canceled", cancellation_reason: "automatic" })
    assert.deepStrictEqual(await eventsSince(since), ["payment_intent.canceled", "checkout.session.expired"])
    assertError(await post(`checkout_sessions/${id}/expire`, {}), 400, "checkout_session_unexpected_state", "id")
    const refused = await confirm(id)
    assertError(refused, 400, "checkout_session_unexpected_state", "id")
    const message = "This Checkout Session's status is `expired`; only `open` sessions can be confirmed."
    assert.strictEqual(refused.body.error.message, message)
    const confirmed = await post(`payment_intents/${payment_intent}/confirm`, { payment_method: "pm_card_visa" })
    assertError(confirmed, 400, "payment_intent_unexpected_state", "id")
    const { id: paid } = await create()
    await confirm(paid)
    assertError(await post(`checkout_sessions/${paid}/expire`), 400, "checkout_session_unexpected_state", "id")
  })

  /** A session that has just expired. */
  const overdue = async (body: object = {}) => {
    const { id, payment_intent } = await create(body)
    const since = await newestEvent()
    const age = Effect.gen(function* () {
      const transaction = yield* Transaction
      const { hidden, value } = (yield* transaction.get(CHECKOUT_SESSION, id))!
      transaction.put(CHECKOUT_SESSION, { ...value, expires_at: value.created - 1 }, hidden)
      transaction.setTimer(timer("checkout.session.expire", id, transaction.now))
    })
    await Effect.runPromise(server.accounts.run(`${server.keys.merchantId}:test`, age))
    return { id, payment_intent, since }
  }
  it("checkout.expire: has happened for every read at its time", async () => {
    const reads: ReadonlyArray<(id: string) => Promise<unknown>> = [
      async (id) => assert.strictEqual((await session(id)).status, "expired"),
      async () => assert.strictEqual((await get("checkout_sessions?limit=1")).body.data[0].status, "expired"),
      async (id) => assert.notInclude((await get("checkout_sessions?limit=5&status=open")).text, id)
    ]
    for (const read of reads) {
      const { id, payment_intent, since } = await overdue()
      await read(id)
      assert.strictEqual(await state(id), "expired unpaid")
      assert.strictEqual((await intent(payment_intent)).status, "canceled")
      assert.deepStrictEqual(await eventsSince(since), EXPIRED)
    }
  })

  it("checkout.expire: has happened for every confirmation at its time", async () => {
    const attempts: ReadonlyArray<(id: string, intent: string, key: string) => Promise<unknown>> = [
      async (id, _, idempotencyKey) => {
        const body = { payment_method: "pm_card_visa", customer_details: { email: "a@b.co" } }
        const refused = await post(`checkout_sessions/${id}/confirm`, body, { idempotencyKey })
        assertError(refused, 400, "checkout_session_unexpected_state", "id")
      },
      async (id, _, idempotencyKey) => {
        const refused = await post(`checkout_sessions/${id}/expire`, {}, { idempotencyKey })
        assertError(refused, 400, "checkout_session_unexpected_state", "id")
      },
      async (_, paymentIntent, idempotencyKey) => {
        const body = { payment_method: "pm_card_visa" }
        const refused = await post(`payment_intents/${paymentIntent}/confirm`, body, { idempotencyKey })
        assertError(refused, 400, "payment_intent_unexpected_state", "id")
      },
      async (_, paymentIntent, idempotencyKey) => {
        const path = `test_helpers/payment_intents/${paymentIntent}/authenticate`
        const refused = await post(path, { outcome: "success" }, { idempotencyKey })
        assertError(refused, 400, "payment_intent_unexpected_state", "id")
      },
      async (_, paymentIntent, idempotencyKey) => {
        const refused = await post(`payment_intents/${paymentIntent}/cancel`, {}, { idempotencyKey })
        assertError(refused, 400, "payment_intent_unexpected_state", "id")
        assert.notInclude(refused.body.error.message, "expire the session")
      }
    ]
    for (const [index, attempt] of attempts.entries()) {
      const { id, payment_intent, since } = await overdue()
      for (let repetition = 0; repetition < 2; repetition++) await attempt(id, payment_intent, `overdue-${index}`)
      assert.deepStrictEqual(await eventsSince(since), EXPIRED)
      assert.strictEqual(await state(id), "expired unpaid")
    }
  })

  // Semantics checkout.payment_intent.
  it("a payment's terms stay settled after the session, and the error does not suggest expiring it again", async () => {
    const { payment_intent } = await overdue()
    const refused = await post(`payment_intents/${payment_intent}`, { amount: 1 })
    assertError(refused, 400, "payment_intent_unexpected_state", "id")
    assert.notInclude(refused.body.error.message, "expire the session")
  })

  it("checkout.ends, payment_intents.concurrency: has one winner when confirmations and expiries meet", async () => {
    for (let round = 0; round < 5; round++) {
      const { id, payment_intent } = await create()
      const since = await newestEvent()
      const replies = await Promise.all([
        confirm(id),
        post(`checkout_sessions/${id}/expire`),
        confirm(id),
        post(`payment_intents/${payment_intent}/confirm`, { payment_method: "pm_card_visa" }),
        post(`checkout_sessions/${id}/expire`)
      ])
      assert.lengthOf(
        replies.filter(({ status }) => status === 200),
        1
      )
      assert.isTrue(replies.every(({ status }) => status === 200 || status === 400))
      const events = await eventsSince(since)
      assert.deepStrictEqual(events, (await state(id)) === "complete paid" ? PAID : EXPIRED)
    }
  })
})
