/** The promise client against the real routes on a real socket. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Logger, Redacted, Tracer } from "effect"
import { FetchHttpClient } from "effect/http"
import { HttpApi } from "effect/http-api"
import { inspect } from "node:util"
import { Api } from "../../src/api/Api.ts"
import { Till } from "../../src/client/effect.ts"
import {
  AuthenticationError,
  ConnectionError,
  InvalidRequestError,
  isTillError,
  PaymentError,
  TillClient,
  UnexpectedResponseError,
  type TillClientOptions
} from "../../src/client/index.ts"
import { FaultyProxy } from "../support/FaultyProxy.ts"
import { DOCS_URL, type MemoryTill, start, VERSION } from "../support/MemoryTill.ts"

let server: MemoryTill
let proxy: FaultyProxy
let till: TillClient
beforeAll(async () => {
  server = await start()
  proxy = await FaultyProxy.start(server.port)
  till = clientOf()
})
afterAll(async () => {
  await proxy.close()
  await server.close()
})

const clientOf = (options: Partial<TillClientOptions> = {}) =>
  new TillClient({ apiKey: server.keys.secretTest, baseUrl: proxy.baseUrl, ...options })

/** Returns the error with which a promise rejects. */
const failureOf = async (promise: Promise<unknown>): Promise<unknown> => {
  try {
    return assert.fail(`succeeded with ${JSON.stringify(await promise)}`)
  } catch (error) {
    return error
  }
}

