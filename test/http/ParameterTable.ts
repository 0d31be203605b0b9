/**
 * Every parameter of every operation, as interface.md and semantics.md define it. For a new parameter or operation, add
 * here what it accepts, and what null and the empty string mean.
 */
import * as Kinds from "./ParameterKinds.ts"
import { dropped, type Kind, never, nullable, optional, required, type Rule, unsettable } from "./ParameterKinds.ts"

export type Table = Readonly<Record<string, Readonly<Record<string, Rule>>>>

/** Existing objects, for references. */
export interface Known {
  readonly customer: string
  readonly product: string
  readonly price: string
  readonly webhookEndpoint: string
}

const within = (path: string, rules: Readonly<Record<string, Rule>>): Readonly<Record<string, Rule>> =>
  Object.fromEntries(Object.entries(rules).map(([name, rule]) => [`${path}.${name}`, rule]))

const metadata = (variant = "plain") => ({
  metadata: optional(Kinds.metadata, variant),
  "metadata.*": dropped(Kinds.metadataValue, variant)
})
const metadataOfUpdate = {
  metadata: unsettable(Kinds.metadata),
  "metadata.*": dropped(Kinds.metadataValue)
}

const address = (variant: string) => ({
  city: optional(Kinds.text(5000), variant),
  country: optional(Kinds.country, variant),
  line1: optional(Kinds.text(5000), variant),
  line2: optional(Kinds.text(5000), variant),
  postal_code: optional(Kinds.text(5000), variant),
  state: optional(Kinds.text(5000), variant)
})
const people = (variant: string) => ({
  email: optional(Kinds.email, variant),
  name: optional(Kinds.text(256), variant),
  phone: optional(Kinds.text(64), variant),
  address: optional(Kinds.object({}), variant),
  ...within("address", address(variant))
})

const paymentMethodData = (variant: string) => ({
  type: required(Kinds.oneOf("card"), variant),
  card: required(Kinds.object(), variant),
  "card.number": required(Kinds.cardNumber, variant),
  "card.exp_month": required(Kinds.integer(1, 12), variant),
  "card.exp_year": required({ ...Kinds.integer(1000, 9999), takes: [2040, 9999] }, variant),
  "card.cvc": optional(Kinds.cvc, variant),
  token: optional(Kinds.token, variant),
  billing_details: optional(Kinds.object({}), variant),
  ...within("billing_details", people(variant)),
  ...metadata(variant)
})
const inline = {
  payment_method_data: optional(Kinds.object(), "inline"),
  ...within("payment_method_data", paymentMethodData("inline"))
}

/** Optional, but must be right if sent. */
const clientSecret: Kind = {
  type: "string",
  takes: [],
  refuses: ["x".repeat(5001)],
  says: ["", "x"].map((value) => ({ value, status: 404, code: "resource_missing", param: "id" }))
}
const secretOfBody = { ...optional(clientSecret), whenEmpty: "nothing" as const }

const cursor: Kind = {
  type: "string",
  takes: [],
  refuses: ["", "x".repeat(5001), "a\u0000"],
  says: [{ value: "x", status: 404, code: "resource_missing" }]
}
const query = (takes: ReadonlyArray<string>, ...refuses: ReadonlyArray<string>): Kind => ({
  type: "string",
  takes,
  refuses: ["", ...refuses]
})
const flag = query(["true", "false"], "1", "TRUE", "yes")
const filterId = (prefix: string): Kind => {
  const { refuses, ...kind } = Kinds.filterId(prefix)
  return { ...kind, refuses: ["", ...refuses] }
}
/** The id of a list's parent object, which must exist. */
const listed = (prefix: string, known: string): Kind => {
  const { refuses, ...kind } = Kinds.id(prefix, known)
  return { ...kind, refuses: ["", ...refuses] }
}
const limit = optional(query(["1", "100"], "0", "101", "-1", "1.5", "ten", "01", "1e1"))
const pages = { "?limit": limit, "?starting_after": optional(cursor), "?ending_before": optional(cursor) }
const wait = optional(query(["0", "25"], "26", "-1", "1.5", "01", "1e1", "ten"))
const bound = optional(query(["0", "1773014400", "99999999999"], "-1", "1.5", "01", "1e9", "now", "100000000000", " 1"))
const list = {
  ...pages,
  "?created": bound,
  "?created[gt]": bound,
  "?created[gte]": bound,
  "?created[lt]": bound,
  "?created[lte]": bound
}
const SOMEBODY = Buffer.from("cus_000000000000000000000000").toString("base64url")
const SOME_PAYMENT = Buffer.from("pi_000000000000000000000000").toString("base64url")
/** Search results use this kind's pagination, and not the other's. */
const search = (own: string, other: string, ...queries: ReadonlyArray<string>) => ({
  "?query": required(
    query(queries, "x", "created", `created:"x"`, "created>1 OR", `phone:"1"`, `id:"${"x".repeat(1000)}"`)
  ),
  "?limit": limit,
  "?page": optional(query([own], other, "x", "%", `${own}=`, "x".repeat(5001)))
})
/** A wrong one gets the error of a missing object; an empty one counts as absent. */
const secretOfQuery = optional({ ...clientSecret, refuses: ["", "x".repeat(5001)], says: clientSecret.says!.slice(1) })

