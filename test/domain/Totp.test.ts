/** Codes of authenticator apps, by the examples of RFC 4226, RFC 4648 and RFC 6238. */
import { assert, describe, it } from "@effect/vitest"
import { addressOf, base32, codeOf, stepAt, stepOf } from "../../src/domain/Totp.ts"

const SECRET = Buffer.from("12345678901234567890")

describe("a code of an authenticator app", () => {
  it("is that of RFC 4226, appendix D", () => {
    const codes = ["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"]
    assert.deepStrictEqual(
      codes.map((_, step) => codeOf(SECRET, step)),
      codes
    )
  })

  it.each([
    [59, "94287082"],
    [1_111_111_109, "07081804"],
    [1_111_111_111, "14050471"],
    [1_234_567_890, "89005924"],
    [2_000_000_000, "69279037"],
    [20_000_000_000, "65353130"]
  ])("ends with the digits of RFC 6238, appendix B, at %i", (seconds, code) => {
    assert.strictEqual(codeOf(SECRET, stepAt(seconds)), code.slice(2))
  })

  it("is valid for its step, and for the step before and after", () => {
    const now = 1_234_567_890
    const step = stepAt(now)
    for (const [offset, isValid] of [
      [-2, false],
      [-1, true],
      [0, true],
      [1, true],
      [2, false]
    ] as const) {
      assert.strictEqual(stepOf(SECRET, codeOf(SECRET, step + offset), now), isValid ? step + offset : undefined)
    }
    for (const code of ["", "12345", "1234567", "12345x", "１２３４５６"]) {
      assert.isUndefined(stepOf(SECRET, code, now))
    }
  })

  it("has a secret in base32", () => {
    for (const [text, encoded] of [
      ["", ""],
      ["fooba", "MZXW6YTB"],
      ["12345678901234567890", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"]
    ] as const) {
      assert.strictEqual(base32(Buffer.from(text)), encoded)
    }
    assert.strictEqual(base32(Buffer.alloc(5, 255)), "77777777")
  })

  it("has an address that apps read, for any name", () => {
    const address = new URL(addressOf(SECRET, { issuer: "Till", account: "Lumen: Tea & Co, ada@example.com" }))
    assert.strictEqual(address.protocol, "otpauth:")
    assert.strictEqual(decodeURIComponent(address.pathname.split("/").at(-1)!), "Till:Lumen: Tea & Co, ada@example.com")
    assert.match(address.pathname, /Till:Lumen%3A%20Tea%20%26%20Co/)
    assert.deepStrictEqual(
      [...address.searchParams],
      [
        ["secret", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"],
        ["issuer", "Till"]
      ]
    )
  })
})
