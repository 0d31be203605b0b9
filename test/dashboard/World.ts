/** One of everything that the dashboard shows, with texts as a test wants them, and every page that shows it. */
import { Effect } from "effect"
import { INSTALLATION } from "../../src/payments/AccountIds.ts"
import { API_KEY } from "../../src/payments/ApiKeys.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import * as Merchants from "../../src/payments/Merchants.ts"
import * as People from "../../src/payments/People.ts"
import { basic } from "../http/TestServer.ts"
import type { Answer, PagesServer } from "../pages/PagesServer.ts"
import { merchant } from "../support/MemoryService.ts"
import { fail } from "./FailedDelivery.ts"

/** Makes what somebody writes into a field of so many characters. */
export type Text = (max: number) => string

export interface World {
  /** The server, as the merchant of this world sees it: no other merchant's objects are on its pages. */
  readonly server: PagesServer
  /** Paths below the environment, by the routes that serve them. */
  readonly pages: Readonly<Record<string, string>>
}

/** What can stand before the `@` of an email. */
const local = (text: string): string => text.replaceAll(/[\s@\p{C}\p{Z}\p{DI}\u2800]/gu, "x")

/** What can stand in a header. */
const printable = (text: string): string => text.replaceAll(/[^\x20-\x7e]/g, "").trim() || "x"

export const makeWorld = async (shared: PagesServer, text: Text): Promise<World> => {
  const { accounts } = shared
  const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A> => Effect.runPromise(Effect.orDie(effect))
  const keys = await run(Effect.provideService(merchant("Lumen"), Accounts, accounts))
  const server: PagesServer = {
    ...shared,
    ...keys,
    post: (path, body, options) => shared.post(path, body, { key: keys.secretTest, ...options }),
    get: (path, key = keys.secretTest) => shared.get(path, key)
  }
  const brand = { name: text(200), support: `https://shop.example/?${text(100)}`, accent: "#1b7f5e" }
  await run(accounts.run(INSTALLATION, Merchants.changeAppearance(keys.merchantId, brand)))
  // An address is one person's, of whatever merchant.
  const email = `${local(text(30))}@${keys.merchantId.toLowerCase()}.example`
  const person = await run(accounts.run(INSTALLATION, People.add(keys.merchantId, { email, role: "developer" })))
  const objects = await makeObjects(server, text)
  const { documents } = await run(
    accounts.list(INSTALLATION, {
      kind: API_KEY.name,
      prefix: API_KEY.prefix,
      labels: { account: `${keys.merchantId}:test` },
      limit: 1
    })
  )
  return { server, pages: pagesOf({ ...objects, apiKey: documents[0]!.id, person: person.id }) }
}

