/**
 * Every parameter of every operation, at any depth, over HTTP: null, the empty string, values of other types, invalid
 * values and one above each limit get the answers of interface.md and semantics.md (semantics requests.unknown,
 * parameters.paths, parameters.types, parameters.null, parameters.lengths, responses.null, parameters.references,
 * parameters.text, products.null, parameters.empty_text, parameters.people, payment_methods.create). The contract's
 * document lists the parameters; `ParameterTable.ts` defines their values independently, and a parameter or an
 * operation that it lacks fails the test. The service must treat null, the empty string and types as the document
 * declares.
 */
import "effect/schema/SchemaJITCompiler/enable"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Document from "../../src/api/openapi/Document.ts"
import { requestFields } from "../support/RequestFields.ts"
import { layerFreshLog } from "../support/RequestLog.ts"
import { type Meaning, type Rule, type Says, wrongTypes } from "./ParameterKinds.ts"
import { type Known, parameterTable, type Table } from "./ParameterTable.ts"
import { type MemoryTill, type Reply, type RequestOptions, start } from "../support/MemoryTill.ts"

const contract = Document.make("https://pay.example.test")
const contracted = requestFields(contract)
/** Placeholder ids, for a table of which only the parameters' names are read. */
const NOBODY: Known = { customer: "cus_1", product: "prod_1", price: "price_1", webhookEndpoint: "we_1" }

let server: MemoryTill
let known: Known
let table: Table

const post = (path: string, body?: unknown, options: RequestOptions = {}): Promise<Reply> =>
  server.request("POST", `/v1/${path}`, { body, ...options })
const made = async (path: string, body: object, options: RequestOptions = {}): Promise<Reply["body"]> => {
  const reply = await post(path, body, options)
  assert.strictEqual(reply.status, 200, reply.text)
  return reply.body
}
const endpoint = () => made("webhook_endpoints", { url: "http://127.0.0.1:1/", enabled_events: ["charge.refunded"] })

beforeAll(async () => {
  server = await start({ requestLog: layerFreshLog() })
  const { id: product } = await made("products", { name: "T-shirt" })
  known = {
    product,
    customer: (await made("customers", { email: "jo@example.com" })).id,
    price: (await made("prices", { product, currency: "usd", unit_amount: 2000 })).id,
    webhookEndpoint: (await endpoint()).id
  }
  table = parameterTable(known)
})
afterAll(() => server.close())

/** A valid request. */
interface Request {
  readonly path: string
  readonly body: object
  readonly options?: RequestOptions
  /** Initial fields of the object, so that a null can change one of them. */
  readonly setAtFirst?: object
}

const CARD = { number: "4242424242424242", exp_month: 12, exp_year: 2040, cvc: "123" }
const PAYMENT_METHOD = {
  type: "card",
  card: CARD,
  billing_details: { email: "jo@example.com", name: "Jo", address: { line1: "1 High St", country: "GB" } },
  metadata: { a: "b" }
}
const SIZE = { height: 1, length: 1, width: 1, weight: 1 }
const DETAILS = { email: "jo@example.com", name: "Jo", address: { line1: "1 High St", country: "GB" } }
const PARTS = {
  images: ["https://a.b/1"],
  package_dimensions: SIZE,
  marketing_features: [{ name: "Hot" }],
  metadata: { a: "b" }
}

const intent = (body: object = {}) => made("payment_intents", { amount: 2000, currency: "usd", ...body })
const paid = (body: object = {}) => intent({ payment_method: "pm_card_visa", confirm: true, ...body })
const terms = (body: object) => ({ product: known.product, currency: "usd", ...body })
const sessionOf = (line: object, body: object = {}) => ({
  mode: "payment",
  line_items: [line],
  success_url: "https://a.b/c",
  ...body
})
const session = () => made("checkout_sessions", sessionOf({ price: known.price }))

const REDIRECTING = { after_completion: { type: "redirect", redirect: { url: "https://a.b/c" } } }
const LIMITED = { restrictions: { completed_sessions: { limit: 1 } } }
const link = () => made("payment_links", { line_items: [{ price: known.price }] })

