/**
 * The request log keeps listed members, and no card data, key or secret, at any place (semantics
 * request_log.redaction).
 */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as Document from "../../src/api/openapi/Document.ts"
import { isCardNumber } from "../../src/domain/Cards.ts"
import { clean } from "../../src/domain/Secrets.ts"
import { isKept, loggedOf } from "../../src/http/RequestLogEntry.ts"
import { parseJson } from "../../src/json/JsonParse.ts"
import { requestFields } from "../support/RequestFields.ts"

const ID = "req_1BqYeS9CKeRSUg6BqwfxGpsY"
const ACCOUNT = "mer_1BqYeS9CKeRSUg6BqwfxGpsZ:test"

const logged = (sent: {
  readonly method?: string
  readonly path?: string
  readonly query?: string
  readonly body?: unknown
  readonly idempotencyKey?: string
  readonly status?: number
  readonly answer?: object
}) =>
  loggedOf({
    request: {
      id: ID,
      method: sent.method ?? "POST",
      path: sent.path ?? "/v1/customers",
      query: sent.query ?? "",
      idempotencyKey: sent.idempotencyKey
    },
    apiVersion: "2026-03-09",
    caller: { account: ACCOUNT, apiKey: "key_1BqYeS9CKeRSUg6BqwfxGpsX" },
    answer: { status: sent.status ?? 200, body: JSON.stringify(sent.answer ?? {}) },
    body: sent.body,
    at: 0,
    millis: 1
  })

const digit = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 }))
/** Digits with a valid check digit, in groups, in several scripts, encoded or not. */
const numbers = Schema.Struct({
  digits: Schema.Array(digit).check(Schema.isMinLength(11), Schema.isMaxLength(18)),
  brand: Schema.Literals(["", "4", "5105", "37", "6011"]),
  apart: Schema.Literals(["", "", " ", "-", ".", "/", "_", "\u00a0", "\u2009", " \u2013 ", "\u200b", "  ", "+", ", "]),
  zero: Schema.Literals(["0", "0", "0", "\u0660", "\u0966", "\uff10", "\u{1d7d8}", "\u{1d7f6}"]),
  encoded: Schema.Literals([0, 0, 1, 2])
})
const plainOf = ({ brand, digits }: typeof numbers.Type): string => {
  const rest = (brand + digits.join("")).slice(0, 18)
  return [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((last) => `${rest}${last}`).find(isCardNumber)!
}
const groupsOf = (number: typeof numbers.Type): ReadonlyArray<string> => plainOf(number).match(/.{1,4}/g)!
const numberOf = (number: typeof numbers.Type): string => {
  const zero = number.zero.codePointAt(0)!
  const grouped = groupsOf(number).join(number.apart)
  const written = grouped.replaceAll(/\d/g, (digit) => String.fromCodePoint(zero + Number(digit)))
  return Array.from({ length: number.encoded }).reduce<string>((text) => encodeURIComponent(text), written)
}
/** The digits that a search for card numbers finds in a text. */
const digitsIn = (text: string): string => {
  let reading = text
  for (let times = 0; times < 3; times++) {
    reading = reading.replaceAll(/(?:%[0-9A-F]{2})+/gi, (bytes) =>
      Buffer.from(bytes.replaceAll("%", ""), "hex").toString()
    )
  }
  const places = Array.from(reading, (character) => character.codePointAt(0)!)
  const zeros = [0x30, 0x660, 0x966, 0xff10, 0x1d7d8, 0x1d7f6]
  return places
    .map((place) => zeros.find((zero) => place >= zero && place < zero + 10))
    .map((zero, i) => (zero === undefined ? "" : String(places[i]! - zero)))
    .join("")
}
const SECRETS = [
  "sk_test_0123456789abcdef",
  "sk_live_ABCDEFGHIJ",
  "pk_live_0123456789",
  "whsec_0123456789abcdefghijABCDEFGHIJ01",
  "pi_1BqYeS9CKeRSUg6BqwfxGpsW_secret_0123456789abcdefghijABCD",
  Buffer.from("sk_test_0123456789abcdef:").toString("base64")
]
/** The part of a secret that must not be logged: the text after its prefix. */
const TAILS = SECRETS.map((secret) => secret.slice(-10))
const around = Schema.Literals(["", " ", "x", "ü", '"', "\n", "1", "a=", "/", "\0"])
const names = Schema.Literals([
  "description",
  "metadata",
  "name",
  "card",
  "number",
  "client_secret",
  "payment_method_data",
  "x",
  "__proto__"
])

const textsIn = (value: unknown): ReadonlyArray<string> => {
  if (typeof value !== "object" || value === null) return [String(value)]
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsIn(member)])
}

