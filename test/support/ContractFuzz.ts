/**
 * Generates requests from the contract's document, so that a new operation is tested at once. `PREPARATIONS` lists the
 * objects that an operation needs before it can succeed. A seed determines every choice; ids are those of earlier
 * answers.
 */
import { type Document, type Operation, type Parameter, responseOf } from "../../src/api/openapi/Document.ts"
import { type JsonSchema, type JsonSchemas, resolve } from "../../src/api/openapi/Examples.ts"
import type { Random } from "./Random.ts"

/** One operation of the document. */
export interface Target {
  readonly method: string
  readonly path: string
  readonly operation: Operation
  /**
   * The prefix of the path's id, such as `cus_`; undefined without an id, or if the document does not state the prefix.
   */
  readonly idPrefix: string | undefined
}

/** A request. */
export interface FuzzRequest {
  readonly path: string
  /** Text, so that the body may be invalid JSON; undefined sends no body. */
  readonly body: string | undefined
  readonly headers: Readonly<Record<string, string>>
  /** Null sends no idempotency key. */
  readonly idempotencyKey: string | null
  /** The changes that make the request invalid. */
  readonly mutations: ReadonlyArray<string>
}

/** Brings an object into the state that an operation requires, which random requests rarely reach. */
export interface Preparation {
  /** Creates the object from which this one is made. */
  readonly of?: Preparation
  /** The operation that creates the object. */
  readonly path: string
  /** Returns the body for the id of the object in `of`. */
  readonly body: (of: string) => object
  /** Fields that the operation's own request then needs. */
  readonly members?: Readonly<Record<string, unknown>>
}

const confirmedIntent = (body: object): Preparation => ({
  path: "/v1/payment_intents",
  body: () => ({ amount: 2000, currency: "usd", confirm: true, ...body })
})

const openSession: Preparation = {
  of: { path: "/v1/products", body: () => ({ name: "T-shirt" }) },
  path: "/v1/checkout_sessions",
  body: (product) => ({
    mode: "payment",
    line_items: [{ quantity: 1, price_data: { currency: "usd", unit_amount: 2000, product } }],
    success_url: "https://example.com/a"
  })
}

/** Preparations by method and path of the operation. */
const PREPARATIONS: Readonly<Record<string, Preparation>> = {
  "GET /v1/checkout_sessions/{id}": openSession,
  "POST /v1/checkout_sessions/{id}/confirm": {
    ...openSession,
    members: { payment_method: "pm_card_visa", customer_details: { email: "jane@example.com" } }
  },
  "POST /v1/payment_intents/{id}/confirm": {
    path: "/v1/payment_intents",
    body: () => ({ amount: 2000, currency: "usd" }),
    members: { payment_method: "pm_card_visa" }
  },
  "POST /v1/payment_methods/{id}/detach": {
    of: { path: "/v1/customers", body: () => ({}) },
    path: "/v1/payment_methods/pm_card_visa/attach",
    body: (customer) => ({ customer })
  },
  "POST /v1/payment_intents/{id}/capture": confirmedIntent({
    capture_method: "manual",
    payment_method: "pm_card_visa"
  }),
  "POST /v1/test_helpers/payment_intents/{id}/authenticate": {
    ...confirmedIntent({ payment_method: "pm_card_threeDSecure2Required" }),
    members: { outcome: "success" }
  }
}

const IDS_KEPT = 40

/** Test cards for every outcome; other ids come from responses. */
const KNOWN_IDS: Readonly<Record<string, ReadonlyArray<string>>> = {
  pm_: ["pm_card_visa", "pm_card_visa", "pm_card_threeDSecure2Required", "pm_card_declined", "pm_card_unknown"]
}

/** Values by the name of a member or parameter for which a schema alone rarely generates a valid one. */
const TELLING: Readonly<Record<string, ReadonlyArray<unknown>>> = {
  currency: ["usd", "USD", "eur", "jpy"],
  number: ["4242424242424242", "4000000000000002", "4000002500003155", "5555555555554444"],
  exp_month: [1, 12],
  exp_year: [2040],
  cvc: ["123"],
  amount: [1, 50, 2000, 999_999_999_999],
  unit_amount: [0, 1, 2000],
  unit_amount_decimal: ["0.5", "12.345", "2000"],
  quantity: [1, 2, 10],
  amount_to_capture: [1, 50],
  expires_in: [0, 1, 60, 86_400],
  seconds: [1, 60],
  enabled_events: ["*", "customer.created", "payment_intent.*"],
  query: ["created>0", 'created>=1 AND -metadata["order"]:"1"'],
  type: ["customer.*", "payment_intent.succeeded", "card"]
}

