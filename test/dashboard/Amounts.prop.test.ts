/** Amounts on the dashboard: grouped digits that can be entered again (semantics dashboard.amounts). */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { amountText, grouped, money, plainAmount } from "../../src/dashboard/frame/Values.ts"
import { AMOUNT_MAX } from "../../src/domain/Money.ts"
import { moneyOf } from "../../src/html/Money.ts"
import { readAmount } from "../../src/html/assets/amount.js"
import { ISO_CODES } from "../support/Currencies.ts"

const amount = Schema.Union([
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: AMOUNT_MAX })),
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2_000_000 }))
])
const currency = Schema.Literals([...ISO_CODES, "xyz"])

describe("an amount in the dashboard", () => {
  it.prop("has grouped digits, and can be entered as shown", { amount, currency }, ({ amount, currency }) => {
    const shown = amountText(amount, currency)
    assert.match(shown, /^\d{1,3}(,\d{3})*(\.\d+)? [A-Z]{3}$/)
    assert.strictEqual(shown.replaceAll(",", ""), `${plainAmount(amount, currency)} ${currency.toUpperCase()}`)
    assert.deepStrictEqual(readAmount(shown, moneyOf(currency, "en")), { minor: amount })
    assert.include(money(amount, currency).text, ` value="${plainAmount(amount, currency)}">`)
  })

  it.each([
    ["1234.567891234567", "1,234.567891234567"],
    ["0.000000000001", "0.000000000001"],
    ["999", "999"],
    ["1000000", "1,000,000"]
  ])("with a fraction has no groups after the decimal point: %s", (amount, shown) => {
    assert.strictEqual(grouped(amount), shown)
  })
})
