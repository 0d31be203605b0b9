/** The contract, from which an OpenAPI document and a client derive that agree with the server. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { HttpApi, HttpApiClient, OpenApi } from "effect/http-api"
import { Api } from "../../src/api/Api.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const client = Effect.suspend(() =>
  HttpApiClient.make(Api, {
    baseUrl: `http://127.0.0.1:${server.port}`,
    transformClient: HttpClient.mapRequest(HttpClientRequest.basicAuth(server.keys.secretTest, ""))
  })
).pipe(Effect.provide(FetchHttpClient.layer))

let keys = 0
const headers = () => ({ "idempotency-key": `contract-${++keys}` })

const ALL = ["create", "list", "retrieve", "update", "delete"]

/** The endpoints of the interface and of semantics responses.endpoints, by resource. */
const ENDPOINTS: Readonly<
  Record<string, { readonly methods: ReadonlyArray<string>; readonly actions?: ReadonlyArray<string> }>
> = {
  customers: { methods: ALL, actions: ["GET search", "POST :id/erase", "GET :id/payment_methods"] },
  products: { methods: ALL },
  prices: { methods: ["create", "list", "retrieve", "update"] },
  checkout_sessions: {
    methods: ["create", "list", "retrieve", "update"],
    actions: ["POST :id/confirm", "POST :id/expire", "GET :id/line_items"]
  },
  payment_links: { methods: ["create", "list", "retrieve", "update"], actions: ["GET :id/line_items"] },
  payment_intents: {
    methods: ["create", "list", "retrieve", "update"],
    actions: ["GET search", "POST :id/confirm", "POST :id/capture", "POST :id/cancel"]
  },
  refunds: { methods: ["create", "list", "retrieve", "update"] },
  charges: { methods: ["list", "retrieve"] },
  operations: { methods: ["list", "retrieve"] },
  payment_methods: { methods: ["create", "list", "retrieve"], actions: ["POST :id/attach", "POST :id/detach"] },
  webhook_endpoints: { methods: ALL, actions: ["POST :id/roll_secret", "GET :id/deliveries"] },
  events: { methods: ["list", "retrieve"], actions: ["POST :id/resend"] },
  api_keys: { methods: ["list", "delete"], actions: ["POST :id/roll"] },
  request_logs: { methods: ["list", "retrieve"] },
  test_helpers: {
    methods: [],
    actions: ["POST clock/advance", "DELETE data", "POST payment_intents/:id/authenticate"]
  }
}

describe("contract", () => {
  it("has a document in which every POST takes an idempotency key and every route a version", () => {
    const document = OpenApi.fromApi(Api)
    assert.strictEqual(document.info.title, "Till")
    assert.includeMembers(Object.keys(document.paths), [
      "/v1/customers",
      "/v1/customers/{id}",
      "/v1/payment_intents/{id}/confirm",
      "/v1/events/{id}"
    ])
    for (const [path, item] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(
        item as Record<string, { parameters: Array<{ name: string; required: boolean }> }>
      )) {
        const required = operation.parameters.filter((parameter) => parameter.required).map(({ name }) => name)
        const names = operation.parameters.map(({ name }) => name)
        assert.include(names, "x-api-version", `${method} ${path}`)
        assert.strictEqual(required.includes("idempotency-key"), method === "post", `${method} ${path}`)
      }
    }
    const components = Object.keys(document.components.schemas)
    assert.includeMembers(components, ["Customer", "PaymentIntent", "Charge", "ErrorResponse", "CreatePaymentIntent"])
    assert.deepStrictEqual(Object.keys(document.components.securitySchemes), ["apiKey"])
  })

  it("has no two endpoints with the same method and path", () => {
    const seen: Array<string> = []
    HttpApi.reflect(Api, {
      onGroup: () => {},
      onEndpoint: ({ endpoint }) => seen.push(`${endpoint.method} ${endpoint.path}`)
    })
    assert.strictEqual(new Set(seen).size, seen.length)
    for (const route of seen) assert.match(route, /^(GET|POST|DELETE) \/v1\/[a-z_/:]+$/)
  })

  it("responses.endpoints: has these endpoints", () => {
    const seen: Array<string> = []
    HttpApi.reflect(Api, {
      onGroup: () => {},
      onEndpoint: ({ endpoint }) => seen.push(`${endpoint.method} ${endpoint.path.slice("/v1/".length)}`)
    })
    const expected = Object.entries(ENDPOINTS).flatMap(([resource, { actions = [], methods }]) => [
      ...(methods.includes("create") ? [`POST ${resource}`] : []),
      ...(methods.includes("list") ? [`GET ${resource}`] : []),
      ...(methods.includes("retrieve") ? [`GET ${resource}/:id`] : []),
      ...(methods.includes("update") ? [`POST ${resource}/:id`] : []),
      ...(methods.includes("delete") ? [`DELETE ${resource}/:id`] : []),
      ...actions.map((action) => action.replace(" ", ` ${resource}/`))
    ])
    assert.sameMembers(seen, expected)
  })

  it.live("has a client that understands every response of the server", () =>
    Effect.gen(function* () {
      const till = yield* client
      const customer = yield* till.customers.create({ headers: headers(), payload: { name: "A", email: "a@b.co" } })
      const { id } = customer
      const updated = yield* till.customers.update({ headers: headers(), params: { id }, payload: { name: null } })
      assert.isNull(updated.name)
      assert.deepStrictEqual(yield* till.customers.retrieve({ headers: {}, params: { id } }), updated)
      const page = yield* till.customers.list({ headers: {}, query: { limit: 1 } })
      assert.deepStrictEqual(page.data, [updated])

      const intents = till.payment_intents
      const created = yield* intents.create({
        headers: headers(),
        payload: { amount: 2000, currency: "usd", customer: id, capture_method: "manual", metadata: { a: "b" } }
      })
      const params = { id: created.id }
      const held = yield* intents.confirm({ headers: headers(), params, payload: { payment_method: "pm_card_visa" } })
      assert.strictEqual(held.status, "requires_capture")
      const captured = yield* intents.capture({ headers: headers(), params, payload: { amount_to_capture: 500 } })
      assert.strictEqual(captured.amount_received, 500)
      const expanded = yield* intents.retrieve({ headers: {}, params, query: { "expand[]": ["customer"] } })
      assert.deepStrictEqual(expanded.customer, updated)
      const second = yield* intents.create({ headers: headers(), payload: { amount: 1, currency: "eur" } })
      const canceled = yield* intents.cancel({
        headers: headers(),
        params: { id: second.id },
        payload: { cancellation_reason: "duplicate" }
      })
      assert.strictEqual(canceled.status, "canceled")
      assert.strictEqual((yield* intents.list({ headers: {}, query: { customer: id } })).data.length, 1)

      const events = yield* till.events.list({ headers: {}, query: { type: "payment_intent.*", limit: 100 } })
      assert.isAbove(events.data.length, 3)
      const [event] = events.data
      assert.deepStrictEqual(yield* till.events.retrieve({ headers: {}, params: { id: event!.id } }), event)
      const deleted = yield* till.customers.delete({ headers: {}, params: { id } })
      assert.isTrue(deleted.deleted)

      const declined = yield* Effect.flip(
        intents.create({
          headers: headers(),
          payload: { amount: 1, currency: "usd", confirm: true, payment_method: "pm_card_declined" }
        })
      )
      assert.isTrue("error" in declined && declined.error.decline_code === "generic_decline")
    })
  )
})