type Requests = Readonly<Record<string, () => Promise<Request> | Request>>

/** Requests by operation and variant. */
const REQUESTS: Readonly<Record<string, Requests>> = {
  "customers.create": { plain: () => ({ path: "customers", body: { metadata: { a: "b" } } }) },
  "customers.update": {
    plain: async () => ({
      path: `customers/${(await made("customers", {})).id}`,
      body: { metadata: { a: "b" } },
      setAtFirst: { metadata: { c: "d" }, email: "jo@example.com", name: "Jo", phone: "1", description: "d" }
    })
  },
  "products.create": {
    plain: () => ({ path: "products", body: { name: "Tea", metadata: { a: "b" } } }),
    full: () => ({ path: "products", body: { name: "Tea", ...PARTS } }),
    priced: () => ({
      path: "products",
      body: { name: "Tea", default_price_data: { currency: "usd", unit_amount: 2000, recurring: { interval: "day" } } }
    })
  },
  "products.update": {
    plain: async () => {
      const { id } = await made("products", { name: "Tea" })
      const { id: default_price } = await made("prices", { product: id, currency: "usd", unit_amount: 1 })
      const texts = { description: "d", url: "https://a.b", statement_descriptor: "S", unit_label: "l", tax_code: "t" }
      const setAtFirst = { ...texts, metadata: { c: "d" }, shippable: true, package_dimensions: SIZE, default_price }
      return { path: `products/${id}`, body: { metadata: { a: "b" } }, setAtFirst }
    },
    full: async () => ({ path: `products/${(await made("products", { name: "Tea" })).id}`, body: PARTS })
  },
  "prices.create": {
    plain: () => ({ path: "prices", body: terms({ unit_amount: 2000, metadata: { a: "b" } }) }),
    custom: () => ({ path: "prices", body: terms({ custom_unit_amount: { enabled: true } }) }),
    recurring: () => ({ path: "prices", body: terms({ unit_amount: 1, recurring: { interval: "day" } }) }),
    packaged: () => ({
      path: "prices",
      body: terms({ unit_amount: 1, transform_quantity: { divide_by: 2, round: "up" } })
    }),
    tieredByUnit: () => ({ path: "prices", body: tiered({ unit_amount: 1 }) }),
    tieredByFlat: () => ({ path: "prices", body: tiered({ flat_amount: 1 }) })
  },
  "prices.update": {
    plain: async () => ({
      path: `prices/${(await made("prices", terms({ unit_amount: 1 }))).id}`,
      body: { metadata: { a: "b" } },
      setAtFirst: { metadata: { c: "d" }, nickname: "n", lookup_key: `first-${++keys}` }
    })
  },
  "checkout_sessions.create": {
    plain: () => ({ path: "checkout_sessions", body: sessionOf({ price: known.price }, { metadata: { a: "b" } }) }),
    inline: () => ({
      path: "checkout_sessions",
      body: sessionOf(
        {
          price_data: { currency: "usd", product: known.product, unit_amount: 2000, recurring: { interval: "day" } }
        },
        { payment_intent_data: { metadata: { a: "b" } }, phone_number_collection: { enabled: true } }
      )
    })
  },
  "checkout_sessions.update": {
    plain: async () => ({
      path: `checkout_sessions/${(await session()).id}`,
      body: { metadata: { a: "b" } },
      setAtFirst: { metadata: { c: "d" } }
    })
  },
  "checkout_sessions.confirm": {
    plain: async () => ({
      path: `checkout_sessions/${(await session()).id}/confirm`,
      body: { payment_method: "pm_card_visa", customer_details: DETAILS }
    }),
    inline: async () => ({
      path: `checkout_sessions/${(await session()).id}/confirm`,
      body: { payment_method_data: PAYMENT_METHOD, customer_details: DETAILS }
    }),
    chosen: async () => {
      const { id: price } = await made("prices", terms({ custom_unit_amount: { enabled: true, preset: 500 } }))
      const { id } = await made("checkout_sessions", sessionOf({ price }))
      const body = { payment_method: "pm_card_visa", customer_details: DETAILS, custom_unit_amount: 700 }
      return { path: `checkout_sessions/${id}/confirm`, body }
    }
  },
  "payment_links.create": {
    plain: () => ({ path: "payment_links", body: { line_items: [{ price: known.price }], metadata: { a: "b" } } }),
    inline: () => ({
      path: "payment_links",
      body: {
        line_items: [
          {
            price_data: { currency: "usd", product: known.product, unit_amount: 2000, recurring: { interval: "day" } }
          }
        ],
        payment_intent_data: { metadata: { a: "b" } },
        phone_number_collection: { enabled: true }
      }
    }),
    adjustable: () => ({
      path: "payment_links",
      body: { line_items: [{ price: known.price, adjustable_quantity: { enabled: true } }] }
    }),
    redirecting: () => ({ path: "payment_links", body: { line_items: [{ price: known.price }], ...REDIRECTING } }),
    limited: () => ({ path: "payment_links", body: { line_items: [{ price: known.price }], ...LIMITED } })
  },
  "payment_links.update": {
    plain: async () => ({
      path: `payment_links/${(await link()).id}`,
      body: { metadata: { a: "b" } },
      setAtFirst: { metadata: { c: "d" }, inactive_message: "m", ...LIMITED }
    }),
    redirecting: async () => ({ path: `payment_links/${(await link()).id}`, body: REDIRECTING }),
    limited: async () => ({ path: `payment_links/${(await link()).id}`, body: LIMITED })
  },
  "payment_intents.create": {
    plain: () => ({ path: "payment_intents", body: { amount: 2000, currency: "usd", metadata: { a: "b" } } }),
    inline: () => ({
      path: "payment_intents",
      body: { amount: 2000, currency: "usd", confirm: true, payment_method_data: PAYMENT_METHOD }
    }),
    held: () => ({ path: "payment_intents", body: { amount: 2000, currency: "usd", customer: known.customer } })
  },
  "payment_intents.update": {
    plain: async () => ({
      path: `payment_intents/${(await intent()).id}`,
      body: { metadata: { a: "b" } },
      setAtFirst: { metadata: { c: "d" }, customer: known.customer, description: "d", payment_method: "pm_card_visa" }
    }),
    held: async () => ({
      path: `payment_intents/${(await intent({ customer: known.customer })).id}`,
      body: {},
      setAtFirst: { setup_future_usage: "on_session" }
    })
  },
  "payment_intents.confirm": {
    plain: async () => ({
      path: `payment_intents/${(await intent()).id}/confirm`,
      body: { payment_method: "pm_card_visa" }
    }),
    inline: async () => ({
      path: `payment_intents/${(await intent()).id}/confirm`,
      body: { payment_method_data: PAYMENT_METHOD }
    }),
    held: async () => ({
      path: `payment_intents/${(await intent({ customer: known.customer })).id}/confirm`,
      body: { payment_method: "pm_card_visa" }
    })
  },
  "payment_intents.capture": {
    plain: async () => ({
      path: `payment_intents/${(await paid({ capture_method: "manual" })).id}/capture`,
      body: {}
    })
  },
  "payment_intents.cancel": {
    plain: async () => ({ path: `payment_intents/${(await intent()).id}/cancel`, body: {} })
  },
  "refunds.create": {
    plain: async () => ({ path: "refunds", body: { payment_intent: (await paid()).id, metadata: { a: "b" } } })
  },
  "refunds.update": {
    plain: async () => {
      const { id } = await made("refunds", { payment_intent: (await paid()).id })
      return { path: `refunds/${id}`, body: { metadata: { a: "b" } }, setAtFirst: { metadata: { c: "d" } } }
    }
  },
  "payment_methods.create": { plain: () => ({ path: "payment_methods", body: PAYMENT_METHOD }) },
  "payment_methods.attach": {
    plain: async () => ({
      path: `payment_methods/${(await made("payment_methods", PAYMENT_METHOD)).id}/attach`,
      body: { customer: known.customer }
    })
  },
  "webhook_endpoints.create": {
    plain: () => ({
      path: "webhook_endpoints",
      body: { url: "http://127.0.0.1:1/", enabled_events: ["charge.refunded"], metadata: { a: "b" } }
    })
  },
  "webhook_endpoints.update": {
    plain: async () => ({
      path: `webhook_endpoints/${(await endpoint()).id}`,
      body: { enabled_events: ["charge.failed"], metadata: { a: "b" } },
      setAtFirst: { metadata: { c: "d" }, description: "d" }
    })
  },
  "webhook_endpoints.roll_secret": {
    plain: async () => ({ path: `webhook_endpoints/${(await endpoint()).id}/roll_secret`, body: {} })
  },
  "events.resend": {
    plain: async () => {
      await made("customers", {})
      const { body } = await server.request("GET", "/v1/events?limit=1")
      return { path: `events/${body.data[0].id}/resend`, body: {} }
    }
  },
  "test_helpers.authenticate": {
    plain: async () => {
      const { id } = await paid({ payment_method: "pm_card_threeDSecure2Required" })
      return { path: `test_helpers/payment_intents/${id}/authenticate`, body: { outcome: "success" } }
    }
  },
  "test_helpers.advance_clock": {
    plain: async () => ({
      path: "test_helpers/clock/advance",
      body: { seconds: 1 },
      options: { key: (await server.merchant()).secretTest }
    })
  },
  "api_keys.roll": {
    plain: async () => {
      const options = { key: (await server.merchant()).secretTest }
      const { body } = await server.request("GET", "/v1/api_keys", options)
      const { id } = body.data.find(({ type }: { readonly type: string }) => type === "publishable")
      return { path: `api_keys/${id}/roll`, body: {}, options }
    }
  }
}

