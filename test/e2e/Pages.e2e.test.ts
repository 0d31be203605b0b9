/** Payers' pages of the real process on Postgres: they open without a key, also in a process that has just started. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { CARDS, filledIn, send, tokenIn, visit } from "../support/fixtures/CheckoutPages.ts"
import { startTill } from "../support/TillProcess.ts"

describe("a checkout page", () => {
  it.live("outlives the process: found again, paid, and not paid twice, whatever dies in between", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      yield* Effect.promise(async () => {
        const product = await server.post("/v1/products", { name: "House Espresso" })
        const session = await server.post("/v1/checkout_sessions", {
          mode: "payment",
          success_url: "https://shop.example/thanks?session={CHECKOUT_SESSION_ID}",
          line_items: [{ price_data: { currency: "usd", product: product.id, unit_amount: 2450 } }]
        })
        await server.kill("SIGKILL")
        await server.start()
        const { status, text } = await visit(session.url)
        assert.strictEqual(status, 200)
        assert.include(text, "House Espresso")

        const declined = await send(session.url, { ...filledIn(CARDS.declined), token: tokenIn(text) })
        assert.strictEqual(declined.status, 402)
        const challenged = { ...filledIn(CARDS.challenged), token: tokenIn(declined.text) }
        const challenge = (await send(session.url, challenged)).headers.get("location")!
        await server.kill("SIGKILL")
        await server.start()
        assert.include((await visit(challenge)).text, "Confirm your payment")

        const form = { ...filledIn(), token: tokenIn((await visit(session.url)).text) }
        const success = `https://shop.example/thanks?session=${session.id}`
        assert.strictEqual((await send(session.url, form)).headers.get("location"), success)
        await server.kill("SIGKILL")
        await server.start()
        // A browser that never got the answer sends the form again.
        assert.strictEqual((await send(session.url, form)).headers.get("location"), success)
        assert.strictEqual((await visit(session.url)).status, 410)
        const { charges, status: paid } = await server.get(`/v1/payment_intents/${session.payment_intent}`)
        assert.strictEqual(paid, "succeeded")
        assert.deepStrictEqual(
          charges.data.map((charge: { status: string }) => charge.status),
          ["succeeded", "failed"]
        )
        assert.notMatch(server.stdout + server.stderr, /4242|4000000000/)
      })
    })
  )
})