describe("a request's entry", () => {
  it.prop(
    "contains no possible card number, no key and no secret, sent at any place",
    { number: numbers, secret: Schema.Literals(SECRETS), before: around, behind: around, name: names, outer: names },
    ({ before, behind, name, number, outer, secret }) => {
      for (const evil of [numberOf(number), secret]) {
        const text = before + evil + behind
        const asNumber = /^\d{1,15}$/.test(evil) ? Number(evil) : text
        const kept = logged({
          path: `/v1/customers/${encodeURIComponent(text)}/${evil}`,
          query: new URLSearchParams([
            ["description", text],
            [text, text],
            [name, text]
          ]).toString(),
          idempotencyKey: text,
          body: {
            [outer]: { [name]: text, [text]: [text, asNumber] },
            [text]: 1,
            amount: asNumber,
            metadata: { [text]: text },
            lookup_keys: groupsOf(number),
            tiers: groupsOf(number).map((group) => [Number(group)])
          },
          status: 400,
          answer: { error: { type: "t", code: "c", param: text, message: `No such thing: '${text}'` }, id: text }
        })
        const viaQuery = logged({
          method: "GET",
          query: new URLSearchParams([
            ["email", text],
            [text, text],
            [name, text]
          ]).toString()
        })
        const { at: _, millis: __, id: ___, sent, ...rest } = kept
        const stored = [sent!, viaQuery.sent!]
        const found = [...textsIn(rest), ...stored, ...stored.flatMap((text) => textsIn(parseJson(text)))]
        const plain = plainOf(number)
        for (const text of found) {
          const runs = text.match(/\d{12,19}/g) ?? []
          assert.isFalse(runs.some(isCardNumber), text)
          // Next to another digit it is a different number, unless the card's scheme shows its length.
          const isAlone = !`${before}${behind}`.includes("1")
          if (isAlone || (number.brand !== "" && plain.length >= 14 && plain.length <= 16)) {
            assert.notInclude(digitsIn(text), plain, text)
          }
          for (const tail of TAILS) assert.notInclude(text, tail)
          assert.notInclude(text, "\0")
        }
      }
    },
    { arbitrary: { runs: 60 } }
  )

  it("has all parameters of the contract except card data and client secrets", () => {
    const fields = Object.values(requestFields(Document.make("https://pay.example.test"))).flat()
    const names = fields
      .filter((field) => !field.endsWith(".*"))
      .map((field) =>
        field
          .replaceAll(/\[[a-z]*\]|^\?/g, "")
          .split(".")
          .at(-1)!
      )
    const left = new Set(names.filter((name) => !isKept(name)))
    assert.sameMembers([...left], ["card", "number", "exp_month", "exp_year", "cvc", "token", "client_secret"])
  })

  it("contains listed members as sent", () => {
    const card = { number: "4242424242424242", exp_month: 1, exp_year: 2040, cvc: "987" }
    const body = { amount: 4321, metadata: { order: "12" }, payment_method_data: { card, type: "card" }, color: "red" }
    assert.deepStrictEqual(parseJson(logged({ body }).sent!), {
      amount: 4321,
      metadata: { order: "12" },
      payment_method_data: { card: "****", type: "card" },
      color: "****"
    })
    assert.strictEqual(
      logged({ method: "GET", query: "limit=3&created%5Bgt%5D=5" }).sent,
      '{"limit":"3","created[gt]":"5"}'
    )
    assert.isNull(logged({ method: "DELETE" }).sent)
  })

  it("names the objects of its path and answer, and of no list", () => {
    const [payment, charge, customer] = [
      "pi_1BqYeS9CKeRSUg6BqwfxGpsW",
      "ch_1BqYeS9CKeRSUg6BqwfxGpsW",
      "cus_1BqYeS9CKeRSUg6BqwfxGpsW"
    ] as const
    const answer = {
      id: payment,
      object: "payment_intent",
      latest_charge: charge,
      client_secret: `${payment}_secret_abcdefgh`
    }
    assert.deepStrictEqual(logged({ path: `/v1/customers/${customer}`, answer }).objects, [customer, payment, charge])
    assert.deepStrictEqual(logged({ method: "GET", answer: { object: "list", data: [answer] } }).objects, [])
  })

  it("keeps text that only resembles a secret", () => {
    for (const text of ["order-1234", "pi_1BqYeS9CKeRSUg6BqwfxGpsW", "risk_test", "2026-03-09T10:11:12.345Z"]) {
      assert.strictEqual(clean(text), text)
    }
  })
})