let keys = 0
const tiered = (tier: object) =>
  terms({ billing_scheme: "tiered", tiers_mode: "volume", tiers: [{ up_to: "inf", ...tier }] })

/** Paths of the operations with query parameters, including required ones. */
const QUERIES: Readonly<Record<string, () => Promise<string> | string>> = {
  "customers.search": () => "customers/search?query=created>1",
  "payment_intents.search": () => "payment_intents/search?query=created>1",
  "customers.payment_methods": () => `customers/${known.customer}/payment_methods`,
  "payment_methods.list": () => `payment_methods?customer=${known.customer}`,
  "prices.retrieve": () => `prices/${known.price}`,
  "webhook_endpoints.retrieve": () => `webhook_endpoints/${known.webhookEndpoint}`,
  "checkout_sessions.retrieve": async () => `checkout_sessions/${(await session()).id}`,
  "checkout_sessions.line_items": async () => `checkout_sessions/${(await session()).id}/line_items`,
  "payment_links.line_items": async () => `payment_links/${(await link()).id}/line_items`,
  "payment_intents.retrieve": async () => `payment_intents/${(await intent()).id}`,
  "webhook_endpoints.deliveries": () => `webhook_endpoints/${known.webhookEndpoint}/deliveries`
}

/** `tiers[].up_to` is `["tiers", 0, "up_to"]`, a key of metadata `a`. */
const keysOf = (field: string): ReadonlyArray<string | number> =>
  field.split(".").flatMap((name) => (name.endsWith("[]") ? [name.slice(0, -2), 0] : [name === "*" ? "a" : name]))

