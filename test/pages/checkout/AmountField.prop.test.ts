/** Semantics pages.amount: amounts in the payer's notation, currency and language are read exactly or refused. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { AMOUNT_MAX } from "../../../src/domain/Money.ts"
import {
  formatAmount,
  plainAmount,
  type Problem,
  type Read,
  readAmount,
  readAmountWithin
} from "../../../src/html/assets/amount.js"
import { moneyOf, problemText } from "../../../src/html/Money.ts"
import { ISO_CODES } from "../../support/Currencies.ts"

const amount = Schema.Union([
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: AMOUNT_MAX })),
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2_000_000 }))
])
const currency = Schema.Literals([...ISO_CODES, "xyz"])

/** Languages with every notation of numbers: signs, digits, groups and directions. */
const LOCALES =
  "en en-US en-IN en-ZA de de-AT de-CH fr fr-CH es es-MX pt pt-PT it nl da sv nb fi pl cs hu ro bg el tr ru uk he ar " +
  "ar-EG ar-SA fa ur hi mr ne bn my th vi ja ko zh zh-Hant-TW ka hy az kk sw am et lv lt is mt eu ccp ff-Adlm"
const locale = Schema.Literals(LOCALES.split(" "))

/** The English text about an amount that was refused. */
const problemOf = (read: Read): string => {
  assert.isDefined(read.problem)
  return problemText(read as Problem)
}

describe("the amount that a payer enters", () => {
  it.prop(
    "is read back as it is written in any language, with its currency or without",
    { amount, currency, locale },
    ({ amount, currency, locale }) => {
      const money = moneyOf(currency, locale)
      const written = [
        formatAmount(amount, money),
        plainAmount(amount, money),
        plainAmount(amount, moneyOf(currency, "en"))
      ]
      // Before three decimals, a point may also separate groups in languages with a decimal comma.
      const isAmbiguous = money.decimals === 3 && !plainAmount(1, money).includes(".")
      for (const text of isAmbiguous ? written.slice(0, 2) : written) {
        assert.deepStrictEqual(readAmount(text, money), { minor: amount }, text)
      }
      assert.deepStrictEqual(readAmount(` ${currency} ${written[1]} `, money), { minor: amount })
      assert.deepStrictEqual(readAmount(`${written[1]} ${currency.toUpperCase()}`, money), { minor: amount })
    },
    { arbitrary: { runs: 300 } }
  )

  it.prop(
    "never differs from its digits",
    { text: Schema.String, written: Schema.Array(Schema.Literals([..."0123456789.,' $-e"])), currency, locale },
    ({ currency, locale, text, written }) => {
      const money = moneyOf(currency, locale)
      for (const entered of [text, written.join("")]) {
        const read = readAmount(entered, money)
        if (read.problem !== undefined) {
          assert.match(problemText(read), /^(Enter|This) .*\.$/)
          continue
        }
        const { minor } = read
        const digits = [...entered.normalize("NFKC")].filter((one) => /\p{Nd}/u.test(one)).length
        assert.isAbove(digits, 0)
        const shown = entered.replaceAll(/[^0-9]/g, "")
        if (shown.length !== digits || shown.length > 15) continue
        // The digits, with zeros for missing decimals.
        const zeros = [0, 1, 2, 3, 4].filter((count) => count <= money.decimals)
        assert.include(
          zeros.map((count) => Number(shown + "0".repeat(count))),
          minor,
          entered
        )
      }
    },
    { arbitrary: { runs: 300 } }
  )

  it.each([
    ["en", "usd", "10", 1000],
    ["en", "usd", "10.5", 1050],
    ["en", "usd", "$1,234.50", 123_450],
    ["en", "usd", "1234,5", 123_450],
    ["en", "usd", "1.234,50", 123_450],
    ["en", "usd", "1,234", 123_400],
    ["en", "usd", "1.234.567", 123_456_700],
    ["en", "usd", "1 234.5", 123_450],
    ["en", "usd", "1'234", 123_400],
    ["en", "usd", ".5", 50],
    ["en", "usd", "5.", 500],
    ["en", "usd", "US$ 5", 500],
    ["en", "usd", "５０", 5000],
    ["de", "eur", "10,5 €", 1050],
    ["de", "eur", "10.50", 1050],
    ["de", "eur", "1.234", 123_400],
    ["de-CH", "chf", "CHF 1’234.50", 123_450],
    ["en-IN", "inr", "₹1,23,456.50", 12_345_650],
    ["ar-EG", "usd", "١٠٫٥٠", 1050],
    ["en", "jpy", "¥1,050", 1050],
    ["ja", "jpy", "１０５０", 1050],
    ["en", "kwd", "1.5", 1500],
    ["en", "kwd", "1.234", 1234],
    ["de", "kwd", "1,234", 1234],
    ["en", "kwd", "1,234.5", 1_234_500],
    ["en", "kwd", "0,234", 234],
    ["da", "dkk", "10 kr", 1000]
  ] as const)("in %s and %s: %s is %d", (locale, currency, text, minor) => {
    assert.deepStrictEqual(readAmount(text, moneyOf(currency, locale)), { minor })
  })

  it.each([
    ["en", "usd", "", "Enter an amount."],
    ["en", "usd", "$", "Enter an amount."],
    ["en", "usd", "ten", "Enter an amount such as 10.50."],
    ["en", "usd", "-5", "Enter an amount such as 10.50."],
    ["en", "usd", "1e3", "Enter an amount such as 10.50."],
    ["en", "usd", "€5", "Enter an amount such as 10.50."],
    ["en", "usd", "1,23,4", "Enter an amount such as 10.50."],
    ["en", "usd", "1 23", "Enter an amount such as 10.50."],
    ["en", "usd", "1.234", "Enter at most 2 decimals, as in 10.50."],
    ["en", "usd", "0,125", "Enter at most 2 decimals, as in 10.50."],
    ["de", "eur", "1,234", "Enter at most 2 decimals, as in 10,50."],
    ["en", "jpy", "10.5", "Enter a whole amount, such as 1050."],
    ["en", "jpy", "1.234", "Enter a whole amount, such as 1050."],
    ["en", "kwd", "1,234", "This could mean two amounts. Enter 1.234 or 1234.000."],
    ["de", "kwd", "1.234", "This could mean two amounts. Enter 1,234 or 1234,000."],
    ["en", "kwd", "1.2345", "Enter at most 3 decimals, as in 10.500."]
  ] as const)("in %s and %s: %j is refused: %s", (locale, currency, text, problem) => {
    assert.strictEqual(problemOf(readAmount(text, moneyOf(currency, locale))), problem)
  })

  it("lies within its bounds", () => {
    const field = { ...moneyOf("usd", "en"), minimum: 300, maximum: AMOUNT_MAX }
    assert.deepStrictEqual(readAmountWithin("3", field), { minor: 300 })
    assert.strictEqual(problemOf(readAmountWithin("2.99", field)), "Enter at least $3.00.")
    assert.strictEqual(problemOf(readAmountWithin("0", field)), "Enter at least $3.00.")
    assert.deepStrictEqual(readAmountWithin("9999999999.99", field), { minor: AMOUNT_MAX })
    for (const text of ["10000000000", "9".repeat(400)]) {
      assert.strictEqual(problemOf(readAmountWithin(text, field)), "Enter at most $9,999,999,999.99.")
    }
    assert.strictEqual(problemOf(readAmountWithin("x", field)), "Enter an amount such as 10.50.")
  })
})