describe("methods", () => {
  it("are the contract's", () => {
    const names: Array<string> = []
    HttpApi.reflect(Api, {
      onGroup: () => {},
      onEndpoint: ({ endpoint, group }) => names.push(`${group.identifier}.${endpoint.identifier}`)
    })
    const methods = Object.entries(till).flatMap(([group, methods]) =>
      Object.entries(methods as object).map(([name, method]) => {
        assert.isFunction(method)
        return `${group}.${name}`
      })
    )
    assert.deepStrictEqual(methods, names)
  })

  it("send parameters, and return objects", async () => {
    const customer = await till.customers.create({ email: "jenny@example.com", metadata: { a: "b" } })
    assert.deepInclude(customer, { object: "customer", email: "jenny@example.com", name: null, metadata: { a: "b" } })
    const updated = await till.customers.update(customer.id, { email: null, name: "Jenny" })
    assert.deepInclude(updated, { email: null, name: "Jenny" })
    assert.deepStrictEqual(await till.customers.retrieve(customer.id), updated)
    const payment = { amount: 2000, currency: "usd", payment_method: "pm_card_visa" }
    const intent = await till.payment_intents.create({ ...payment, customer: customer.id, capture_method: "manual" })
    assert.strictEqual((await till.payment_intents.confirm(intent.id)).status, "requires_capture")
    const captured = await till.payment_intents.capture(intent.id, { amount_to_capture: 500 })
    assert.strictEqual(captured.amount_received, 500)
    const expanded = await till.payment_intents.retrieve(intent.id, { "expand[]": ["customer"] })
    assert.deepStrictEqual(expanded.customer, updated)
    assert.deepInclude(await till.customers.delete(customer.id), { id: customer.id, deleted: true })
    const events = await till.events.list({ type: "payment_intent.*", limit: 2 })
    assert.deepStrictEqual(
      events.data.map(({ type }) => type),
      ["payment_intent.succeeded", "payment_intent.amount_capturable_updated"]
    )
    assert.isTrue(events.has_more)
  })

  it("send a new key with every call, the version, and no undefined parameter", async () => {
    const options = { exact: undefined } as object
    const first = await till.customers.create({ name: "A", ...options })
    await till.customers.create({ name: "A" }, { idempotencyKey: undefined })
    await till.customers.list({ limit: 1, ...options })
    const [one, two, list] = proxy.attempts.slice(-3)
    assert.strictEqual(one!.body, '{"name":"A"}')
    assert.strictEqual(list!.url, "/v1/customers?limit=1")
    assert.isUndefined(list!.headers["idempotency-key"])
    const keys = [one!, two!].map(({ headers }) => String(headers["idempotency-key"]))
    for (const key of keys) assert.match(key, /^[0-9a-f-]{36}$/)
    assert.notStrictEqual(keys[0], keys[1])
    for (const { headers } of [one!, two!, list!]) assert.strictEqual(headers["x-api-version"], VERSION)
    assert.deepStrictEqual(await till.customers.retrieve(first.id), first)
  })

  it("accept a key, with which calls are one request", async () => {
    const options = { idempotencyKey: "order 1" }
    const first = await till.customers.create({ name: "B" }, options)
    assert.deepStrictEqual(await clientOf().customers.create({ name: "B" }, options), first)
    const other = await failureOf(till.customers.create({ name: "C" }, options))
    assert.isTrue(other instanceof InvalidRequestError && other.code === "idempotency_key_reuse")
  })

  it("leave the validation of parameters to the server", async () => {
    const misspelt = { amount: 1, currency: "usd", capture_metod: "manual" }
    const unknown = await failureOf(till.payment_intents.create(misspelt))
    assert.deepInclude(unknown, { code: "parameter_unknown", param: "capture_metod", status: 400 })
    const outOfRange = await failureOf(till.customers.list({ limit: 101 }))
    assert.deepInclude(outOfRange, { code: "parameter_invalid", param: "limit" })
  })

  it("return fields that the contract does not contain yet", async () => {
    const body = { object: "customer", id: "cus_1", livemode: "perhaps", new_field: { a: 1 } }
    proxy.break("", { status: 200, body: JSON.stringify(body) })
    assert.deepStrictEqual((await till.customers.retrieve("cus_1")) as object, body)
  })

  it("work with a publishable key", async () => {
    const intent = await till.payment_intents.create({ amount: 10, currency: "eur" })
    const payer = clientOf({ apiKey: server.keys.publishableTest })
    const { client_secret } = intent
    const seen = await payer.payment_intents.retrieve(intent.id, { client_secret })
    assert.strictEqual(seen.amount, 10)
    const declined = await failureOf(
      payer.payment_intents.confirm(intent.id, { client_secret, payment_method: "pm_card_declined" })
    )
    assert.instanceOf(declined, PaymentError)
    const refused = await failureOf(payer.payment_intents.list())
    assert.isTrue(refused instanceof AuthenticationError && refused.code === "secret_key_required")
  })
})