/** A field's name as errors write it. */
const paramOf = (field: string): string => {
  const [first, ...rest] = keysOf(field)
  return `${first}${rest.map((key) => `[${key}]`).join("")}`
}

/** Returns the body with another value in one place, or without one if the value is undefined. */
const withValue = (body: unknown, path: ReadonlyArray<string | number>, value: unknown): unknown => {
  const [key, ...rest] = path
  if (key === undefined) return value
  const holder = (body ?? {}) as Readonly<Record<string, unknown>>
  if (Array.isArray(body)) return body.map((item, index) => (index === key ? withValue(item, rest, value) : item))
  return { ...holder, [key]: withValue(holder[key], rest, value) }
}

/** An answer without parts that differ between objects. */
const normal = ({ status, text }: Reply): string =>
  `${status} ${text}`
    .replaceAll(/([a-z]+_|\/pay\/)[0-9A-Za-z]{24,32}/g, "$1")
    .replaceAll(/"(created|updated|canceled_at|expires_at|last4|prefix)":("[^"]*"|[0-9]+)/g, '"$1"')
    .replaceAll(/"pending_webhooks":[0-9]+|"idempotency_key":"test-[0-9]+"/g, "")

const seen = (value: unknown): string => (JSON.stringify(value) ?? "nothing").slice(0, 60)

/** Describes an answer that is not the expected error; undefined if it is. */
const otherThan = (reply: Reply, { code, param, status, value }: Says, of: string): string | undefined => {
  const error = reply.body?.error
  if (reply.status === status && error?.code === code && error.param === param) return undefined
  return `${of} ${seen(value)}: ${code} of ${param} expected, got ${reply.status} ${reply.text.slice(0, 200)}`
}

const ajv = new Ajv2020({ strict: false, validateFormats: false })
ajv.addSchema(contract, "document")

/** A validator for each operation, true if the document allows the body. */
const validators: ReadonlyMap<string, (body: unknown) => boolean> = new Map(
  Object.entries(contract.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, { operationId, requestBody }]) => {
      if (requestBody === undefined) return []
      const at = ["paths", path, method, "requestBody", "content", "application/json", "schema"]
      const pointer = at.map((part) => part.replaceAll("~", "~0").replaceAll("/", "~1")).join("/")
      return [[operationId, ajv.compile({ $ref: `document#/${pointer}` })] as const]
    })
  )
)

