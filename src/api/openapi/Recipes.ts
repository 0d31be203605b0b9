/**
 * A working request for each operation, with the requests that make the objects it needs. The document's examples, the
 * samples of the documentation and the Postman collection are all rendered from these recipes, and tests run them.
 */

/** A value of an earlier step: the ID of its object. */
export interface Reference {
  readonly step: string
}

export type Value = string | number | boolean | Reference | ReadonlyArray<Value> | { readonly [name: string]: Value }

/** A request, and the value that later steps use. */
export interface Step {
  /** The name of the object, which also tells the prefix of its ID. */
  readonly name: string
  readonly operation: string
  /** The ID in the path. */
  readonly on?: Reference
  /** The body of a POST, the query of all others. */
  readonly parameters?: { readonly [name: string]: Value }
  /** Where the value is, if it is not the object itself: a field with an ID, or the first object of a list. */
  readonly takes?: string
}

export type Recipe = ReadonlyArray<Step>

/** The prefixes of IDs by the names of steps. */
export const ID_PREFIXES: Readonly<Record<string, string>> = {
  customer: "cus",
  product: "prod",
  price: "price",
  session: "cs",
  link: "plink",
  payment_intent: "pi",
  refund: "ref",
  charge: "ch",
  operation: "op",
  payment_method: "pm",
  endpoint: "we",
  event: "evt",
  key: "key",
  new_key: "key",
  request: "req"
}

export const isReference = (value: Value): value is Reference =>
  typeof value === "object" && "step" in value && typeof value["step"] === "string"

const of = (step: string): Reference => ({ step })

type Parameters = NonNullable<Step["parameters"]>

const step = (name: string, operation: string, parameters?: Parameters, more: Partial<Step> = {}): Step => ({
  name,
  operation,
  ...(parameters !== undefined && { parameters }),
  ...more
})

const customer = step("customer", "customers.create", { name: "Jenny Rosen", email: "jenny@example.com" })
const product = step("product", "products.create", { name: "House Espresso", description: "Dark roast, 1 kg" })
const price = step("price", "prices.create", { product: of("product"), currency: "usd", unit_amount: 1200 })
const LINE: Parameters = {
  quantity: 2,
  price_data: { currency: "usd", unit_amount: 1200, product: of("product") }
}
const SESSION: Parameters = { mode: "payment", success_url: "https://example.com/thanks", line_items: [LINE] }
const session = step("session", "checkout_sessions.create", SESSION)
const link = step("link", "payment_links.create", {
  line_items: [{ ...LINE, quantity: 1, adjustable_quantity: { enabled: true, maximum: 10 } }]
})
const PAYMENT: Parameters = { amount: 2000, currency: "usd" }
const PAID: Parameters = { ...PAYMENT, payment_method: "pm_card_visa", confirm: true }
const payment = step("payment_intent", "payment_intents.create", PAYMENT)
const paid = step("payment_intent", "payment_intents.create", PAID)
const refund = step("refund", "refunds.create", { payment_intent: of("payment_intent"), amount: 500 })
const CARD: Parameters = {
  type: "card",
  card: { number: "4242424242424242", exp_month: 12, exp_year: 2034, cvc: "123" }
}
const card = step("payment_method", "payment_methods.create", CARD)
const attached = step(
  "payment_method",
  "payment_methods.attach",
  { customer: of("customer") },
  { on: of("payment_method") }
)
const ENDPOINT: Parameters = { url: "http://localhost:3000/webhooks", enabled_events: ["payment_intent.succeeded"] }
const endpoint = step("endpoint", "webhook_endpoints.create", ENDPOINT)
const newest = (name: string, operation: string): Step => step(name, operation, { limit: 1 }, { takes: "data" })
const event = newest("event", "events.list")
const key = newest("key", "api_keys.list")
const roll = step("new_key", "api_keys.roll", { expires_in: 3600 }, { on: of("key") })

