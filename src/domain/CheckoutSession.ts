/** Checkout Sessions and their request bodies (spec: Checkout Session, line item; semantics checkout.*). */
import { Schema } from "effect"
import { BillingDetails, BillingDetailsParameter } from "./Address.ts"
import { CheckoutPaymentStatus, CheckoutSessionStatus } from "./CheckoutSessionStates.ts"
import {
  CheckoutSessionId,
  CustomerId,
  LineItemId,
  PaymentLinkId,
  PaymentIntentId,
  PaymentMethodId,
  PriceId,
  ProductId
} from "./Identifiers.ts"
import { Metadata, MetadataParameter } from "./Metadata.ts"
import { Amount, AMOUNT_CAP, AMOUNT_MAX, AmountOrZero, Currency } from "./Money.ts"
import { CaptureMethod, PaymentIntentDescription, RETURN_URL, StatementDescriptor } from "./PaymentIntent.ts"
import { PaymentMethodData } from "./PaymentMethod.ts"
import { InlinePrice } from "./Price.ts"
import { locationOf, RedirectUrl, withSessionId } from "./RedirectUrl.ts"
import { Email, text, unsettable } from "./Text.ts"
import { Timestamp } from "./Time.ts"

export { CheckoutPaymentStatus, CheckoutSessionStatus } from "./CheckoutSessionStates.ts"

/** The values of `mode`; a session can only be created with `payment` (semantics checkout.mode). */
export const CheckoutMode = Schema.Literals(["payment", "setup", "subscription"])
export type CheckoutMode = typeof CheckoutMode.Type

export const CheckoutUiMode = Schema.Literals(["hosted", "embedded", "custom"])
export type CheckoutUiMode = typeof CheckoutUiMode.Type

export const CustomerCreation = Schema.Literals(["always", "if_required"])
export type CustomerCreation = typeof CustomerCreation.Type

export const BillingAddressCollection = Schema.Literals(["auto", "required"])
export type BillingAddressCollection = typeof BillingAddressCollection.Type

/** The languages of payers' pages, by ISO 639-1. */
export const PAGE_LANGUAGES = ["en", "de", "fr", "es", "it", "pt", "nl", "pl", "ja", "ar"] as const
export type PageLanguage = (typeof PAGE_LANGUAGES)[number]

/** The language of a session's pages; `auto`: the payer's (semantics checkout.locale). */
export const CheckoutLocale = Schema.Literals(["auto", ...PAGE_LANGUAGES])
export type CheckoutLocale = typeof CheckoutLocale.Type

/** Whether the payer must enter a phone number (semantics checkout.phone). */
export const PhoneNumberCollection = Schema.Struct({ enabled: Schema.Boolean }).annotate({
  identifier: "PhoneNumberCollection"
})
export type PhoneNumberCollection = typeof PhoneNumberCollection.Type

export const ClientReferenceId = text(200)

/** The lines that a session can have (semantics checkout.line_items). */
export const LINE_ITEMS_MAX = 100

export const LINE_ITEM_QUANTITY_MAX = 999_999
export const LineItemQuantity = Schema.Int.check(
  Schema.isBetween({ minimum: 1, maximum: LINE_ITEM_QUANTITY_MAX })
).annotate({ rule: `an integer from 1 to ${LINE_ITEM_QUANTITY_MAX}` })

/** The shortest and longest lifetime of a session, in seconds from its creation (semantics checkout.expires_at). */
export const SESSION_LIFETIME_SECONDS_MIN = 30 * 60
export const SESSION_LIFETIME_SECONDS_MAX = 24 * 60 * 60
/** Tolerated difference of the client's clock. */
export const SESSION_LIFETIME_SLACK_SECONDS = 5

/** Failed attempts to pay for a session after which it refuses payments for the pause (semantics checkout.attempts). */
export const FAILED_ATTEMPTS_MAX = 20
export const FAILED_ATTEMPTS_PAUSE_MILLIS = 3_600_000

/** The payer's details: at first prefilled, in the end as entered (semantics checkout.customer_details). */
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
  client_reference_id: Schema.NullOr(Schema.String),
  locale: Schema.optionalKey(CheckoutLocale),
  phone_number_collection: Schema.optionalKey(PhoneNumberCollection),
  payment_link: Schema.optionalKey(PaymentLinkId)
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