/**
 * Lists differences between the document and the table. A schema cannot express every rule, but it declares a
 * parameter's types, and whether it can be null or empty. Missing parameters depend on others and are left out.
 */
const undocumented = (operation: string, field: string, rule: Rule, body: object): ReadonlyArray<string> => {
  const { kind, whenEmpty, whenNull } = rule
  const allows = (value: unknown) => validators.get(operation)!(withValue(body, keysOf(field), value))
  const means = (value: unknown, meaning: Meaning) =>
    meaning === "missing" || allows(value) === (meaning !== "invalid") ? [] : [value]
  const wrong = [
    ...means(null, whenNull),
    ...means("", whenEmpty),
    ...kind.takes.filter((value) => !allows(value)),
    ...wrongTypes(kind).filter(allows)
  ]
  return wrong.map((value) => `${operation} ${field} ${seen(value)}: the document says otherwise`)
}

/** Tests a parameter of a body. Returns a line for each answer that differs from the table. */
const tryParameter = async (operation: string, field: string, rule: Rule): Promise<ReadonlyArray<string>> => {
  const { kind, variant, whenEmpty, whenNull } = rule
  const of = `${operation} ${field}`
  const request = REQUESTS[operation]![variant]!
  const path = keysOf(field)
  const param = paramOf(field)
  const send = ({ body, options, path: to }: Request, value: unknown) => post(to, withValue(body, path, value), options)
  const problems: Array<string | undefined> = []

  // A refused request changes nothing, so one object is enough for all of them.
  const refusing = await request()
  problems.push(...undocumented(operation, field, rule, refusing.body))
  const refuse = async (says: Says) =>
    void problems.push(otherThan(await send(refusing, says.value), { param, ...says }, of))
  const invalid = { status: 400, code: "parameter_invalid" }
  for (const value of [...wrongTypes(kind), ...kind.refuses]) await refuse({ value, ...invalid })
  for (const says of kind.says ?? []) if (says.value !== "") await refuse(says)
  if (kind.type === "object" && kind.refuses.length === 0) {
    const reply = await send(refusing, { zzz: 1 })
    problems.push(
      otherThan(reply, { value: "zzz", status: 400, code: "parameter_unknown", param: `${param}[zzz]` }, of)
    )
  }

  for (const value of kind.takes) {
    const reply = await send(await request(), value)
    if (reply.status !== 200) problems.push(`${of} ${seen(value)}: 200 expected, got ${reply.text.slice(0, 200)}`)
  }

  const mean = async (value: null | "", meaning: Meaning) => {
    if (meaning === "missing") return refuse({ value, status: 400, code: "parameter_missing" })
    if (meaning === "invalid") return refuse({ value, ...invalid })
    const [bare, asked] = [await request(), await request()]
    if (meaning === "unsets" && asked.setAtFirst !== undefined && field in asked.setAtFirst) {
      const first = (asked.setAtFirst as Readonly<Record<string, unknown>>)[field]
      const reply = await post(asked.path, { [field]: first }, asked.options)
      if (normal(reply) === normal(await post(bare.path, {}, bare.options))) problems.push(`${of}: nothing was set`)
    }
    const [without, sent] = [await send(bare, undefined), await send(asked, value)]
    if (normal(without) !== normal(sent)) {
      problems.push(`${of} ${seen(value)}: ${normal(without)} expected, got ${normal(sent)}`)
    }
  }
  await mean(null, whenNull)
  const ofEmpty = kind.says?.find(({ value }) => value === "")
  await (ofEmpty === undefined ? mean("", whenEmpty) : refuse(ofEmpty))
  return problems.filter((problem) => problem !== undefined)
}

