/**
 * Live money given up without a password stays below a limit, in any currencies and any number of parts (semantics
 * dashboard.password_again).
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { plainAmount } from "../../src/dashboard/frame/Values.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import { DASHBOARD_SESSION } from "../../src/payments/team/DashboardSessions.ts"
import { GIVEN_UP_MAX } from "../../src/payments/team/GivenUp.ts"
import { type Answer, type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { ISO_CODES } from "../support/Currencies.ts"
import { formTo, signedIn, type Tab } from "./People.ts"

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

const giving = Schema.Struct({
  currency: Schema.Literals(ISO_CODES),
  by: Schema.Literals(["refund", "refund of all", "cancel", "capture"] as const),
  amount: Schema.Union([between(1, 40_000), between(99_990, 100_010), between(1, 1_000_000)])
})
type Giving = typeof giving.Type
const givings = Schema.NonEmptyArray(giving).check(Schema.isMaxLength(6))

/** A capture of this amount releases the rest of the authorization. */
const CAPTURED = 7

describe("live money that is given up", () => {
  let server: MemoryTillWithPages
  let tab: Tab
  beforeAll(async () => {
    server = await start({ merchantName: "Live", liveProcessor: "simulator" })
    tab = await signedIn(server, "support")
  })
  afterAll(() => server.close())

  let proofs = 0
  /** Sets the person's last confirmation to more than ten minutes ago, after the one before. */
  const proveLongAgo = async () => {
    const session = /dse_\w+/.exec(tab.cookie)![0]
    const age = Effect.gen(function* () {
      const transaction = yield* Transaction
      const { hidden, value } = (yield* transaction.get(DASHBOARD_SESSION, session))!
      transaction.put(DASHBOARD_SESSION, { ...value, confirmed_at: ++proofs }, hidden)
    })
    await Effect.runPromise(server.accounts.run(INSTALLATION, age))
  }

  const pay = async ({ amount, by, currency }: Giving): Promise<Answer> => {
    const card = { number: "4242424242424242", exp_month: 12, exp_year: 2034, cvc: "123" }
    const parameters = {
      amount: by === "capture" ? amount + CAPTURED : amount,
      currency,
      confirm: true,
      capture_method: by.startsWith("refund") ? "automatic" : "manual",
      payment_method_data: { type: "card", card }
    }
    return await server.post("/v1/payment_intents", parameters, { key: server.secretLive })
  }

  /** Sends a form of a payment's page. */
  const give = async ({ amount, by, currency }: Giving, { id }: Answer): Promise<"done" | "asked"> => {
    const page = await tab.get(`/dashboard/live/payments/${id}`)
    const { action, values } = formTo(page, by.startsWith("refund") ? "/refund" : `/${by}`)
    const entered = {
      refund: { amount: plainAmount(amount, currency) },
      "refund of all": { amount: "" },
      capture: { amount_to_capture: plainAmount(CAPTURED, currency) },
      cancel: {}
    }[by]
    const { status, text } = await tab.post(action, { ...values, ...entered })
    assert.strictEqual(status, 200)
    const isAsked = text.includes("Sign in with a new link first")
    if (!isAsked) assert.match(text, /Refund created|Payment (captured|canceled)/)
    return isAsked ? "asked" : "done"
  }

  /** The amount given up of a payment, according to the API. */
  const givenUpOf = async ({ by }: Giving, { id }: Answer): Promise<number> => {
    const { amount, amount_received, charges, status } = await server.get(
      `/v1/payment_intents/${id}`,
      server.secretLive
    )
    if (by === "capture") return status === "succeeded" ? amount - amount_received : 0
    if (by === "cancel") return status === "canceled" ? amount : 0
    return charges.data[0].amount_refunded
  }

  it.effect.prop(
    "asks for the password when the sum would exceed the limit",
    { givings },
    ({ givings }) =>
      Effect.promise(async () => {
        await proveLongAgo()
        let sum = 0
        for (const giving of givings) {
          const payment = await pay(giving)
          const isTooMuch = sum + giving.amount > GIVEN_UP_MAX
          assert.strictEqual(await give(giving, payment), isTooMuch ? "asked" : "done", JSON.stringify([sum, giving]))
          assert.strictEqual(await givenUpOf(giving, payment), isTooMuch ? 0 : giving.amount)
          if (!isTooMuch) sum += giving.amount
        }
      }),
    { arbitrary: { runs: 40 }, timeout: 120_000 }
  )

  it.effect.prop(
    "has the same limit for concurrent forms",
    { givings },
    ({ givings }) =>
      Effect.promise(async () => {
        await proveLongAgo()
        const payments = await Promise.all(givings.map(pay))
        const came = await Promise.all(givings.map((giving, i) => give(giving, payments[i])))
        const given = await Promise.all(givings.map((giving, i) => givenUpOf(giving, payments[i])))
        assert.isAtMost(
          given.reduce((sum, amount) => sum + amount, 0),
          GIVEN_UP_MAX
        )
        assert.deepStrictEqual(
          given,
          givings.map(({ amount }, i) => (came[i] === "done" ? amount : 0))
        )
      }),
    { arbitrary: { runs: 15 }, timeout: 120_000 }
  )

  it("is 1,000.00 KWD, or 1,000.00 USD four times, only with the password", async () => {
    await proveLongAgo()
    const refund = (amount: number, currency: string): Giving => ({ amount, by: "refund", currency })
    assert.strictEqual(await give(refund(1_000_000, "kwd"), await pay(refund(1_000_000, "kwd"))), "asked")
    const whole = await pay(refund(400_000, "usd"))
    const outcomes = [await give(refund(100_000, "usd"), whole), await give(refund(100_000, "usd"), whole)]
    assert.deepStrictEqual(outcomes, ["done", "asked"])
  })

  it("is zero, and needs no password, for a full capture", async () => {
    await proveLongAgo()
    const held = await pay({ amount: 5_000_000, by: "cancel", currency: "usd" })
    const { action, values } = formTo(await tab.get(`/dashboard/live/payments/${held.id}`), "/capture")
    assert.include((await tab.post(action, { ...values, amount_to_capture: "" })).text, "Payment captured.")
  })
})
