/**
 * The JSON of the baselines: the fields of Till's PaymentIntent, rendered by hand as such services do it. There is no
 * validation, no authentication and no state machine: the difference is Till's cost.
 */
import { randomUUID } from "node:crypto"

export interface CreateBody {
  readonly amount: number
  readonly currency: string
  readonly description?: string
  readonly metadata?: Readonly<Record<string, string>>
  readonly payment_method?: string
  readonly confirm?: boolean
}

const MERCHANT_ID = "mer_0Qf3kZ9xA1bC2dE3fG4hI5jK"

/** Returns a UUID with a time-ordered prefix, which suits a B-tree and orders a list. */
export const newId = (prefix: string): string =>
  `${prefix}_${Date.now().toString(36)}${randomUUID().replaceAll("-", "").slice(0, 16)}`

export const newCharge = (intent: string, body: CreateBody, created: number) => ({
  id: newId("ch"),
  object: "charge",
  livemode: false,
  created,
  amount: body.amount,
  amount_captured: body.amount,
  amount_refunded: 0,
  currency: body.currency,
  status: "succeeded",
  paid: true,
  captured: true,
  refunded: false,
  payment_intent: intent,
  payment_method: body.payment_method ?? null,
  payment_method_details: {
    type: "card",
    card: { brand: "visa", last4: "4242", exp_month: 12, exp_year: 2030, funding: "credit" }
  },
  customer: null,
  description: body.description ?? null,
  failure_code: null,
  failure_message: null,
  merchant_id: MERCHANT_ID,
  metadata: body.metadata ?? {}
})

export const newPaymentIntent = (body: CreateBody) => {
  const id = newId("pi")
  const created = Math.floor(Date.now() / 1000)
  const confirmed = body.confirm === true
  const charges = confirmed ? [newCharge(id, body, created)] : []
  return {
    id,
    object: "payment_intent",
    livemode: false,
    created,
    amount: body.amount,
    amount_capturable: 0,
    amount_received: confirmed ? body.amount : 0,
    currency: body.currency,
    status: confirmed
      ? "succeeded"
      : body.payment_method === undefined
        ? "requires_payment_method"
        : "requires_confirmation",
    capture_method: "automatic",
    confirmation_method: "automatic",
    customer: null,
    payment_method: body.payment_method ?? null,
    description: body.description ?? null,
    metadata: body.metadata ?? {},
    merchant_id: MERCHANT_ID,
    client_secret: `${id}_secret_${randomUUID().replaceAll("-", "").slice(0, 24)}`,
    latest_charge: charges[0]?.id ?? null,
    next_action: null,
    charges: {
      object: "list",
      data: charges,
      has_more: false,
      next_cursor: null,
      url: `/v1/charges?payment_intent=${id}`
    },
    canceled_at: null,
    cancellation_reason: null
  }
}

/** Returns a page of a list of documents that are JSON already. */
export const listText = (documents: ReadonlyArray<string>): string =>
  `{"object":"list","data":[${documents.join(",")}],"has_more":true,"next_cursor":null,"url":"/v1/payment_intents"}`

export const newEvent = (type: string, object: unknown, created: number) => ({
  id: newId("evt"),
  object: "event",
  type,
  created,
  livemode: false,
  data: { object }
})
