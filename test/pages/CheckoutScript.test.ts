/**
 * `checkout.js` as a shop gets it: what it refuses at once, and that its types, imported as `till/checkout`, fit how the
 * examples use it (which the compiler checks).
 */
import { assert, describe, it } from "@effect/vitest"
import * as vm from "node:vm"
import type { CheckoutState, TillCheckout } from "till/checkout"
import * as Assets from "../../src/pages/Assets.ts"

/** The function that a page gets from a script that came from an address; undefined for a script without one. */
const load = (src?: string): typeof Till => {
  const context = { document: { currentScript: src === undefined ? null : { src } }, URL, TypeError } as {
    Till?: typeof Till
  }
  vm.runInNewContext(Assets.checkoutScript.text, context)
  return context.Till!
}

/** What the types say that a shop can do; never run. */
export const shop = async (till: TillCheckout): Promise<CheckoutState["status"]> => {
  const embedded = till.embeddedCheckout({
    clientSecret: "cs_1_secret_a",
    onComplete: ({ sessionId }) => sessionId.length
  })
  embedded.mount("#checkout")
  embedded.unmount()
  const checkout = await till.checkout({ clientSecret: "cs_1_secret_a" })
  const stop = checkout.subscribe(({ error, status }) => `${status} ${error?.message ?? ""}`)
  stop()
  await checkout.confirm({ payment_method: "pm_card_visa", return_url: "https://shop.example/back" })
  // @ts-expect-error -- a card without its expiry is none
  await checkout.confirm({ card: { number: "4242424242424242" } })
  const { session, status } = await checkout.confirm({
    card: { number: "4242424242424242", exp_month: 12, exp_year: 2034, cvc: "123" },
    customer_details: { email: "ana@example.com", address: { country: "PT" } }
  })
  return session.payment_status === "paid" ? "complete" : status
}

describe("checkout.js", () => {
  const Till = load("https://pay.example/till/checkout.js")

  it.each(["sk_test_12345678", "sk_live_12345678", "", "whsec_1"])("takes no key but a publishable one: %j", (key) => {
    assert.throws(() => Till(key), /publishable key/)
  })

  it.each(["", "cs_1", "pi_1_secret_a", "cs_1_secret_a/../x", "cs_1_secret_a?b"])(
    "takes nothing for a client secret that is none: %j",
    (clientSecret) => {
      assert.throws(() => Till("pk_test_12345678").embeddedCheckout({ clientSecret }), /client_secret/)
    }
  )

  it("has to know where Till is", () => {
    assert.throws(() => load()("pk_test_12345678"), /baseUrl/)
    assert.isFunction(load()("pk_test_12345678", { baseUrl: "https://pay.example/till" }).checkout)
  })

  it("is small, and so are the pages' files", () => {
    const compressed = [Assets.stylesheet, Assets.script, Assets.embeddedScript].map(({ gzipped }) => gzipped.length)
    assert.isBelow(
      compressed.reduce((sum, bytes) => sum + bytes),
      20_000
    )
    assert.isBelow(Assets.checkoutScript.gzipped.length, 5000)
  })
})