const LINE_ITEMS_RULE = `an array of 1 to ${LINE_ITEMS_MAX} line items`

/** A line of a request, with either `price` or `price_data` (semantics checkout.line_items, checkout.price_data). */
export const LineItemParameter = Schema.Struct({
  quantity: Schema.optionalKey(Schema.NullOr(LineItemQuantity)),
  price: Schema.optionalKey(Schema.NullOr(PriceId)),
  price_data: Schema.optionalKey(
    Schema.NullOr(
      Schema.Struct({
        currency: InlinePrice.currency,
        product: ProductId,
        unit_amount: AmountOrZero.annotate({ description: AMOUNT_CAP }),
        tax_behavior: InlinePrice.tax_behavior,
        recurring: InlinePrice.recurring
      })
    )
  )
})
export type LineItemParameter = typeof LineItemParameter.Type

/** The initial fields of the session's PaymentIntent (semantics checkout.payment_intent_data). */
export const PaymentIntentData = Schema.Struct({
  capture_method: Schema.optionalKey(Schema.NullOr(CaptureMethod)),
  description: Schema.optionalKey(Schema.NullOr(PaymentIntentDescription)),
  statement_descriptor: Schema.optionalKey(Schema.NullOr(StatementDescriptor)),
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter)),
  application_fee_amount: Schema.optionalKey(Schema.NullOr(AmountOrZero)).annotate({
    description:
      "At most the session's total. If the payer chooses an amount, the smallest one covers it. The PaymentIntent " +
      "shows it; it has no other effect."
  })
})
export type PaymentIntentData = typeof PaymentIntentData.Type

/** A warning, because a careless use costs merchants money (semantics checkout.currency). */
const CURRENCY =
  "Replaces the currency of all prices. Nothing is converted: a price of 1000 in `jpy`, which is " +
  "¥1000, becomes $10.00 with `usd`. Without this parameter all prices must be in one currency."

/** The body of a creation. Null and "" count as absent (semantics parameters.null, parameters.empty_text). */
export const CreateCheckoutSession = Schema.Struct({
  mode: Schema.Literals(["payment"]),
  line_items: Schema.Array(LineItemParameter)
    .check(
      Schema.isMinLength(1, { rule: LINE_ITEMS_RULE }),
      Schema.isMaxLength(LINE_ITEMS_MAX, { rule: LINE_ITEMS_RULE })
    )
    .annotate({
      description:
        `Their total is at most ${AMOUNT_MAX}. The payer can choose the amount of one line: its price has a ` +
        "`custom_unit_amount`, and its quantity is 1."
    }),
  success_url: Schema.optionalKey(Schema.NullOr(RedirectUrl)).annotate({
    description:
      "The page to which payers go after paying. `{CHECKOUT_SESSION_ID}` in it becomes the session's ID. Required if " +
      "`ui_mode` is `hosted`, the default."
  }),
  cancel_url: Schema.optionalKey(Schema.NullOr(RedirectUrl)).annotate({
    description:
      "The page to which the checkout page links back, with `{CHECKOUT_SESSION_ID}` as in `success_url`. Without it, " +
      "the checkout page has no such link."
  }),
  customer: Schema.optionalKey(Schema.NullOr(CustomerId)),
  customer_email: Schema.optionalKey(Schema.NullOr(Email)),
  customer_creation: Schema.optionalKey(Schema.NullOr(CustomerCreation)),
  ui_mode: Schema.optionalKey(Schema.NullOr(CheckoutUiMode)),
  billing_address_collection: Schema.optionalKey(Schema.NullOr(BillingAddressCollection)),
  phone_number_collection: Schema.optionalKey(Schema.NullOr(PhoneNumberCollection)).annotate({
    description:
      "With `enabled`, the payer must enter a phone number. Otherwise the checkout page does not ask for one."
  }),
  locale: Schema.optionalKey(Schema.NullOr(CheckoutLocale)).annotate({
    description: "The language of the session's pages. By default, and with `auto`, that of the payer's browser."
  }),
  client_reference_id: Schema.optionalKey(Schema.NullOr(ClientReferenceId)),
  payment_intent_data: Schema.optionalKey(Schema.NullOr(PaymentIntentData)),
  currency: Schema.optionalKey(Schema.NullOr(Currency)).annotate({ description: CURRENCY }),
  expires_at: Schema.optionalKey(Schema.NullOr(Timestamp)).annotate({
    description: "From 30 minutes to 24 hours ahead; 24 hours by default."
  }),
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter))
}).annotate({ identifier: "CreateCheckoutSession" })
export type CreateCheckoutSession = typeof CreateCheckoutSession.Type

