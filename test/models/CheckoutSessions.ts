/**
 * Checkout Sessions and their PaymentIntents: client programs, and the state table that checks them, derived again from
 * the text of semantics payment_intents.states, payment_intents.outcomes, checkout.states, independently of the
 * implementation.
 */
import { Schema } from "effect"
import type { CheckoutSession } from "../../src/domain/CheckoutSession.ts"
import type { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import type { Step as StepOf, Table } from "./Program.ts"
import type { Wire, WireRequest } from "./Wire.ts"
import * as Over from "./Wire.ts"

/** The behaviour of each card, in the terms of semantics test_cards.*. */
export const CARDS = {
  pm_card_visa: "approve",
  pm_card_declined: "generic_decline",
  pm_card_3ds_required: "3ds approve",
  pm_card_authenticationRequiredChargeDeclinedInsufficientFunds: "3ds insufficient_funds",
  pm_card_processing_success: "async approve",
  pm_card_processing_failure: "async generic_decline",
  pm_card_processor_error: "fault"
} as const

export type CardName = keyof typeof CARDS
export const CARD_NAMES = Object.keys(CARDS) as ReadonlyArray<CardName>

/** Prices whose amount the payer chooses, up to 900 (semantics checkout.custom_amount). */
export const CUSTOM = {
  open: { enabled: true, maximum: 900 },
  minimum: { enabled: true, minimum: 300, maximum: 900 },
  preset: { enabled: true, minimum: 300, maximum: 900, preset: 700 }
} as const

export type CustomName = keyof typeof CUSTOM
/** The ids of these prices. */
export type CustomPrices = Readonly<Record<CustomName, string>>
/** Assigns ids to these prices. */
export const customPrices = (ids: ReadonlyArray<string>): CustomPrices => ({
  open: ids[0]!,
  minimum: ids[1]!,
  preset: ids[2]!
})

export interface Creation {
  /** The amount without the chosen one. */
  readonly total: 0 | 500
  /** A line whose amount the payer chooses. */
  readonly custom: CustomName | null
  readonly capture: "automatic" | "manual"
  readonly customerCreation: "always" | "if_required"
  readonly email: "known" | null
  readonly address: "auto" | "required"
  /** Lifetime in seconds. */
  readonly lifetime: 1800 | 86400
}

export type Command =
  | {
      readonly op: "confirm"
      readonly through: "session" | "payment_intent"
      readonly card: CardName | null
      readonly details: "none" | "email" | "all"
      /** The amount that the payer chooses, for a confirmation of the session only. */
      readonly amount: number | null
    }
  | { readonly op: "expire" }
  | { readonly op: "authenticate"; readonly outcome: "success" | "failure" }
  | { readonly op: "capture" }
  | { readonly op: "cancel" }
  | { readonly op: "update_amount" }

/** The state of the table: the visible part and more. Times in milliseconds. */
export interface Model {
  readonly status: "open" | "complete" | "expired"
  readonly paymentStatus: "unpaid" | "paid" | "no_payment_required"
  readonly intent: string | null
  /** The amount chosen last, or the preset; null if there is none yet, or nothing to choose. */
  readonly chosen: number | null
  readonly card: CardName | null
  readonly customers: 0 | 1
  readonly email: string | null
  readonly address: boolean
  /** The details collected for the completion. */
  readonly collected: { readonly email: string | null; readonly address: boolean }
  readonly expiresAt: number
  readonly settlesAt: number | null
  readonly holdEndsAt: number | null
  /** Whether the payment that completed the session has yet to settle. */
  readonly firstPayment: boolean
  /** Failed attempts since the session last began to accept payments. */
  readonly failed: number
  readonly closedUntil: number | null
}

export type Step = StepOf<Model>

export const creation = Schema.Struct({
  total: Schema.Literals([0, 500, 500]),
  custom: Schema.NullOr(Schema.Literals(["open", "minimum", "preset"])),
  capture: Schema.Literals(["automatic", "manual"]),
  customerCreation: Schema.Literals(["always", "if_required"]),
  email: Schema.NullOr(Schema.Literal("known")),
  address: Schema.Literals(["auto", "required"]),
  lifetime: Schema.Literals([1800, 86_400])
})

export const command = Schema.Union([
  Schema.Struct({
    op: Schema.Literal("confirm"),
    through: Schema.Literals(["session", "payment_intent"]),
    card: Schema.NullOr(Schema.Literals(CARD_NAMES)),
    details: Schema.Literals(["none", "email", "all"]),
    amount: Schema.NullOr(Schema.Literals([200, 400, 900, 901]))
  }),
  Schema.Struct({ op: Schema.Literal("authenticate"), outcome: Schema.Literals(["success", "failure"]) }),
  Schema.Struct({ op: Schema.Literals(["expire", "capture", "cancel", "update_amount"]) })
])

export const wait = Schema.Struct({
  op: Schema.Literal("wait"),
  millis: Schema.Literals([1000, 2000, 1_799_999, 1_800_000, 3_599_999, 3_600_000, 86_400_000, 604_800_000])
})

/** The schema of all programs. */
export const program = Schema.Struct({
  creation,
  steps: Schema.Array(Schema.Union([command, command, wait])).check(Schema.isMaxLength(12))
})

export const ADDRESS = { line1: "1 High St", country: "GB", postal_code: "N1", city: "London" }
export const DETAILS = {
  none: null,
  email: { email: "payer@example.com" },
  all: { email: "payer@example.com", address: ADDRESS }
} as const

/** Returns the visible state, in the model's terms. */
export const seenOf = (session: CheckoutSession, paymentIntent: PaymentIntent | null, customers: number) => ({
  status: session.status as string,
  paymentStatus: session.payment_status as string,
  page: session.url !== null,
  intent: (paymentIntent?.status ?? null) as string | null,
  total: session.amount_total,
  intentAmount: paymentIntent?.amount ?? null,
  customers,
  email: session.customer_details?.email ?? null,
  address: session.customer_details?.address?.line1 === ADDRESS.line1
})

export type Seen = ReturnType<typeof seenOf>

export const expected = (model: Model, sent: Creation): Seen => ({
  total: totalOf(model, sent),
  intentAmount: model.intent === null ? null : totalOf(model, sent),
  status: model.status,
  paymentStatus: model.paymentStatus,
  page: model.status === "open",
  intent: model.intent,
  customers: model.customers,
  email: model.email,
  address: model.address
})

/** Returns the total, with the chosen amount. */
const totalOf = ({ chosen }: Model, { total }: Creation): number => total + (chosen ?? 0)

/** Returns the parameters of a creation, for a product and a time. */
export const parametersOf = (sent: Creation, product: string, prices: CustomPrices, now: number) => {
  const price_data = { currency: "usd", product, unit_amount: sent.total / 5 }
  return {
    mode: "payment",
    line_items: [
      { price_data, quantity: 2 },
      ...(sent.custom === null ? [] : [{ price: prices[sent.custom] }]),
      { price_data, quantity: 3 }
    ],
    success_url: "https://shop.example/thanks",
    customer_creation: sent.customerCreation,
    billing_address_collection: sent.address,
    expires_at: Math.floor(now / 1000) + sent.lifetime,
    payment_intent_data: { capture_method: sent.capture },
    ...(sent.email !== null && { customer_email: "known@example.com" })
  } as const
}

const requestOf = (session: string, paymentIntent: string, command: Command): WireRequest => {
  switch (command.op) {
    case "confirm": {
      const source = command.card === null ? {} : { payment_method: command.card }
      const details = DETAILS[command.details]
      return command.through === "payment_intent"
        ? { path: `/v1/payment_intents/${paymentIntent}/confirm`, body: source }
        : {
            path: `/v1/checkout_sessions/${session}/confirm`,
            body: {
              ...source,
              ...(details !== null && { customer_details: details }),
              ...(command.amount !== null && { custom_unit_amount: command.amount })
            }
          }
    }
    case "expire":
      return { path: `/v1/checkout_sessions/${session}/expire`, body: {} }
    case "authenticate":
      return {
        path: `/v1/test_helpers/payment_intents/${paymentIntent}/authenticate`,
        body: { outcome: command.outcome }
      }
    case "capture":
    case "cancel":
      return { path: `/v1/payment_intents/${paymentIntent}/${command.op}`, body: {} }
    case "update_amount":
      return { path: `/v1/payment_intents/${paymentIntent}`, body: { amount: 1 } }
  }
}

/** Runs programs over HTTP. */
export const over = async (wire: Wire) => {
  const { id: product } = await Over.post(wire, "/v1/products", { name: "Book" })
  const ids: Array<string> = []
  for (const custom_unit_amount of Object.values(CUSTOM)) {
    ids.push((await Over.post(wire, "/v1/prices", { product, currency: "usd", custom_unit_amount })).id)
  }
  const prices = customPrices(ids)
  let created: { readonly id: string; readonly payment_intent: string | null }
  return Over.driver<Creation, Command, Seen>(
    wire,
    {
      create: async (sent) => {
        const reply = await wire.request(
          "POST",
          "/v1/checkout_sessions",
          parametersOf(sent, product, prices, wire.now())
        )
        created = reply.body
        return Over.answerOf(reply)
      },
      run: async (command) => {
        const { body, path } = requestOf(created.id, created.payment_intent!, command)
        return Over.answerOf(await wire.request("POST", path, body))
      },
      seen: async () => {
        const session = await Over.get(wire, `/v1/checkout_sessions/${created.id}`)
        // The first confirmation creates the PaymentIntent if the payer has to choose an amount.
        const { payment_intent } = (created = session)
        const intent = payment_intent === null ? null : await Over.get(wire, `/v1/payment_intents/${payment_intent}`)
        return seenOf(session, intent, (await Over.all(wire, "/v1/customers")).length)
      }
    },
    () => 1 + ids.length
  )
}

const HOLD_MILLIS = 604_800_000
const HOUR_MILLIS = 3_600_000

export const create = (sent: Creation, now: number): Step => {
  const known = { email: sent.email === null ? null : "known@example.com", address: false }
  const offered = { open: null, minimum: 300, preset: 700, none: null }[sent.custom ?? "none"]
  const isPayable = sent.custom === null ? sent.total > 0 : offered !== null
  return {
    after: {
      status: "open",
      paymentStatus: "unpaid",
      intent: isPayable ? "requires_payment_method" : null,
      chosen: offered,
      card: null,
      customers: 0,
      email: known.email,
      address: false,
      collected: known,
      expiresAt: now + sent.lifetime * 1000,
      settlesAt: null,
      holdEndsAt: null,
      firstPayment: false,
      failed: 0,
      closedUntil: null
    },
    answer: "ok",
    events: isPayable ? ["payment_intent.created"] : []
  }
}

const refused = (after: Model, answer: string): Step => ({ after, answer, events: [] })

export const apply = (before: Model, sent: Creation, command: Command, now: number): Step => {
  switch (command.op) {
    case "expire":
      if (before.status !== "open") return refused(before, `checkout_session_unexpected_state ${before.status}`)
      return expire(before)
    case "confirm":
      return command.through === "session"
        ? confirmSession(before, sent, command, now)
        : confirmIntent(before, sent, command.card, now)
    case "authenticate":
      if (before.intent !== "requires_action")
        return refused(before, `payment_intent_unexpected_state ${before.intent}`)
      if (command.outcome === "success") {
        return outcome(before, sent, CARDS[before.card!].replace("3ds ", ""), now)
      }
      return {
        after: failed({ ...before, intent: "requires_payment_method", card: null }, now),
        answer: "ok",
        events: ["payment_intent.payment_failed"]
      }
    case "capture":
      if (before.intent !== "requires_capture")
        return refused(before, `payment_intent_unexpected_state ${before.intent}`)
      return {
        after: { ...before, intent: "succeeded", paymentStatus: "paid", holdEndsAt: null },
        answer: "ok",
        events: ["charge.captured", "payment_intent.succeeded"]
      }
    case "cancel":
      if (before.status === "open") return refused(before, "payment_intent_unexpected_state id")
      if (["processing", "succeeded", "canceled"].includes(before.intent!)) {
        return refused(before, `payment_intent_unexpected_state ${before.intent}`)
      }
      return cancel(before, before.intent === "requires_capture" ? ["charge.updated"] : [])
    case "update_amount":
      return refused(before, "payment_intent_unexpected_state id")
  }
}

/** Returns the next timed step until a time; undefined if there is none. */
export const timePasses = (before: Model, sent: Creation, now: number): Step | undefined => {
  if (before.settlesAt !== null && before.settlesAt <= now) {
    const settled = { ...before, settlesAt: null, firstPayment: false }
    const approved = CARDS[before.card!] === "async approve"
    const step = outcome(settled, sent, approved ? "approve" : "generic_decline", before.settlesAt)
    const event = `checkout.session.async_payment_${approved ? "succeeded" : "failed"}`
    return { ...step, events: before.firstPayment ? [...step.events, event] : step.events }
  }
  const opensAt = before.status === "open" ? before.closedUntil : null
  if (opensAt !== null && opensAt <= now && opensAt < before.expiresAt) {
    return { after: { ...before, failed: 0, closedUntil: null }, answer: "ok", events: [] }
  }
  if (before.status === "open" && before.expiresAt <= now) return expire(before)
  if (before.holdEndsAt !== null && before.holdEndsAt <= now) return cancel(before, ["charge.expired"])
  return undefined
}

const expire = (before: Model): Step => ({
  after: { ...before, status: "expired", intent: before.intent === null ? null : "canceled" },
  answer: "ok",
  events: [...(before.intent === null ? [] : ["payment_intent.canceled"]), "checkout.session.expired"]
})

const cancel = (before: Model, events: ReadonlyArray<string>): Step => ({
  after: { ...before, intent: "canceled", holdEndsAt: null },
  answer: "ok",
  events: [...events, "payment_intent.canceled"]
})

const confirmSession = (
  before: Model,
  sent: Creation,
  { amount, card, details }: Extract<Command, { op: "confirm" }>,
  now: number
): Step => {
  if (before.status !== "open") return refused(before, `checkout_session_unexpected_state ${before.status}`)
  if (before.closedUntil !== null) return refused(before, "rate_limit_exceeded")
  const collected = {
    email: details === "none" ? before.collected.email : "payer@example.com",
    address: details === "all" || before.collected.address
  }
  if (collected.email === null) return refused(before, "parameter_missing customer_details[email]")
  if (sent.address === "required" && !collected.address) {
    return refused(before, "parameter_missing customer_details[address][line1]")
  }
  const wrong = wrongAmount(before, sent, amount)
  if (wrong !== null) return refused(before, wrong)
  const chosen = amount ?? before.chosen
  const asked = { ...before, collected, chosen }
  if (before.intent === null && sent.custom === null) return complete(asked, sent, "no_payment_required", [])
  const payable = before.intent === null ? { ...asked, intent: "requires_payment_method" } : asked
  const step = confirmIntent(payable, sent, card, now)
  // A refusal changes nothing.
  if (step.after === payable) return { ...step, after: before }
  return before.intent === null ? { ...step, events: ["payment_intent.created", ...step.events] } : step
}

/** Returns the error of an amount that the payer cannot choose (semantics checkout.custom_amount). */
const wrongAmount = ({ chosen }: Model, { custom }: Creation, amount: number | null): string | null => {
  if (amount === null) return custom !== null && chosen === null ? "parameter_missing custom_unit_amount" : null
  const isWithin = custom !== null && amount <= 900 && amount >= (custom === "open" ? 1 : 300)
  return isWithin ? null : "parameter_invalid custom_unit_amount"
}

const confirmIntent = (before: Model, sent: Creation, sentCard: CardName | null, now: number): Step => {
  if (["processing", "requires_capture", "canceled", "succeeded"].includes(before.intent!)) {
    return refused(before, `payment_intent_unexpected_state ${before.intent}`)
  }
  const card = sentCard ?? before.card
  if (card === null) return refused(before, "payment_intent_unexpected_state payment_method")
  const does = CARDS[card]
  if (does === "fault") return refused(before, "processor_unavailable")
  if (does.startsWith("3ds")) {
    return {
      after: { ...before, intent: "requires_action", card },
      answer: "ok",
      events: ["payment_intent.requires_action"]
    }
  }
  if (!does.startsWith("async")) return outcome({ ...before, card }, sent, does, now)
  const started: Model = { ...before, card, intent: "processing", settlesAt: now + 2000 }
  const events = ["charge.pending", "payment_intent.processing"]
  if (before.status === "complete") return { after: started, answer: "ok", events }
  return complete({ ...started, firstPayment: true }, sent, "unpaid", events)
}

/** Counts a failed attempt; the twentieth closes an open session for an hour (semantics checkout.attempts). */
const failed = (after: Model, now: number): Model => {
  if (after.status !== "open") return after
  const count = after.failed + 1
  return { ...after, failed: count, closedUntil: after.closedUntil ?? (count >= 20 ? now + HOUR_MILLIS : null) }
}

/** Applies the issuer's response, immediate or delayed. */
const outcome = (before: Model, sent: Creation, does: string, now: number): Step => {
  if (does !== "approve") {
    return {
      after: failed({ ...before, intent: "requires_payment_method", card: null }, now),
      answer: `declined ${does}`,
      events: ["charge.failed", "payment_intent.payment_failed"]
    }
  }
  const taken = sent.capture === "automatic"
  const events = ["charge.succeeded", taken ? "payment_intent.succeeded" : "payment_intent.amount_capturable_updated"]
  const after: Model = {
    ...before,
    intent: taken ? "succeeded" : "requires_capture",
    holdEndsAt: taken ? null : now + HOLD_MILLIS
  }
  if (before.status === "open") return complete(after, sent, taken ? "paid" : "unpaid", events)
  return { after: { ...after, paymentStatus: taken ? "paid" : "unpaid" }, answer: "ok", events }
}

const complete = (
  before: Model,
  sent: Creation,
  paymentStatus: Model["paymentStatus"],
  events: ReadonlyArray<string>
): Step => {
  const creates = sent.customerCreation === "always"
  return {
    after: {
      ...before,
      status: "complete",
      paymentStatus,
      customers: creates ? 1 : 0,
      email: before.collected.email,
      address: before.collected.address
    },
    answer: "ok",
    events: [...(creates ? ["customer.created"] : []), ...events, "checkout.session.completed"]
  }
}

/** The state table. */
export const table: Table<Creation, Command, Model, Seen> = {
  create,
  apply: (before, command, now, creation) => apply(before, creation, command, now),
  timePasses: (before, until, creation) => timePasses(before, creation, until),
  expected,
  // A session with nothing to pay, or with an amount not chosen yet, has no PaymentIntent to operate on.
  applies: ({ intent }, command) =>
    intent !== null || command.op === "expire" || (command.op === "confirm" && command.through === "session"),
  nameOf: ({ paymentStatus, status }) => `${status} ${paymentStatus}`
}