const TAX = "inclusive exclusive unspecified"
const INTERVALS = "day week month year"
const CANCELLATION = "abandoned duplicate fraudulent requested_by_customer"
const EVENTS = "customer.created charge.refunded payment_intent.succeeded *"
const urls = (count: number) => Array.from({ length: count }, (_, index) => `https://a.b/${index}`)
const named = (count: number) => Array.from({ length: count }, () => ({ name: "x" }))
const empty = (count: number) => Array.from({ length: count }, () => ({}))
const SIZE = { height: 1, length: 1, width: 1, weight: 1 }

const recurring = (variant: string) => ({
  interval: required(Kinds.oneOf(INTERVALS), variant),
  interval_count: optional(Kinds.integer(1), variant)
})

/** Parameters that the creation and the update of a product share. */
const productParts = {
  "images[]": never(Kinds.webUrl, "full"),
  ...within("package_dimensions", {
    height: required(Kinds.dimension, "full"),
    length: required(Kinds.dimension, "full"),
    width: required(Kinds.dimension, "full"),
    weight: required(Kinds.dimension, "full")
  }),
  "marketing_features[]": never(Kinds.object({ name: "x" }), "full"),
  "marketing_features[].name": required(Kinds.fullText(5000), "full")
}
const images = Kinds.array([[], urls(8)], [urls(9)])
const features = Kinds.array([[], named(15)], [named(16)])

const products: Table = {
  "products.create": {
    name: required(Kinds.fullText(5000)),
    active: optional(Kinds.anyBoolean),
    description: optional(Kinds.text(5000)),
    images: optional(images),
    url: optional(Kinds.webUrl),
    default_price_data: optional(Kinds.object({ currency: "usd", unit_amount: 1 })),
    ...within("default_price_data", {
      currency: required(Kinds.currency, "priced"),
      unit_amount: required(Kinds.amount(0), "priced"),
      unit_amount_decimal: optional(Kinds.decimal("2000", "02000.00"), "priced"),
      tax_behavior: optional(Kinds.oneOf(TAX), "priced"),
      recurring: optional(Kinds.object({ interval: "month" }), "priced"),
      ...within("recurring", recurring("priced"))
    }),
    shippable: optional(Kinds.anyBoolean),
    statement_descriptor: optional(Kinds.text(22)),
    unit_label: optional(Kinds.text(12)),
    tax_code: optional(Kinds.text(5000)),
    package_dimensions: optional(Kinds.object(SIZE)),
    marketing_features: optional(features),
    ...productParts,
    ...metadata()
  },
  "products.update": {
    name: never(Kinds.fullText(5000)),
    active: never(Kinds.anyBoolean),
    description: unsettable(Kinds.text(5000)),
    images: never(images),
    url: unsettable(Kinds.webUrl),
    shippable: nullable(Kinds.anyBoolean),
    statement_descriptor: unsettable(Kinds.text(22)),
    unit_label: unsettable(Kinds.text(12)),
    tax_code: unsettable(Kinds.text(5000)),
    package_dimensions: nullable(Kinds.object(SIZE)),
    marketing_features: never(features),
    ...productParts,
    ...metadataOfUpdate,
    default_price: nullable(Kinds.id("price"))
  },
  "products.list": { ...list, "?active": optional(flag) },
  "products.retrieve": {},
  "products.delete": {}
}