const makeObjects = async (server: PagesServer, text: Text) => {
  const { post } = server
  const metadata = { [text(40).replaceAll(/[[\]]/g, "x")]: text(500) }
  const endpoint = await post("/v1/webhook_endpoints", {
    url: `http://127.0.0.1:9/?${text(100)}`,
    enabled_events: ["*"],
    description: text(500),
    metadata
  })
  const email = `${local(text(30))}@example.com`
  const payer = { email, name: text(100), phone: text(20) }
  const customer = await post("/v1/customers", { ...payer, description: text(500), metadata })
  await post(`/v1/customers/${customer.id}`, { description: "Written anew" })
  const product = await post("/v1/products", {
    name: text(250),
    description: text(500),
    url: `https://shop.example/?${text(50)}`,
    images: [`https://shop.example/${encodeURIComponent(text(20))}.png`],
    unit_label: text(12),
    statement_descriptor: text(22),
    metadata,
    default_price_data: { currency: "usd", unit_amount: 1250 }
  })
  const tiers = [
    { up_to: 10, unit_amount: 500 },
    { up_to: "inf", unit_amount: 400, flat_amount: 100 }
  ]
  const terms = { billing_scheme: "tiered", tiers_mode: "volume", tiers }
  const price = { product: product.id, currency: "usd", nickname: text(100), lookup_key: text(100), metadata }
  const { id: tieredPrice } = await post("/v1/prices", { ...price, ...terms })
  const session = await post("/v1/checkout_sessions", {
    mode: "payment",
    line_items: [{ price: product.default_price, quantity: 3 }],
    success_url: `https://shop.example/?${text(50)}`,
    client_reference_id: text(200),
    metadata
  })
  await post(`/v1/checkout_sessions/${session.id}/confirm`, {
    payment_method: "pm_card_visa",
    customer_details: { ...payer, address: { line1: text(100), city: text(100), postal_code: text(20), country: "PT" } }
  })
  const payment = await post("/v1/payment_intents", {
    amount: 4321,
    currency: "usd",
    payment_method: "pm_card_visa",
    confirm: true,
    customer: customer.id,
    setup_future_usage: "off_session",
    description: text(500),
    statement_descriptor: text(22),
    metadata
  })
  const refund = await post("/v1/refunds", { payment_intent: payment.id, amount: 100, metadata })
  const { delivery } = await fail(server, endpoint.id)
  const event = (await server.get("/v1/events?type=customer.updated")).data[0]
  const request = await refusedRequest(server, text)
  return { customer, delivery, endpoint, event, payment, product, refund, request, session, tieredPrice }
}

/** A request with whatever its sender writes, which is refused. Its ID. */
const refusedRequest = async ({ secretTest, url }: PagesServer, text: Text): Promise<string> => {
  const response = await fetch(`${url}/v1/payment_intents/${encodeURIComponent(text(40))}`, {
    method: "POST",
    headers: {
      authorization: basic(secretTest),
      "content-type": "application/json",
      "idempotency-key": printable(text(100))
    },
    body: JSON.stringify({ description: text(500), metadata: { [text(40)]: text(100) }, currency: text(10) })
  })
  await response.arrayBuffer()
  return response.headers.get("x-request-id")!
}

const pagesOf = (of: Answer): World["pages"] => ({
  "": "",
  "/payments": "/payments",
  "/payments/:id": `/payments/${of.payment.id}`,
  "/charges/:id": `/charges/${of.refund.charge}`,
  "/refunds/:id": `/refunds/${of.refund.id}`,
  "/payment-methods/:id": `/payment-methods/${of.payment.payment_method}`,
  "/find": "/find",
  "/customers": "/customers",
  "/customers/:id": `/customers/${of.customer.id}`,
  "/products": "/products",
  "/products/:id": `/products/${of.product.id}`,
  "/products/:id/prices": `/products/${of.product.id}/prices`,
  "/prices/:id": `/prices/${of.tieredPrice}`,
  "/checkout-sessions": "/checkout-sessions",
  "/checkout-sessions/:id": `/checkout-sessions/${of.session.id}`,
  "/webhooks": "/webhooks",
  "/webhooks/:id": `/webhooks/${of.endpoint.id}`,
  "/webhooks/:id/:delivery": `/webhooks/${of.endpoint.id}/${of.delivery}`,
  "/events": "/events",
  "/events/:id": `/events/${of.event.id}`,
  "/requests": "/requests",
  "/requests/:id": `/requests/${of.request}`,
  "/developers": "/developers",
  "/developers/keys": "/developers/keys",
  "/developers/keys/:id": `/developers/keys/${of.apiKey}`,
  "/developers/brand": "/developers/brand",
  "/developers/clock": "/developers/clock",
  "/developers/trigger": "/developers/trigger",
  "/developers/trigger/:id": `/developers/trigger/${of.payment.id}`,
  "/developers/wipe": "/developers/wipe",
  "/developers/installation": "/developers/installation",
  "/team": "/team",
  "/team/:id": `/team/${of.person}`,
  "/team/audit": "/team/audit?of=environment",
  "/account": "/account"
})
