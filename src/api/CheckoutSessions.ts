/** Checkout Sessions and their line items (spec: Checkout Sessions; semantics §1.15). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { BillingDetailsParameter } from "../domain/Address.ts"
import {
  BillingAddressCollection,
  CheckoutSession,
  CheckoutSessionStatus,
  CheckoutUiMode,
  ClientReferenceId,
  CustomerCreation,
  LINE_ITEMS_MAX,
  LineItem,
  LineItemQuantity
} from "../domain/CheckoutSession.ts"
import { Email, RedirectUrl, text, unsettable } from "../domain/Text.ts"
import { CustomerId, PaymentMethodId, PriceId, ProductId } from "../domain/Identifiers.ts"
import { MetadataParameter } from "../domain/Metadata.ts"
import { AMOUNT_CAP, AMOUNT_MAX, AmountOrZero, Currency } from "../domain/Money.ts"
import { CaptureMethod, PaymentIntentDescription, StatementDescriptor } from "../domain/PaymentIntent.ts"
import { PaymentMethodData } from "../domain/PaymentMethod.ts"
import { InlinePrice } from "../domain/Price.ts"
import { Timestamp } from "../domain/Time.ts"
import { commandHeaders, PublishableKey, requestHeaders } from "./Access.ts"
import { commandErrors, errors, paymentErrors } from "./Errors.ts"
import { List, listQuery } from "./List.ts"
import { RETURN_URL } from "./PaymentIntents.ts"

const LINE_ITEMS_RULE = `an array of 1 to ${LINE_ITEMS_MAX} line items`

/** Either `price` or `price_data` (semantics S3). */
const LineItemParameter = Schema.Struct({
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

const PaymentIntentData = Schema.Struct({
  capture_method: Schema.optionalKey(Schema.NullOr(CaptureMethod)),
  description: Schema.optionalKey(Schema.NullOr(PaymentIntentDescription)),
  statement_descriptor: Schema.optionalKey(Schema.NullOr(StatementDescriptor)),
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter)),
  application_fee_amount: Schema.optionalKey(Schema.NullOr(AmountOrZero)).annotate({
    description: "At most the session's total. The PaymentIntent shows it; it has no other effect."
  })
})

/** What costs careless merchants money (semantics S6, §7.5). */
const CURRENCY =
  "Replaces the currency of all prices. Nothing is converted, the numbers stay: a price of 1000 in `jpy`, which is " +
  "¥1000, becomes $10.00 with `usd`. Without this parameter all prices must be in one currency."

export const CreateCheckoutSession = Schema.Struct({
  mode: Schema.Literals(["payment"]),
  line_items: Schema.Array(LineItemParameter)
    .check(
      Schema.isMinLength(1, { rule: LINE_ITEMS_RULE }),
      Schema.isMaxLength(LINE_ITEMS_MAX, { rule: LINE_ITEMS_RULE })
    )
    .annotate({ description: `They come to at most ${AMOUNT_MAX} in total.` }),
  success_url: Schema.optionalKey(Schema.NullOr(RedirectUrl)).annotate({
    description:
      "Where payers go once they have paid. `{CHECKOUT_SESSION_ID}` in it becomes the session's ID. Required where `ui_mode` " +
      "is `hosted`, which it is by default."
  }),
  cancel_url: Schema.optionalKey(Schema.NullOr(RedirectUrl)).annotate({
    description: "Where the checkout page leads back to. Without it, the page has no way back."
  }),
  customer: Schema.optionalKey(Schema.NullOr(CustomerId)),
  customer_email: Schema.optionalKey(Schema.NullOr(Email)),
  customer_creation: Schema.optionalKey(Schema.NullOr(CustomerCreation)),
  ui_mode: Schema.optionalKey(Schema.NullOr(CheckoutUiMode)),
  billing_address_collection: Schema.optionalKey(Schema.NullOr(BillingAddressCollection)),
  client_reference_id: Schema.optionalKey(Schema.NullOr(ClientReferenceId)),
  payment_intent_data: Schema.optionalKey(Schema.NullOr(PaymentIntentData)),
  currency: Schema.optionalKey(Schema.NullOr(Currency)).annotate({ description: CURRENCY }),
  expires_at: Schema.optionalKey(Schema.NullOr(Timestamp)).annotate({
    description: "From 30 minutes to 24 hours ahead; 24 hours by default."
  }),
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter))
}).annotate({ identifier: "CreateCheckoutSession" })

export const UpdateCheckoutSession = Schema.Struct({
  metadata: Schema.optionalKey(unsettable(MetadataParameter))
}).annotate({ identifier: "UpdateCheckoutSession" })

/** What the payer enters. `client_secret` lets a publishable key confirm (semantics A5, S15). */
export const ConfirmCheckoutSession = Schema.Struct({
  payment_method: Schema.optionalKey(Schema.NullOr(PaymentMethodId)),
  payment_method_data: Schema.optionalKey(Schema.NullOr(PaymentMethodData)),
  customer_details: Schema.optionalKey(Schema.NullOr(BillingDetailsParameter)),
  return_url: Schema.optionalKey(Schema.NullOr(RedirectUrl)).annotate({ description: RETURN_URL }),
  client_secret: Schema.optionalKey(Schema.NullOr(text()))
}).annotate({ identifier: "ConfirmCheckoutSession" })

const params = { id: Schema.String }

export const CheckoutSessions = HttpApiGroup.make("checkout_sessions").add(
  HttpApiEndpoint.post("create", "/v1/checkout_sessions", {
    headers: commandHeaders,
    payload: CreateCheckoutSession,
    success: CheckoutSession,
    error: commandErrors
  }),
  HttpApiEndpoint.get("list", "/v1/checkout_sessions", {
    headers: requestHeaders,
    query: { ...listQuery, status: Schema.optionalKey(CheckoutSessionStatus) },
    success: List(CheckoutSession),
    error: errors
  }),
  HttpApiEndpoint.get("retrieve", "/v1/checkout_sessions/:id", {
    headers: requestHeaders,
    params,
    query: { client_secret: Schema.optionalKey(text()) },
    success: CheckoutSession,
    error: errors
  }).annotate(PublishableKey, true),
  HttpApiEndpoint.post("update", "/v1/checkout_sessions/:id", {
    headers: commandHeaders,
    params,
    payload: UpdateCheckoutSession,
    success: CheckoutSession,
    error: commandErrors
  }),
  HttpApiEndpoint.post("confirm", "/v1/checkout_sessions/:id/confirm", {
    headers: commandHeaders,
    params,
    payload: ConfirmCheckoutSession,
    success: CheckoutSession,
    error: paymentErrors
  }).annotate(PublishableKey, true),
  HttpApiEndpoint.post("expire", "/v1/checkout_sessions/:id/expire", {
    headers: commandHeaders,
    params,
    success: CheckoutSession,
    error: commandErrors
  }),
  HttpApiEndpoint.get("line_items", "/v1/checkout_sessions/:id/line_items", {
    headers: requestHeaders,
    params,
    query: listQuery,
    success: List(LineItem),
    error: errors
  })
)
