/** The invariants of every PaymentIntent, at every moment (semantics payment_intents.invariants). */
import type { Charge } from "./Charge.ts"
import type { PaymentIntent } from "./PaymentIntent.ts"

/** Returns the invariant that a PaymentIntent violates; undefined if it is sound. */
export const violatedInvariant = (paymentIntent: PaymentIntent): string | undefined =>
  INVARIANTS.find(({ holds }) => !holds(paymentIntent, latestCharge(paymentIntent)))?.name

/** Returns the charge of the newest attempt that reached the issuer. */
export const latestCharge = (paymentIntent: PaymentIntent): Charge | undefined => paymentIntent.charges.data[0]

const iff = (left: boolean, right: boolean): boolean => left === right

const INVARIANTS: ReadonlyArray<{
  readonly name: string
  readonly holds: (paymentIntent: PaymentIntent, charge: Charge | undefined) => boolean
}> = [
  {
    name: "it has succeeded if and only if its latest charge is captured",
    holds: ({ status }, charge) => iff(status === "succeeded", charge?.captured === true)
  },
  {
    name: "what it received is what was captured",
    holds: ({ amount_received }, charge) => amount_received === (charge?.amount_captured ?? 0)
  },
  {
    name: "no more is captured than was authorized",
    holds: (_, charge) => charge === undefined || charge.amount_captured <= charge.amount
  },
  {
    name: "no more is refunded than was captured",
    holds: ({ charges }) =>
      charges.data.every(
        ({ amount_captured, amount_refunded, refunded }) =>
          0 <= amount_refunded &&
          amount_refunded <= amount_captured &&
          iff(refunded, 0 < amount_captured && amount_refunded === amount_captured)
      )
  },
  {
    name: "its whole amount can be captured if and only if it requires capture",
    holds: ({ amount, amount_capturable, status }) => amount_capturable === (status === "requires_capture" ? amount : 0)
  },
  {
    name: "at most one of its charges has succeeded",
    holds: ({ charges }) => charges.data.filter(({ status }) => status === "succeeded").length <= 1
  },
  {
    name: "its latest charge is pending if and only if it is processing",
    holds: ({ status }, charge) => iff(status === "processing", charge?.status === "pending")
  },
  {
    name: "it has a time of cancellation if and only if it is canceled",
    holds: ({ canceled_at, status }) => iff(status === "canceled", canceled_at !== null)
  },
  {
    name: "it has a next action if and only if it requires one",
    holds: ({ next_action, status }) => iff(status === "requires_action", next_action !== null)
  },
  {
    name: "it has a customer to attach its payment method to if it is to do that",
    holds: ({ customer, setup_future_usage }) => setup_future_usage === null || customer !== null
  },
  {
    name: "it lacks a payment method if it requires one, and has one if it got further",
    holds: ({ payment_method, status }) =>
      status === "canceled" || iff(status === "requires_payment_method", payment_method === null)
  }
]
