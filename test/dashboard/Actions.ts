/** Every action on the pages of the dashboard, with its input. */
import { Effect, Redacted } from "effect"
import { readImage } from "../../src/domain/RasterImage.ts"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import * as Totp from "../../src/domain/Totp.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import * as ApiKeys from "../../src/payments/merchants/ApiKeys.ts"
import * as Logos from "../../src/payments/merchants/Logos.ts"
import * as PaymentNotes from "../../src/payments/lifecycles/PaymentNotes.ts"
import * as People from "../../src/payments/team/People.ts"
import * as SecondFactors from "../../src/payments/team/SecondFactors.ts"
import type { Answer, MemoryTillWithPages } from "../support/MemoryTillWithPages.ts"
import { fail } from "../support/fixtures/FailedDelivery.ts"
import { png } from "../support/fixtures/Images.ts"
import { paymentsConfig } from "../support/PaymentsConfig.ts"
import { begin, doubtful } from "../support/fixtures/Operations.ts"
import { addProcessor, makeRoom } from "../support/fixtures/Processors.ts"
import { signedIn } from "./People.ts"

/** A mail server that cannot be reached: its mails stay pending. */
export const MAIL = {
  server: { host: "127.0.0.1", port: 9, isSecure: false, user: null, password: Redacted.make("") },
  from: { name: "Till", address: "till@pay.example" }
}

export interface TriedAction {
  /** Name in the audit log. */
  readonly name: string
  /** Creates the object and returns the page with the action's form. */
  readonly page: (server: MemoryTillWithPages) => Promise<string>
  /** End of the form's address. */
  readonly end: string
  readonly entered: Readonly<Record<string, string | Blob>>
  /** The account with the audit entry. */
  readonly account: "test" | "live" | "installation"
  /** True if the support role may do it. */
  readonly support: boolean
}

const payment = (server: MemoryTillWithPages, parameters: object = {}): Promise<Answer> =>
  server.post("/v1/payment_intents", {
    amount: 4321,
    currency: "usd",
    payment_method: "pm_card_visa",
    confirm: true,
    ...parameters
  })

const customer = (server: MemoryTillWithPages): Promise<Answer> =>
  server.post("/v1/customers", { email: "payer@example.com" })
const product = (server: MemoryTillWithPages): Promise<Answer> =>
  server.post("/v1/products", { name: "Tea", default_price_data: { currency: "usd", unit_amount: 1250 } })
const withPrice = async (server: MemoryTillWithPages): Promise<Answer> => {
  const made = await product(server)
  await server.post("/v1/prices", { product: made.id, currency: "usd", unit_amount: 1000 })
  return made
}

/** An endpoint with a delivery that has failed for good. */
const failing = async (server: MemoryTillWithPages) => {
  const endpoint = await server.post("/v1/webhook_endpoints", {
    url: "https://shop.example/w",
    enabled_events: ["*"]
  })
  await payment(server)
  const delivery = await fail(server, endpoint.id)
  return { endpoint: endpoint.id as string, ...delivery }
}

/** The page of an open checkout session. */
const sessionPage = async (server: MemoryTillWithPages) => {
  const { default_price } = await product(server)
  const line_items = [{ price: default_price, quantity: 1 }]
  const success_url = "https://shop.example/"
  const { id } = await server.post("/v1/checkout_sessions", { mode: "payment", success_url, line_items })
  return `/checkout-sessions/${id}`
}

/** The page of an active payment link. */
const linkPage = async (server: MemoryTillWithPages) => {
  const { default_price } = await product(server)
  return `/payment-links/${(await server.post("/v1/payment_links", { line_items: [{ price: default_price }] })).id}`
}

/** The page of a payment link that is switched off. */
const inactiveLinkPage = async (server: MemoryTillWithPages) => {
  const page = await linkPage(server)
  await server.post(`/v1${page.replace("-", "_")}`, { active: false })
  return page
}

/** The page of a new key of test mode. */
const keyPage = async (server: MemoryTillWithPages) => {
  const key = ApiKeys.issue(server.merchantId, { type: "secret", livemode: false })
  return `/developers/keys/${(await Effect.runPromise(server.accounts.run(INSTALLATION, key))).value.id}`
}