const prices = ({ product }: Known): Table => ({
  "prices.create": {
    product: required(Kinds.id("prod", product)),
    currency: required(Kinds.currency),
    unit_amount: required(Kinds.amount(0)),
    unit_amount_decimal: optional(Kinds.decimal("2000", "2000.0")),
    custom_unit_amount: optional(Kinds.object()),
    ...within("custom_unit_amount", {
      enabled: required(Kinds.boolean(true), "custom"),
      minimum: optional(Kinds.amount(0, undefined, 0, 5), "custom"),
      maximum: optional(Kinds.amount(0, undefined, 5, 999_999_999_999), "custom"),
      preset: optional(Kinds.amount(0), "custom")
    }),
    active: optional(Kinds.anyBoolean),
    type: optional(Kinds.oneOf("one_time recurring", "one_time")),
    billing_scheme: optional(Kinds.oneOf("per_unit tiered", "per_unit")),
    recurring: optional(Kinds.object({ interval: "day" })),
    ...within("recurring", {
      ...recurring("recurring"),
      usage_type: optional(Kinds.oneOf("licensed metered"), "recurring")
    }),
    tax_behavior: optional(Kinds.oneOf(TAX)),
    tiers_mode: required(Kinds.oneOf("graduated volume"), "tieredByUnit"),
    tiers: required(Kinds.array([], [[], empty(101)]), "tieredByUnit"),
    "tiers[]": never(Kinds.object(), "tieredByUnit"),
    ...within("tiers[]", {
      up_to: optional({ type: "integer", takes: ["inf"], refuses: [0, -1, 5, "infinity", "INF"] }, "tieredByUnit"),
      flat_amount: optional(Kinds.amount(0), "tieredByUnit"),
      flat_amount_decimal: optional(Kinds.decimal("5", "0.5"), "tieredByUnit"),
      unit_amount: optional(Kinds.amount(0), "tieredByFlat"),
      unit_amount_decimal: optional(Kinds.decimal("5", "0.5"), "tieredByFlat")
    }),
    transform_quantity: optional(Kinds.object({ divide_by: 2, round: "up" })),
    "transform_quantity.divide_by": required(Kinds.integer(1), "packaged"),
    "transform_quantity.round": required(Kinds.oneOf("up down"), "packaged"),
    lookup_key: optional(Kinds.lookupKey()),
    transfer_lookup_key: optional(Kinds.anyBoolean),
    nickname: optional(Kinds.text(5000)),
    ...metadata()
  },
  "prices.update": {
    active: never(Kinds.anyBoolean),
    nickname: unsettable(Kinds.text(5000)),
    tax_behavior: never(Kinds.oneOf(TAX)),
    lookup_key: unsettable(Kinds.lookupKey()),
    transfer_lookup_key: never(Kinds.anyBoolean),
    ...metadataOfUpdate
  },
  "prices.list": {
    ...list,
    "?active": optional(flag),
    "?product": optional(filterId("prod")),
    "?type": optional(query(["one_time", "recurring"], "x", "ONE_TIME")),
    "?currency": optional(query(["usd", "USD"], "us", "usdd", "u$d")),
    "?lookup_keys[]": optional(query(["a", "x".repeat(200)], "x".repeat(201)))
  },
  "prices.retrieve": { "?expand[]": optional(query(["product"], "x", "currency")) }
})

const customersAndCards = ({ customer }: Known): Table => ({
  "customers.create": {
    email: optional(Kinds.email),
    name: optional(Kinds.text(256)),
    phone: optional(Kinds.text(64)),
    description: optional(Kinds.text(1000)),
    ...metadata()
  },
  "customers.update": {
    email: unsettable(Kinds.email),
    name: unsettable(Kinds.text(256)),
    phone: unsettable(Kinds.text(64)),
    description: unsettable(Kinds.text(1000)),
    ...metadataOfUpdate
  },
  "customers.list": { ...list, "?email": optional(query(["a@b.co", "nobody", "x".repeat(320)], "x".repeat(321))) },
  "customers.search": search(SOMEBODY, SOME_PAYMENT, `email:"a@b.co"`, "created>1"),
  "customers.retrieve": {},
  "customers.delete": {},
  "customers.erase": {},
  "customers.payment_methods": list,
  "payment_methods.create": paymentMethodData("plain"),
  "payment_methods.retrieve": {},
  "payment_methods.list": { ...list, "?customer": required(listed("cus", customer)) },
  "payment_methods.attach": { customer: required(Kinds.id("cus", customer)) },
  "payment_methods.detach": {}
})

