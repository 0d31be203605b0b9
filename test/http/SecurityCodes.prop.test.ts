/**
 * No data derived from a card's security code outlives its request: everything stored about a request is the same for
 * all digits of the code (semantics idempotency.fingerprint, payment_methods.create, payment_methods.card_data; the
 * request log: semantics request_log.redaction).
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { loggedOf } from "../../src/http/RequestLogEntry.ts"
import { clockOf } from "../support/SettableClock.ts"
import { type MemoryTill, type Reply, start } from "../support/MemoryTill.ts"

const NOW = Date.UTC(2026, 10, 20)

let server: MemoryTill
beforeAll(async () => void (server = await start({ clock: clockOf(() => NOW) })))
afterAll(() => server.close())

/** An Amex, whose code has four digits, and cards that pay, decline, and require authentication. */
const CARDS = [
  "4242424242424242",
  "378282246310005",
  "4000000000000002",
  "4000000000000127",
  "4000002500003155"
] as const

const cvcOf = (card: string, digits: number): string => {
  const length = card.startsWith("3") ? 4 : 3
  return String(digits % 10 ** length).padStart(length, "0")
}

let runs = 0

interface Kept {
  readonly replies: ReadonlyArray<readonly [number, string]>
  readonly records: ReadonlyArray<string>
}

/** Replaces random ids and values derived from them by the place of their first occurrence. */
const namer = () => {
  const names = new Map<string, string>()
  return (text: string): string =>
    text
      .replaceAll(/\b[a-z]+_(?:test_)?[0-9A-Za-z]{15,}(?:_secret_[0-9A-Za-z]+)?/gu, (id) => {
        if (!names.has(id)) names.set(id, `#${names.size}`)
        return names.get(id)!
      })
      // Record and event numbers and the running time differ between runs.
      .replaceAll(/"(version|sequence|eventVersion|ran)":\d+/gu, '"$1":0')
      .replaceAll(/run-\d+/gu, "run")
}

/** Sends every request that accepts a card. Returns the answers, and the journal afterwards. */
const keep = async (card: string, cvc: string): Promise<Kept> => {
  const run = `run-${++runs}`
  const name = namer()
  const account = `${server.keys.merchantId}:test`
  const recordsNow = async () => (await server.journal(account)).split("\n").filter((line) => line !== "")
  const before = (await recordsNow()).length
  const data = { type: "card", card: { number: card, exp_month: 12, exp_year: 2034, cvc } }
  const replies: Array<readonly [number, string]> = []
  const post = async (path: string, body: object): Promise<Reply> => {
    const idempotencyKey = `${run} ${replies.length}`
    const reply = await server.request("POST", path, { body, idempotencyKey })
    replies.push([reply.status, name(reply.text)])
    return reply
  }
  await post("/v1/payment_methods", data)
  await post("/v1/payment_intents", { amount: 2000, currency: "usd", payment_method_data: data, confirm: true })
  // Invalid input: also a code that is too long.
  await post("/v1/payment_methods", { ...data, card: { ...data.card, cvc: `${cvc}${cvc}` } })
  const records = (await recordsNow()).slice(before).map(name)
  return { replies, records }
}

const digits = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9999 }))

describe("a security code", () => {
  it.effect.prop(
    "affects answers and journal only by its outcome",
    { card: Schema.Literals(CARDS), one: digits, other: digits },
    ({ card, one, other }) =>
      Effect.promise(async () => {
        const first = await keep(card, cvcOf(card, one))
        assert.isNotEmpty(first.records)
        const second = await keep(card, cvcOf(card, other))
        assert.deepStrictEqual(second.replies, first.replies)
        assert.deepStrictEqual(second.records, first.records)
      }),
    { arbitrary: { runs: 40 } }
  )

  it.effect.prop(
    "may differ in a repeated request: under the same key, the first answer is repeated",
    { card: Schema.Literals(CARDS), one: digits, other: digits },
    ({ card, one, other }) =>
      Effect.promise(async () => {
        const idempotencyKey = `again-${++runs}`
        const send = (cvc: string | undefined) => {
          const data = { number: card, exp_month: 12, exp_year: 2034, ...(cvc !== undefined && { cvc }) }
          const body = { type: "card", card: data }
          return server.request("POST", "/v1/payment_methods", { body, idempotencyKey })
        }
        const first = await send(cvcOf(card, one))
        const second = await send(cvcOf(card, other))
        assert.deepStrictEqual([second.status, second.text], [first.status, first.text])
        assert.strictEqual(second.headers.get("idempotent-replayed"), "true")
        const without = await send(undefined)
        assert.deepStrictEqual([without.status, without.body.error.code], [422, "idempotency_key_reuse"])
      }),
    { arbitrary: { runs: 20 } }
  )

  it.prop(
    "is not in the request log, at any place in a request",
    {
      one: digits,
      other: digits,
      path: Schema.Literals(["/v1/payment_methods", "/v1/payment_intents", "/v1/customers"]),
      place: Schema.Literals(["payment_method_data.card.cvc", "card.cvc", "payment_method_data.cvc", "cvc"]),
      isQuery: Schema.Boolean
    },
    ({ isQuery, one, other, path, place }) => {
      const of = (cvc: string) => {
        const [outer, ...inner] = place.split(".")
        const body = { [outer!]: inner.reduceRight<unknown>((value, name) => ({ [name]: value }), cvc), amount: 2000 }
        const query = new URLSearchParams([[`${outer}${inner.map((name) => `[${name}]`).join("")}`, cvc]]).toString()
        return loggedOf({
          request: {
            id: "req_1BqYeS9CKeRSUg6BqwfxGpsY",
            method: isQuery ? "GET" : "POST",
            path,
            query: isQuery ? query : "",
            idempotencyKey: "key"
          },
          apiVersion: "2026-03-09",
          caller: { account: "mer_1BqYeS9CKeRSUg6BqwfxGpsZ:test", apiKey: "key_1BqYeS9CKeRSUg6BqwfxGpsX" },
          answer: { status: 200, body: "{}" },
          body: isQuery ? undefined : body,
          at: 0,
          millis: 1
        })
      }
      assert.deepStrictEqual(of(cvcOf("4", one)), of(cvcOf("4", other)))
    },
    { arbitrary: { runs: 200 } }
  )
})
