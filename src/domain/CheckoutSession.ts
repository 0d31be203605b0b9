/** Checkout Sessions and their line items (spec: Checkout Session, line item; semantics §1.15). */
import { Schema } from "effect"
import { BillingDetails } from "./Address.ts"
import { CheckoutPaymentStatus, CheckoutSessionStatus } from "./CheckoutSessionStates.ts"
import { CheckoutSessionId, CustomerId, LineItemId, PaymentIntentId, PriceId } from "./Identifiers.ts"
import { Metadata } from "./Metadata.ts"
import { AmountOrZero } from "./Money.ts"
import { text } from "./Text.ts"
import { Timestamp } from "./Time.ts"

export { CheckoutPaymentStatus, CheckoutSessionStatus } from "./CheckoutSessionStates.ts"

/** What the field can say; a session can only be created with `payment` (semantics S20). */
export const CheckoutMode = Schema.Literals(["payment", "setup", "subscription"])
export type CheckoutMode = typeof CheckoutMode.Type

export const CheckoutUiMode = Schema.Literals(["hosted", "embedded", "custom"])
export type CheckoutUiMode = typeof CheckoutUiMode.Type

export const CustomerCreation = Schema.Literals(["always", "if_required"])
export type CustomerCreation = typeof CustomerCreation.Type

export const BillingAddressCollection = Schema.Literals(["auto", "required"])
export type BillingAddressCollection = typeof BillingAddressCollection.Type

export const ClientReferenceId = text(200)

/** Lines of one session (semantics S3). */
export const LINE_ITEMS_MAX = 100

const LINE_ITEM_QUANTITY_MAX = 999_999
export const LineItemQuantity = Schema.Int.check(
  Schema.isBetween({ minimum: 1, maximum: LINE_ITEM_QUANTITY_MAX })
).annotate({ rule: `an integer from 1 to ${LINE_ITEM_QUANTITY_MAX}` })

/** How long a session lives, from its creation (semantics S7). */
export const SESSION_LIFETIME_SECONDS_MIN = 30 * 60
export const SESSION_LIFETIME_SECONDS_MAX = 24 * 60 * 60
/** What a client's clock may be off. */
export const SESSION_LIFETIME_SLACK_SECONDS = 5

/** Who pays, as far as it is known: at first what was prefilled, in the end what the payer entered (semantics S11). */
export const CustomerDetails = BillingDetails
export type CustomerDetails = typeof CustomerDetails.Type

export const TotalDetails = Schema.Struct({
  amount_discount: AmountOrZero,
  amount_shipping: AmountOrZero,
  amount_tax: AmountOrZero
}).annotate({ identifier: "TotalDetails" })
export type TotalDetails = typeof TotalDetails.Type

/** Amounts in minor units, times in Unix seconds. */
export const CheckoutSession = Schema.Struct({
  id: CheckoutSessionId,
  object: Schema.Literal("checkout.session"),
  mode: CheckoutMode,
  status: CheckoutSessionStatus,
  payment_status: CheckoutPaymentStatus,
  ui_mode: CheckoutUiMode,
  customer_creation: CustomerCreation,
  billing_address_collection: BillingAddressCollection,
  expires_at: Timestamp,
  metadata: Metadata,
  livemode: Schema.Boolean,
  created: Timestamp,
  url: Schema.NullOr(Schema.String),
  client_secret: Schema.NullOr(Schema.String),
  success_url: Schema.NullOr(Schema.String),
  cancel_url: Schema.NullOr(Schema.String),
  customer: Schema.NullOr(CustomerId),
  customer_email: Schema.NullOr(Schema.String),
  customer_details: Schema.optionalKey(CustomerDetails),
  payment_intent: Schema.NullOr(PaymentIntentId),
  currency: Schema.NullOr(Schema.String),
  amount_subtotal: Schema.NullOr(AmountOrZero),
  amount_total: Schema.NullOr(AmountOrZero),
  total_details: TotalDetails,
  client_reference_id: Schema.NullOr(Schema.String)
}).annotate({ identifier: "CheckoutSession" })
export type CheckoutSession = typeof CheckoutSession.Type

/** One line of the cart. Amounts in minor units. */
export const LineItem = Schema.Struct({
  id: LineItemId,
  object: Schema.Literal("item"),
  price: PriceId,
  quantity: Schema.Int,
  amount_subtotal: AmountOrZero,
  amount_total: AmountOrZero,
  currency: Schema.String,
  description: Schema.String
}).annotate({ identifier: "LineItem" })
export type LineItem = typeof LineItem.Type

/** Says which invariant a session violates; undefined if it is sound. */
export const violatedInvariant = (session: CheckoutSession): string | undefined =>
  INVARIANTS.find(({ holds }) => !holds(session))?.name

const INVARIANTS: ReadonlyArray<{ readonly name: string; readonly holds: (session: CheckoutSession) => boolean }> = [
  {
    name: "it has a page if and only if it is hosted and open",
    holds: ({ status, ui_mode, url }) => (url !== null) === (ui_mode === "hosted" && status === "open")
  },
  {
    name: "it has a client secret if and only if it is not hosted",
    holds: ({ client_secret, ui_mode }) => (client_secret !== null) === (ui_mode !== "hosted")
  },
  {
    name: "it has a PaymentIntent if and only if there is something to pay",
    holds: ({ amount_total, payment_intent }) => (payment_intent !== null) === amount_total! > 0
  },
  {
    name: "it needs no payment if and only if it is complete and nothing was to be paid",
    holds: ({ amount_total, payment_status, status }) =>
      (payment_status === "no_payment_required") === (status === "complete" && amount_total === 0)
  },
  {
    name: "it is paid only if it is complete",
    holds: ({ payment_status, status }) => payment_status !== "paid" || status === "complete"
  },
  {
    name: "there are no discounts, taxes and costs of shipping",
    holds: ({ amount_subtotal, amount_total }) => amount_subtotal === amount_total
  },
  {
    name: "it has a customer if it is complete and was to create one",
    holds: ({ customer, customer_creation, status }) =>
      status !== "complete" || customer_creation === "if_required" || customer !== null
  }
]