/** Members that bring objects into states from which other operations proceed. */
const EAGER: ReadonlySet<string> = new Set([
  "payment_method",
  "confirm",
  "capture_method",
  "unit_amount",
  "price",
  "success_url"
])

const TEXTS = ["a", "Jane Doe", "2000", "\u{1f600}", "ünï", "line\nfeed", "x".repeat(300), "'; --", "<b>", "%00"]
const URLS = ["https://example.com/a", "https://example.com/b?c={CHECKOUT_SESSION_ID}", "http://example.com:8080/"]

/** Values that are invalid nearly everywhere. */
const HOSTILE: ReadonlyArray<unknown> = [
  null,
  true,
  -1,
  0,
  1.5,
  2 ** 53 + 2,
  1e308,
  "",
  " ",
  "\u0000",
  "\ud800",
  "cus_",
  "x".repeat(6000),
  [],
  [[]],
  {},
  { a: { b: [] } },
  { ["__proto__"]: 1 }
]

/** Names for members that schemas leave to the data. */
const METADATA_KEYS = ["order_id", "a", "constructor", "toString", "ü"]

const mediaOf = (operation: Operation) => operation.requestBody?.content["application/json"]

export class ContractFuzz {
  readonly targets: ReadonlyArray<Target>
  readonly #random: Random
  readonly #schemas: JsonSchemas
  readonly #ids = new Map<string, Array<string>>()
  /** The last seen status of each object; `deleted` for deleted ones. */
  readonly #statuses = new Map<string, string>()
  readonly #secrets = new Map<string, string>()
  readonly #usedKeys: Array<string> = []
  #sent = 0

