/** The prefixes of ids (semantics responses.ids), and references to objects by id. */
import { Schema } from "effect"
import { text } from "./Text.ts"

export const PREFIXES = {
  customer: "cus",
  payment_intent: "pi",
  "checkout.session": "cs",
  item: "csli",
  payment_link: "plink",
  "payment_link.item": "plli",
  product: "prod",
  price: "price",
  refund: "ref",
  charge: "ch",
  operation: "op",
  payment_method: "pm",
  payment_note: "note",
  merchant: "mer",
  processor: "prc",
  event: "evt",
  webhook_endpoint: "we",
  webhook_delivery: "whd",
  request: "req",
  api_key: "key",
  person: "per",
  dashboard_session: "dse",
  sign_in: "sin",
  audit_entry: "aud",
  mail: "mail"
} as const

/** Makes the schema of ids with this prefix; the lookup checks the rest (semantics parameters.references). */
export const identifier = (prefix: (typeof PREFIXES)[keyof typeof PREFIXES]) =>
  text()
    .check(Schema.isPattern(new RegExp(`^${prefix}_`, "u")))
    .annotate({ rule: `an ID that begins with ${prefix}_` })

export const CustomerId = identifier(PREFIXES.customer)
export const PaymentIntentId = identifier(PREFIXES.payment_intent)
export const CheckoutSessionId = identifier(PREFIXES["checkout.session"])
export const LineItemId = identifier(PREFIXES.item)
export const PaymentLinkId = identifier(PREFIXES.payment_link)
export const PaymentLinkItemId = identifier(PREFIXES["payment_link.item"])
export const ProductId = identifier(PREFIXES.product)
export const PriceId = identifier(PREFIXES.price)
export const RefundId = identifier(PREFIXES.refund)
export const ChargeId = identifier(PREFIXES.charge)
export const PaymentMethodId = identifier(PREFIXES.payment_method)
export const MerchantId = identifier(PREFIXES.merchant)
export const EventId = identifier(PREFIXES.event)
export const RequestId = identifier(PREFIXES.request)
export const WebhookEndpointId = identifier(PREFIXES.webhook_endpoint)
export const WebhookDeliveryId = identifier(PREFIXES.webhook_delivery)
export const ApiKeyId = identifier(PREFIXES.api_key)
