/** Semantics requests.*, parameters.*, responses.*, row by row, through a real socket. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Document from "../../src/api/openapi/Document.ts"
import { assertError, assertHeaders, assertOk } from "./Assertions.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

/** The part of a schema that is used here. */
interface JsonSchema {
  readonly $ref?: string
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly oneOf?: ReadonlyArray<JsonSchema>
  readonly allOf?: ReadonlyArray<JsonSchema>
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: boolean | JsonSchema
}

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const post = (path: string, body?: unknown, headers: Record<string, string> = {}) =>
  server.request("POST", path, { body, headers })
const customer = (body: unknown) => post("/v1/customers", body)
const intent = (body: unknown) => post("/v1/payment_intents", body)

describe("transport", () => {
  it("responses.status: success is always 200", async () => {
    const created = await customer({ name: "A" })
    assertOk(created)
    assertOk(await server.request("DELETE", `/v1/customers/${created.body.id}`))
  })

  it("requests.body: an empty body is an empty object, and needs no content type", async () => {
    assertOk(await customer(undefined))
    assertOk(await post("/v1/customers", "", { "content-type": "text/plain" }))
    assertOk(await post("/v1/customers", "{}", { "content-type": "Application/JSON; charset=utf-8" }))
  })

  it("requests.body: any other content type is refused", async () => {
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "application/jsonx",
      "multipart/form-data"
    ]) {
      assertError(await post("/v1/customers", "{}", { "content-type": type }), 415, "unsupported_media_type")
    }
  })

  it("requests.json: refuses a body that is not JSON, or not UTF-8", async () => {
    for (const body of ["{", "{'a':1}", "{}{}", '{"a":1,}', "NaN", "\ufeff{}", '{"a":"\0"}']) {
      assertError(await customer(body), 400, "invalid_json")
    }
    assertError(await customer(new Uint8Array([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x7d])), 400, "invalid_json")
  })

  it.each([
    [Buffer.from('{"name":"Müller"}', "latin1"), "The request body is not UTF-8 at byte 10."],
    ['{"name":"Müller",}', "The request body is not valid JSON at byte 18."],
    ["\ufeff{}", "The request body must be JSON without a byte-order mark."],
    ["[".repeat(65) + "]".repeat(65), "The request body must be JSON of at most 64 levels."]
  ])("requests.json: the message names the cause (%#)", async (body, message) => {
    const reply = await customer(body)
    assertError(reply, 400, "invalid_json")
    assert.strictEqual(reply.body.error.message, message)
  })

  it("requests.body: JSON that is not an object", async () => {
    for (const body of ["[]", "null", "1", '"a"', "true"]) {
      const reply = await customer(body)
      assertError(reply, 400, "parameter_invalid")
      assert.strictEqual(reply.body.error.message, "The request body must be a JSON object.")
    }
  })

  it("requests.size: a body of 1 MiB is read, one byte more is not", async () => {
    const padded = (length: number) => `{"name":"A"${" ".repeat(length - 12)}}`
    assertOk(await customer(padded(1_048_576)))
    assertError(await customer(padded(1_048_577)), 413, "request_too_large")
  })

  it("requests.size: a megabyte of mistakes is refused like a few", async () => {
    const many = <A>(member: A) => Array.from({ length: 200_000 }, () => member)
    const url = "https://shop.example/hooks"
    const endpoint = (enabled_events: ReadonlyArray<unknown>) =>
      server.request("POST", "/v1/webhook_endpoints", { body: { url, enabled_events } })
    assertError(await endpoint(many(0)), 400, "parameter_invalid", "enabled_events[0]")
    const lastWrong = [...Array.from({ length: 500 }, () => "charge.succeeded"), ...many(0)]
    assertError(await endpoint(lastWrong), 400, "parameter_invalid", "enabled_events[500]")
    const unknown = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`a${i}`, 1]))
    assertError(await intent({ ...unknown, currency: "usd" }), 400, "parameter_unknown", "a0")
    // A careless pattern for an address would take minutes.
    const email = `a@${".a".repeat(250_000)}@`
    assertError(await server.request("POST", "/v1/customers", { body: { email } }), 400, "parameter_invalid", "email")
    const rule = "The `email` field must be a valid email address of at most 320 characters."
    for (const wrong of [email, "a".repeat(321), "a@b"]) {
      const { body } = await server.request("POST", "/v1/customers", { body: { email: wrong } })
      assert.strictEqual(body.error.message, rule)
    }
  })

  it("requests.unknown: unknown parameters, at any depth, in body and query", async () => {
    assertError(
      await intent({ amount: 1, currency: "usd", capture_metod: "manual" }),
      400,
      "parameter_unknown",
      "capture_metod"
    )
    const card = { number: "4242424242424242", exp_month: 1, exp_year: 2034, pin: "1" }
    assertError(
      await intent({ amount: 1, currency: "usd", confirm: true, payment_method_data: { type: "card", card } }),
      400,
      "parameter_unknown",
      "payment_method_data[card][pin]"
    )
    assertError(await server.request("GET", "/v1/customers?nme=A"), 400, "parameter_unknown", "nme")
    assertError(await server.request("GET", "/v1/customers/cus_x?limit=1"), 400, "parameter_unknown", "limit")
    assertError(await post("/v1/customers?name=A", {}), 400, "parameter_unknown", "name")
    assertError(await customer('{"__proto__":{"name":"A"}}'), 400, "parameter_unknown", "__proto__")
    assertError(await customer({ constructor: 1 }), 400, "parameter_unknown", "constructor")
  })

  it("parameters.paths: parameters are named by their path", async () => {
    const data = (card: object) => ({ amount: 1, currency: "usd", payment_method_data: { type: "card", card } })
    const expired = { exp_month: 1, exp_year: 2034 }
    assertError(
      await intent(data({ number: 4242, ...expired })),
      400,
      "parameter_invalid",
      "payment_method_data[card][number]"
    )
    assertError(await intent(data(expired)), 400, "parameter_missing", "payment_method_data[card][number]")
    assertError(await customer({ metadata: { a: 1 } }), 400, "parameter_invalid", "metadata[a]")
  })

  it("parameters.types: types are strict", async () => {
    const amounts = ["2000", 1.5, 0, -1, true, {}, [], 2 ** 53]
    for (const amount of amounts)
      assertError(await intent({ amount, currency: "usd" }), 400, "parameter_invalid", "amount")
    assertError(await intent('{"amount":1e309,"currency":"usd"}'), 400, "parameter_invalid", "amount")
    assertError(await customer({ name: 1 }), 400, "parameter_invalid", "name")
    assertError(await customer({ metadata: ["a"] }), 400, "parameter_invalid", "metadata")
    const whole = await intent('{"amount":2000.0,"currency":"usd"}')
    assertOk(whole)
    assert.strictEqual(whole.body.amount, 2000)
  })

  it("parameters.map: an empty list is an empty map, wherever the contract has a map, and nowhere else", async () => {
    const document = Document.make("https://pay.example.test")
    const schemas = document.components.schemas as Readonly<Record<string, JsonSchema>>
    const resolved = ({ $ref, ...schema }: JsonSchema): JsonSchema =>
      $ref === undefined ? schema : schemas[$ref.slice($ref.lastIndexOf("/") + 1)]!
    /** The parts of a schema. */
    const forms = (schema: JsonSchema): ReadonlyArray<JsonSchema> => {
      const { allOf = [], anyOf = [], oneOf = [], ...own } = resolved(schema)
      return [own, ...[...allOf, ...anyOf, ...oneOf].flatMap(forms)]
    }
    type Path = ReadonlyArray<string>
    const objectsIn = (schema: JsonSchema, path: Path = []): ReadonlyArray<readonly [path: Path, isMap: boolean]> =>
      forms(schema).flatMap(({ additionalProperties, properties }) => [
        ...(typeof additionalProperties === "object" ? [[path, true] as const] : []),
        ...(properties !== undefined && path.length === 1 ? [[path, false] as const] : []),
        ...Object.entries(properties ?? {}).flatMap(([name, member]) => objectsIn(member, [...path, name]))
      ])
    const withAt = (body: object, [name = "", ...rest]: Path, value: unknown): object => ({
      ...body,
      [name]: rest.length === 0 ? value : withAt({}, rest, value)
    })
    let maps = 0
    let others = 0
    for (const [path, { post: operation }] of Object.entries(document.paths)) {
      const content = operation?.requestBody?.content["application/json"]
      if (content === undefined) continue
      for (const [member, isMap] of objectsIn(content.schema as JsonSchema)) {
        const param =
          member[0]! +
          member
            .slice(1)
            .map((name) => `[${name}]`)
            .join("")
        const send = (value: unknown) =>
          post(path.replaceAll(/\{\w+\}/g, "x"), withAt(content.example as object, member, value))
        const [list, empty, wrong] = [await send([]), await send({}), await send(["a"])]
        if (isMap) {
          maps++
          const outcome = ({ body, status }: typeof list) => [status, body.error?.code, body.error?.param]
          assert.deepStrictEqual(outcome(list), outcome(empty), `${path} ${param}`)
          assert.notStrictEqual(list.body.error?.param, param)
        } else {
          others++
          assertError(list, 400, "parameter_invalid", param)
        }
        if (member.length === 1) assertError(wrong, 400, "parameter_invalid", param)
        else assert.strictEqual(wrong.status, 400)
      }
    }
    assert.isAtLeast(maps, 10)
    assert.isAtLeast(others, 10)
    const created = await customer({ metadata: { a: "b" } })
    assert.deepStrictEqual((await post(`/v1/customers/${created.body.id}`, { metadata: [] })).body.metadata, { a: "b" })
  })

  it("parameters.null, parameters.empty_text: null and the empty string", async () => {
    const created = await customer({ name: null, description: "", metadata: null, phone: "1" })
    assertOk(created)
    assert.deepInclude(created.body, { name: null, description: null, phone: "1", metadata: {} })
    for (const phone of [null, ""]) {
      await post(`/v1/customers/${created.body.id}`, { phone: "1" })
      const updated = await post(`/v1/customers/${created.body.id}`, { phone })
      assertOk(updated)
      assert.strictEqual(updated.body.phone, null)
    }
    assertError(await intent({ amount: null, currency: "usd" }), 400, "parameter_missing", "amount")
    assertError(await intent({ amount: 1, currency: "" }), 400, "parameter_invalid", "currency")
    const { body } = await intent({ amount: 1, currency: "usd", capture_method: null, customer: null, description: "" })
    assert.deepInclude(body, { capture_method: "automatic", customer: null, description: null })
    assertError(await post(`/v1/payment_intents/${body.id}`, { amount: null }), 400, "parameter_invalid", "amount")
    assertError(await post(`/v1/payment_intents/${body.id}`, { currency: "" }), 400, "parameter_invalid", "currency")
  })

  it("parameters.lengths: lengths count code points", async () => {
    const smiley = "\u{1f600}"
    assertOk(await customer({ name: smiley.repeat(256), phone: "1".repeat(64), description: smiley.repeat(1000) }))
    assertError(await customer({ name: smiley.repeat(257) }), 400, "parameter_invalid", "name")
    assertError(await customer({ phone: "1".repeat(65) }), 400, "parameter_invalid", "phone")
    assertError(await customer({ description: "a".repeat(1001) }), 400, "parameter_invalid", "description")
    assertOk(await intent({ amount: 1, currency: "usd", description: smiley.repeat(5000) }))
    assertError(
      await intent({ amount: 1, currency: "usd", description: "a".repeat(5001) }),
      400,
      "parameter_invalid",
      "description"
    )
  })

  it("responses.null: nullable fields are always there, others are omitted", async () => {
    const { body } = await intent({ amount: 1, currency: "usd" })
    for (const field of ["customer", "payment_method", "description", "canceled_at", "cancellation_reason"]) {
      assert.isNull(body[field], field)
    }
    assert.notProperty(body, "last_payment_error")
  })

  describe("requests.order: the checks run in their order", () => {
    it("authentication before version", async () => {
      const reply = await server.request("GET", "/v1/customers", { key: null, headers: { "x-api-version": "1" } })
      assertError(reply, 401, "authentication_failed")
    })
    it("version before route", async () => {
      const reply = await server.request("GET", "/v1/nothing", { headers: { "x-api-version": "1" } })
      assertError(reply, 400, "invalid_api_version", "X-API-Version")
    })
    it("route before key permission", async () => {
      assertError(
        await server.request("GET", "/v1/nothing", { key: server.keys.publishableTest }),
        404,
        "route_not_found"
      )
    })
    it("key permission before idempotency key", async () => {
      const reply = await server.request("POST", "/v1/customers", {
        key: server.keys.publishableTest,
        idempotencyKey: null
      })
      assertError(reply, 403, "secret_key_required")
    })
    it("idempotency key before body", async () => {
      const reply = await server.request("POST", "/v1/customers", { idempotencyKey: null, body: "{" })
      assertError(reply, 400, "parameter_missing", "Idempotency-Key")
    })
    it("size before content type before JSON", async () => {
      const large = "x".repeat(1_048_577)
      assertError(await post("/v1/customers", large, { "content-type": "text/plain" }), 413, "request_too_large")
      assertError(await post("/v1/customers", "{", { "content-type": "text/plain" }), 415, "unsupported_media_type")
    })
    it("JSON before idempotency, idempotency before schema", async () => {
      const idempotencyKey = "order-of-checks"
      assertOk(await server.request("POST", "/v1/customers", { idempotencyKey, body: { name: "A" } }))
      assertError(await server.request("POST", "/v1/customers", { idempotencyKey, body: "{" }), 400, "invalid_json")
      const reply = await server.request("POST", "/v1/customers", { idempotencyKey, body: { name: 1 } })
      assertError(reply, 422, "idempotency_key_reuse")
    })
    it("requests.order.schema: schema before object: unknown, then missing, then invalid", async () => {
      assertError(await post("/v1/customers/cus_x", { name: 1 }), 400, "parameter_invalid", "name")
      assertError(await intent({ amount: "x", zzz: 1, payment_method_data: {} }), 400, "parameter_unknown", "zzz")
      assertError(await intent({ amount: "x", description: 1 }), 400, "parameter_missing", "currency")
      assertError(await intent({ currency: "x", description: 1, amount: "x" }), 400, "parameter_invalid", "amount")
      const update = { capture_method: "x", payment_method: "x" }
      assertError(await post("/v1/payment_intents/pi_x", update), 400, "parameter_invalid", "payment_method")
      const cursors = "starting_after=a&ending_before=b"
      for (const path of ["checkout_sessions/cs_x/line_items", "webhook_endpoints/we_x/deliveries"]) {
        const reply = await server.request("GET", `/v1/${path}?${cursors}`)
        assertError(reply, 400, "parameters_exclusive", "ending_before")
      }
    })
    const session = (line: object) => ({ mode: "payment", success_url: "https://a.b/c", line_items: [line] })
    const data = { currency: "usd", product: "prod_x", unit_amount: 1 }
    it.each<[path: string, valid: object, fields: string, around?: (sent: object) => object]>([
      ["customers", {}, "email name phone description metadata"],
      [
        "payment_intents",
        { amount: 1, currency: "usd" },
        "amount currency capture_method confirmation_method customer description metadata"
      ],
      [
        "checkout_sessions",
        session({ price: "price_x" }),
        "mode line_items success_url cancel_url customer customer_email customer_creation ui_mode " +
          "billing_address_collection phone_number_collection locale client_reference_id payment_intent_data currency expires_at metadata"
      ],
      ["checkout_sessions", {}, "quantity price price_data", session],
      [
        "checkout_sessions",
        data,
        "currency product unit_amount tax_behavior recurring",
        (price_data) => session({ price_data })
      ],
      [
        "products",
        { name: "Tea" },
        "name active description images url default_price_data shippable statement_descriptor unit_label tax_code " +
          "package_dimensions marketing_features metadata"
      ],
      ["products/prod_x", {}, "name active description images url shippable metadata default_price"],
      [
        "products",
        { currency: "usd", unit_amount: 1 },
        "currency unit_amount unit_amount_decimal tax_behavior recurring",
        (default_price_data) => ({ name: "Tea", default_price_data })
      ],
      [
        "prices",
        { product: "prod_x", currency: "usd" },
        "product currency unit_amount unit_amount_decimal custom_unit_amount active type billing_scheme recurring " +
          "tax_behavior tiers_mode tiers transform_quantity lookup_key transfer_lookup_key nickname metadata"
      ],
      ["prices/price_x", {}, "active nickname tax_behavior lookup_key transfer_lookup_key metadata"]
    ])("the first invalid field in the order of the specification: %s %j", async (path, valid, names, around) => {
      const fields = names.split(" ")
      for (const [index, second] of fields.slice(1).entries()) {
        const wrong = { [second]: -0.5, [fields[index]!]: -0.5 }
        const { body } = await post(`/v1/${path}`, (around ?? ((sent) => sent))({ ...valid, ...wrong }))
        assert.match(body.error.param, new RegExp(`\\b${fields[index]!}\\b\\]?$`), `before ${second}`)
      }
    })
    it("schema before state, also for parameters beside a card", async () => {
      const { body } = await intent({ amount: 1, currency: "usd" })
      assertOk(await post(`/v1/payment_intents/${body.id}/cancel`))
      const metadata = Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`k${i}`, "v"]))
      const card = { number: "4242424242424242", exp_month: 1, exp_year: 2040 }
      const payment_method_data = { type: "card", card, metadata }
      const reply = await post(`/v1/payment_intents/${body.id}/confirm`, { payment_method_data })
      assertError(reply, 400, "parameter_invalid", "payment_method_data[metadata]")
      const unknown = { amount: 1, currency: "usd", customer: `cus_${"0".repeat(24)}`, payment_method_data }
      assertError(await intent(unknown), 400, "parameter_invalid", "payment_method_data[metadata]")
    })
    it("the path's object before its references, before its state", async () => {
      const missing = { payment_method: "pm_missing" }
      assertError(await post("/v1/payment_intents/pi_x/confirm", missing), 404, "resource_missing", "id")
      const { body } = await intent({ amount: 1, currency: "usd" })
      assertOk(await post(`/v1/payment_intents/${body.id}/cancel`))
      assertError(
        await post(`/v1/payment_intents/${body.id}/confirm`, missing),
        404,
        "resource_missing",
        "payment_method"
      )
      const visa = { payment_method: "pm_card_visa" }
      assertError(
        await post(`/v1/payment_intents/${body.id}/confirm`, visa),
        400,
        "payment_intent_unexpected_state",
        "id"
      )
    })
  })

  it("requests.paths: unknown paths and methods", async () => {
    const paths = [
      "/v1",
      "/v1/",
      "/v1/nothing",
      "/v1/customers/",
      "/v1//customers",
      "/v1/customers/cus_x/nothing",
      "/v1/Customers"
    ]
    for (const path of paths) assertError(await server.request("GET", path), 404, "route_not_found")
    const reply = await server.request("PUT", "/v1/customers")
    assertError(reply, 405, "method_not_allowed")
    assert.sameMembers(reply.headers.get("allow")!.split(", "), ["GET", "POST"])
    const one = await server.request("PATCH", "/v1/customers/cus_x")
    assert.sameMembers(one.headers.get("allow")!.split(", "), ["GET", "POST", "DELETE"])
    const unknown = await server.request("GET", "/v1/nothing")
    assert.strictEqual(unknown.body.error.message, "Unrecognized request URL (GET /v1/nothing).")
    for (const path of ["/", "/v2/customers", "/v1customers", "/%"]) {
      assertError(await server.request("GET", path, { key: null }), 404, "route_not_found")
    }
  })

  it("requests.paths: an id of no such object", async () => {
    const { body } = await customer({})
    for (const id of [
      "pi_x",
      body.merchant_id,
      "x",
      "cus_x%2Fy",
      "%ff",
      "%",
      "a".repeat(5000),
      "__proto__",
      "keyhash_x"
    ]) {
      assertError(await server.request("GET", `/v1/customers/${id}`), 404, "resource_missing", "id")
    }
    assertError(await server.request("GET", `/v1/payment_intents/${body.id}`), 404, "resource_missing", "id")
    const reply = await server.request("GET", "/v1/customers/cus_x%2Fy")
    assert.strictEqual(reply.body.error.message, "No Customer found with ID 'cus_x/y'.")
    // The database cannot compare an id with a NUL.
    const unstorable = await server.request("GET", "/v1/customers/cus_%00")
    assertError(unstorable, 404, "resource_missing", "id")
    assert.strictEqual(unstorable.body.error.message, "No Customer found with ID 'cus_%00'.")
  })

  it("parameters.references: references", async () => {
    const with_ = (parameters: object) => intent({ amount: 1, currency: "usd", ...parameters })
    assertError(await with_({ customer: "cus_x" }), 404, "resource_missing", "customer")
    assertError(await with_({ customer: "pi_x" }), 400, "parameter_invalid", "customer")
    assertError(await with_({ payment_method: "pm_x" }), 404, "resource_missing", "payment_method")
    const live = await server.request("POST", "/v1/customers", { key: server.keys.secretLive })
    assertOk(live)
    assertError(await with_({ customer: live.body.id }), 404, "resource_missing", "customer")
    assertError(await server.request("GET", `/v1/customers/${live.body.id}`), 404, "resource_missing", "id")
  })

  it("responses.headers: every response carries the headers, and a POST echoes its key", async () => {
    const replies = await Promise.all([
      server.request("GET", "/v1/customers"),
      server.request("GET", "/v1/nothing"),
      server.request("GET", "/nothing"),
      server.request("GET", "/v1/customers", { key: null }),
      server.request("PUT", "/v1/customers"),
      customer("{"),
      customer("x".repeat(1_048_577))
    ])
    for (const reply of replies) assertHeaders(reply)
    const ids = replies.map(({ headers }) => headers.get("x-request-id"))
    assert.strictEqual(new Set(ids).size, ids.length)
    const echoed = await server.request("POST", "/v1/customers", { idempotencyKey: "echo, please" })
    assert.strictEqual(echoed.headers.get("idempotency-key"), "echo, please")
    const refused = await server.request("POST", "/v1/customers", { idempotencyKey: "echo", body: "{" })
    assert.strictEqual(refused.headers.get("idempotency-key"), "echo")
    const read = await server.request("GET", "/v1/customers", { headers: { "idempotency-key": "ignored" } })
    assertOk(read)
    assert.isNull(read.headers.get("idempotency-key"))
  })

  it("responses.ids: ids are a prefix and 24 characters, in order of creation", async () => {
    const ids: Array<string> = []
    for (let i = 0; i < 5; i++) ids.push((await customer({})).body.id)
    for (const id of ids) assert.match(id, /^cus_[0-9A-Za-z]{24}$/)
    assert.deepStrictEqual(ids, ids.toSorted())
  })

  it("responses.secrets: a secret is its object's id or a prefix, and random characters", async () => {
    const intent = await server.request("POST", "/v1/payment_intents", { body: { amount: 1, currency: "usd" } })
    const { client_secret, id } = intent.body
    assert.match(client_secret, /^pi_[0-9A-Za-z]{24}_secret_[0-9A-Za-z]{24}$/)
    assert.isTrue(client_secret.startsWith(`${id}_secret_`))
    const endpoint = { url: "https://shop.example/hooks", enabled_events: ["*"] }
    const { body } = await server.request("POST", "/v1/webhook_endpoints", { body: endpoint })
    assert.match(body.secret, /^whsec_[0-9A-Za-z]{32}$/)
  })

  it("parameters.email: emails", async () => {
    assertOk(await customer({ email: "a@b.co" }))
    for (const email of ["a", "a@b", "a b@c.de", "@b.co", `${"a".repeat(316)}@b.co`]) {
      assertError(await customer({ email }), 400, "parameter_invalid", "email")
    }
  })

  it("parameters.urls.redirect: redirect URLs", async () => {
    const { body } = await intent({ amount: 1, currency: "usd" })
    const confirm = (return_url: string) =>
      post(`/v1/payment_intents/${body.id}/confirm`, { payment_method: "pm_card_3ds_required", return_url })
    for (const url of ["https://shop.example.test/back", "shop://back"]) assertOk(await confirm(url))
    for (const url of ["back", "/back", "javascript:alert(1)", "java\nscript:alert(1)", "data:,x", "about:blank"]) {
      assertError(await confirm(url), 400, "parameter_invalid", "return_url")
    }
  })

  it("requests.json, parameters.text: deep nesting, duplicate keys, text that cannot be stored", async () => {
    const nested = (depth: number) => `{"metadata":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`
    assertError(await customer(nested(64)), 400, "parameter_invalid", "metadata")
    assertError(await customer(nested(65)), 400, "invalid_json")
    assert.strictEqual((await customer('{"name":"A","name":"B"}')).body.name, "B")
    assertError(await customer('{"name":"\\u0000"}'), 400, "parameter_invalid", "name")
    assertError(await customer('{"metadata":{"a":"\\ud800"}}'), 400, "parameter_invalid", "metadata[a]")
    assert.strictEqual((await customer('{"name":"\\ud83d\\ude00"}')).body.name, "\u{1f600}")
  })

  it("requests.unknown: a POST may carry no query parameters, and they are not part of the request", async () => {
    const idempotencyKey = "with-query"
    assertOk(await server.request("POST", "/v1/customers", { idempotencyKey }))
    const reply = await server.request("POST", "/v1/customers?a=1", { idempotencyKey })
    assertOk(reply)
    assert.strictEqual(reply.headers.get("idempotent-replayed"), "true")
    assertError(await post("/v1/customers?expand[]=x"), 400, "parameter_unknown", "expand[]")
  })

  it("HEAD is GET without a body", async () => {
    const reply = await server.request("HEAD", "/v1/customers")
    assertOk(reply)
    assert.strictEqual(reply.text, "")
  })

  it("health checks need no key", async () => {
    for (const path of ["/healthz", "/readyz"]) {
      const reply = await server.request("GET", path, { key: null })
      assertOk(reply)
      assert.deepStrictEqual(reply.body, { status: "ok" })
    }
  })
})
