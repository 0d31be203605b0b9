/** What clients send to PaymentIntents' operations, and the checks that a schema cannot make. */
import { Effect } from "effect"
import { AmountTooLarge, ParameterInvalid, ParametersExclusive } from "../domain/Errors.ts"
import type { MetadataParameter } from "../domain/Metadata.ts"
import { AMOUNT_MAX, normalizeCurrency } from "../domain/Money.ts"
import type { CaptureMethod, ConfirmationMethod } from "../domain/PaymentIntent.ts"
import { PaymentsConfig } from "./PaymentsConfig.ts"
import type { TokenizedPaymentMethodData } from "./PaymentMethods.ts"

export interface PaymentMethodParameters {
  readonly payment_method?: string | null
  readonly payment_method_data?: TokenizedPaymentMethodData | null
}

interface ConfirmationParameters extends PaymentMethodParameters {
  /** Only asserts what the payment method is (semantics I-10). */
  readonly payment_method_type?: "card" | null
  readonly return_url?: string | null
}

/** Null, and "" of a text, are the same as absent (semantics T10, 9.2). */
export interface CreatePaymentIntent extends ConfirmationParameters {
  /** Minor units, at least 1. */
  readonly amount: number
  readonly currency: string
  readonly capture_method?: CaptureMethod | null
  readonly confirmation_method?: ConfirmationMethod | null
  readonly customer?: string | null
  readonly description?: string | null
  readonly metadata?: MetadataParameter | null
  readonly confirm?: boolean | null
  readonly statement_descriptor?: string | null
}

/** Null unsets, and so does "" of a text (semantics 9.2). */
export interface UpdatePaymentIntent {
  /** Minor units, at least 1. */
  readonly amount?: number
  readonly currency?: string
  readonly customer?: string | null
  readonly description?: string | null
  readonly metadata?: MetadataParameter | null | ""
  readonly payment_method?: string | null
  readonly capture_method?: CaptureMethod
  readonly statement_descriptor?: string | null
}

export interface ConfirmPaymentIntent extends ConfirmationParameters {
  /** Required with a publishable key (semantics A5). */
  readonly client_secret?: string | null
}

const CONFIRMATION_ONLY = ["payment_method_data", "payment_method_type", "return_url"] as const

/** Without `confirm`, what only a confirmation uses would be ignored, so it is refused (semantics I-2). */
export const requireNoConfirmation = (parameters: CreatePaymentIntent): Effect.Effect<void, ParameterInvalid> => {
  const param = CONFIRMATION_ONLY.find((field) => parameters[field] != null)
  return param === undefined
    ? Effect.void
    : Effect.fail(new ParameterInvalid({ param, rule: "absent unless `confirm` is true" }))
}

/** Fails above the cap of one payment (semantics N1). */
export const requireAcceptedAmount = (amount: number): Effect.Effect<void, AmountTooLarge> =>
  amount > AMOUNT_MAX ? Effect.fail(new AmountTooLarge({ param: "amount", max: AMOUNT_MAX })) : Effect.void

/** Fails for a currency that the installation does not take (semantics N2). */
export const requireAcceptedCurrency = (
  currency: string,
  param: string = "currency"
): Effect.Effect<void, ParameterInvalid, PaymentsConfig> =>
  Effect.flatMap(PaymentsConfig, ({ currencies }) =>
    currencies === null || currencies.has(normalizeCurrency(currency))
      ? Effect.void
      : Effect.fail(new ParameterInvalid({ param, rule: "a valid three-letter ISO currency code" }))
  )

/** Fails for two payment methods at once (semantics I-8). */
export const requireOnePaymentMethod = ({
  payment_method,
  payment_method_data
}: PaymentMethodParameters): Effect.Effect<void, ParametersExclusive> =>
  payment_method && payment_method_data
    ? Effect.fail(new ParametersExclusive({ first: "payment_method", second: "payment_method_data" }))
    : Effect.void