  constructor(document: Document, random: Random) {
    this.#random = random
    this.#schemas = document.components.schemas
    this.targets = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        operation,
        idPrefix: this.#idPrefixOf(document, path)
      }))
    )
  }

  /** Records the ids and client secrets of a response. */
  learn(body: unknown): void {
    if (typeof body !== "object" || body === null) return
    const { client_secret, deleted, id, status } = body as Record<string, unknown>
    if (typeof id === "string" && (typeof status === "string" || deleted === true)) {
      this.#statuses.set(id, deleted === true ? "deleted" : String(status))
    }
    if (typeof id === "string" && typeof client_secret === "string") this.#secrets.set(id, client_secret)
    for (const value of Object.values(body)) {
      if (typeof value === "object") this.learn(value)
      const prefix = typeof value === "string" ? /^([a-z]+_)[0-9A-Za-z]{24}$/.exec(value)?.[1] : undefined
      if (prefix === undefined) continue
      const known = this.#ids.get(prefix) ?? []
      if (known.includes(value)) continue
      // Newer objects are in more states; some old ones stay, deleted or spent.
      if (known.length >= IDS_KEPT) known.splice(this.#random.integer(0, known.length - 1), 1)
      known.push(value)
      this.#ids.set(prefix, known)
    }
  }

  /** Discards all recorded ids after their objects are gone. */
  forget(): void {
    this.#ids.clear()
    this.#statuses.clear()
    this.#secrets.clear()
  }

  /** Returns a preparation for some of the requests whose operation has one. */
  preparation({ method, path }: Target): Preparation | undefined {
    const preparation = PREPARATIONS[`${method} ${path}`]
    return preparation !== undefined && this.#random.chance(0.3) ? preparation : undefined
  }

  /** Returns a valid request that prepares an object. */
  prepare({ body, path }: Preparation, of: string): FuzzRequest {
    const idempotencyKey = `fuzz-${++this.#sent}`
    return { path, body: JSON.stringify(body(of)), headers: {}, idempotencyKey, mutations: [] }
  }

  /** Returns a valid request on a prepared object. */
  requestPrepared(target: Target, { members }: Preparation, id: string): FuzzRequest {
    const body = target.method === "POST" ? JSON.stringify(members ?? {}) : undefined
    const path = target.path.replace(/\{\w+\}/, id)
    const idempotencyKey = target.method === "POST" ? `fuzz-${++this.#sent}` : null
    return { path, body, headers: {}, idempotencyKey, mutations: [] }
  }

  /** Returns a request for an operation; half of them are invalid in one or several ways. */
  request(target: Target): FuzzRequest {
    const random = this.#random
    const mutations: Array<string> = []
    const isWrong = random.chance(0.5)
    const mutate = (probability: number, what: string): boolean => {
      const does = isWrong && random.chance(probability)
      if (does) mutations.push(what)
      return does
    }
    const id = this.#id(target.idPrefix, mutate(0.15, "id"))
    const path = target.path.replaceAll(/\{\w+\}/g, () => encodeURIComponent(id))
    const headers: Record<string, string> = {}
    const query = new URLSearchParams()
    for (const parameter of target.operation.parameters) this.#fill(parameter, { headers, query, id, mutate })
    if (mutate(0.1, "unknown parameter")) query.append(random.pick(["limits", "expand[]", "a[b]"]), "x")
    const text = query.size === 0 ? path : `${path}?${query}`
    return {
      path: text,
      headers,
      mutations,
      body: this.#body(target, id, headers, mutate),
      idempotencyKey: target.method === "POST" ? this.#idempotencyKey(mutate) : null
    }
  }

  #idPrefixOf(document: Document, path: string): string | undefined {
    const start = path.indexOf("/{")
    if (start === -1) return undefined
    const { paths } = document
    // A test helper may return another object than the one in its path.
    const own = paths[path.slice(0, path.indexOf("}") + 1).replace("/test_helpers", "")] ?? paths[path]!
    for (const { responses } of Object.values(own)) {
      const { content } = responseOf(responses["200"]!, document)
      const schema = resolve(content["application/json"].schema, this.#schemas)
      const { properties } = resolve(schema.anyOf?.[0] ?? schema, this.#schemas)
      const pattern = properties?.["id"] && this.#flat(properties["id"]).pattern
      if (pattern !== undefined) return pattern.slice(1)
    }
    return undefined
  }

  #idempotencyKey(mutate: (probability: number, what: string) => boolean): string | null {
    if (mutate(0.05, "no idempotency key")) return null
    if (mutate(0.15, "used idempotency key") && this.#usedKeys.length > 0) return this.#random.pick(this.#usedKeys)
    const key = `fuzz-${++this.#sent}`
    this.#usedKeys.push(key)
    return key
  }

  #id(prefix: string | undefined, isWrong: boolean): string {
    const always = KNOWN_IDS[prefix ?? ""]
    if (!isWrong && always !== undefined && this.#random.chance(0.7)) return this.#random.pick(always)
    const known = this.#ids.get(prefix ?? "") ?? []
    if (!isWrong && known.length > 0) return this.#ofSomeStatus(known)
    const others = [...this.#ids.values()].flat()
    return this.#random.pick(["x", `${prefix ?? "x_"}000000000000000000000000`, "a b/ü", ...others])
  }

  /** Picks a status first, so that rare ones get their turn, and then an object. */
  #ofSomeStatus(ids: ReadonlyArray<string>): string {
    const statusOf = (id: string) => this.#statuses.get(id) ?? ""
    const status = this.#random.pick([...new Set(ids.map(statusOf))])
    return this.#random.pick(ids.filter((id) => statusOf(id) === status))
  }

  #fill(
    { in: where, name, required, schema }: Parameter,
    to: {
      readonly headers: Record<string, string>
      readonly query: URLSearchParams
      readonly id: string
      readonly mutate: (probability: number, what: string) => boolean
    }
  ): void {
    const random = this.#random
    if (where === "header" && name === "X-API-Version") {
      if (random.chance(0.2)) to.headers[name] = "2026-03-09"
      if (to.mutate(0.05, "version")) to.headers[name] = random.pick(["2020-01-01", "", "latest"])
    }
    if (where !== "query" || !(required || random.chance(0.25))) return
    const value = to.mutate(0.3, name) ? random.pick(HOSTILE) : this.#value(schema, name, to.id)
    for (const item of Array.isArray(value) ? value : [value]) to.query.append(name, textOf(item))
    if (to.mutate(0.05, `${name} twice`)) to.query.append(name, textOf(value))
  }

  #body(
    { method, operation }: Target,
    id: string,
    headers: Record<string, string>,
    mutate: (probability: number, what: string) => boolean
  ): string | undefined {
    const random = this.#random
    const schema = mediaOf(operation)?.schema
    if (method !== "POST") return undefined
    if (schema === undefined || (!operation.requestBody!.required && random.chance(0.1))) return undefined
    if (mutate(0.05, "no JSON")) return random.pick(["{", "[]", "null", '"text"', "\u0000", '{"a":1,}'])
    if (mutate(0.05, "content type")) headers["content-type"] = random.pick(["text/plain", "application/xml"])
    const value = this.#value(schema, "", id)
    if (mutate(0.6, "body")) this.#spoil(value)
    return JSON.stringify(value)
  }

  /** Changes a value at any depth. */
  #spoil(value: unknown): void {
    if (typeof value !== "object" || value === null) return
    const random = this.#random
    const holder = value as Record<string, unknown>
    const keys = Object.keys(holder)
    if (keys.length === 0 || random.chance(0.1)) {
      if (!Array.isArray(value)) holder[random.pick(["unknown", "id", "object", "__proto__x"])] = random.pick(HOSTILE)
      return
    }
    const key = random.pick(keys)
    if (typeof holder[key] === "object" && holder[key] !== null && random.chance(0.6)) return this.#spoil(holder[key])
    if (random.chance(0.2) && !Array.isArray(value)) delete holder[key]
    else holder[key] = random.pick(HOSTILE)
  }

  /** Merges a schema with the parts that it is composed of. */
  #flat(schema: JsonSchema): JsonSchema {
    const { allOf, ...own } = resolve(schema, this.#schemas)
    return Object.assign({}, own, ...(allOf ?? []))
  }

  /** Returns a value that the schema allows, whether it makes sense or not. */
  #value(declared: JsonSchema, name: string, id: string): unknown {
    const random = this.#random
    const schema = this.#flat(declared)
    const choices = schema.anyOf ?? schema.oneOf
    if (choices !== undefined) {
      const [first, ...others] = choices
      return this.#value(others.length === 0 || random.chance(0.8) ? first! : random.pick(others), name, id)
    }
    if (schema.const !== undefined) return schema.const
    if (schema.enum !== undefined) return random.pick(schema.enum)
    switch (schema.type) {
      case "object":
        return this.#object(schema, id)
      case "array":
        return Array.from({ length: random.integer(1, 2) }, () => this.#value(schema.items ?? {}, name, id))
      case "string":
        return this.#text(schema, name, id)
      case "integer":
      case "number":
        return this.#number(schema, name)
      case "boolean":
        return random.chance(0.7)
      default:
        return null
    }
  }

  #object({ additionalProperties, properties, required = [] }: JsonSchema, id: string): Record<string, unknown> {
    const random = this.#random
    if (properties === undefined && typeof additionalProperties === "object") {
      const keys = METADATA_KEYS.filter(() => random.chance(0.3))
      return Object.fromEntries(keys.map((key) => [key, this.#value(additionalProperties, "", id)]))
    }
    // Few or many members, because many exclude one another.
    const share = random.pick([0, 0.15, 0.4])
    const members = Object.entries(properties ?? {}).filter(
      ([key]) => required.includes(key) || random.chance(EAGER.has(key) ? 0.6 : key === "client_secret" ? 0.1 : share)
    )
    // An object without required members usually needs one of several, so it gets one here.
    const all = Object.entries(properties ?? {})
    if (members.length === 0 && all.length > 0) members.push(random.pick(all))
    return Object.fromEntries(members.map(([key, member]) => [key, this.#value(member, key, id)]))
  }

  #text({ format, maxLength = Infinity, pattern }: JsonSchema, name: string, id: string): string {
    const random = this.#random
    if (name === "client_secret") return this.#secrets.get(id) ?? "wrong"
    const prefix = /^\^([a-z]+_)$/.exec(pattern ?? "")?.[1]
    if (prefix !== undefined) return this.#id(prefix, false)
    if (name === "starting_after" || name === "ending_before") return this.#id(undefined, false)
    if (format === "email") return random.pick(["jane@example.com", "JANE@example.com", "a+b@c.de"])
    if (format === "uri") return random.pick(URLS)
    const texts = (TELLING[name] ?? []).filter((value) => typeof value === "string")
    return random.pick(texts.length > 0 ? texts : TEXTS).slice(0, maxLength)
  }

  #number({ maximum = 1_000_000, minimum = 0, type }: JsonSchema, name: string): number {
    const random = this.#random
    const known = (TELLING[name] ?? []).filter((value) => typeof value === "number")
    if (known.length > 0 && random.chance(0.8)) return random.pick(known)
    if (type === "number" && random.chance(0.5)) return minimum + random.next()
    return random.pick([minimum, maximum, random.integer(minimum, maximum)])
  }
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value))
