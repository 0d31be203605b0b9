/** Sealed secrets: they open only with the same key and purpose, and only unchanged. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { open, reseal, resealPair, seal } from "../../../src/payments/shared/Sealing.ts"
import { keyringOf } from "../../support/PaymentsConfig.ts"

const sealing = { keyring: keyringOf(1), purpose: "webhook secret a/b" }

describe("Sealing", () => {
  it.prop("returns the sealed text, and reveals none of it", { text: Schema.String }, ({ text }) => {
    const wellFormed = text.toWellFormed()
    const sealed = seal(sealing, wellFormed)
    assert.strictEqual(open(sealing, sealed), wellFormed)
    assert.notStrictEqual(seal(sealing, wellFormed), sealed)
    assert.match(sealed, /^[\w-]+$/u)
    assert.throws(() => open({ ...sealing, keyring: keyringOf(2) }, sealed))
    assert.throws(() => open({ ...sealing, purpose: "webhook secret a/c" }, sealed))
  })

  it("detects every changed, missing or added byte", () => {
    const bytes = Buffer.from(seal(sealing, "whsec_x"), "base64url")
    const opens = (changed: Buffer) => () => open(sealing, changed.toString("base64url"))
    for (let i = 0; i < bytes.length; i++) {
      const changed = Buffer.from(bytes)
      changed[i]! ^= 1
      assert.throws(opens(changed))
      assert.throws(opens(bytes.subarray(0, i)))
    }
    assert.throws(opens(Buffer.concat([bytes, Buffer.alloc(1)])))
    assert.strictEqual(opens(bytes)(), "whsec_x")
  })
})

describe("operation.roll: while a secret is rolled", () => {
  const both = { ...sealing, keyring: keyringOf(2, 1) }

  it("the one in force seals, and both open", () => {
    const [older, newer] = [sealing, { ...sealing, keyring: keyringOf(2) }]
    assert.strictEqual(open(newer, seal(both, "a")), "a")
    assert.strictEqual(open(both, seal(older, "b")), "b")
    const notYet = keyringOf(2, 1)
    assert.isTrue(notYet.follow("print 1"))
    assert.strictEqual(open(older, seal({ ...both, keyring: notYet }, "c")), "c")
    assert.strictEqual(open({ ...both, keyring: notYet }, seal(newer, "d")), "d")
    assert.isFalse(notYet.follow("print 3"))
  })

  it("a text under the older one is sealed anew, and no other", () => {
    const anew = reseal(both, seal(sealing, "whsec_x"))!
    assert.strictEqual(open({ ...sealing, keyring: keyringOf(2) }, anew), "whsec_x")
    for (const kept of [anew, seal({ ...sealing, keyring: keyringOf(3) }, "whsec_x"), "damaged"]) {
      assert.isUndefined(reseal(both, kept))
    }
  })

  it("a pair is sealed anew if either of its secrets is under the older one", () => {
    const [older, newer] = [seal(sealing, "a"), seal(both, "b")]
    assert.isUndefined(resealPair(both, { sealedSecret: newer, previous: { sealedSecret: newer, expiresAt: 1 } }))
    const { previous, sealedSecret, ...others } = resealPair(both, {
      sealedSecret: newer,
      previous: { sealedSecret: older, expiresAt: 1 },
      failingSince: 2
    })!
    assert.strictEqual(sealedSecret, newer)
    assert.strictEqual(open({ ...sealing, keyring: keyringOf(2) }, previous!.sealedSecret), "a")
    assert.deepStrictEqual([previous!.expiresAt, others], [1, { failingSince: 2 }])
    assert.isUndefined(resealPair(both, { sealedSecret: newer }))
  })
})
