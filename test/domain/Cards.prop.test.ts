/** Card numbers and expiry dates. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  brandOf,
  cvcLengthOf,
  isCardNumber,
  isExpired,
  luhnChecksum,
  withoutCardNumbers
} from "../../src/domain/Cards.ts"
import { TEST_CARDS } from "../../src/domain/TestCards.ts"

const digits = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 })))
const payload = digits.check(Schema.isMinLength(11), Schema.isMaxLength(18))

describe("Card numbers", () => {
  it.prop("have exactly one valid check digit", { payload }, ({ payload }) => {
    const fitting = "0123456789".split("").filter((digit) => isCardNumber(payload.join("") + digit))
    assert.lengthOf(fitting, 1)
  })

  it.prop(
    "detect every mistyped digit, and every swap of neighbours except 09",
    { payload, at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10 })), by: Schema.Literals([1, 5, 9]) },
    ({ at, by, payload }) => {
      const body = payload.join("")
      const number = body + String((10 - luhnChecksum(`${body}0`)) % 10)
      assert.isTrue(isCardNumber(number))
      const changed = String((Number(number[at]) + by) % 10)
      assert.isFalse(isCardNumber(number.slice(0, at) + changed + number.slice(at + 1)))
      const pair = number.slice(at, at + 2)
      const swapped = number.slice(0, at) + pair.split("").toReversed().join("") + number.slice(at + 2)
      const blind = pair[0] === pair[1] || pair === "09" || pair === "90"
      assert.strictEqual(isCardNumber(swapped), blind)
    }
  )

  it("have 12 to 19 digits, and only digits", () => {
    for (const number of [
      "00000000000",
      "0".repeat(20),
      "4242 4242 4242 4242",
      "4242-4242-4242-4242",
      "",
      "٤٢٤٢٤٢٤٢٤٢٤٢"
    ]) {
      assert.isFalse(isCardNumber(number), number)
    }
    for (const length of [12, 19]) assert.isTrue(isCardNumber("0".repeat(length)))
  })

  it("determine their brand", () => {
    for (const { brand, numbers } of TEST_CARDS)
      for (const number of numbers) assert.strictEqual(brandOf(number), brand)
    assert.strictEqual(brandOf("9999999999999995"), "unknown")
    assert.strictEqual(brandOf("2223003122003222"), "mastercard")
  })
})

describe("Cards", () => {
  it.prop(
    "are valid until the end of their month, in UTC",
    {
      year: Schema.Int.check(Schema.isBetween({ minimum: 1971, maximum: 2200 })),
      month: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 12 }))
    },
    ({ month, year }) => {
      const over = Date.UTC(year, month, 1)
      assert.isFalse(isExpired({ exp_month: month, exp_year: year }, over - 1))
      assert.isTrue(isExpired({ exp_month: month, exp_year: year }, over))
    }
  )
})

describe("Security codes", () => {
  it("payment_methods.create: have four digits on American Express, three elsewhere", () => {
    for (const { brand, numbers } of TEST_CARDS) {
      for (const number of numbers) assert.strictEqual(cvcLengthOf(number), brand === "amex" ? 4 : 3, number)
    }
    assert.strictEqual(cvcLengthOf("9000000000000001"), 3)
  })
})

describe("Card numbers in texts", () => {
  const around = Schema.Literals(["", "x", "cus_", "12", " and ", "][", "'"])
  const between = Schema.Literals(["", " ", "-", ".", "_", "][", "/", "\u00a0", " \u2014 ", '","', "%20", "%E2%80%93"])
  const number = Schema.Literals(TEST_CARDS.flatMap(({ numbers }) => numbers) as [string, ...Array<string>])

  it.prop("are hidden in every grouping and context", { around, between, number }, (input) => {
    const grouped = (input.number.match(/.{1,4}/gu) ?? []).join(input.between)
    const shown = withoutCardNumbers(`${input.around}${grouped}${input.around}`)
    assert.notInclude(shown, grouped)
    assert.notMatch(shown, /[0-9]{4}/u)
  })

  it("are hidden in digits of other scripts, and in any length if they stand alone", () => {
    for (const text of [
      "\u0664\u0662".repeat(8),
      "\uff14\uff12\uff14\uff12 ".repeat(4),
      "\u{1d7d2}\u{1d7d0}".repeat(8),
      "%D9%A4%D9%A2".repeat(8),
      "%2534%2532".repeat(8),
      "000000000000",
      "0000 0000 0000",
      "9999 9999 9999 9999 998",
      "9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 8"
    ]) {
      assert.include(withoutCardNumbers(`Card: ${text}.`), "****", text)
    }
  })

  it("are found quickly in texts that consist of digits", () => {
    const begun = performance.now()
    for (const text of [
      "4".repeat(1e6),
      "4 ".repeat(5e5),
      "%34".repeat(3e5),
      "\u0664".repeat(5e5),
      "4     ".repeat(2e5),
      "42424242424,,,".repeat(7e4),
      "3x".repeat(5e5)
    ]) {
      withoutCardNumbers(text)
    }
    assert.isBelow(performance.now() - begun, 5000)
    assert.strictEqual(withoutCardNumbers("4".repeat(1e6)), "****")
  })

  it("leave other texts unchanged", () => {
    for (const text of [
      "cus_000000000000000000000000",
      "1000000000000001",
      "line_items[0][price_data][product]",
      "2026-03-09, 2026-03-10",
      "2026-03-09 10:11:12.345 +01:00",
      "pi_1fK3dV9ab7Qe0TzXw5MnR2Lc",
      "424242424241",
      ""
    ]) {
      assert.strictEqual(withoutCardNumbers(text), text)
    }
  })
})
