/** Every malformed request is answered: never with a 5xx, and every refusal has the whole envelope. */
import "effect/schema/SchemaJITCompiler/enable"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { assertEnvelope, assertHeaders } from "./Assertions.ts"
import { type MemoryTill, type Reply, start } from "../support/MemoryTill.ts"

let server: MemoryTill
let intent: string
let customer: string
beforeAll(async () => {
  server = await start()
  customer = (await server.request("POST", "/v1/customers")).body.id
  intent = (await server.request("POST", "/v1/payment_intents", { body: { amount: 1, currency: "usd" } })).body.id
})
afterAll(() => server.close())

const assertAnswered = (reply: Reply): void => {
  assert.isBelow(reply.status, 500, reply.text)
  if (reply.status === 200) assertHeaders(reply)
  else assertEnvelope(reply)
}

const pathOf = (path: string) => path.replace("{pi}", intent).replace("{cus}", customer)

const POSTS = [
  "/v1/customers",
  "/v1/customers/{cus}",
  "/v1/payment_intents",
  "/v1/payment_intents/{pi}",
  "/v1/payment_intents/{pi}/confirm",
  "/v1/payment_intents/{pi}/capture",
  "/v1/test_helpers/payment_intents/{pi}/authenticate"
] as const

/** JSON values that could break a parser, a store or a careless merge. */
const value = Schema.Literals([
  "null",
  "true",
  "0",
  "-0",
  "1",
  "1e309",
  "-1e309",
  "1e-400",
  "9007199254740993",
  "123456789012345678901234567890",
  '""',
  '"usd"',
  '"cus_x"',
  '"pm_card_visa"',
  '"\\u0000"',
  '"\\ud800"',
  '"\\udfff\\ud800"',
  '"\u2028\u2029"',
  '"\u{1f600}"',
  '"__proto__"',
  "[]",
  "{}",
  "[[[[]]]]",
  `${"[".repeat(63)}${"]".repeat(63)}`,
  `${"[".repeat(5000)}${"]".repeat(5000)}`,
  '{"__proto__":{"polluted":true}}',
  '{"__proto__":"text"}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"card":{"number":"4242424242424242","exp_month":1,"exp_year":1e309}}',
  '{"type":"card","card":{"number":"4242424242424242","exp_month":12,"exp_year":2040,"cvc":"123"}}',
  '{"toString":1,"valueOf":null,"hasOwnProperty":[]}',
  '{"a":"b","":"c"}'
])

const key = Schema.Literals([
  "amount",
  "currency",
  "customer",
  "metadata",
  "payment_method",
  "payment_method_data",
  "confirm",
  "name",
  "email",
  "description",
  "return_url",
  "outcome",
  "amount_to_capture",
  "client_secret",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "",
  "\\u0000",
  "\\ud800"
])

const member = Schema.Struct({ key, value })

describe("garbage", () => {
  it.effect.prop(
    "in members",
    { path: Schema.Literals(POSTS), members: Schema.Array(member).check(Schema.isMaxLength(6)) },
    ({ members, path }) =>
      Effect.promise(async () => {
        const body = `{${members.map(({ key, value }) => `"${key}":${value}`).join(",")}}`
        assertAnswered(await server.request("POST", pathOf(path), { body }))
        assert.notProperty({}, "polluted")
      }),
    { arbitrary: { runs: 400 } }
  )

  it.effect.prop(
    "in bytes",
    {
      path: Schema.Literals(POSTS),
      bytes: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 })))
    },
    ({ bytes, path }) =>
      Effect.promise(async () => {
        const body = new Uint8Array(bytes)
        assertAnswered(await server.request("POST", pathOf(path), { body }))
      }),
    { arbitrary: { runs: 150 } }
  )

  it.effect.prop(
    "in text that is nearly JSON",
    {
      pieces: Schema.Array(
        Schema.Literals(["{", "}", "[", "]", '"', ":", ",", "\\", "\\u", "name", "1", "e", "-", "\0", " "])
      )
    },
    ({ pieces }) =>
      Effect.promise(async () =>
        assertAnswered(await server.request("POST", "/v1/customers", { body: pieces.join("") }))
      ),
    { arbitrary: { runs: 150 } }
  )

  it.effect.prop(
    "in queries and paths",
    {
      path: Schema.Literals(["/v1/customers", "/v1/events", "/v1/payment_intents/{pi}", "/v1/", "/v1/customers/"]),
      rest: Schema.Array(
        Schema.Literals([
          "?",
          "&",
          "=",
          "limit",
          "starting_after",
          "expand[]",
          "[",
          "]",
          "%",
          "%00",
          "%ff",
          "/",
          ".",
          "..",
          "a",
          "100",
          "+",
          "type",
          "*",
          ";"
        ])
      )
    },
    ({ path, rest }) =>
      Effect.promise(async () => {
        const reply = await server.request("GET", pathOf(path) + rest.join(""))
        assert.isBelow(reply.status, 500, reply.text)
        if (reply.status !== 200) assertEnvelope(reply)
      }),
    { arbitrary: { runs: 300 } }
  )

  it("in bulk: 10 MB", async () => {
    const bodies = [
      "[".repeat(10_000_000),
      `{"name":"${"a".repeat(10_000_000)}"}`,
      `{${'"a":{'.repeat(2_000_000)}`,
      new Uint8Array(10_000_000)
    ]
    for (const body of bodies) {
      const reply = await server.request("POST", "/v1/customers", { body })
      assert.strictEqual(reply.status, 413)
      assertEnvelope(reply)
    }
  })

  it("in bulk: just within the limit", async () => {
    const bodies = [
      "[".repeat(1_048_576),
      `{"metadata":{${Array.from({ length: 60_000 }, (_, i) => `"k${i}":"v"`).join(",")}}}`,
      `{${Array.from({ length: 100_000 }, (_, i) => `"${i}":1`).join(",")}}`,
      `{"name":"${"\\u0000".repeat(170_000)}"}`,
      `{"payment_method_data":[${"{},".repeat(300_000)}{}]}`
    ]
    for (const body of bodies) {
      const begun = process.threadCpuUsage()
      assertAnswered(await server.request("POST", "/v1/customers", { body }))
      // The service runs in this thread. The limit is two seconds of its CPU time, independent of the machine's load.
      assert.isBelow(process.threadCpuUsage(begun).user, 2_000_000, body.slice(0, 40))
    }
  })
})
