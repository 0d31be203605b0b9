/** Amounts for payers: exact, with the decimals of the currency (semantics money.decimals). */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { AMOUNT_MAX } from "../../src/domain/Money.ts"
import { decimalAmount, plainAmount } from "../../src/html/assets/amount.js"
import { formatAmount, formatDecimal, moneyOf } from "../../src/html/Money.ts"
import { translationFor } from "../../src/html/Translation.ts"
import { ISO_CODES } from "../support/Currencies.ts"

const amount = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: AMOUNT_MAX }))
/** The decimal notation of programs. */
const decimalOf = (amount: number, currency: string) => decimalAmount(amount, moneyOf(currency, "en"))
const currency = Schema.Literals([...ISO_CODES, "xyz"])

/** Languages, some with their own digits, some that no browser sends. */
const language = Schema.Union([
  Schema.Literals(["fa", "ar-EG", "de-CH", "mr-IN", "hi-IN", "en-IN", "fr", "en-US,en;q=0.9"]),
  Schema.String
])

describe("an amount", () => {
  it.prop("is written with exactly its digits", { amount, currency }, ({ amount, currency }) => {
    const decimal = decimalOf(amount, currency)
    assert.strictEqual(BigInt(decimal.replace(".", "")), BigInt(amount))
    assert.strictEqual(decimal.split(".")[1]?.length ?? 0, moneyOf(currency, "en").decimals)
    assert.match(decimal, /^(0|[1-9]\d*)(\.\d+)?$/)
    assert.strictEqual(plainAmount(amount, moneyOf(currency, "en")), decimal)
    const shown = formatAmount(amount, currency, "en")
    assert.strictEqual(shown.replaceAll(/[^0-9.]/g, ""), decimal)
  })

  it.prop(
    "with a fraction is written exactly, to its last digit",
    { amount, currency, part: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 999_999_999_999 })) },
    ({ amount, currency, part }) => {
      assert.strictEqual(formatDecimal(String(amount), currency, "en"), formatAmount(amount, currency, "en"))
      const digits = String(part).padStart(12, "0")
      const shown = formatDecimal(`${amount}.${digits}`, currency, "en").replaceAll(/[^0-9.]/g, "")
      const [whole, decimals = ""] = shown.split(".") as [string, string?]
      assert.strictEqual(
        BigInt(whole + decimals.padEnd(moneyOf(currency, "en").decimals + 12, "0")),
        BigInt(`${amount}${digits}`)
      )
    }
  )

  it.prop("has all its digits in any browser's language", { language, amount }, ({ amount, language }) => {
    const shown = formatAmount(amount, "usd", translationFor(language).moneyLocale)
    assert.strictEqual(shown.match(/\p{Nd}/gu)!.length, decimalOf(amount, "usd").length - 1, shown)
  })

  it.each([
    ["de-AT,de;q=0.9", "de-AT"],
    ["pt-BR", "pt-BR"],
    ["zh-Hant-TW;q=0.8", "zh-Hant-TW"],
    ["*", "en"],
    ["", "en"],
    [undefined, "en"],
    ["de-u-nu-arab", "en"],
    ["xx-invalid-too-long", "en"]
  ])("for a browser that asks for %j is written as in %s", (language, locale) => {
    assert.strictEqual(translationFor(language).moneyLocale, locale)
  })
})