describe("errors", () => {
  it("have a class for each type, and the fields of the wire", async () => {
    const missing = await failureOf(till.customers.retrieve("cus_none"))
    assert.isTrue(isTillError(missing))
    assert.instanceOf(missing, InvalidRequestError)
    assert.match(missing.request_id!, /^req_/)
    const { code, doc_url, idempotency_key, message, param, retry_after, status, type } = missing
    assert.deepStrictEqual(
      { code, doc_url, idempotency_key, message, param, retry_after, status, type },
      {
        code: "resource_missing",
        doc_url: `${DOCS_URL}/errors/resource_missing`,
        idempotency_key: null,
        message: "No Customer found with ID 'cus_none'.",
        param: "id",
        retry_after: null,
        status: 404,
        type: "invalid_request_error"
      }
    )
    assert.strictEqual(String(missing), "InvalidRequestError: No Customer found with ID 'cus_none'.")

    const payment = { amount: 5, currency: "usd", confirm: true, payment_method: "pm_card_insufficient_funds" }
    const declined = await failureOf(till.payment_intents.create(payment, { idempotencyKey: "declined" }))
    assert.instanceOf(declined, PaymentError)
    assert.deepInclude(declined, {
      _tag: "PaymentError",
      type: "payment_error",
      code: "card_declined",
      decline_code: "insufficient_funds",
      status: 402,
      idempotency_key: "declined"
    })
    assert.match(declined.charge!, /^ch_/)
    assert.strictEqual(declined.payment_intent?.status, "requires_payment_method")
  })

  it("show the place of the call when printed", async () => {
    const refundOfNothing = async () => await till.refunds.create({ payment_intent: "pi_none" })
    const walkFromNowhere = async () => {
      for await (const { id } of till.refunds.list({ starting_after: "ref_none" })) assert.fail(id)
    }
    for (const call of [refundOfNothing, walkFromNowhere]) {
      const error = (await failureOf(call())) as Error
      const [message, first] = error.stack!.split("\n")
      assert.match(message!, /^InvalidRequestError: No /)
      assert.include(first, `${call.name} (`)
      assert.notInclude(error.stack, "src/client")
      assert.include(inspect(error), error.stack!)
      assert.include(inspect(error), "code: 'resource_missing'")
      assert.notInclude(Object.keys(error), "stack")
    }
  })

  it("distinguish other servers' responses from Till's", async () => {
    const html = { status: 404, body: "<html>", headers: { "content-type": "text/html" } }
    const strange: ReadonlyArray<Parameters<typeof proxy.break>[1]> = [
      html,
      { ...html, status: 200 },
      { status: 200, body: "[]" },
      { status: 400, body: '{"error":"no"}' },
      { status: 400, body: '{"error":{"type":"new_error","code":"a","message":"b"}}' },
      { status: 307, body: "", headers: { location: "/v1/customers" } }
    ]
    for (const fault of strange) {
      proxy.break("", fault)
      const error = await failureOf(till.customers.retrieve("cus_1"))
      assert.instanceOf(error, UnexpectedResponseError)
      assert.strictEqual(error.status, typeof fault === "object" ? fault.status : 0)
    }
  })

  it("requests.headers: send an idempotency key of any script in the API's encoding", async () => {
    for (const idempotencyKey of ["заказ-1", "für \u{1f600}", "\u{1f600}".repeat(255)]) {
      const { id } = await till.customers.create({ name: "A" }, { idempotencyKey })
      assert.strictEqual((await till.customers.create({ name: "A" }, { idempotencyKey })).id, id)
      const { data } = await till.events.list({ type: "customer.created", limit: 1 })
      assert.strictEqual(data[0]!.request!.idempotency_key, idempotencyKey)
    }
  })

  it("refuse values that cannot be sent", async () => {
    const count = proxy.attempts.length
    for (const id of ["", ".", "..", "\ud800", undefined as never]) {
      assert.deepInclude(await failureOf(till.customers.delete(id)), { code: "parameter_invalid", param: "id" })
    }
    for (const idempotencyKey of ["", " ", "a\nb", "a ", "\ud800", "x".repeat(256), "\u{1f600}".repeat(256)]) {
      const error = await failureOf(till.customers.create({}, { idempotencyKey }))
      assert.deepInclude(error, { code: "parameter_invalid", param: "Idempotency-Key", status: null })
    }
    assert.strictEqual(proxy.attempts.length, count)
    assert.throws(() => clientOf({ baseUrl: "localhost" }), TypeError)
    assert.throws(() => clientOf({ baseUrl: "localhost:4242" }), TypeError, "must begin with http://")
    assert.throws(() => clientOf({ apiKey: "" }), TypeError, "apiKey is missing")
    assert.throws(() => clientOf({ apiKey: undefined as never }), TypeError, "apiKey is missing")
  })

  it("send identifiers as one segment of the path", async () => {
    for (const id of ["a/b", "../customers", "a?b", "a#b", "a%2Fb", "é"]) {
      const error = await failureOf(till.customers.retrieve(id))
      assert.deepInclude(error, { code: "resource_missing", message: `No Customer found with ID '${id}'.` })
    }
  })

  it("contain no API key, and neither does the client", async () => {
    const apiKey = "sk_test_secretsecretsecretsecretsecretse"
    const leaky = () => Promise.reject(new TypeError("fetch failed", { cause: new Error(`${apiKey} is wrong`) }))
    const clients = [clientOf({ apiKey }), clientOf({ apiKey, baseUrl: "http://127.0.0.1:1", retriesMax: 0 })]
    const errors = await Promise.all([
      ...clients.map((client) => failureOf(client.customers.create({ name: "A" }))),
      failureOf(clientOf({ apiKey, fetch: leaky, retriesMax: 0 }).customers.list())
    ])
    assert.deepStrictEqual(
      errors.map((error) => (error as Error).name),
      ["AuthenticationError", "ConnectionError", "ConnectionError"]
    )
    assert.strictEqual((errors[2] as Error).message, "Till did not answer: <redacted> is wrong")
    for (const value of [...errors, ...clients]) {
      const texts = [inspect(value, { depth: null, showHidden: true }), JSON.stringify(value), String(value)]
      for (const text of [...texts, (value as Error).stack ?? ""]) {
        assert.notInclude(text, apiKey)
        assert.notInclude(text, btoa(`${apiKey}:`))
      }
    }
  })
})