const payments = ({ customer }: Known): Table => ({
  "payment_intents.create": {
    statement_descriptor: optional(Kinds.text(22)),
    amount: required(Kinds.amount(1)),
    currency: required(Kinds.currency),
    capture_method: optional(Kinds.oneOf("automatic manual")),
    confirmation_method: optional(Kinds.oneOf("automatic manual")),
    customer: optional(Kinds.id("cus", customer)),
    description: optional(Kinds.text(5000)),
    ...metadata(),
    confirm: optional({ ...Kinds.anyBoolean, takes: [false] }),
    payment_method: optional(Kinds.id("pm", "pm_card_visa")),
    ...inline,
    payment_method_type: optional(Kinds.oneOf("card"), "inline"),
    return_url: optional(Kinds.redirectUrl, "inline"),
    setup_future_usage: optional(Kinds.oneOf("on_session off_session"), "held"),
    off_session: optional(Kinds.anyBoolean, "inline")
  },
  "payment_intents.update": {
    statement_descriptor: unsettable(Kinds.text(22)),
    amount: never(Kinds.amount(1)),
    currency: never(Kinds.currency),
    customer: nullable(Kinds.id("cus", customer)),
    description: unsettable(Kinds.text(5000)),
    ...metadataOfUpdate,
    payment_method: nullable(Kinds.id("pm", "pm_card_visa")),
    capture_method: never(Kinds.oneOf("automatic manual")),
    setup_future_usage: nullable(Kinds.oneOf("on_session off_session"), "held")
  },
  "payment_intents.confirm": {
    payment_method: optional(Kinds.id("pm", "pm_card_visa")),
    ...inline,
    payment_method_type: optional(Kinds.oneOf("card")),
    return_url: optional(Kinds.redirectUrl),
    setup_future_usage: optional(Kinds.oneOf("on_session off_session"), "held"),
    off_session: optional(Kinds.anyBoolean),
    client_secret: secretOfBody
  },
  "payment_intents.capture": { amount_to_capture: optional(Kinds.amount(1, 2000)) },
  "payment_intents.cancel": { cancellation_reason: optional(Kinds.oneOf(CANCELLATION)) },
  "payment_intents.search": search(SOME_PAYMENT, SOMEBODY, `status:"succeeded"`, "amount>1"),
  "payment_intents.list": { ...list, "?customer": optional(filterId("cus")) },
  "payment_intents.retrieve": {
    "?expand[]": optional(query(["customer"], "x", "charges")),
    "?client_secret": secretOfQuery
  },
  "refunds.create": {
    payment_intent: required(Kinds.id("pi")),
    amount: optional(Kinds.amount(1, 2000)),
    reason: optional(Kinds.oneOf("duplicate fraudulent requested_by_customer")),
    ...metadata()
  },
  "refunds.update": metadataOfUpdate,
  "refunds.list": { ...list, "?payment_intent": optional(filterId("pi")) },
  "refunds.retrieve": {},
  "charges.list": { ...list, "?payment_intent": optional(filterId("pi")), "?customer": optional(filterId("cus")) },
  "charges.retrieve": {},
  "operations.list": {
    ...list,
    "?payment_intent": optional(filterId("pi")),
    "?status": optional(query(["open", "unresolved", "waiting", "decide", "final"], "x", "FINAL")),
    "?kind": optional(query(["authorize", "capture", "void", "refund"], "x", "Void"))
  },
  "operations.retrieve": {}
})

