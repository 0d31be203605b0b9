/** Payment links and their request bodies (semantics payment_links.*). */
import { Schema } from "effect"
import {
  BillingAddressCollection,
  CustomerCreation,
  LINE_ITEMS_MAX,
  LineItem,
  LineItemParameter,
  LineItemQuantity,
  PaymentIntentData,
  PhoneNumberCollection
} from "./CheckoutSession.ts"
import { PaymentLinkId, PaymentLinkItemId } from "./Identifiers.ts"
import { Metadata, MetadataParameter } from "./Metadata.ts"
import { AMOUNT_MAX, Currency } from "./Money.ts"
import { CaptureMethod } from "./PaymentIntent.ts"
import { RedirectUrl } from "./RedirectUrl.ts"
import { stateTable } from "./StateTable.ts"
import { text, unsettable } from "./Text.ts"
import { Timestamp } from "./Time.ts"

/** The largest limit of completed payments. */
export const COMPLETED_SESSIONS_MAX = 999_999

/** The default of `adjustable_quantity[maximum]` (semantics payment_links.quantity). */
export const ADJUSTABLE_QUANTITY_DEFAULT_MAX = 99

const InactiveMessage = text(500)

export const AfterCompletionType = Schema.Literals(["hosted_confirmation", "redirect"])
export type AfterCompletionType = typeof AfterCompletionType.Type

/** The page that payers see after paying (semantics payment_links.after_completion). */
export const AfterCompletion = Schema.Struct({
  type: AfterCompletionType,
  redirect: Schema.NullOr(Schema.Struct({ url: Schema.String }))
}).annotate({ identifier: "AfterCompletion" })
export type AfterCompletion = typeof AfterCompletion.Type

/** The limit of completed payments, and how many there are (semantics payment_links.limit). */
export const PaymentLinkRestrictions = Schema.Struct({
  completed_sessions: Schema.Struct({ count: Schema.Int, limit: Schema.Int })
}).annotate({ identifier: "PaymentLinkRestrictions" })
export type PaymentLinkRestrictions = typeof PaymentLinkRestrictions.Type

/** The fields that the PaymentIntents of the link's sessions begin with. */
export const PaymentLinkPaymentIntentData = Schema.Struct({
  capture_method: CaptureMethod,
  description: Schema.NullOr(Schema.String),
  statement_descriptor: Schema.NullOr(Schema.String),
  metadata: Metadata
}).annotate({ identifier: "PaymentLinkPaymentIntentData" })

export const PaymentLink = Schema.Struct({
  id: PaymentLinkId,
  object: Schema.Literal("payment_link"),
  active: Schema.Boolean,
  url: Schema.String,
  currency: Schema.String,
  after_completion: AfterCompletion,
  inactive_message: Schema.NullOr(Schema.String),
  restrictions: Schema.NullOr(PaymentLinkRestrictions),
  customer_creation: CustomerCreation,
  billing_address_collection: BillingAddressCollection,
  phone_number_collection: PhoneNumberCollection,
  payment_intent_data: PaymentLinkPaymentIntentData,
  metadata: Metadata,
  livemode: Schema.Boolean,
  created: Timestamp
}).annotate({ identifier: "PaymentLink" })
export type PaymentLink = typeof PaymentLink.Type

/** The quantities that the payer can choose (semantics payment_links.quantity). */
export const AdjustableQuantity = Schema.Struct({
  enabled: Schema.Boolean,
  minimum: Schema.Int,
  maximum: Schema.Int
}).annotate({ identifier: "AdjustableQuantity" })
export type AdjustableQuantity = typeof AdjustableQuantity.Type

/** A line of a link, with its amounts at its own quantity, in minor units. */
export const PaymentLinkItem = Schema.Struct({
  ...LineItem.fields,
  id: PaymentLinkItemId,
  adjustable_quantity: Schema.NullOr(AdjustableQuantity)
}).annotate({ identifier: "PaymentLinkItem" })
export type PaymentLinkItem = typeof PaymentLinkItem.Type

const LINES_RULE = `an array of 1 to ${LINE_ITEMS_MAX} line items`

/** A line of a request. Bounds are sent only if the payer can choose (semantics payment_links.quantity). */
export const PaymentLinkItemParameter = Schema.Struct({
  ...LineItemParameter.fields,
  adjustable_quantity: Schema.optionalKey(
    Schema.NullOr(
      Schema.Struct({
        enabled: Schema.Boolean,
        minimum: Schema.optionalKey(Schema.NullOr(LineItemQuantity)),
        maximum: Schema.optionalKey(Schema.NullOr(LineItemQuantity))
      })
    )
  )
})
export type PaymentLinkItemParameter = typeof PaymentLinkItemParameter.Type