/** The last step of a recipe: an operation on an earlier step's object. */
const on = (name: string, operation: string, parameters?: Parameters): Step =>
  step(name, operation, parameters, { on: of(name) })

const RECIPES_BY_OPERATION: Readonly<Record<string, Recipe>> = {
  "customers.create": [customer],
  "customers.list": [step("customers", "customers.list", { limit: 3 })],
  "customers.search": [customer, step("found", "customers.search", { query: 'email~"example.com"' })],
  "customers.retrieve": [customer, on("customer", "customers.retrieve")],
  "customers.update": [customer, on("customer", "customers.update", { metadata: { plan: "premium" } })],
  "customers.delete": [customer, on("customer", "customers.delete")],
  "customers.erase": [customer, card, attached, on("customer", "customers.erase")],
  "customers.payment_methods": [customer, on("customer", "customers.payment_methods", { limit: 3 })],
  "products.create": [
    step("product", "products.create", {
      ...product.parameters,
      default_price_data: { currency: "usd", unit_amount: 1200 }
    })
  ],
  "products.list": [step("products", "products.list", { active: true, limit: 3 })],
  "products.retrieve": [product, on("product", "products.retrieve")],
  "products.update": [product, on("product", "products.update", { description: "Dark roast, 500 g" })],
  "products.delete": [product, on("product", "products.delete")],
  "prices.create": [product, price],
  "prices.list": [step("prices", "prices.list", { active: true, limit: 3 })],
  "prices.retrieve": [product, price, on("price", "prices.retrieve", { "expand[]": ["product"] })],
  "prices.update": [product, price, on("price", "prices.update", { active: false })],
  "checkout_sessions.create": [product, session],
  "checkout_sessions.list": [step("sessions", "checkout_sessions.list", { status: "open", limit: 3 })],
  "checkout_sessions.retrieve": [product, session, on("session", "checkout_sessions.retrieve")],
  "checkout_sessions.update": [
    product,
    session,
    on("session", "checkout_sessions.update", { metadata: { order_id: "6735" } })
  ],
  "checkout_sessions.confirm": [
    product,
    session,
    on("session", "checkout_sessions.confirm", {
      payment_method: "pm_card_visa",
      customer_details: { email: "jenny@example.com" }
    })
  ],
  "checkout_sessions.expire": [product, session, on("session", "checkout_sessions.expire")],
  "checkout_sessions.line_items": [product, session, on("session", "checkout_sessions.line_items")],
  "payment_links.create": [product, link],
  "payment_links.list": [step("links", "payment_links.list", { active: true, limit: 3 })],
  "payment_links.retrieve": [product, link, on("link", "payment_links.retrieve")],
  "payment_links.update": [product, link, on("link", "payment_links.update", { active: false })],
  "payment_links.line_items": [product, link, on("link", "payment_links.line_items")],
  "payment_intents.create": [paid],
  "payment_intents.list": [step("payment_intents", "payment_intents.list", { limit: 3 })],
  "payment_intents.search": [step("found", "payment_intents.search", { query: 'status:"succeeded" AND amount>=1000' })],
  "payment_intents.retrieve": [payment, on("payment_intent", "payment_intents.retrieve")],
  "payment_intents.update": [
    payment,
    on("payment_intent", "payment_intents.update", { amount: 2500, metadata: { order_id: "6735" } })
  ],
  "payment_intents.confirm": [
    payment,
    on("payment_intent", "payment_intents.confirm", { payment_method: "pm_card_visa" })
  ],
  "payment_intents.capture": [
    step("payment_intent", "payment_intents.create", { ...PAID, capture_method: "manual" }),
    on("payment_intent", "payment_intents.capture", { amount_to_capture: 1500 })
  ],
  "payment_intents.cancel": [
    payment,
    on("payment_intent", "payment_intents.cancel", { cancellation_reason: "requested_by_customer" })
  ],
  "refunds.create": [paid, refund],
  "refunds.list": [paid, refund, step("refunds", "refunds.list", { payment_intent: of("payment_intent") })],
  "refunds.retrieve": [paid, refund, on("refund", "refunds.retrieve")],
  "refunds.update": [paid, refund, on("refund", "refunds.update", { metadata: { ticket: "4711" } })],
  "charges.list": [paid, step("charges", "charges.list", { payment_intent: of("payment_intent") })],
  "charges.retrieve": [{ ...paid, name: "charge", takes: "latest_charge" }, on("charge", "charges.retrieve")],
  "operations.list": [step("operations", "operations.list", { status: "unresolved", limit: 3 })],
  "operations.retrieve": [newest("operation", "operations.list"), on("operation", "operations.retrieve")],
  "payment_methods.create": [card],
  "payment_methods.list": [customer, step("cards", "payment_methods.list", { customer: of("customer") })],
  "payment_methods.retrieve": [card, on("payment_method", "payment_methods.retrieve")],
  "payment_methods.attach": [customer, card, attached],
  "payment_methods.detach": [customer, card, attached, on("payment_method", "payment_methods.detach")],
  "webhook_endpoints.create": [endpoint],
  "webhook_endpoints.list": [step("endpoints", "webhook_endpoints.list", { limit: 3 })],
  "webhook_endpoints.retrieve": [endpoint, on("endpoint", "webhook_endpoints.retrieve")],
  "webhook_endpoints.update": [endpoint, on("endpoint", "webhook_endpoints.update", { status: "disabled" })],
  "webhook_endpoints.delete": [endpoint, on("endpoint", "webhook_endpoints.delete")],
  "webhook_endpoints.roll_secret": [endpoint, on("endpoint", "webhook_endpoints.roll_secret", { expires_in: 3600 })],
  "webhook_endpoints.deliveries": [endpoint, on("endpoint", "webhook_endpoints.deliveries", { limit: 3 })],
  "events.list": [step("events", "events.list", { type: "payment_intent.*", limit: 3 })],
  "events.retrieve": [customer, event, on("event", "events.retrieve")],
  "events.resend": [customer, event, on("event", "events.resend")],
  "test_helpers.authenticate": [
    step("payment_intent", "payment_intents.create", { ...PAID, payment_method: "pm_card_authenticationRequired" }),
    on("payment_intent", "test_helpers.authenticate", { outcome: "success" })
  ],
  "test_helpers.advance_clock": [step("clock", "test_helpers.advance_clock", { seconds: 3600 })],
  "test_helpers.delete_data": [step("deleted", "test_helpers.delete_data")],
  "api_keys.list": [step("keys", "api_keys.list", { limit: 3 })],
  "api_keys.roll": [key, roll],
  "api_keys.revoke": [key, roll, on("key", "api_keys.revoke")],
  "request_logs.list": [step("requests", "request_logs.list", { status: "4xx", limit: 3 })],
  "request_logs.retrieve": [newest("request", "request_logs.list"), on("request", "request_logs.retrieve")]
}

/** The recipe of an operation. */
export const recipeOf = (operationId: string): Recipe => {
  const recipe = RECIPES_BY_OPERATION[operationId]
  if (recipe === undefined) throw new Error(`No recipe for ${operationId}`)
  return recipe
}

const EXAMPLE_ID = "08Qm3vXk1Zr9TbLw5YcHn2Ea"

/** Replaces references by values, by default by IDs for examples. */
export const filledIn = (
  value: Value,
  valueOf: (step: string) => unknown = (name) => `${ID_PREFIXES[name]}_${EXAMPLE_ID}`
): unknown => {
  if (typeof value !== "object") return value
  if (isReference(value)) return valueOf(value.step)
  if (Array.isArray(value)) return value.map((item: Value) => filledIn(item, valueOf))
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, filledIn(member as Value, valueOf)]))
}
