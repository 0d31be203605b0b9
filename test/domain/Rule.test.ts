/** Rules, as read back from a failed decode. */
import { assert, describe, it } from "@effect/vitest"
import { Exit, Schema } from "effect"
import { enable } from "effect/schema/SchemaJITCompiler"
import { BillingDetailsParameter } from "../../src/domain/Address.ts"
import { RedirectUrl } from "../../src/domain/RedirectUrl.ts"
import { Email, text, unsettable, WebUrl } from "../../src/domain/Text.ts"
import { CustomerId } from "../../src/domain/Identifiers.ts"
import { MetadataParameter } from "../../src/domain/Metadata.ts"
import { Amount, Currency } from "../../src/domain/Money.ts"
import { CaptureMethod } from "../../src/domain/PaymentIntent.ts"
import { PaymentMethodData } from "../../src/domain/PaymentMethod.ts"
import { violations } from "../../src/domain/Rule.ts"

const body = () =>
  Schema.Struct({
    amount: Amount,
    currency: Schema.optionalKey(Currency),
    capture_method: Schema.optionalKey(Schema.NullOr(CaptureMethod)),
    customer: Schema.optionalKey(Schema.NullOr(CustomerId)),
    email: Schema.optionalKey(unsettable(Email)),
    name: Schema.optionalKey(Schema.NullOr(text(3))),
    confirm: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
    metadata: Schema.optionalKey(unsettable(MetadataParameter)),
    payment_method_data: Schema.optionalKey(Schema.NullOr(PaymentMethodData)),
    billing_details: Schema.optionalKey(BillingDetailsParameter),
    url: Schema.optionalKey(WebUrl),
    return_url: Schema.optionalKey(Schema.NullOr(RedirectUrl))
  })

const decoder = (schema: ReturnType<typeof body>) =>
  Schema.decodeUnknownExit(schema, { errors: "all", onExcessProperty: "error" })

const interpreted = decoder(body())
const compiledBody = body()
enable(compiledBody.ast)
const compiled = decoder(compiledBody)

/** Returns the errors of an input. The compiled decoder must report the same errors as the interpreted one. */
const wrongs = (input: unknown): ReadonlyArray<readonly [string, string]> => {
  const reported = wrongsOf(interpreted(input))
  assert.deepStrictEqual(wrongsOf(compiled(input)), reported)
  return reported
}

const wrongsOf = (exit: ReturnType<typeof interpreted>): ReadonlyArray<readonly [string, string]> => {
  if (Exit.isSuccess(exit)) return []
  return exit.cause.reasons.flatMap((reason) =>
    reason._tag !== "Fail"
      ? []
      : violations(reason.error.issue).map(
          ({ kind, path, rule }) => [path.join("."), kind === "invalid" ? rule : kind] as const
        )
  )
}

const card = { number: "4242424242424242", exp_month: 1, exp_year: 2030 }

const REDIRECT_RULE =
  "an absolute URL of at most 5000 characters that a browser can be redirected to: https://…, http://…, or an app's own " +
  "scheme (app://…), without username and password"

describe("Rules", () => {
  const cases: ReadonlyArray<readonly [string, unknown, string]> = [
    ["amount", "1", "a positive integer"],
    ["amount", 1.5, "a positive integer"],
    ["amount", 0, "a positive integer"],
    ["amount", 2 ** 53, "a positive integer"],
    ["amount", null, "a positive integer"],
    ["currency", "us", "a three-letter currency code"],
    ["capture_method", "x", "one of `automatic`, `manual`"],
    ["capture_method", 1, "one of `automatic`, `manual`"],
    ["customer", "cus-1", "an ID that begins with cus_"],
    ["customer", 1, "an ID that begins with cus_"],
    ["customer", "", "an ID that begins with cus_"],
    ["email", "a@b", "a valid email address of at most 320 characters"],
    ["email", `${"a".repeat(320)}@b.c`, "a valid email address of at most 320 characters"],
    ["name", "abcd", "a string of at most 3 characters"],
    ["name", 1, "a string of at most 3 characters"],
    ["confirm", "true", "a boolean"],
    ["metadata", 1, "an object with at most 50 keys, each of 1 to 40 characters and without square brackets"],
    ["url", "ftp://x.example", "an absolute http or https URL of at most 5000 characters"],
    ["url", "/path", "an absolute http or https URL of at most 5000 characters"],
    ["return_url", "java\nscript:alert(1)", REDIRECT_RULE],
    ["return_url", " data:text/html,x", REDIRECT_RULE]
  ]
  for (const [field, value, rule] of cases) {
    it(`${field} ${JSON.stringify(value).slice(0, 40)}`, () => {
      assert.deepStrictEqual(wrongs({ amount: 1, [field]: value }), [[field, rule]])
    })
  }

  it("accept valid values, null, and absent fields", () => {
    const input = {
      amount: 9_007_199_254_740_991,
      currency: "uSd",
      customer: null,
      email: "",
      name: "𝒳𝒳𝒳",
      confirm: null,
      metadata: "",
      payment_method_data: { type: "card", card: { ...card, cvc: null }, billing_details: { name: "" } },
      return_url: "app://back?id={CHECKOUT_SESSION_ID}"
    }
    assert.deepStrictEqual(wrongs(input), [])
  })

  it("name unknown and missing fields, at any depth", () => {
    assert.deepStrictEqual(wrongs({ metadata: { a: 1 }, amonut: 1 }), [
      ["amonut", "unknown"],
      ["amount", "missing"],
      ["metadata.a", "a string of at most 500 characters"]
    ])
    const payment_method_data = {
      card: { number: "4242424242424241", exp_month: 13, exp_year: 30, cvc: "12", pin: "1" },
      billing_details: { address: { city: 1 } }
    }
    assert.sameDeepMembers(
      [...wrongs({ amount: 1, payment_method_data })],
      [
        ["payment_method_data.type", "missing"],
        ["payment_method_data.card.pin", "unknown"],
        ["payment_method_data.card.number", "a valid card number of 12 to 19 digits"],
        ["payment_method_data.card.exp_month", "an integer from 1 to 12"],
        ["payment_method_data.card.exp_year", "a year of four digits"],
        ["payment_method_data.card.cvc", "a string of 3 or 4 digits"],
        ["payment_method_data.billing_details.address.city", "a string of at most 5000 characters"]
      ]
    )
  })

  it("report a root that is not an object", () => {
    for (const input of [null, [], 1, "x"]) assert.deepStrictEqual(wrongs(input), [["", "an object"]])
  })
})