const AfterCompletionParameter = Schema.Struct({
  type: AfterCompletionType,
  redirect: Schema.optionalKey(
    Schema.NullOr(
      Schema.Struct({
        url: RedirectUrl.annotate({
          description:
            "The page to which payers go after paying. `{CHECKOUT_SESSION_ID}` in it becomes the session's ID."
        })
      })
    )
  )
})
export type AfterCompletionParameter = typeof AfterCompletionParameter.Type

const RestrictionsParameter = Schema.Struct({
  completed_sessions: Schema.Struct({
    limit: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: COMPLETED_SESSIONS_MAX })).annotate({
      rule: `an integer from 1 to ${COMPLETED_SESSIONS_MAX}`,
      description: "After so many completed payments the link takes no more."
    })
  })
})

const { application_fee_amount: _, ...ofPaymentIntent } = PaymentIntentData.fields

/** The body of a creation. Null and "" count as absent (semantics parameters.null, parameters.empty_text). */
export const CreatePaymentLink = Schema.Struct({
  line_items: Schema.Array(PaymentLinkItemParameter)
    .check(Schema.isMinLength(1, { rule: LINES_RULE }), Schema.isMaxLength(LINE_ITEMS_MAX, { rule: LINES_RULE }))
    .annotate({
      description:
        `Their total is at most ${AMOUNT_MAX}. The payer can choose the amount of one line: its price has a ` +
        "`custom_unit_amount`, and its quantity is 1."
    }),
  currency: Schema.optionalKey(Schema.NullOr(Currency)).annotate({
    description:
      "Replaces the currency of all prices, without conversion. Without this parameter all prices must be in one " +
      "currency."
  }),
  after_completion: Schema.optionalKey(Schema.NullOr(AfterCompletionParameter)),
  inactive_message: Schema.optionalKey(Schema.NullOr(InactiveMessage)),
  restrictions: Schema.optionalKey(Schema.NullOr(RestrictionsParameter)),
  customer_creation: Schema.optionalKey(Schema.NullOr(CustomerCreation)),
  billing_address_collection: Schema.optionalKey(Schema.NullOr(BillingAddressCollection)),
  phone_number_collection: Schema.optionalKey(Schema.NullOr(PhoneNumberCollection)).annotate({
    description:
      "With `enabled`, the payer must enter a phone number. Otherwise the checkout page does not ask for one."
  }),
  payment_intent_data: Schema.optionalKey(Schema.NullOr(Schema.Struct(ofPaymentIntent))),
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter))
}).annotate({ identifier: "CreatePaymentLink" })
export type CreatePaymentLink = typeof CreatePaymentLink.Type

/** The body of an update (semantics payment_links.update). */
export const UpdatePaymentLink = Schema.Struct({
  active: Schema.optionalKey(Schema.Boolean),
  after_completion: Schema.optionalKey(AfterCompletionParameter),
  inactive_message: Schema.optionalKey(Schema.NullOr(InactiveMessage)),
  restrictions: Schema.optionalKey(Schema.NullOr(RestrictionsParameter)),
  metadata: Schema.optionalKey(unsettable(MetadataParameter))
}).annotate({ identifier: "UpdatePaymentLink" })
export type UpdatePaymentLink = typeof UpdatePaymentLink.Type

/** Whether the link takes payments (semantics payment_links.states). */
export type PaymentLinkState = "open" | "inactive" | "used_up"

export const stateOf = ({ active, restrictions }: Pick<PaymentLink, "active" | "restrictions">): PaymentLinkState => {
  if (!active) return "inactive"
  if (restrictions === null) return "open"
  const { count, limit } = restrictions.completed_sessions
  return count < limit ? "open" : "used_up"
}

const ANY: ReadonlyArray<PaymentLinkState> = ["open", "inactive", "used_up"]

/** The state table of payment links (semantics payment_links.states). */
export const paymentLinkStates = stateTable<PaymentLinkState>()({
  update: { open: ANY, inactive: ANY, used_up: ANY },
  /** A session of the link completes. */
  complete: { open: ["open", "used_up"] }
})

/** The number of completed payments of a link, kept beside it whether there is a limit or not. */
type Completed = number

/** Returns the invariant that a link violates. */
export const violatedInvariant = (
  { after_completion: { redirect, type }, restrictions }: PaymentLink,
  completed: Completed
): string | undefined => {
  if ((redirect !== null) !== (type === "redirect")) return "it has a page to redirect to if and only if it redirects"
  if (restrictions !== null && restrictions.completed_sessions.count !== completed) return "it counts each payment once"
  return undefined
}
