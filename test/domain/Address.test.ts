/** Countries (semantics parameters.people). */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Country, COUNTRY_CODES, isCountry } from "../../src/domain/Address.ts"

/** Codes in CLDR that ISO 3166-1 has not assigned: withdrawn, reserved, for groups of countries, or for private use. */
const NOT_ASSIGNED = new Set(
  "AC AN BU CP CQ CS DD DG DY EA EU EZ FX HV IC NH QO RH SU TA TP UK UN VD XA XB XK YD YU ZR ZZ".split(" ")
)
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ".split("")

describe("Countries", () => {
  it("are all those in CLDR that ISO 3166-1 has assigned", () => {
    const names = new Intl.DisplayNames(["en"], { type: "region", fallback: "none" })
    const pairs = LETTERS.flatMap((first) => LETTERS.map((second) => first + second))
    const assigned = pairs.filter((code) => names.of(code) !== undefined && !NOT_ASSIGNED.has(code))
    assert.deepStrictEqual(COUNTRY_CODES.toSorted(), assigned)
    assert.lengthOf(COUNTRY_CODES, 249)
  })

  it("may be written in either case, and are no other text", () => {
    const accepts = Schema.is(Country)
    for (const code of COUNTRY_CODES) {
      assert.isTrue(accepts(code))
      assert.isTrue(accepts(code.toLowerCase()))
      assert.isFalse(isCountry(code.toLowerCase()))
    }
    for (const code of [...NOT_ASSIGNED, "", "U", "USA", "U ", " US", "ß", "ﬁ"]) assert.isFalse(accepts(code), code)
  })
})