/** The page of a new person, who is signed in. */
const memberPage = async (server: MemoryTillWithPages) => {
  const tab = await signedIn(server, "support")
  const session = tab.cookie.match(/dse_\w+/)![0]
  const { person } = ((await Effect.runPromise(server.accounts.read(INSTALLATION, session))) as unknown as Answer).value
  return `/team/${person}`
}

let invited = 0

/** The page of a new person without a password. */
const invitedPage = async (server: MemoryTillWithPages) => {
  const person = { email: `invited${++invited}@example.com`, role: "support" } as const
  const { id } = await Effect.runPromise(server.accounts.run(INSTALLATION, People.add(server.merchantId, person)))
  return `/team/${id}`
}

/** Gives the merchant a logo. */
const uploadLogo = async (server: MemoryTillWithPages) => {
  const image = readImage(png({ width: 8, height: 8 }))
  if (typeof image === "string") throw new Error(image)
  await Effect.runPromise(server.accounts.run(INSTALLATION, Logos.upload(server.merchantId, image)))
}

/** Every action except those on the person's own account, which change the session. */
export const ACTIONS: ReadonlyArray<TriedAction> = [
  {
    name: "refund.create",
    page: async (server) => `/payments/${(await payment(server)).id}`,
    end: "/refund",
    entered: { amount: "1.23", reason: "duplicate" },
    account: "test",
    support: true
  },
  {
    name: "payment_intent.capture",
    page: async (server) => `/payments/${(await payment(server, { capture_method: "manual" })).id}`,
    end: "/capture",
    entered: { amount_to_capture: "10" },
    account: "test",
    support: true
  },
  {
    name: "payment_intent.cancel",
    page: async (server) => `/payments/${(await payment(server, { capture_method: "manual" })).id}`,
    end: "/cancel",
    entered: { cancellation_reason: "fraudulent" },
    account: "test",
    support: true
  },
  {
    name: "payment_intent.update",
    page: async (server) => `/payments/${(await payment(server, { confirm: false })).id}`,
    end: "/edit",
    entered: { description: "Order 6735", amount: "50", statement_descriptor: "LUMEN" },
    account: "test",
    support: false
  },
  {
    name: "payment_intent.update_metadata",
    page: async (server) => `/payments/${(await payment(server)).id}`,
    end: "/metadata",
    entered: { "new[0][key]": "color", "new[0][value]": "green" },
    account: "test",
    support: false
  },
  {
    name: "refund.update_metadata",
    page: async (server) =>
      `/refunds/${(await server.post("/v1/refunds", { payment_intent: (await payment(server)).id })).id}`,
    end: "/metadata",
    entered: { "new[0][key]": "color", "new[0][value]": "green" },
    account: "test",
    support: false
  },
  {
    name: "webhook_endpoint.create",
    page: async () => "/webhooks",
    end: "/add",
    entered: { url: "https://shop.example/new", enabled_events: "charge.refunded payment_intent.succeeded" },
    account: "test",
    support: false
  },
  {
    name: "webhook_endpoint.update",
    page: async (server) => `/webhooks/${(await failing(server)).endpoint}`,
    end: "/edit",
    entered: { url: "https://shop.example/other", enabled_events: "*", description: "The other one" },
    account: "test",
    support: false
  },
  {
    name: "webhook_endpoint.set_status",
    page: async (server) => `/webhooks/${(await failing(server)).endpoint}`,
    end: "/status",
    entered: {},
    account: "test",
    support: false
  },
  {
    name: "webhook_endpoint.roll_secret",
    page: async (server) => `/webhooks/${(await failing(server)).endpoint}`,
    end: "/roll-secret",
    entered: { hours: "1" },
    account: "test",
    support: false
  },
  {
    name: "webhook_endpoint.resend_failed",
    page: async (server) => `/webhooks/${(await failing(server)).endpoint}`,
    end: "/resend",
    entered: {},
    account: "test",
    support: false
  },
  {
    name: "webhook_endpoint.test",
    page: async (server) => `/webhooks/${(await failing(server)).endpoint}`,
    end: "/test",
    entered: { type: "charge.succeeded" },
    account: "test",
    support: false
  },
  {
    name: "event.trigger",
    page: async () => "/developers/trigger",
    end: "/trigger/make",
    entered: { type: "refund.created" },
    account: "test",
    support: false
  },
  {
    name: "test_data.wipe",
    page: async () => "/developers/wipe",
    end: "/wipe/data",
    entered: { name: "Lumen Coffee" },
    account: "installation",
    support: false
  },
  {
    name: "webhook_endpoint.delete",
    page: async (server) => `/webhooks/${(await failing(server)).endpoint}`,
    end: "/delete",
    entered: {},
    account: "test",
    support: false
  },
  {
    name: "webhook_endpoint.resend_chosen",
    page: async (server) => `/webhooks/${(await failing(server)).endpoint}`,
    end: "/resend-chosen",
    entered: { "chosen[0]": "on" },
    account: "test",
    support: false
  },
  {
    name: "event.resend",
    page: async (server) => {
      const { delivery, endpoint } = await failing(server)
      return `/webhooks/${endpoint}/${delivery}`
    },
    end: "/resend",
    entered: {},
    account: "test",
    support: false
  },
  {
    name: "event.resend_all",
    page: async (server) => `/events/${(await failing(server)).event}`,
    end: "/resend",
    entered: {},
    account: "test",
    support: false
  },
  {
    name: "customer.create",
    page: async () => "/customers",
    end: "/customers/create",
    entered: { email: "new@example.com", name: "New" },
    account: "test",
    support: false
  },
  {
    name: "customer.update",
    page: async (server) => `/customers/${(await customer(server)).id}`,
    end: "/edit",
    entered: { email: "other@example.com" },
    account: "test",
    support: false
  },
  {
    name: "customer.update_metadata",
    page: async (server) => {
      const { id } = await customer(server)
      await server.post(`/v1/customers/${id}`, { metadata: { color: "green" } })
      return `/customers/${id}`
    },
    end: "/metadata",
    entered: { "metadata[color]": "blue" },
    account: "test",
    support: false
  },
  {
    name: "customer.delete",
    page: async (server) => `/customers/${(await customer(server)).id}`,
    end: "/delete",
    entered: {},
    account: "test",
    support: false
  },
  {
    name: "customer.erase",
    page: async (server) => `/customers/${(await customer(server)).id}`,
    end: "/erase",
    entered: { confirmation: "erase" },
    account: "test",
    support: false
  },
  {
    name: "payment_method.detach",
    page: async (server) => {
      const { id } = await customer(server)
      await server.post("/v1/payment_methods/pm_card_visa/attach", { customer: id })
      return `/customers/${id}`
    },
    end: "/detach",
    entered: {},
    account: "test",
    support: false
  },
  {
    name: "product.create",
    page: async () => "/products",
    end: "/products/create",
    entered: { name: "Coffee", "default_price_data[unit_amount]": "4.50" },
    account: "test",
    support: false
  },
  {
    name: "product.update",
    page: async (server) => `/products/${(await product(server)).id}`,
    end: "/edit",
    entered: { name: "Green tea" },
    account: "test",
    support: false
  },
  {
    name: "product.update_metadata",
    page: async (server) => `/products/${(await product(server)).id}`,
    end: "/metadata",
    entered: { "new[0][key]": "color", "new[0][value]": "green" },
    account: "test",
    support: false
  },
  {
    name: "product.archive",
    page: async (server) => `/products/${(await server.post("/v1/products", { name: "Tea" })).id}`,
    end: "/archive",
    entered: {},
    account: "test",
    support: false
  },
  {
    name: "product.activate",
    page: async (server) => `/products/${(await server.post("/v1/products", { name: "Tea", active: false })).id}`,
    end: "/activate",
    entered: {},
    account: "test",
    support: false
  },
  {
    name: "product.set_default_price",
    page: async (server) => `/products/${(await withPrice(server)).id}`,
    end: "/default",
    entered: {},
    account: "test",
    support: false
  },
  {
    name: "price.create",
    page: async (server) => `/products/${(await product(server)).id}/prices`,
    end: "/prices/create",
    entered: { unit_amount: "15", "recurring[interval]": "month" },
    account: "test",
    support: false
  },
  {
    name: "price.update",
    page: async (server) => `/prices/${(await product(server)).default_price}`,
    end: "/edit",
    entered: { nickname: "By the box", lookup_key: "" },
    account: "test",
    support: false
  },
  {
    name: "price.update_metadata",
    page: async (server) => `/prices/${(await product(server)).default_price}`,
    end: "/metadata",
    entered: { "new[0][key]": "color", "new[0][value]": "green" },
    account: "test",
    support: false
  },
  {
    name: "price.archive",
    // The product itself can only be archived once.
    page: async (server) => {
      const { id } = await withPrice(server)
      await server.post(`/v1/products/${id}`, { active: false })
      return `/products/${id}`
    },
    end: "/archive",
    entered: {},
    account: "test",
    support: false
  },
  {
    name: "price.activate",
    page: async (server) => {
      const { id } = await product(server)
      await server.post("/v1/prices", { product: id, currency: "usd", unit_amount: 1000, active: false })
      return `/products/${id}`
    },
    end: "/activate",
    entered: {},
    account: "test",
    support: false
  },
  {
    name: "merchant.brand",
    page: async () => "/settings",
    end: "/set",
    entered: { name: "Lumen Coffee", has_accent: "on", accent: "#1b7f5e" },
    account: "installation",
    support: false
  },
  {
    name: "merchant.upload_logo",
    page: async () => "/settings",
    end: "/logo",
    entered: { logo: new Blob([png({ width: 8, height: 8 })], { type: "image/png" }) },
    account: "installation",
    support: false
  },
  {
    name: "merchant.remove_logo",
    page: async (server) => {
      await uploadLogo(server)
      return "/settings"
    },
    end: "/remove-logo",
    entered: {},
    account: "installation",
    support: false
  },
  {
    name: "test_clock.advance",
    page: async () => "/developers/clock",
    end: "/advance",
    entered: { step: "3600" },
    account: "test",
    support: false
  },
  {
    name: "api_key.create",
    page: async () => "/developers/keys",
    end: "/create",
    entered: { type: "publishable" },
    account: "installation",
    support: false
  },
  {
    name: "api_key.roll",
    page: keyPage,
    end: "/roll",
    entered: { expires_in: "300" },
    account: "installation",
    support: false
  },
  {
    name: "api_key.revoke",
    page: keyPage,
    end: "/revoke",
    entered: {},
    account: "installation",
    support: false
  },
  {
    name: "processor.add",
    page: async (server) => {
      await makeRoom(server)
      return "/developers/processors"
    },
    end: "/add",
    entered: { url: "https://gateway.example/till" },
    account: "installation",
    support: false
  },
  {
    name: "processor.roll_secret",
    page: async (server) => `/developers/processors/${await addProcessor(server)}`,
    end: "/roll",
    entered: {},
    account: "installation",
    support: false
  },
  {
    name: "processor.pause",
    page: async (server) => `/developers/processors/${await addProcessor(server)}`,
    end: "/pause",
    entered: {},
    account: "installation",
    support: false
  },
  {
    name: "processor.resume",
    page: async (server) => `/developers/processors/${await addProcessor(server, false)}`,
    end: "/resume",
    entered: {},
    account: "installation",
    support: false
  },
  {
    name: "processor.retire",
    page: async (server) => `/developers/processors/${await addProcessor(server)}`,
    end: "/retire",
    entered: {},
    account: "installation",
    support: false
  },
  {
    name: "operation.check",
    page: async (server) => `/operations/${(await begin(server)).operation}`,
    end: "/check",
    entered: {},
    account: "test",
    support: true
  },
  {
    name: "operation.decide",
    page: async (server) => `/operations/${(await doubtful(server)).operation}`,
    end: "/decide",
    entered: { outcome: "happened", reference: "gw_6735", reason: "Seen in the gateway's records" },
    account: "test",
    support: false
  },
  {
    name: "person.add",
    page: async () => "/team",
    end: "/add",
    entered: { email: "added@example.com", role: "developer" },
    account: "installation",
    support: false
  },
  {
    name: "person.set_role",
    page: memberPage,
    end: "/role",
    entered: { role: "developer" },
    account: "installation",
    support: false
  },
  { name: "person.invite", page: invitedPage, end: "/invite", entered: {}, account: "installation", support: false },
  {
    name: "receipt.send",
    page: async (server) => `/payments/${(await payment(server)).id}`,
    end: "/receipt",
    entered: { email: "payer@example.com" },
    account: "test",
    support: true
  },
  {
    name: "merchant.receipts",
    page: async () => "/developers/mail",
    end: "/set",
    entered: { receipts: "on" },
    account: "live",
    support: false
  },
  { name: "person.link", page: memberPage, end: "/link", entered: {}, account: "installation", support: false },
  {
    name: "person.end_session",
    page: memberPage,
    end: "/end",
    entered: {},
    account: "installation",
    support: false
  },
  {
    name: "person.reset_two_step",
    page: async (server) => {
      const page = await memberPage(server)
      const id = page.split("/").at(-1)!
      const { sealed, secret } = SecondFactors.makeSecret(paymentsConfig(), id)
      const turnOn = Effect.flatMap(Transaction, ({ startedAt }) => {
        const code = Totp.codeOf(secret, Totp.stepAt(startedAt / 1000))
        return SecondFactors.turnOn(paymentsConfig(), id, { sealed, code })
      })
      await Effect.runPromise(Effect.orDie(server.accounts.run(INSTALLATION, turnOn)))
      return page
    },
    end: "/two-step",
    entered: {},
    account: "installation",
    support: false
  },
  {
    name: "person.set_time_zone",
    page: async () => "/account",
    end: "/time-zone",
    entered: { time_zone: "UTC" },
    account: "installation",
    support: true
  },
  {
    name: "payment_note.create",
    page: async (server) => `/payments/${(await payment(server)).id}`,
    end: "/notes",
    entered: { text: "The payer called." },
    account: "test",
    support: true
  },
  {
    name: "payment_note.delete",
    page: async (server) => {
      const { id } = await payment(server)
      const author = { id: "per_000000000000000000000000", email: null }
      const add = PaymentNotes.add(author, id, "The payer called.")
      await Effect.runPromise(Effect.orDie(server.accounts.run(`${server.merchantId}:test`, add)))
      return `/payments/${id}`
    },
    end: "/delete",
    entered: {},
    account: "test",
    support: false
  },
  { name: "person.remove", page: memberPage, end: "/remove", entered: {}, account: "installation", support: false },
  {
    name: "checkout_session.create",
    page: async (server) => `/products/${(await product(server)).id}`,
    end: "/link",
    entered: { success_url: "https://shop.example/thanks" },
    account: "test",
    support: false
  },
  {
    name: "checkout_session.expire",
    page: sessionPage,
    end: "/expire",
    entered: {},
    account: "test",
    support: false
  },
  {
    name: "checkout_session.update_metadata",
    page: sessionPage,
    end: "/metadata",
    entered: { "new[0][key]": "color", "new[0][value]": "green" },
    account: "test",
    support: false
  },
  {
    name: "payment_link.create",
    page: async (server) => `/payment-links/new?price=${(await product(server)).default_price}`,
    end: "/payment-links/create",
    entered: {},
    account: "test",
    support: false
  },
  {
    name: "payment_link.update",
    page: linkPage,
    end: "/edit",
    entered: { "restrictions[completed_sessions][limit]": "5", inactive_message: "Sold out" },
    account: "test",
    support: false
  },
  { name: "payment_link.deactivate", page: linkPage, end: "/deactivate", entered: {}, account: "test", support: false },
  {
    name: "payment_link.activate",
    page: inactiveLinkPage,
    end: "/activate",
    entered: {},
    account: "test",
    support: false
  },
  {
    name: "payment_link.update_metadata",
    page: linkPage,
    end: "/metadata",
    entered: { "new[0][key]": "color", "new[0][value]": "green" },
    account: "test",
    support: false
  },
  {
    name: "merchant.set_version",
    page: async () => "/developers",
    end: "/version",
    entered: { version: "2026-03-09" },
    account: "installation",
    support: false
  }
]