const checkout = ({ customer, price, product }: Known): Table => ({
  "checkout_sessions.create": {
    mode: required(Kinds.oneOf("payment")),
    line_items: required(Kinds.array([], [[], empty(101)])),
    "line_items[]": never(Kinds.object()),
    ...within("line_items[]", {
      quantity: optional(Kinds.integer(1, 999_999)),
      price: required(Kinds.id("price", price)),
      price_data: optional(Kinds.object()),
      ...within("price_data", {
        currency: required(Kinds.currency, "inline"),
        product: required(Kinds.id("prod", product), "inline"),
        unit_amount: required(Kinds.amount(0), "inline"),
        tax_behavior: optional(Kinds.oneOf(TAX), "inline"),
        recurring: optional(Kinds.object({ interval: "month" }), "inline"),
        ...within("recurring", recurring("inline"))
      })
    }),
    success_url: required(Kinds.redirectUrl),
    cancel_url: optional(Kinds.redirectUrl),
    customer: optional(Kinds.id("cus", customer)),
    customer_email: optional(Kinds.email),
    customer_creation: optional(Kinds.oneOf("always if_required")),
    ui_mode: optional(Kinds.oneOf("hosted embedded custom")),
    billing_address_collection: optional(Kinds.oneOf("auto required")),
    phone_number_collection: optional(Kinds.object({ enabled: true })),
    ...within("phone_number_collection", { enabled: required(Kinds.anyBoolean, "inline") }),
    locale: optional(Kinds.oneOf("auto en de fr es it pt nl pl ja ar")),
    client_reference_id: optional(Kinds.text(200)),
    payment_intent_data: optional(Kinds.object({})),
    ...within("payment_intent_data", {
      capture_method: optional(Kinds.oneOf("automatic manual"), "inline"),
      description: optional(Kinds.text(5000), "inline"),
      statement_descriptor: optional(Kinds.text(22), "inline"),
      ...metadata("inline"),
      application_fee_amount: optional(Kinds.integer(0, 2000), "inline")
    }),
    currency: optional(Kinds.currency),
    expires_at: optional({
      type: "integer",
      takes: [hoursAhead(1), hoursAhead(23)],
      refuses: [0, -1, hoursAhead(0.25), hoursAhead(25)]
    }),
    ...metadata()
  },
  "checkout_sessions.update": metadataOfUpdate,
  "checkout_sessions.confirm": {
    payment_method: optional(Kinds.id("pm", "pm_card_visa")),
    ...inline,
    customer_details: optional(Kinds.object()),
    ...within("customer_details", people("plain")),
    return_url: optional(Kinds.redirectUrl),
    custom_unit_amount: optional(Kinds.amount(1), "chosen"),
    client_secret: secretOfBody
  },
  "checkout_sessions.list": {
    ...list,
    "?status": optional(query(["open", "complete", "expired"], "x", "OPEN")),
    "?payment_link": optional(filterId("plink"))
  },
  "checkout_sessions.retrieve": { "?client_secret": secretOfQuery },
  "checkout_sessions.expire": {},
  "checkout_sessions.line_items": { ...pages, "?client_secret": secretOfQuery }
})

const afterCompletion = {
  type: required(Kinds.oneOf("hosted_confirmation redirect", "redirect"), "redirecting"),
  redirect: optional(Kinds.object({ url: "https://a.b" }), "redirecting"),
  ...within("redirect", { url: required(Kinds.redirectUrl, "redirecting") })
}

const restrictions = {
  completed_sessions: required(Kinds.object({ limit: 1 }), "limited"),
  ...within("completed_sessions", { limit: required(Kinds.integer(1, 999_999), "limited") })
}

