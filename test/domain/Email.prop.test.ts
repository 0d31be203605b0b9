/** Email addresses, which contain no invisible characters (semantics parameters.email). */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { BrandSupport } from "../../src/domain/Brand.ts"
import { Email, EMAIL_LENGTH_MAX, isEmail } from "../../src/domain/Text.ts"

/** The published format of semantics parameters.email. */
const PUBLISHED = /^[^\s@]+@[^\s@]+\.[^\s@]+$/u

const piece = Schema.Union([Schema.Literals([..."@@..ab ü漢"]), Schema.String])
const text = Schema.Array(piece).check(Schema.isMaxLength(10))

/** Every code point of a plane, except surrogates that would form a pair. */
const codePoints = Array.from({ length: 0x1_0000 }, (_, code) => String.fromCodePoint(code))

describe("parameters.email: an email address", () => {
  it.prop("has the published format and no invisible characters", { text }, ({ text }) => {
    const address = text.join("")
    const isSeen = !/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zs}\p{Zl}\p{Zp}\p{DI}\u2800]/u.test(address)
    assert.strictEqual(isEmail(address), PUBLISHED.test(address) && isSeen, JSON.stringify(address))
  })

  it("has no invisible character at any position", () => {
    const hidden = codePoints.filter((character) => /[\p{C}\p{Z}\p{DI}]/u.test(character))
    assert.isAbove(hidden.length, 6000)
    for (const character of [...hidden, "\u2800", "\u{e0020}", "\u{1d173}"]) {
      for (const address of [
        `a${character}b@example.com`,
        `ab@exa${character}mple.com`,
        `ab@example.com${character}`
      ]) {
        assert.isFalse(isEmail(address), JSON.stringify(address))
      }
    }
  })

  it.each(["jenny@example.com", "a+b@example.com", "用户@例子.广告", "müller@exämple.de", "a@b.c.d", "ʼn@exa‐mple.de"])(
    "can be %s",
    (address) => {
      assert.isTrue(Schema.is(Email)(address))
      assert.isTrue(Schema.is(BrandSupport)(`mailto:${address}`))
    }
  )

  it.each(["a\u200bb@example.com", "a\u00a0b@example.com", "a\u007fb@example.com", "a@b", "a@.b", "a@b.", "a@b@c.d"])(
    "is not %j",
    (address) => {
      assert.isFalse(Schema.is(Email)(address))
      assert.isFalse(Schema.is(BrandSupport)(`mailto:${encodeURIComponent(address)}`))
    }
  )

  it("is checked in time proportional to its length", () => {
    for (const piece of ["@", ".", "a.", "@.", "a@b", "\u200b", "."]) {
      const long = `a@${piece.repeat(500_000)}`
      isEmail(long)
      isEmail(`${long} `)
      assert.isFalse(Schema.is(Email)(long))
    }
    assert.isFalse(Schema.is(Email)(`${"a".repeat(EMAIL_LENGTH_MAX)}@example.com`))
  })
})
