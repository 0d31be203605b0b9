/** Decimals of currencies, against the standard's own list (semantics money.decimals). */
import { assert, describe, it } from "@effect/vitest"
import { decimalsOf } from "../../src/domain/Money.ts"
import { ISO_CURRENCIES } from "../support/Currencies.ts"

/** Exceptions in which Till follows Stripe's API, so that no amount changes its meaning. */
const EXCEPTIONS: Readonly<Record<string, number>> = { isk: 2, mga: 0 }

describe("money.decimals: the decimals of a currency", () => {
  it("are those of ISO 4217, with two exceptions", () => {
    assert.isAbove(ISO_CURRENCIES.length, 160)
    assert.deepStrictEqual(Object.fromEntries(ISO_CURRENCIES.map(({ code }) => [code, decimalsOf(code)])), {
      ...Object.fromEntries(ISO_CURRENCIES.map(({ code, decimals }) => [code, decimals])),
      ...EXCEPTIONS
    })
  })

  it("differ from ISO 4217 in each exception", () => {
    const differing = ISO_CURRENCIES.filter(({ code, decimals }) => decimalsOf(code) !== decimals)
    assert.sameMembers(
      differing.map(({ code }) => code),
      Object.keys(EXCEPTIONS)
    )
  })

  it.each([
    ["IQD", 3],
    ["lyd", 3],
    ["clf", 4],
    ["xyz", 2]
  ])("of %s are %i", (currency, decimals) => {
    assert.strictEqual(decimalsOf(currency), decimals)
  })
})
