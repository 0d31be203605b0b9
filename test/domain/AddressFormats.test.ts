/** The address formats of countries (semantics pages.address), from the package's data. */
import { assert, describe, it } from "@effect/vitest"
import { COUNTRY_CODES } from "../../src/domain/Address.ts"
import { addressFormatOf, requiredOfAddress } from "../../src/domain/AddressFormats.ts"
import { en } from "../../src/html/texts/en.ts"

/** The parts in order, with their local names; `!` marks required ones. */
const shapeOf = (country: string): string => {
  const { names, parts, required } = addressFormatOf(country)
  return parts.map((part) => en[`part.${names[part]}`] + (required.includes(part) ? "!" : "")).join(", ")
}

describe("pages.address: an address", () => {
  it.each([
    ["HK", "area!, district, address!"],
    ["AE", "address!, emirate!"],
    ["IE", "address!, city!, county, Eircode"],
    ["JP", "postal code!, prefecture!, address!"],
    ["GB", "address!, town or city!, postal code!"],
    ["US", "address!, city!, state!, ZIP code!"],
    ["IN", "address!, city!, PIN code!, state!"],
    ["DE", "address!, postal code!, city!"],
    ["SG", "address!, postal code!"],
    ["KR", "do/si!, city!, address!, postal code!"]
  ])("in %s has %s", (country, shape) => {
    assert.strictEqual(shapeOf(country), shape)
  })

  it("of a country without a rule of its own, or of none, has the data's default format", () => {
    for (const country of ["AQ", "ZZ", "", "jp", "../JP"]) assert.strictEqual(shapeOf(country), "address!, city!")
  })

  it("has a rule in every country, which requires only parts of the country's addresses", () => {
    assert.isAbove(COUNTRY_CODES.length, 240)
    for (const country of COUNTRY_CODES) {
      const { names, parts, required } = addressFormatOf(country)
      assert.includeMembers([...parts], [...required], country)
      assert.strictEqual(new Set(parts).size, parts.length, country)
      assert.include(required, "line1", country)
      for (const part of parts) assert.match(en[`part.${names[part]}`], /^[A-Za-z/ ]{3,}$/u, country)
      const asked = requiredOfAddress(country)
      assert.deepStrictEqual(asked.slice(0, 2), ["line1", "country"], country)
      assert.sameMembers([...asked], [...required, "country"], country)
    }
  })

  it("without a country lacks it", () => {
    assert.deepStrictEqual(requiredOfAddress(null), ["line1", "country", "city"])
  })
})
