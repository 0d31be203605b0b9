/** Charges: attempts that reached the card's issuer (semantics charges.object, charges.embedded, charges.list). */
import { Schema } from "effect"
import { BillingDetails } from "./Address.ts"
import { DeclineCode } from "./Cards.ts"
import { ChargeId, CustomerId, MerchantId, PaymentIntentId, PaymentMethodId } from "./Identifiers.ts"
import { Metadata } from "./Metadata.ts"
import { Amount, AmountOrZero } from "./Money.ts"
import { CardFunding } from "./PaymentMethod.ts"
import { Timestamp } from "./Time.ts"

export const ChargeStatus = Schema.Literals(["succeeded", "pending", "failed"])
export type ChargeStatus = typeof ChargeStatus.Type

export const PaymentMethodDetails = Schema.Struct({
  type: Schema.Literal("card"),
  card: Schema.Struct({
    brand: Schema.String,
    last4: Schema.String,
    exp_month: Schema.Int,
    exp_year: Schema.Int,
    funding: CardFunding,
    country: Schema.String
  })
}).annotate({ identifier: "PaymentMethodDetails" })
export type PaymentMethodDetails = typeof PaymentMethodDetails.Type

/** Amounts in minor units, times in Unix seconds. */
export const Charge = Schema.Struct({
  id: ChargeId,
  object: Schema.Literal("charge"),
  amount: Amount,
  currency: Schema.String,
  status: ChargeStatus,
  created: Timestamp,
  livemode: Schema.Boolean,
  amount_captured: AmountOrZero,
  amount_refunded: AmountOrZero,
  payment_intent: PaymentIntentId,
  payment_method: PaymentMethodId,
  failure_code: Schema.NullOr(DeclineCode),
  failure_message: Schema.NullOr(Schema.String),
  metadata: Metadata,
  captured: Schema.Boolean,
  paid: Schema.Boolean,
  refunded: Schema.Boolean,
  /** When an authorization was released without a capture. */
  released_at: Schema.NullOr(Timestamp),
  customer: Schema.NullOr(CustomerId),
  description: Schema.NullOr(Schema.String),
  merchant_id: MerchantId,
  decline_code: Schema.NullOr(DeclineCode),
  billing_details: BillingDetails,
  payment_method_details: PaymentMethodDetails
}).annotate({ identifier: "Charge" })
export type Charge = typeof Charge.Type
