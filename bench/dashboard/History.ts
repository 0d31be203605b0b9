/**
 * The sales of a shop in ninety days: customers, payments, charges and refunds as lifecycles would have left them, the
 * same in every run.
 */
import { billingDetailsOf } from "../../src/domain/Address.ts"
import { DECLINE_MESSAGES, type DeclineCode } from "../../src/domain/Cards.ts"
import type { Charge } from "../../src/domain/Charge.ts"
import type { Customer } from "../../src/domain/Customer.ts"
import type { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import { violatedInvariant } from "../../src/domain/PaymentIntentInvariants.ts"
import { PREFIXES } from "../../src/domain/Identifiers.ts"
import type { Refund } from "../../src/domain/Refund.ts"
import type { Transaction } from "../../src/engine/actor/Transaction.ts"
import { merchantIdOf } from "../../src/payments/shared/AccountIds.ts"

/** A rare reason of declines; the other constant is a reason that no payment has. */
export const RARE_DECLINE = "lost_card"
export const UNKNOWN_DECLINE = "stolen_card"
export const RARE = 40_000

type Outcome = "paid" | "refunded" | "partly_refunded" | "held" | "abandoned" | "canceled" | DeclineCode

type Shares<A> = ReadonlyArray<readonly [A, perMille: number]>

/** 85 % are paid, and 9 % declined. */
const OUTCOMES: Shares<Outcome> = [
  ["paid", 812],
  ["refunded", 20],
  ["partly_refunded", 18],
  ["held", 10],
  ["abandoned", 35],
  ["canceled", 15],
  ["generic_decline", 40],
  ["insufficient_funds", 28],
  ["do_not_honor", 10],
  ["expired_card", 6],
  ["incorrect_cvc", 6]
]

const CURRENCIES: Shares<string> = [
  ["usd", 700],
  ["eur", 180],
  ["gbp", 80],
  ["chf", 30],
  ["jpy", 10]
]

const BRANDS: Shares<string> = [
  ["visa", 550],
  ["mastercard", 350],
  ["amex", 70],
  ["discover", 20],
  ["jcb", 10]
]

const FIRST_NAMES = (
  "Ada Amal Anna Ben Björn Carla Chen Dana Diego Elif Emma Farid Fatima Grace Hana Hugo Ines Ivan Jana Jonas Kofi Lena " +
  "Liam Lucia Maria Mei Mila Nadia Noah Olga Omar Paul Priya Rosa Sam Sofia Tariq Tom Yuki Zoë"
).split(" ")
const LAST_NAMES = (
  "Ahmed Andersen Baker Bauer Brown Costa Diaz Dubois Evans Fischer Garcia Haddad Hansen Ito Jansen Johnson Kaya Khan " +
  "Kim Kowalski Larsen Lee Martin Meyer Moreau Müller Nguyen Novak Okafor Olsen Patel Rossi Santos Schmidt Silva Smith " +
  "Tanaka Weber Wilson Wright"
).split(" ")

/** Returns evenly spread numbers below a bound, the same in every run; `salt` separates the uses of one `i`. */
export const spread = (i: number, salt: number, below: number): number => {
  let bits = Math.imul(i + 1, 0x9e3779b1) ^ Math.imul(salt + 1, 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 15), 0x2c1b3c6d)
  bits = Math.imul(bits ^ (bits >>> 12), 0x297a2d39)
  return ((bits ^ (bits >>> 15)) >>> 0) % below
}

const among = <A>(shares: Shares<A>, i: number, salt: number): A => {
  let left = spread(i, salt, 1000)
  return shares.find(([, perMille]) => (left -= perMille) < 0)![0]
}

/** Emails are unique per customer; names are not. */
export const emailOf = (i: number): string => `payer-${i}@example.com`

export const customerOf = (i: number, { account, newId, now }: Making): Customer => ({
  id: newId(PREFIXES.customer),
  object: "customer",
  livemode: false,
  created: Math.floor(now / 1000),
  merchant_id: merchantIdOf(account),
  email: emailOf(i),
  name: `${FIRST_NAMES[spread(i, 0, FIRST_NAMES.length)]!} ${LAST_NAMES[spread(i, 1, LAST_NAMES.length)]!}`,
  phone: null,
  description: null,
  metadata: {}
})

/** The transaction in which the documents are created. */
type Making = Pick<Transaction, "account" | "newId" | "newSecret" | "now">

/** A payment with its charge and refunds. */
export interface Sale {
  readonly payment: PaymentIntent
  readonly charge: Charge | undefined
  readonly refund: Refund | undefined
}

interface Buyer {
  readonly customer: string | null
  /** An authorization lasts only some days. */
  readonly isRecent: boolean
}

const outcomeOf = (i: number, { isRecent }: Pick<Buyer, "isRecent">): Outcome => {
  if (i % RARE === 7) return RARE_DECLINE
  const outcome = among(OUTCOMES, i, 2)
  return outcome === "held" && !isRecent ? "canceled" : outcome
}

const isCharged = (outcome: Outcome): boolean => outcome !== "abandoned" && outcome !== "canceled"

