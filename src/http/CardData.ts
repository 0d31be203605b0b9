/**
 * Card data in payloads. It is replaced by tokens as soon as a payload is decoded, before a command is made of it and
 * queued; the types keep every handler from wanting more.
 *
 * Payloads hold it in two places: as `payment_method_data`, or as the whole of what a payment method is made of.
 */
import type { PaymentMethodData } from "../domain/PaymentMethod.ts"
import type { TokenizedPaymentMethodData } from "../payments/Tokenization.ts"

/** Replaces the card data of a decoded payload, if it has any. */
export const withoutCardData = (
  payload: unknown,
  tokenize: (data: PaymentMethodData) => TokenizedPaymentMethodData
): unknown => {
  if (isPaymentMethodData(payload)) return tokenize(payload)
  if (!isObject(payload) || !isPaymentMethodData(payload["payment_method_data"])) return payload
  return { ...payload, payment_method_data: tokenize(payload["payment_method_data"]) }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

const isPaymentMethodData = (value: unknown): value is PaymentMethodData =>
  isObject(value) && isObject(value["card"]) && "number" in value["card"]
