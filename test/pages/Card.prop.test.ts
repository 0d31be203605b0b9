/** Card fields: the server reads a formatted text like the original (semantics pages.card_fields). */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { CARD_FIELDS, type CardField, type FormParts, readEntered } from "../../src/pages/checkout/CheckoutForm.ts"
import { ENGLISH } from "../../src/html/Translation.ts"
import { readExpiry, shapeCode, shapeExpiry, shapeNumber } from "../../src/html/assets/card.js"

const ASKED: FormParts = { amount: null, address: false, card: true, saved: [], phone: false }

const GOOD: Readonly<Record<string, string>> = {
  email: "ana@example.com",
  card_number: "4242424242424242",
  card_expiry: "12/34",
  card_cvc: "123"
}

/** The card of a form, or its errors. */
const readBy = (field: CardField, text: string) => {
  // Form values are trimmed.
  const form = new Map(Object.entries({ ...GOOD, [field]: text.trim() }))
  const { confirmation, errors } = readEntered(ASKED, form, ENGLISH)
  return confirmation?.payment_method_data?.card ?? errors
}

const SHAPES: Readonly<Record<CardField, (text: string) => string>> = {
  card_number: (text) => shapeNumber(text, [4, 6, 5]),
  card_expiry: shapeExpiry,
  card_cvc: shapeCode
}

/** A field after typing a text character by character, or after pasting it. */
const typed = (shape: (text: string) => string, text: string): string =>
  Array.from(text).reduce((shown, character) => shape(shown + character), "")

const literals = (texts: ReadonlyArray<string>) => Schema.Array(Schema.Literals(texts)).check(Schema.isMaxLength(9))
/** Characters of dates; every short text occurs in some run. */
const dates = literals([..."0123459", "20", "2034", "12", "/", "-", " ", " / ", ".", "／", "１", "３４", "۱", "x"])
const numbers = literals([
  ..."01",
  "4242",
  "378282",
  " ",
  "-",
  "4242424242424242",
  "４２４２",
  "٤٢٤٢",
  ".",
  "\u200e",
  "x",
  "/"
])
const texts = Schema.Union([dates, numbers, Schema.Array(Schema.String).check(Schema.isMaxLength(4))])

describe("pages.card_fields: a card's field", () => {
  it.prop(
    "is read the same with and without the script, typed and pasted",
    { texts, field: Schema.Literals(CARD_FIELDS) },
    ({ field, texts }) => {
      const text = texts.join("")
      const expected = readBy(field, text)
      for (const shown of [SHAPES[field](text), typed(SHAPES[field], text), SHAPES[field](SHAPES[field](text))]) {
        assert.deepStrictEqual(readBy(field, shown), expected, JSON.stringify([text, shown]))
      }
    },
    { arbitrary: { runs: 3000 } }
  )

  it("is read the same for every short text of digits and separators", () => {
    const same = (one: ReturnType<typeof readExpiry>, other: typeof one) =>
      one?.month === other?.month && one?.year === other?.year
    const wrong: Array<readonly [text: string, shown: string]> = []
    const tryAll = (text: string, shown: string, characters: string, more: number) => {
      const read = readExpiry(text)
      if (!same(readExpiry(shown), read) || !same(readExpiry(shapeExpiry(text)), read)) wrong.push([text, shown])
      if (more === 0) return
      for (const next of characters) tryAll(text + next, shapeExpiry(shown + next), characters, more - 1)
    }
    tryAll("", "", "0123459/", 5)
    tryAll("", "", "0123/", 7)
    assert.deepStrictEqual(wrong, [])
  }, 60_000)

  const month = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 12 }))
  const year = Schema.Int.check(Schema.isBetween({ minimum: 2000, maximum: 2099 }))
  const separator = Schema.Literals(["/", " / ", "-", " /", ".", " ", "／", ""])

  it.prop(
    "accepts common notations of an expiry date, in digits of any script",
    { month, year, separator, zero: Schema.Literals(["0", "０", "٠", "०"]) },
    ({ month, separator, year, zero }) => {
      const inScript = (text: string) =>
        text.replaceAll(/[0-9]/g, (digit) => String.fromCodePoint(zero.codePointAt(0)! + Number(digit)))
      const two = String(month).padStart(2, "0")
      const written = [
        `${two}${separator}${String(year).slice(2)}`,
        `${two}${separator}${year}`,
        `${year}${separator}${two}`
      ]
      if (separator !== "") written.push(`${month}${separator}${year}`)
      for (const text of written) assert.deepStrictEqual(readExpiry(inScript(text)), { month, year }, text)
    }
  )

  it.each([
    ["2034-12", "12 / 34"],
    ["2034/12", "12 / 34"],
    ["２０３４－１２", "12 / 34"],
    ["１２／３４", "12 / 34"],
    ["12", "12 / "],
    ["122034", "12 / 34"],
    ["534", "05 / 34"],
    ["1/34", "01 / 34"],
    ["12 / 34 / 56", "12 / 34 / 56"],
    ["soon", "soon"]
  ])("shows the expiry %s as %s, pasted and typed", (text, shown) => {
    assert.strictEqual(shapeExpiry(text), shown)
    assert.strictEqual(typed(shapeExpiry, text), shown)
  })

  it.each([
    ["４２４２４２４２４２４２４２４２", "4242 4242 4242 4242"],
    ["4242.4242–4242-4242", "4242 4242 4242 4242"],
    ["42424242424242424242", "4242 4242 4242 4242 4242"],
    ["4242 4242 4242 4242 x", "4242 4242 4242 4242 x"]
  ])("shows the number %s as %s", (text, shown) => {
    assert.strictEqual(shapeNumber(text, [4, 4, 4, 4, 4]), shown)
  })

  it.each(["20341", "134", "2034-13", "00/34", "13/34", "12/3", "12/034", "1912-12", "12/34/56", "", "/"])(
    "rejects the expiry date %j",
    (text) => {
      assert.isUndefined(readExpiry(text))
    }
  )
})
