/** The checkout form is read without a defect, for any input. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { COUNTRY_CODES } from "../../../src/domain/Address.ts"
import { requiredOfAddress } from "../../../src/domain/AddressFormats.ts"
import { ConfirmCheckoutSession } from "../../../src/domain/CheckoutSession.ts"
import type { PaymentMethod } from "../../../src/domain/PaymentMethod.ts"
import { ENGLISH } from "../../../src/html/Translation.ts"
import type { AmountField } from "../../../src/pages/checkout/AmountField.ts"
import {
  CARD_FIELDS,
  complaintsOf,
  DETAIL_FIELDS,
  type Field,
  fieldsOf,
  type FormParts,
  readEntered,
  TOKEN_FIELD
} from "../../../src/pages/checkout/CheckoutForm.ts"

const FIELDS: ReadonlyArray<Field> = [...DETAIL_FIELDS, ...CARD_FIELDS, TOKEN_FIELD]

const AMOUNT: AmountField = {
  currency: "usd",
  decimals: 2,
  locale: "en",
  minimum: 300,
  maximum: 900_000,
  line: 0,
  others: 0,
  offered: null,
  translation: ENGLISH
}

const GOOD: Readonly<Record<Field, string>> = {
  amount: "$1,234.50",
  email: "ana@example.com",
  name: "Ana Lima",
  phone: "+351 1234",
  line1: "1 Rua A",
  line2: "",
  city: "Porto",
  state: "",
  postal_code: "4000",
  country: "PT",
  payment_method: "",
  card_number: "4242 4242-4242 4242",
  card_expiry: "12 / 34",
  card_cvc: "123",
  card_token: "tok_1"
}

const savedCard = (id: string): PaymentMethod => ({
  id,
  object: "payment_method",
  type: "card",
  livemode: false,
  created: 0,
  customer: "cus_1",
  card: {
    brand: "visa",
    last4: "4242",
    exp_month: 12,
    exp_year: 2034,
    funding: "credit",
    country: "US",
    fingerprint: "f",
    checks: { cvc_check: "pass" }
  },
  billing_details: { email: null, name: null, phone: null, address: null },
  metadata: {}
})
const SAVED = [savedCard("pm_1"), savedCard("pm_2")]

const asked = Schema.Struct({
  card: Schema.Boolean,
  isFramed: Schema.Boolean,
  address: Schema.Boolean,
  amount: Schema.Boolean,
  saved: Schema.Boolean,
  phone: Schema.Boolean
})
const askedOf = ({ amount, saved, ...others }: typeof asked.Type): FormParts => ({
  ...others,
  amount: amount ? AMOUNT : null,
  saved: saved && others.card ? SAVED : []
})
/** Values by field, many of them invalid. */
const values = Schema.Array(Schema.Tuple([Schema.Literals(FIELDS as [Field, ...Array<Field>]), Schema.String]))
/** The payer's choice, which may not be one of the offered cards. */
const choice = Schema.Literals(["", "pm_1", "pm_2", "pm_card_visa"])
const isConfirmation = Schema.is(ConfirmCheckoutSession)

describe("the checkout form", () => {
  it.prop("becomes valid parameters of the API, or errors beside its fields", { asked, choice, values }, (input) => {
    const entered = { ...GOOD, ...Object.fromEntries(input.values), payment_method: input.choice }
    const form = new Map(Object.entries(entered))
    const { confirmation, details, errors } = readEntered(askedOf(input.asked), form, ENGLISH)
    const fields = fieldsOf(askedOf(input.asked), form.get("country")!)
    if (confirmation === null) assert.isAbove(Object.keys(errors).length, 0)
    else {
      assert.deepStrictEqual(errors, {})
      assert.isTrue(isConfirmation(confirmation))
      const chosen = input.asked.card && input.choice !== "" ? input.choice : undefined
      assert.strictEqual(confirmation.payment_method, chosen)
      // Only offered cards are accepted.
      if (chosen !== undefined) assert.isTrue(input.asked.saved && chosen !== "pm_card_visa")
      assert.strictEqual(confirmation.payment_method_data !== null, input.asked.card && chosen === undefined)
      if (confirmation.payment_method_data !== null) {
        const names = Object.keys(confirmation.payment_method_data)
        assert.sameMembers(names, ["type", input.asked.isFramed ? "token" : "card", "billing_details"])
      }
      assert.strictEqual("custom_unit_amount" in confirmation, input.asked.amount)
      if (input.asked.amount) assert.isTrue(confirmation.custom_unit_amount! >= 300)
      assert.strictEqual(confirmation.customer_details.address !== null, input.asked.address)
      assert.strictEqual(confirmation.customer_details.phone !== null, input.asked.phone)
    }
    for (const field of Object.keys(errors) as Array<Field>) assert.include([...fields, "payment_method"], field)
    if (input.asked.card && input.choice !== "") {
      for (const field of [...CARD_FIELDS, TOKEN_FIELD]) assert.notInclude(Object.keys(errors), field)
    }
    assert.deepStrictEqual(
      Object.keys(details),
      DETAIL_FIELDS.filter((field) => fields.includes(field))
    )
  })

  const countries = Schema.Literals(["", ...COUNTRY_CODES] as [string, ...Array<string>])

  it.prop(
    "reports each empty required field and no other, in every country",
    { asked, country: countries, values },
    (input) => {
      const empty = new Set(input.values.map(([field]) => field))
      empty.delete("country")
      const filled = Object.entries({ ...GOOD, country: input.country })
      const form = new Map(filled.map(([field, value]) => [field, empty.has(field as Field) ? "" : value]))
      // Only the form for PT is complete; elsewhere a state may be missing too.
      const missing = fieldsOf(askedOf(input.asked), input.country).flatMap((field) => {
        const complaint = complaintsOf(field, input.country, ENGLISH).missing
        return form.get(field) === "" && complaint !== undefined ? [[field, complaint]] : []
      })
      assert.deepStrictEqual(readEntered(askedOf(input.asked), form, ENGLISH).errors, Object.fromEntries(missing))
    }
  )

  it.prop("requires exactly the address that the API requires", { country: countries, values }, (input) => {
    const form = new Map(Object.entries({ ...GOOD, state: "S", country: input.country }))
    for (const [field] of input.values) if (field !== "country") form.set(field, "")
    const { errors } = readEntered({ amount: null, address: true, card: false, saved: [], phone: false }, form, ENGLISH)
    const required = requiredOfAddress(input.country === "" ? null : input.country)
    const missing = required.filter((field) => form.get(field) === "")
    assert.sameMembers(
      Object.keys(errors).filter((field) => field !== "email"),
      missing
    )
  })
})