/** Tests a query parameter, which is always text. */
const tryQuery = async (operation: string, field: string, { kind, whenNull }: Rule): Promise<ReadonlyArray<string>> => {
  const name = field.slice(1)
  const right = await (QUERIES[operation] ?? (() => operation.split(".")[0]!))()
  const [path, needed = ""] = right.split("?")
  const others = needed === "" || needed.startsWith(`${name}=`) ? [] : [needed]
  const of = `${operation} ${field}`
  const get = (...values: ReadonlyArray<unknown>) => {
    const given = values.map((value) => `${name}=${encodeURIComponent(String(value))}`)
    return server.request("GET", `/v1/${path}?${[...others, ...given].join("&")}`)
  }
  const problems: Array<string | undefined> = []
  const invalid = { status: 400, code: "parameter_invalid", param: name }
  for (const value of kind.refuses) problems.push(otherThan(await get(value), { value, ...invalid }, of))
  for (const says of kind.says ?? []) problems.push(otherThan(await get(says.value), { param: name, ...says }, of))
  for (const value of kind.takes) {
    const reply = await get(value)
    if (reply.status !== 200) problems.push(`${of} ${seen(value)}: 200 expected, got ${reply.text.slice(0, 200)}`)
  }
  if (!name.endsWith("[]")) problems.push(otherThan(await get("a", "b"), { value: "twice", ...invalid }, of))
  if (whenNull === "missing") {
    problems.push(otherThan(await get(), { value: "none", ...invalid, code: "parameter_missing" }, of))
  }
  return problems.filter((problem) => problem !== undefined)
}

describe("strictness", () => {
  it("the table has all operations and parameters of the contract, and no others", () => {
    const tabulated = Object.entries(parameterTable(NOBODY)).map(
      ([operation, rules]) => [operation, Object.keys(rules).toSorted()] as const
    )
    const all = Object.entries(contracted).map(([operation, fields]) => [operation, [...fields].toSorted()] as const)
    assert.deepStrictEqual(Object.fromEntries(tabulated), Object.fromEntries(all))
  })

  for (const [operation, fields] of Object.entries(contracted)) {
    if (fields.length === 0) continue
    it(`${operation}: ${fields.join(" ")}`, async () => {
      const problems: Array<string> = []
      for (const field of fields) {
        const rule = table[operation]?.[field]
        if (rule === undefined) problems.push(`${operation} ${field} is not in the table`)
        else if (field.startsWith("?")) problems.push(...(await tryQuery(operation, field, rule)))
        else problems.push(...(await tryParameter(operation, field, rule)))
      }
      assert.deepStrictEqual(problems, [])
    })
  }

  it("covers", () => {
    const count = Object.values(contracted).flat().length
    console.log(`Strictness: ${count} parameters of ${Object.keys(contracted).length} operations`)
    for (const [operation, fields] of Object.entries(contracted)) console.log(`  ${operation}: ${fields.join(" ")}`)
    assert.isAbove(count, 300)
  })
})
