/**
 * The operations of clients: their requests, and the meaning of their answers.
 *
 * Every operation concerns one object at most, whose state is small enough for a complete check: a customer is a
 * register; a payment is authorized, captured or canceled once, and refunded in parts. A history of answers thus shows
 * by itself whether an operation was lost, done twice, or seen out of order.
 */
import type { Answer } from "../support/HttpExchange.ts"

export type Operation =
  /** A payment that is created and captured at once, and not changed later. */
  | { readonly f: "pay"; readonly amount: number }
  | { readonly f: "decline"; readonly amount: number }
  /** An authorized payment: all clients then capture, cancel and refund it. */
  | { readonly f: "hold"; readonly amount: number }
  /** A customer, whose `value` all clients then write and read. */
  | { readonly f: "enroll"; readonly value: number }
  | { readonly f: "write"; readonly id: string; readonly value: number }
  | { readonly f: "capture"; readonly id: string; readonly amount: number }
  | { readonly f: "cancel"; readonly id: string }
  | { readonly f: "refund"; readonly id: string; readonly amount: number }

export interface Sent {
  readonly path: string
  readonly body: object
}

const payment = (amount: number, method: string, capture: "automatic" | "manual"): Sent => ({
  path: "/v1/payment_intents",
  body: { amount, currency: "eur", payment_method: method, capture_method: capture, confirm: true }
})

const metadata = (value: number) => ({ metadata: { value: String(value) } })

export const requestOf = (operation: Operation): Sent => {
  switch (operation.f) {
    case "pay":
      return payment(operation.amount, "pm_card_visa", "automatic")
    case "decline":
      return payment(operation.amount, "pm_card_declined", "automatic")
    case "hold":
      return payment(operation.amount, "pm_card_visa", "manual")
    case "enroll":
      return { path: "/v1/customers", body: metadata(operation.value) }
    case "write":
      return { path: `/v1/customers/${operation.id}`, body: metadata(operation.value) }
    case "capture":
      return { path: `/v1/payment_intents/${operation.id}/capture`, body: { amount_to_capture: operation.amount } }
    case "cancel":
      return { path: `/v1/payment_intents/${operation.id}/cancel`, body: {} }
    case "refund":
      return { path: "/v1/refunds", body: { payment_intent: operation.id, amount: operation.amount } }
  }
}

/** Refusals that the state of the object explains; all others are wrong. */
const STATE_CODES = ["payment_intent_unexpected_state", "charge_already_refunded", "amount_too_large"]

export const isStateRefusal = ({ body, status }: Answer): boolean =>
  status === 400 && STATE_CODES.includes(body?.error?.code)

/** Returns the object that an operation created, if any. */
export const madeBy = (operation: Operation, answer: Answer): { readonly id: string } | undefined => {
  if (operation.f === "decline") return answer.status === 402 ? answer.body.error.payment_intent : undefined
  const makes = ["pay", "hold", "enroll", "refund"].includes(operation.f)
  return makes && answer.status === 200 ? answer.body : undefined
}

/** Describes a fault of an answer that no state of the object explains. */
export const wrongness = (operation: Operation, answer: Answer): string | undefined => {
  const { body, status } = answer
  const is = (condition: boolean) => (condition ? undefined : "is not what was asked for")
  if (isStateRefusal(answer) && ["capture", "cancel", "refund"].includes(operation.f)) return undefined
  if (operation.f === "decline") {
    return is(status === 402 && body.error.payment_intent.amount === operation.amount)
  }
  if (status !== 200) return "is no success"
  switch (operation.f) {
    case "pay":
      return is(body.status === "succeeded" && body.amount_received === operation.amount)
    case "hold":
      return is(body.status === "requires_capture" && body.amount === operation.amount)
    case "enroll":
    case "write":
      return is(body.metadata.value === String(operation.value))
    case "capture":
      return is(body.status === "succeeded" && body.amount_received === operation.amount)
    case "cancel":
      return is(body.status === "canceled")
    case "refund":
      return is(body.amount === operation.amount && body.payment_intent === operation.id)
  }
}

/**
 * Returns the types of an executed operation's events, in order (semantics payment_intents.outcomes, checkout.states,
 * refunds.states).
 */
export const eventsOf = ({ f }: Operation, answer: Answer): ReadonlyArray<string> => {
  if (isStateRefusal(answer)) return []
  switch (f) {
    case "pay":
      return ["payment_intent.created", "charge.succeeded", "payment_intent.succeeded"]
    case "decline":
      return ["payment_intent.created", "charge.failed", "payment_intent.payment_failed"]
    case "hold":
      return ["payment_intent.created", "charge.succeeded", "payment_intent.amount_capturable_updated"]
    case "enroll":
      return ["customer.created"]
    case "write":
      return ["customer.updated"]
    case "capture":
      return ["charge.captured", "payment_intent.succeeded"]
    case "cancel":
      return ["charge.updated", "payment_intent.canceled"]
    case "refund":
      return ["refund.created", "charge.refunded"]
  }
}