const paymentLinks = ({ price, product }: Known): Table => ({
  "payment_links.create": {
    line_items: required(Kinds.array([], [[], empty(101)])),
    "line_items[]": never(Kinds.object()),
    ...within("line_items[]", {
      quantity: optional(Kinds.integer(1, 999_999)),
      price: required(Kinds.id("price", price)),
      price_data: optional(Kinds.object()),
      ...within("price_data", {
        currency: required(Kinds.currency, "inline"),
        product: required(Kinds.id("prod", product), "inline"),
        unit_amount: required(Kinds.amount(0), "inline"),
        tax_behavior: optional(Kinds.oneOf(TAX), "inline"),
        recurring: optional(Kinds.object({ interval: "month" }), "inline"),
        ...within("recurring", recurring("inline"))
      }),
      adjustable_quantity: optional(Kinds.object({ enabled: true }), "adjustable"),
      ...within("adjustable_quantity", {
        enabled: required(Kinds.anyBoolean, "adjustable"),
        minimum: optional({ ...Kinds.integer(1, 999_999), takes: [1] }, "adjustable"),
        maximum: optional(Kinds.integer(1, 999_999), "adjustable")
      })
    }),
    currency: optional(Kinds.currency),
    after_completion: optional(Kinds.object({ type: "hosted_confirmation" })),
    ...within("after_completion", afterCompletion),
    inactive_message: optional(Kinds.text(500)),
    restrictions: optional(Kinds.object({ completed_sessions: { limit: 1 } })),
    ...within("restrictions", restrictions),
    customer_creation: optional(Kinds.oneOf("always if_required")),
    billing_address_collection: optional(Kinds.oneOf("auto required")),
    phone_number_collection: optional(Kinds.object({ enabled: true })),
    ...within("phone_number_collection", { enabled: required(Kinds.anyBoolean, "inline") }),
    payment_intent_data: optional(Kinds.object({})),
    ...within("payment_intent_data", {
      capture_method: optional(Kinds.oneOf("automatic manual"), "inline"),
      description: optional(Kinds.text(5000), "inline"),
      statement_descriptor: optional(Kinds.text(22), "inline"),
      ...metadata("inline")
    }),
    ...metadata()
  },
  "payment_links.update": {
    active: never(Kinds.anyBoolean),
    after_completion: never(Kinds.object({ type: "hosted_confirmation" })),
    ...within("after_completion", afterCompletion),
    inactive_message: unsettable(Kinds.text(500)),
    restrictions: nullable(Kinds.object({ completed_sessions: { limit: 1 } })),
    ...within("restrictions", restrictions),
    ...metadataOfUpdate
  },
  "payment_links.list": { ...list, "?active": optional(query(["true", "false"], "yes", "True")) },
  "payment_links.retrieve": {},
  "payment_links.line_items": pages
})

const hoursAhead = (hours: number): number => Math.floor(Date.now() / 1000 + hours * 3600)

const events = Kinds.array([["*"], ["customer.created", "customer.created"]], [[], ["*", "customer.created"]])
const webhooks = ({ webhookEndpoint }: Known): Table => ({
  "webhook_endpoints.create": {
    url: required(Kinds.webhookUrl),
    enabled_events: required(events),
    "enabled_events[]": never(Kinds.oneOf(EVENTS)),
    description: optional(Kinds.text(5000)),
    ...metadata()
  },
  "webhook_endpoints.update": {
    url: never(Kinds.webhookUrl),
    enabled_events: never(events),
    "enabled_events[]": never(Kinds.oneOf(EVENTS)),
    description: unsettable(Kinds.text(5000)),
    ...metadataOfUpdate,
    status: never(Kinds.oneOf("enabled disabled"))
  },
  "webhook_endpoints.list": list,
  "webhook_endpoints.retrieve": { "?wait": wait },
  "webhook_endpoints.delete": {},
  "webhook_endpoints.deliveries": list,
  "webhook_endpoints.roll_secret": { expires_in: optional(Kinds.integer(0, 86_400)) },
  "events.list": {
    ...list,
    "?type": optional(query(["customer.created", "customer.*"], "x", "x.*", "customer", "*.created")),
    "?wait": wait
  },
  "events.retrieve": {},
  "events.resend": { webhook_endpoint: optional(Kinds.id("we", webhookEndpoint)) }
})

const others: Table = {
  "test_helpers.authenticate": { outcome: required(Kinds.oneOf("success failure")) },
  "test_helpers.advance_clock": { seconds: required(Kinds.integer(1, 63_072_000)) },
  "test_helpers.delete_data": {},
  "api_keys.list": list,
  "api_keys.roll": { expires_in: optional(Kinds.integer(0, 86_400)) },
  "api_keys.revoke": {},
  "request_logs.list": {
    ...list,
    "?status": optional(query(["402", "4xx", "5XX"], "4", "600", "xx", "40x", "4000")),
    "?method": optional(query(["GET", "POST"], "get", "G T", "É")),
    "?path": optional(query(["/v1/customers", "x"])),
    "?api_key": optional(filterId("key")),
    "?api_version": optional(query(["2026-03-09", "x"])),
    "?idempotency_key": optional(query(["x"])),
    "?object": optional(query(["pi_x"])),
    "?error_code": optional(query(["card_declined"]))
  },
  "request_logs.retrieve": {}
}

/** All parameters, by operation and name. */
export const parameterTable = (known: Known): Table => ({
  ...customersAndCards(known),
  ...products,
  ...prices(known),
  ...checkout(known),
  ...paymentLinks(known),
  ...payments(known),
  ...webhooks(known),
  ...others
})