/** Returns whether the payment has a charge. */
export const wasCharged = (i: number): boolean => isCharged(outcomeOf(i, { isRecent: false }))

const isDecline = (outcome: Outcome): outcome is DeclineCode => Object.hasOwn(DECLINE_MESSAGES, outcome)

/** Amounts from one unit to a thousand, most of them small. */
export const amountOf = (i: number): number => Math.round(100 * 10 ** (spread(i, 3, 3000) / 1000))

/** Returns the last four digits of the payment's card. */
export const last4Of = (i: number): string => String(spread(i, 7, 10_000)).padStart(4, "0")

/** Returns the terms that a payment and its charge share. */
const termsOf = (i: number, { account, now }: Making, { customer }: Buyer) => ({
  amount: amountOf(i),
  currency: among(CURRENCIES, i, 4),
  created: Math.floor(now / 1000),
  livemode: false,
  customer,
  description: `Order ${i}`,
  metadata: { order_id: String(i), channel: spread(i, 5, 3) === 0 ? "app" : "web" },
  merchant_id: merchantIdOf(account)
})

type Terms = ReturnType<typeof termsOf>

const chargeOf = (i: number, outcome: Outcome, terms: Terms, { newId }: Making, payment: string): Charge => {
  const { amount } = terms
  const decline = isDecline(outcome) ? outcome : null
  const isCaptured = outcome === "paid" || outcome === "refunded" || outcome === "partly_refunded"
  return {
    id: newId(PREFIXES.charge),
    object: "charge",
    ...terms,
    status: decline === null ? "succeeded" : "failed",
    amount_captured: isCaptured ? amount : 0,
    amount_refunded: outcome === "refunded" ? amount : outcome === "partly_refunded" ? Math.ceil(amount / 3) : 0,
    payment_intent: payment,
    payment_method: newId(PREFIXES.payment_method),
    failure_code: decline,
    failure_message: decline && DECLINE_MESSAGES[decline],
    captured: isCaptured,
    paid: decline === null,
    refunded: outcome === "refunded",
    released_at: null,
    decline_code: decline,
    billing_details: billingDetailsOf({}),
    payment_method_details: {
      type: "card",
      card: {
        brand: among(BRANDS, i, 6),
        last4: last4Of(i),
        exp_month: 1 + spread(i, 8, 12),
        exp_year: 2030,
        funding: "credit",
        country: "US"
      }
    }
  }
}

/** Returns a payment's status and the fields that depend on it. */
const stateOf = (outcome: Outcome, { amount, created }: Terms, charge: Charge | undefined) => {
  const none = { amount_received: 0, amount_capturable: 0, payment_method: null, canceled_at: null }
  if (outcome === "abandoned") return { ...none, status: "requires_payment_method" } as const
  if (outcome === "canceled") return { ...none, status: "canceled", canceled_at: created } as const
  const { decline_code, failure_message, id, payment_method } = charge!
  if (outcome === "held") {
    return { ...none, status: "requires_capture", amount_capturable: amount, payment_method } as const
  }
  if (decline_code === null) return { ...none, status: "succeeded", amount_received: amount, payment_method } as const
  const error = { type: "payment_error", code: "card_declined", message: failure_message! } as const
  const last_payment_error = { ...error, decline_code, charge: id, payment_method }
  return { ...none, status: "requires_payment_method", last_payment_error } as const
}

const refundOf = ({ amount_refunded, id, ...charge }: Charge, { newId }: Making): Refund => ({
  id: newId(PREFIXES.refund),
  object: "refund",
  amount: amount_refunded,
  currency: charge.currency,
  payment_intent: charge.payment_intent,
  status: "succeeded",
  created: charge.created,
  livemode: false,
  charge: id,
  reason: "requested_by_customer",
  metadata: {}
})

/** Returns the shop's payment number `i`. */
export const saleOf = (i: number, making: Making, buyer: Buyer): Sale => {
  const outcome = outcomeOf(i, buyer)
  const terms = termsOf(i, making, buyer)
  const id = making.newId(PREFIXES.payment_intent)
  const charge = isCharged(outcome) ? chargeOf(i, outcome, terms, making, id) : undefined
  const payment: PaymentIntent = {
    id,
    object: "payment_intent",
    ...terms,
    ...stateOf(outcome, terms, charge),
    capture_method: outcome === "held" ? "manual" : "automatic",
    confirmation_method: "automatic",
    statement_descriptor: null,
    application_fee_amount: null,
    setup_future_usage: null,
    client_secret: `${id}_secret_${making.newSecret(24)}`,
    next_action: null,
    latest_charge: charge?.id ?? null,
    charges: {
      object: "list",
      data: charge === undefined ? [] : [charge],
      has_more: false,
      url: `/v1/charges?payment_intent=${id}`,
      next_cursor: null
    },
    cancellation_reason: outcome === "canceled" ? "abandoned" : null
  }
  const violated = violatedInvariant(payment)
  if (violated !== undefined) throw new Error(`A payment that was ${outcome} is none that could be: ${violated}`)
  const refund = charge !== undefined && charge.amount_refunded > 0 ? refundOf(charge, making) : undefined
  return { payment, charge, refund }
}