describe("spans and log lines", () => {
  it.live("contain no API key", () =>
    Effect.gen(function* () {
      const apiKey = "sk_test_secretsecretsecretsecretsecretse"
      const spans: Array<Tracer.NativeSpan> = []
      const lines: Array<string> = []
      const tracer = Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options)
          spans.push(span)
          return span
        }
      })
      const logger = Logger.make(({ cause, message }) => lines.push(inspect([message, cause], { depth: null })))
      const till = yield* Effect.provide(
        Till.make({ apiKey: Redacted.make(apiKey), baseUrl: proxy.baseUrl }),
        FetchHttpClient.layer
      )
      yield* till.customers.create({ name: "A" }).pipe(
        Effect.tapCause((cause) => Effect.logError(till, cause)),
        Effect.ignore,
        Effect.withTracer(tracer),
        Effect.provide(Logger.layer([logger]))
      )
      assert.isNotEmpty(spans)
      assert.lengthOf(lines, 1)
      assert.include(lines[0], "Invalid API key")
      const texts = spans.flatMap(({ attributes, status }) => [inspect(attributes), inspect(status, { depth: null })])
      for (const text of [...texts, ...lines]) {
        assert.notInclude(text, apiKey)
        assert.notInclude(text, btoa(`${apiKey}:`))
      }
    })
  )
})

describe("a signal", () => {
  it("ends a call and its connection", async () => {
    proxy.break("hangs", "hang")
    const controller = new AbortController()
    const options = { idempotencyKey: "hangs", signal: controller.signal }
    const call = failureOf(till.customers.create({ name: "Slow" }, options))
    while (proxy.attemptsWith("hangs").length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    controller.abort(new Error("enough"))
    assert.strictEqual(((await call) as Error).message, "enough")
    assert.strictEqual(
      await failureOf(till.customers.create({}, { signal: controller.signal })),
      controller.signal.reason
    )
    assert.strictEqual(proxy.attemptsWith("hangs").length, 1)
  })

  it("is not needed for an attempt that takes too long", async () => {
    proxy.break("late", "hang")
    const late = await till.customers.create({ name: "Late" }, { idempotencyKey: "late", timeoutMillis: 1_000 })
    assert.strictEqual(late.name, "Late")
    assert.isAtLeast(proxy.attemptsWith("late").length, 2)
    proxy.break("never", "hang")
    const options = { idempotencyKey: "never", timeoutMillis: 50, retriesMax: 0 }
    const error = await failureOf(till.customers.create({}, options))
    assert.instanceOf(error, ConnectionError)
    assert.strictEqual(error.message, "Till did not answer: no whole answer within 50 ms")
  })
})
