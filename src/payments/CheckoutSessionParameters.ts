/** What clients send to Checkout Sessions' operations, and the checks that a schema cannot make. */
import { Effect } from "effect"
import type { BillingDetailsParameter } from "../domain/Address.ts"
import { addressOf } from "../domain/Address.ts"
import type {
  BillingAddressCollection,
  CheckoutSession,
  CheckoutUiMode,
  CustomerCreation,
  CustomerDetails
} from "../domain/CheckoutSession.ts"
import {
  SESSION_LIFETIME_SECONDS_MAX,
  SESSION_LIFETIME_SECONDS_MIN,
  SESSION_LIFETIME_SLACK_SECONDS
} from "../domain/CheckoutSession.ts"
import { ParameterInvalid, ParameterMissing, ParametersExclusive } from "../domain/Errors.ts"
import type { MetadataParameter } from "../domain/Metadata.ts"
import type { CaptureMethod } from "../domain/PaymentIntent.ts"
import type { PaymentMethodParameters } from "./PaymentIntentParameters.ts"
import type { InlinePrice } from "./Prices.ts"

/** A price made for one session (semantics S4). */
export interface PriceData extends Pick<InlinePrice, "currency" | "recurring" | "tax_behavior"> {
  readonly product: string
  /** Minor units. */
  readonly unit_amount: number
}

/** Either a price or the data of one. */
export interface LineItemParameter {
  readonly price?: string | null
  readonly price_data?: PriceData | null
  readonly quantity?: number | null
}

/** What the session's PaymentIntent begins with (semantics S19). */
export interface PaymentIntentDataParameter {
  readonly capture_method?: CaptureMethod | null
  readonly description?: string | null
  readonly statement_descriptor?: string | null
  readonly metadata?: MetadataParameter | null
  /** Minor units, at most the session's total. */
  readonly application_fee_amount?: number | null
}

/** Null, and "" of a text, are the same as absent (semantics T10, 9.2). */
export interface CreateCheckoutSession {
  readonly mode: "payment"
  readonly line_items: ReadonlyArray<LineItemParameter>
  readonly success_url?: string | null
  readonly cancel_url?: string | null
  readonly customer?: string | null
  readonly customer_email?: string | null
  readonly customer_creation?: CustomerCreation | null
  readonly ui_mode?: CheckoutUiMode | null
  readonly billing_address_collection?: BillingAddressCollection | null
  readonly client_reference_id?: string | null
  readonly payment_intent_data?: PaymentIntentDataParameter | null
  readonly currency?: string | null
  /** Unix seconds. */
  readonly expires_at?: number | null
  readonly metadata?: MetadataParameter | null
}

/** What the payer enters (semantics S15). */
export interface ConfirmCheckoutSession extends PaymentMethodParameters {
  readonly customer_details?: BillingDetailsParameter | null
  readonly return_url?: string | null
  /** Required with a publishable key (semantics A5). */
  readonly client_secret?: string | null
}

/** Each line has one price, found or made; a hosted page needs somewhere to lead to (semantics S3). */
export const requireComplete = ({
  line_items,
  success_url,
  ui_mode
}: CreateCheckoutSession): Effect.Effect<void, ParameterMissing | ParametersExclusive> => {
  const bare = line_items.findIndex(({ price, price_data }) => !price && price_data == null)
  if (bare !== -1) return Effect.fail(new ParameterMissing({ param: `line_items[${bare}][price]` }))
  if ((ui_mode ?? "hosted") === "hosted" && !success_url) {
    return Effect.fail(new ParameterMissing({ param: "success_url" }))
  }
  const double = line_items.findIndex(({ price, price_data }) => price && price_data != null)
  if (double === -1) return Effect.void
  const first = `line_items[${double}][price]`
  return Effect.fail(new ParametersExclusive({ first, second: `line_items[${double}][price_data]` }))
}

/** Fails for an end outside of what a session's life can be; clocks may differ a little (semantics S7). */
export const requireLifetime = (expiresAt: number, created: number): Effect.Effect<void, ParameterInvalid> => {
  const lifetime = expiresAt - created
  return lifetime >= SESSION_LIFETIME_SECONDS_MIN - SESSION_LIFETIME_SLACK_SECONDS &&
    lifetime <= SESSION_LIFETIME_SECONDS_MAX + SESSION_LIFETIME_SLACK_SECONDS
    ? Effect.void
    : Effect.fail(
        new ParameterInvalid({ param: "expires_at", rule: "a Unix timestamp between 30 minutes and 24 hours from now" })
      )
}

/** What was sent, and what was known before where nothing was. */
export const collectedDetails = (
  sent: BillingDetailsParameter | null | undefined,
  known: CustomerDetails | undefined
): CustomerDetails => ({
  email: sent?.email || (known?.email ?? null),
  name: sent?.name || (known?.name ?? null),
  phone: sent?.phone || (known?.phone ?? null),
  address: addressOf(sent?.address) ?? known?.address ?? null
})

const ADDRESS_REQUIRED = ["line1", "country", "postal_code", "city"] as const

/** Fails for a session that would complete without what it has to collect (semantics S14). */
export const requireDetails = (
  { billing_address_collection }: CheckoutSession,
  { address, email }: CustomerDetails
): Effect.Effect<void, ParameterMissing> => {
  if (email === null) return Effect.fail(new ParameterMissing({ param: "customer_details[email]" }))
  const required = billing_address_collection === "required" ? ADDRESS_REQUIRED : []
  const missing = required.find((field) => address === null || address[field] === null)
  return missing === undefined
    ? Effect.void
    : Effect.fail(new ParameterMissing({ param: `customer_details[address][${missing}]` }))
}
