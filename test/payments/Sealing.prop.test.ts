/** Sealed secrets: they open only with the same key and purpose, and only unchanged. */
import { assert, describe, it } from "@effect/vitest"
import { Redacted, Schema } from "effect"
import { open, seal } from "../../src/payments/Sealing.ts"

const key = Redacted.make(new Uint8Array(32).fill(1))
const otherKey = Redacted.make(new Uint8Array(32).fill(2))
const sealing = { key, purpose: "webhook secret a/b" }

describe("Sealing", () => {
  it.prop("returns the sealed text, and reveals none of it", { text: Schema.String }, ({ text }) => {
    const wellFormed = text.toWellFormed()
    const sealed = seal(sealing, wellFormed)
    assert.strictEqual(open(sealing, sealed), wellFormed)
    assert.notStrictEqual(seal(sealing, wellFormed), sealed)
    assert.match(sealed, /^[\w-]+$/u)
    assert.throws(() => open({ key: otherKey, purpose: sealing.purpose }, sealed))
    assert.throws(() => open({ key, purpose: "webhook secret a/c" }, sealed))
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