/** The body of an update; only metadata can change (semantics checkout.update). */
export const UpdateCheckoutSession = Schema.Struct({
  metadata: Schema.optionalKey(unsettable(MetadataParameter))
}).annotate({ identifier: "UpdateCheckoutSession" })
export type UpdateCheckoutSession = typeof UpdateCheckoutSession.Type

/** The description of `custom_unit_amount` (semantics checkout.custom_amount). */
const CHOSEN_AMOUNT =
  "The amount that the payer chose for the line item whose price has a `custom_unit_amount`, in the smallest unit. " +
  "By default the last amount chosen, else the price's preset, else its minimum. " +
  "Required if there is none of these."

/** The body of a confirmation, by the payer (semantics keys.client_secret, checkout.confirm). */
export const ConfirmCheckoutSession = Schema.Struct({
  payment_method: Schema.optionalKey(Schema.NullOr(PaymentMethodId)),
  payment_method_data: Schema.optionalKey(Schema.NullOr(PaymentMethodData)),
  customer_details: Schema.optionalKey(Schema.NullOr(BillingDetailsParameter)),
  return_url: Schema.optionalKey(Schema.NullOr(RedirectUrl)).annotate({
    description: `${RETURN_URL} \`{CHECKOUT_SESSION_ID}\` in it becomes the session's ID.`
  }),
  custom_unit_amount: Schema.optionalKey(Schema.NullOr(Amount)).annotate({ description: CHOSEN_AMOUNT }),
  client_secret: Schema.optionalKey(Schema.NullOr(text()))
}).annotate({ identifier: "ConfirmCheckoutSession" })
export type ConfirmCheckoutSession = typeof ConfirmCheckoutSession.Type

/** Returns the URL for a payer who has paid, with the session's id; null if there is none. */
export const successUrlOf = ({ id, success_url }: Pick<CheckoutSession, "id" | "success_url">): string | null =>
  wayTo(success_url, id)

/** Returns the URL for a payer who goes back without paying, with the session's id filled in; null if there is none. */
export const cancelUrlOf = ({ cancel_url, id }: Pick<CheckoutSession, "id" | "cancel_url">): string | null =>
  wayTo(cancel_url, id)

const wayTo = (url: string | null, id: string): string | null =>
  url === null ? null : locationOf(withSessionId(url, id))

/** Returns the invariant that a session violates. `payerChooses`: the payer chooses the amount of a line. */
export const violatedInvariant = (session: CheckoutSession, payerChooses: boolean): string | undefined =>
  INVARIANTS.find(({ holds }) => !holds(session, payerChooses))?.name

interface Invariant {
  readonly name: string
  readonly holds: (session: CheckoutSession, payerChooses: boolean) => boolean
}

const INVARIANTS: ReadonlyArray<Invariant> = [
  {
    name: "it has a page if and only if it is hosted and open",
    holds: ({ status, ui_mode, url }) => (url !== null) === (ui_mode === "hosted" && status === "open")
  },
  {
    name: "it has a client secret if and only if it is not hosted",
    holds: ({ client_secret, ui_mode }) => (client_secret !== null) === (ui_mode !== "hosted")
  },
  {
    name: "it has a PaymentIntent if and only if there is something to pay, and it is known how much",
    holds: ({ amount_total, payment_intent, status }, payerChooses) =>
      payment_intent === null ? amount_total === 0 || (payerChooses && status !== "complete") : amount_total! > 0
  },
  {
    name: "it completes with a payment if the payer chooses an amount",
    holds: ({ payment_intent, status }, payerChooses) =>
      !payerChooses || status !== "complete" || payment_intent !== null
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
