/** Payment methods (semantics payment_methods.object). A card number is part of requests only. */
import { Schema, SchemaIssue } from "effect"
import { BillingDetails, BillingDetailsParameter } from "./Address.ts"
import { cvcLengthOf, isCardNumber } from "./Cards.ts"
import { CustomerId, PaymentMethodId } from "./Identifiers.ts"
import { Metadata, MetadataParameter } from "./Metadata.ts"
import { type OperationOf, stateTable } from "./StateTable.ts"
import { Timestamp } from "./Time.ts"

/** The customer history of a payment method: none yet, attached to one now, or detached from one for good. */
export type PaymentMethodState = "free" | "attached" | "detached"

/** The state table of payment methods (semantics payment_methods.states). */
export const paymentMethodStates = stateTable<PaymentMethodState>()({
  /** Attaching it again to its own customer changes nothing; another customer is refused. */
  attach: { free: ["attached"], attached: ["attached"] },
  /** By request, or because its customer is deleted. */
  detach: { attached: ["detached"] },
  charge: { free: ["free"], attached: ["attached"] }
})

export type PaymentMethodOperation = OperationOf<typeof paymentMethodStates>

export const CardFunding = Schema.Literals(["credit", "debit", "prepaid"])
export type CardFunding = typeof CardFunding.Type

/** `exp_month` is from 1 to 12, `exp_year` has four digits. */
export const Card = Schema.Struct({
  brand: Schema.String,
  last4: Schema.String,
  exp_month: Schema.Int,
  exp_year: Schema.Int,
  funding: CardFunding,
  country: Schema.String,
  fingerprint: Schema.String,
  checks: Schema.Struct({ cvc_check: Schema.NullOr(Schema.Literals(["pass", "fail", "unchecked"])) })
}).annotate({ identifier: "Card" })
export type Card = typeof Card.Type

/** `created` is in Unix seconds, and 0 for a built-in payment method. */
export const PaymentMethod = Schema.Struct({
  id: PaymentMethodId,
  object: Schema.Literal("payment_method"),
  type: Schema.Literal("card"),
  livemode: Schema.Boolean,
  created: Timestamp,
  customer: Schema.NullOr(CustomerId),
  card: Card,
  billing_details: BillingDetails,
  metadata: Metadata
}).annotate({ identifier: "PaymentMethod" })
export type PaymentMethod = typeof PaymentMethod.Type

const CardNumber = Schema.String.check(
  Schema.makeFilter(isCardNumber, {
    rule: "a valid card number of 12 to 19 digits",
    toJsonSchema: () => ({ pattern: "^[0-9]{12,19}$" })
  })
)
const CardExpiryMonth = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 12 })).annotate({
  rule: "an integer from 1 to 12"
})
/** A year, past or future: an expired card is declined, not refused (semantics payment_methods.create). */
const CardExpiryYear = Schema.Int.check(Schema.isBetween({ minimum: 1000, maximum: 9999 })).annotate({
  rule: "a year of four digits"
})
const CardVerificationCode = Schema.String.check(Schema.isPattern(/^[0-9]{3,4}$/u)).annotate({
  rule: "a string of 3 or 4 digits"
})

/** The card of a request. Its brand determines the length of the security code (semantics payment_methods.create). */
const CardParameter = Schema.Struct({
  number: CardNumber,
  exp_month: CardExpiryMonth,
  exp_year: CardExpiryYear,
  cvc: Schema.optionalKey(Schema.NullOr(CardVerificationCode)).annotate({
    description: "4 digits for American Express, 3 for all others."
  })
}).check(
  Schema.makeFilter(({ cvc, number }) => {
    const length = cvcLengthOf(number)
    return cvc == null || cvc.length === length ? undefined : { path: ["cvc"], issue: `a string of ${length} digits` }
  })
)

/**
 * `card` is the only type so far (semantics payment_intents.payment_method_type). Not `Schema.Literal`: a decoder would
 * take that for the tag of a union's member, and report no errors inside of it.
 */
export const PaymentMethodType = Schema.Literals(["card"])

const TOKEN_PATTERN = /^[\x21-\x7e]{1,255}$/u

/** A processor's name for a card (semantics payment_methods.token), which is no card number, also with separators. */
const CardToken = Schema.String.check(
  Schema.makeFilter((token: string) => TOKEN_PATTERN.test(token) && !isCardNumber(token.replaceAll("-", "")), {
    rule: "a token of the processor, of 1 to 255 characters without spaces",
    toJsonSchema: () => ({ pattern: TOKEN_PATTERN.source })
  })
)

/** A check instead of a union of two forms, so that an error names its parameter. */
const hasCardOrToken = Schema.makeFilter(
  ({ card, token }: { readonly card?: unknown; readonly token?: unknown }): Schema.FilterOutput =>
    card == null && token == null ? { path: ["card"], issue: new SchemaIssue.MissingKey(undefined) } : undefined
)

/** `payment_method_data`: a payment method made inline (semantics payment_methods.create, payment_methods.token). */
export const PaymentMethodData = Schema.Struct({
  type: PaymentMethodType,
  card: Schema.optionalKey(Schema.NullOr(CardParameter)),
  token: Schema.optionalKey(Schema.NullOr(CardToken)),
  billing_details: Schema.optionalKey(Schema.NullOr(BillingDetailsParameter)),
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter))
}).check(hasCardOrToken)
export type PaymentMethodData = typeof PaymentMethodData.Type

export const CreatePaymentMethod = Schema.Struct(PaymentMethodData.fields)
  .check(hasCardOrToken)
  .annotate({ identifier: "CreatePaymentMethod" })

/** The payment methods that one customer can hold (semantics payment_methods.attach). */
export const PAYMENT_METHODS_PER_CUSTOMER_MAX = 100

/** The body of an attachment to a customer (semantics payment_methods.attach). */
export const AttachPaymentMethod = Schema.Struct({
  customer: CustomerId.annotate({
    description: `A customer holds at most ${PAYMENT_METHODS_PER_CUSTOMER_MAX} payment methods.`
  })
}).annotate({ identifier: "AttachPaymentMethod" })
export type AttachPaymentMethod = typeof AttachPaymentMethod.Type
