/**
 * The client's types, which the compiler checks, here and in `npm run check`. The tests check that types suffice: every
 * body of the contract equals its JSON.
 */
import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { type Effect, Schema, SchemaAST, type Stream } from "effect"
import { HttpApi, type HttpApiEndpoint } from "effect/http-api"
import { Api } from "../../src/api/Api.ts"
import { type EffectMethods } from "../../src/client/effect.ts"
import { TillClient, type TillError } from "../../src/client/index.ts"
import type { Customer, DeletedCustomer } from "../../src/domain/Customer.ts"
import type { Event } from "../../src/domain/Event.ts"
import type { PaymentIntent } from "../../src/domain/PaymentIntent.ts"

/** Calls for the compiler, never executed. */
const calls = (till: TillClient, effects: EffectMethods) => [
  () => {
    expectTypeOf(till.customers.create()).resolves.toEqualTypeOf<Customer>()
    expectTypeOf(till.customers.retrieve("cus_1")).resolves.toEqualTypeOf<Customer | DeletedCustomer>()
    expectTypeOf(
      till.payment_intents.confirm("pi_1", {}, { signal: AbortSignal.abort() })
    ).resolves.toEqualTypeOf<PaymentIntent>()
    expectTypeOf(till.customers.delete("cus_1", {}, { retriesMax: 1 })).resolves.toEqualTypeOf<DeletedCustomer>()
    expectTypeOf(till.events.list()[Symbol.asyncIterator]().next()).resolves.toEqualTypeOf<IteratorResult<Event>>()
    expectTypeOf(effects.customers.list({ limit: 2 })).toExtend<Effect.Effect<object, TillError>>()
    expectTypeOf(effects.customers.list.stream({}, { timeoutMillis: 1 })).toEqualTypeOf<
      Stream.Stream<Customer, TillError>
    >()
  },
  // @ts-expect-error a required parameter is missing
  () => till.payment_intents.create({ amount: 1 }),
  // @ts-expect-error all parameters are missing
  () => till.payment_intents.create(),
  // @ts-expect-error a parameter of another type
  () => till.payment_intents.create({ amount: "1", currency: "usd" }),
  // @ts-expect-error an unknown parameter
  () => till.payment_intents.create({ amount: 1, currency: "usd", capture_metod: "manual" }),
  // @ts-expect-error an unknown value
  () => till.payment_intents.create({ amount: 1, currency: "usd", capture_method: "later" }),
  // @ts-expect-error a field that cannot be expanded
  () => till.payment_intents.retrieve("pi_1", { "expand[]": ["charges"] }),
  // @ts-expect-error an unknown filter
  () => till.customers.list({ name: "A" }),
  // @ts-expect-error a parameter of an endpoint without any
  () => till.customers.delete("cus_1", { force: true }),
  // @ts-expect-error the identifier is missing
  () => till.customers.retrieve(),
  // @ts-expect-error an unknown option
  () => till.customers.create({}, { idempotency_key: "1" }),
  // @ts-expect-error a signal for an effect
  () => effects.customers.create({}, { signal: AbortSignal.abort() }),
  // @ts-expect-error an unknown method
  () => till.customers.capture("cus_1"),
  // @ts-expect-error an unknown resource
  () => till.subscriptions.list(),
  // @ts-expect-error not a list
  () => effects.customers.retrieve.stream("cus_1"),
  async () => {
    // @ts-expect-error not a list
    for await (const _ of till.customers.retrieve("cus_1")) return
  },
  // @ts-expect-error an unknown field
  async () => (await till.customers.create()).mail
]

const endpoints: Array<HttpApiEndpoint.Top> = []
HttpApi.reflect(Api, { onGroup: () => {}, onEndpoint: ({ endpoint }) => endpoints.push(endpoint) })

/** Returns whether a part of a schema differs on the wire. A schema for any value does not. */
const isTransformed = (ast: SchemaAST.AST): boolean =>
  SchemaAST.isUnknown(ast) ? false : ast.encoding !== undefined || partsOf(ast).some(isTransformed)

const partsOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> => {
  if (SchemaAST.isUnion(ast)) return ast.types
  if (SchemaAST.isArrays(ast)) return [...ast.elements, ...ast.rest]
  if (SchemaAST.isObjects(ast)) return [...ast.propertySignatures, ...ast.indexSignatures].map(({ type }) => type)
  return []
}

describe("types", () => {
  it("reject what the contract does not have", () => {
    const till = new TillClient({ apiKey: "sk_test_1", baseUrl: "http://localhost" })
    assert.isNotEmpty(calls(till, till as never))
  })

  it("equal the bodies on the wire", () => {
    for (const { payload, success, ...endpoint } of endpoints) {
      const payloads = [...payload.values()].flatMap(({ schemas }) => [...schemas])
      for (const { ast } of [...payloads, ...success]) {
        assert.isFalse(isTransformed(ast), `${endpoint.method} ${endpoint.path}`)
      }
    }
  })

  it("equal the queries on the wire, except for numbers and booleans", () => {
    const found = new Set<string>()
    for (const { query } of endpoints) {
      if (query === undefined || !SchemaAST.isObjects(query.ast)) continue
      const required = query.ast.propertySignatures.filter(({ type }) => !SchemaAST.isOptional(type))
      const needed = Object.fromEntries(required.map(({ name }) => [name, "cus_1"]))
      for (const { name, type } of query.ast.propertySignatures) {
        const sample = SchemaAST.isNumber(type) ? 7 : SchemaAST.isBoolean(type) ? true : undefined
        if (sample === undefined) {
          assert.isFalse(isTransformed(type), String(name))
          continue
        }
        const encode = Schema.encodeUnknownSync(query as unknown as Schema.Encoder<unknown>)
        assert.deepStrictEqual(encode({ ...needed, [name]: sample }), { ...needed, [name]: String(sample) })
        found.add(String(name))
      }
    }
    assert.isTrue(found.has("limit"))
  })

  it("need one object for the parameters: no endpoint has both a body and a query", () => {
    for (const { method, path, payload, query } of endpoints) {
      if (method === "POST") assert.isUndefined(query, path)
      else assert.strictEqual(payload.size, 0, path)
    }
  })
})
