/**
 * PaymentIntents: client programs, and the state table that checks them, derived again from the text of semantics
 * payment_intents.states, payment_intents.outcomes, test_cards.*, independently of the implementation.
 */
import { Schema } from "effect"
import type { Charge } from "../../src/domain/Charge.ts"
import type { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import type { Refused, Step as StepOf, Table } from "./Program.ts"
import type { Wire, WireRequest } from "./Wire.ts"
import * as Over from "./Wire.ts"

/** The behaviour of each card, in the terms of semantics test_cards.*: an outcome, or a step before one. */
export const CARDS = {
  pm_card_visa: { number: "4242424242424242", does: "approve" },
  pm_card_amex: { number: "378282246310005", does: "approve" },
  pm_card_declined: { number: "4000000000000002", does: "generic_decline" },
  pm_card_insufficient_funds: { number: "4000000000009995", does: "insufficient_funds" },
  pm_card_lost_card: { number: "4000000000009987", does: "lost_card" },
  pm_card_stolen_card: { number: "4000000000009979", does: "stolen_card" },
  pm_card_expired: { number: "4000000000000069", does: "expired_card" },
  pm_card_incorrect_cvc: { number: "4000000000000127", does: "incorrect_cvc" },
  pm_card_processing_error: { number: "4000000000000119", does: "processing_error" },
  pm_card_do_not_honor: { number: "4000000000006009", does: "do_not_honor" },
  pm_card_3ds_required: { number: "4000000000003220", does: "3ds approve" },
  pm_card_authenticationRequiredChargeDeclinedInsufficientFunds: {
    number: "4000008260003178",
    does: "3ds insufficient_funds"
  },
  pm_card_processing_success: { number: "4000000000006017", does: "async approve" },
  pm_card_processing_failure: { number: "4000000000006025", does: "async generic_decline" },
  pm_card_processor_error: { number: "4000000000006033", does: "fault" }
} as const

export type CardName = keyof typeof CARDS
export const CARD_NAMES = Object.keys(CARDS) as ReadonlyArray<CardName>

export interface ModelCharge {
  readonly status: "succeeded" | "pending" | "failed"
  readonly amountCaptured: number
  readonly released: boolean
  readonly failureCode: string | null
}

/** The terms that a passed authentication covers, in addition to its card. */
export interface Terms {
  readonly amount: number
  readonly currency: Currency
}

export type Currency = "usd" | "eur"

/** The future use for which a charged card is attached (semantics payment_methods.attach). */
export type FutureUsage = "on_session" | "off_session"

/** The state of the table: the visible part of a PaymentIntent and more. */
export interface Model extends Terms {
  readonly status: string
  readonly customer: boolean
  readonly description: string | null
  readonly descriptor: string | null
  readonly future: FutureUsage | null
  readonly capture: "automatic" | "manual"
  readonly confirmation: "automatic" | "manual"
  readonly card: CardName | null
  /** Whether the card has an id of its own, because it was sent inline or attached since. */
  readonly inline: boolean
  readonly received: number
  readonly capturable: number
  readonly charges: ReadonlyArray<ModelCharge>
  readonly lastError: string | null
  readonly reason: string | null
  /** The terms of the authentication passed with the current card, while the server has to confirm again. */
  readonly authenticated: Terms | null
  /** The time of the next timed step. */
  readonly dueAt: number | null
}

export interface CardSent {
  readonly card: CardName | null
  readonly inline: boolean
}

/** The parameters of semantics payment_methods.attach of an attempt. */
export interface UsageSent {
  readonly future: FutureUsage | null
  readonly offSession: boolean
}

export type Command =
  | {
      readonly op: "update"
      readonly amount: number | null
      readonly currency: Currency | null
      readonly customer: boolean | null
      readonly capture: "automatic" | "manual" | null
      readonly details: string | null
      readonly descriptor: string | null
      readonly future: FutureUsage | "unset" | null
      readonly method: CardName | "unset" | null
    }
  | ({ readonly op: "confirm" } & CardSent & UsageSent)
  | { readonly op: "capture"; readonly amount: number | null }
  | { readonly op: "cancel"; readonly reason: "duplicate" | "abandoned" | null }
  | { readonly op: "authenticate"; readonly outcome: "success" | "failure" }

export type Step = StepOf<Model>

export interface Creation extends CardSent, UsageSent {
  readonly amount: number
  readonly customer: boolean
  readonly capture: "automatic" | "manual"
  readonly confirmation: "automatic" | "manual"
  readonly confirm: boolean
}

const card = Schema.Literals(CARD_NAMES)
/** Amounts of a small range, so that captures lie below, at and above them. */
const amount = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 6 }))
export const method = Schema.Literals(["automatic", "manual"])
const future = Schema.Literals(["on_session", "off_session"])
/** The schema of these parameters. */
export const usage = { future: Schema.NullOr(future), offSession: Schema.Literals([false, false, true]) }

export const creation = Schema.Struct({
  amount,
  capture: method,
  confirmation: method,
  customer: Schema.Boolean,
  card: Schema.NullOr(card),
  inline: Schema.Boolean,
  confirm: Schema.Boolean,
  ...usage
})

/** The fields of an update, except `method`. */
export const updateFields = {
  op: Schema.Literal("update"),
  amount: Schema.NullOr(amount),
  currency: Schema.NullOr(Schema.Literals(["usd", "eur"])),
  customer: Schema.NullOr(Schema.Boolean),
  capture: Schema.NullOr(method),
  details: Schema.NullOr(Schema.Literals(["a", "b"])),
  descriptor: Schema.NullOr(Schema.Literals(["S", "T"])),
  future: Schema.NullOr(Schema.Union([future, Schema.Literal("unset")]))
}

export const command = Schema.Union([
  Schema.Struct({ ...updateFields, method: Schema.NullOr(Schema.Union([card, Schema.Literal("unset")])) }),
  Schema.Struct({ op: Schema.Literal("confirm"), card: Schema.NullOr(card), inline: Schema.Boolean, ...usage }),
  Schema.Struct({ op: Schema.Literal("capture"), amount: Schema.NullOr(amount) }),
  Schema.Struct({ op: Schema.Literal("cancel"), reason: Schema.NullOr(Schema.Literals(["duplicate", "abandoned"])) }),
  Schema.Struct({ op: Schema.Literal("authenticate"), outcome: Schema.Literals(["success", "failure"]) })
])

export const wait = Schema.Struct({ op: Schema.Literal("wait"), millis: Schema.Literals([1000, 2000, 604_800_000]) })

/** The schema of all programs. */
export const program = Schema.Struct({
  creation,
  steps: Schema.Array(Schema.Union([command, wait])).check(Schema.isMaxLength(16))
})

/** Returns the visible state, in the model's terms; `charges` are all charges, oldest first. */
export const seenOf = (paymentIntent: PaymentIntent, charges: ReadonlyArray<Charge>) => {
  const error = paymentIntent.last_payment_error
  const known = paymentIntent.payment_method?.startsWith("pm_card_") === true
  const shown: ReadonlyArray<ModelCharge> = charges.map((charge) => ({
    status: charge.status,
    amountCaptured: charge.amount_captured,
    released: charge.released_at !== null,
    failureCode: charge.failure_code
  }))
  return {
    status: paymentIntent.status as string,
    amount: paymentIntent.amount,
    currency: paymentIntent.currency as string,
    customer: paymentIntent.customer !== null,
    capture: paymentIntent.capture_method as string,
    description: paymentIntent.description,
    descriptor: paymentIntent.statement_descriptor,
    future: paymentIntent.setup_future_usage as string | null,
    card: known ? paymentIntent.payment_method : null,
    inline: paymentIntent.payment_method !== null && !known,
    received: paymentIntent.amount_received,
    capturable: paymentIntent.amount_capturable,
    charges: shown,
    lastError: error === undefined ? null : [error.code, error.decline_code].filter(Boolean).join(" "),
    reason: paymentIntent.cancellation_reason as string | null,
    action: paymentIntent.next_action !== null
  }
}

export type Seen = ReturnType<typeof seenOf>

export const expected = (model: Model): Seen => ({
  status: model.status,
  amount: model.amount,
  currency: model.currency,
  customer: model.customer,
  capture: model.capture,
  description: model.description,
  descriptor: model.descriptor,
  future: model.future,
  card: model.inline ? null : model.card,
  inline: model.inline,
  received: model.received,
  capturable: model.capturable,
  charges: model.charges,
  lastError: model.lastError,
  reason: model.reason,
  action: model.status === "requires_action"
})

/** Returns a card's data, as a payer enters them. */
export const cardDataOf = (name: CardName) => {
  const { number } = CARDS[name]
  return { number, exp_month: 12, exp_year: 2034, cvc: number.startsWith("37") ? "1234" : "123" }
}

const sourceOf = ({ card, inline }: CardSent): object => {
  if (card === null) return {}
  return inline ? { payment_method_data: { type: "card", card: cardDataOf(card) } } : { payment_method: card }
}

/** Returns the parameters of semantics payment_methods.attach of a request. */
export const usageOf = ({ future, offSession }: UsageSent) => ({
  ...(future !== null && { setup_future_usage: future }),
  ...(offSession && { off_session: true })
})

const given = (values: object): object =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))

/** Returns the request of a creation, with or without a customer. */
export const creationRequest = (sent: Creation, customer: string | null): WireRequest => ({
  path: "/v1/payment_intents",
  body: {
    amount: sent.amount,
    currency: "usd",
    capture_method: sent.capture,
    confirmation_method: sent.confirmation,
    confirm: sent.confirm,
    ...(sent.customer && customer !== null && { customer }),
    ...sourceOf(sent),
    ...usageOf(sent)
  }
})

/** Returns the request of a command. */
export const requestOf = (id: string, customer: string | null, command: Command): WireRequest => {
  const path = `/v1/payment_intents/${id}`
  switch (command.op) {
    case "update": {
      const { amount, capture, currency, details, descriptor, future, method } = command
      const changes = {
        amount,
        currency,
        capture_method: capture,
        description: details,
        statement_descriptor: descriptor
      }
      return {
        path,
        body: {
          ...given(changes),
          ...(command.customer !== null && { customer: command.customer ? customer : null }),
          ...(method !== null && { payment_method: method === "unset" ? null : method }),
          ...(future !== null && { setup_future_usage: future === "unset" ? null : future })
        }
      }
    }
    case "confirm":
      return { path: `${path}/confirm`, body: { ...sourceOf(command), ...usageOf(command) } }
    case "capture":
      return { path: `${path}/capture`, body: given({ amount_to_capture: command.amount }) }
    case "cancel":
      return { path: `${path}/cancel`, body: given({ cancellation_reason: command.reason }) }
    case "authenticate":
      return { path: `/v1/test_helpers/payment_intents/${id}/authenticate`, body: { outcome: command.outcome } }
  }
}

/** Runs programs over HTTP, with a customer. */
export const over = async (wire: Wire) => {
  const { id: customer } = await Over.post(wire, "/v1/customers", {})
  let id: string
  const post = ({ body, path }: WireRequest) => wire.request("POST", path, body)
  return Over.driver<Creation, Command, Seen>(
    wire,
    {
      create: async (sent) => {
        const reply = await post(creationRequest(sent, customer))
        id = (reply.body.error?.payment_intent ?? reply.body).id
        return Over.answerOf(reply)
      },
      run: async (command) => Over.answerOf(await post(requestOf(id, customer, command))),
      seen: async () => {
        const paymentIntent = await Over.get(wire, `/v1/payment_intents/${id}`)
        return seenOf(paymentIntent, await Over.all(wire, "/v1/charges"))
      }
    },
    () => 1
  )
}

const HOLD_MILLIS = 604_800_000
const refused = (before: Model, answer: string): Step => ({ after: before, answer, events: [] })
const wrongState = (before: Model, statuses: ReadonlyArray<string>) =>
  statuses.includes(before.status) ? undefined : refused(before, `payment_intent_unexpected_state ${before.status}`)

export const create = (sent: Creation, now: number): Step | Refused => {
  const created: Model = {
    status: sent.card === null ? "requires_payment_method" : "requires_confirmation",
    amount: sent.amount,
    currency: "usd",
    customer: sent.customer,
    description: null,
    descriptor: null,
    future: sent.future,
    capture: sent.capture,
    confirmation: sent.confirmation,
    card: sent.card,
    inline: sent.inline && sent.card !== null,
    received: 0,
    capturable: 0,
    charges: [],
    lastError: null,
    reason: null,
    authenticated: null,
    dueAt: null
  }
  const events = ["payment_intent.created"]
  if (!sent.confirm && created.inline) return { after: null, answer: "parameter_invalid payment_method_data" }
  if (!sent.confirm && sent.offSession) return { after: null, answer: "parameter_invalid off_session" }
  if (wantsCustomer(created)) return { after: null, answer: "parameter_missing customer" }
  if (!sent.confirm) return { after: created, answer: "ok", events }
  const step = confirm(created, { card: null, inline: false, future: null, offSession: sent.offSession }, now)
  if (step.answer !== "ok" && !step.answer.startsWith("declined")) return { after: null, answer: step.answer }
  return { ...step, events: [...events, ...step.events] }
}

const wantsCustomer = ({ customer, future }: Model): boolean => future !== null && !customer

export const apply = (before: Model, command: Command, now: number): Step => {
  switch (command.op) {
    case "update":
      return update(before, command)
    case "confirm":
      return (
        wrongState(before, ["requires_payment_method", "requires_confirmation", "requires_action"]) ??
        confirm(before, command, now)
      )
    case "capture":
      return wrongState(before, ["requires_capture"]) ?? capture(before, command.amount)
    case "cancel":
      return (
        wrongState(before, [
          "requires_payment_method",
          "requires_confirmation",
          "requires_action",
          "requires_capture"
        ]) ?? giveUp(before, command.reason, "charge.updated")
      )
    case "authenticate":
      return wrongState(before, ["requires_action"]) ?? authenticate(before, command.outcome, now)
  }
}

/** Returns the timed step at a time, if there is one. */
export const timePasses = (before: Model, now: number): Step | undefined => {
  if (before.dueAt === null || before.dueAt > now) return undefined
  if (before.status === "requires_capture") return giveUp(before, "automatic", "charge.expired")
  const charges = before.charges.slice(0, -1)
  return outcome({ ...before, charges, dueAt: null }, CARDS[before.card!].does.replace("async ", ""), before.dueAt)
}

const update = (before: Model, command: Extract<Command, { op: "update" }>): Step => {
  const { amount, capture, currency, customer, descriptor, details, future, method } = command
  let after = before
  const changesTerms = [amount, currency, customer, capture].some((term) => term !== null)
  if (changesTerms || method !== null || descriptor !== null || future !== null) {
    const no = wrongState(before, ["requires_payment_method", "requires_confirmation", "requires_action"])
    if (no !== undefined) return no
  }
  if (changesTerms) {
    after = {
      ...after,
      amount: amount ?? after.amount,
      currency: currency ?? after.currency,
      customer: customer ?? after.customer,
      capture: capture ?? after.capture,
      status: after.status === "requires_action" ? "requires_confirmation" : after.status
    }
  }
  if (method === "unset") {
    after = { ...after, status: "requires_payment_method", card: null, inline: false, authenticated: null }
  } else if (method !== null) {
    const same = method === after.card && !after.inline
    after = {
      ...after,
      status: "requires_confirmation",
      card: method,
      inline: false,
      authenticated: same ? after.authenticated : null
    }
  }
  const passed = after.authenticated
  if (passed !== null && (after.currency !== passed.currency || after.amount > passed.amount)) {
    after = { ...after, authenticated: null }
  }
  if (details !== null) after = { ...after, description: details }
  if (descriptor !== null) after = { ...after, descriptor }
  if (future !== null) after = { ...after, future: future === "unset" ? null : future }
  if (wantsCustomer(after)) return refused(before, "parameter_missing customer")
  return { after, answer: "ok", events: [] }
}

const confirm = (before: Model, sent: CardSent & UsageSent, now: number): Step => {
  const future = sent.future ?? before.future
  if (wantsCustomer({ ...before, future })) return refused(before, "parameter_missing customer")
  const card = sent.card ?? before.card
  if (card === null) return refused(before, "payment_intent_unexpected_state payment_method")
  const same = sent.card === null || (sent.card === before.card && !sent.inline && !before.inline)
  const attempted = { ...before, future, card, inline: sent.card === null ? before.inline : sent.inline }
  const does = CARDS[card].does
  if (does === "fault") return refused(before, "processor_unavailable")
  if (does.startsWith("3ds ")) {
    if (!(same && before.authenticated !== null)) {
      if (sent.offSession) return outcome(attempted, "authentication_required", now)
      return {
        after: { ...attempted, status: "requires_action", authenticated: null },
        answer: "ok",
        events: ["payment_intent.requires_action"]
      }
    }
    return outcome(attempted, does.replace("3ds ", ""), now)
  }
  if (does.startsWith("async ")) {
    const pending = { status: "pending", amountCaptured: 0, released: false, failureCode: null } as const
    return {
      after: {
        ...attempted,
        status: "processing",
        charges: [...attempted.charges, pending],
        authenticated: null,
        dueAt: now + 2000
      },
      answer: "ok",
      events: ["charge.pending", "payment_intent.processing"]
    }
  }
  return outcome(attempted, does, now)
}

const outcome = (before: Model, does: string, now: number): Step => {
  if (does !== "approve") {
    const failed = { status: "failed", amountCaptured: 0, released: false, failureCode: does } as const
    return {
      after: {
        ...before,
        status: "requires_payment_method",
        card: null,
        inline: false,
        charges: [...before.charges, failed],
        lastError: `card_declined ${does}`,
        authenticated: null
      },
      answer: `declined ${does}`,
      events: ["charge.failed", "payment_intent.payment_failed"]
    }
  }
  const taken = before.capture === "automatic"
  const attaches = before.future !== null
  const charge = {
    status: "succeeded",
    amountCaptured: taken ? before.amount : 0,
    released: false,
    failureCode: null
  } as const
  return {
    after: {
      ...before,
      status: taken ? "succeeded" : "requires_capture",
      inline: before.inline || attaches,
      received: taken ? before.amount : 0,
      capturable: taken ? 0 : before.amount,
      charges: [...before.charges, charge],
      lastError: null,
      authenticated: null,
      dueAt: taken ? null : now + HOLD_MILLIS
    },
    answer: "ok",
    events: [
      ...(attaches ? ["payment_method.attached"] : []),
      "charge.succeeded",
      taken ? "payment_intent.succeeded" : "payment_intent.amount_capturable_updated"
    ]
  }
}

const authenticate = (before: Model, answered: "success" | "failure", now: number): Step => {
  if (answered === "failure") {
    return {
      after: {
        ...before,
        status: "requires_payment_method",
        card: null,
        inline: false,
        lastError: "payment_intent_authentication_failure"
      },
      answer: "ok",
      events: ["payment_intent.payment_failed"]
    }
  }
  if (before.confirmation === "manual") {
    const { amount, currency } = before
    const authenticated = { amount, currency }
    return { after: { ...before, status: "requires_confirmation", authenticated }, answer: "ok", events: [] }
  }
  return outcome(before, CARDS[before.card!].does.replace("3ds ", ""), now)
}

const changeLast = (charges: ReadonlyArray<ModelCharge>, changes: Partial<ModelCharge>) =>
  charges.map((charge, i) => (i === charges.length - 1 ? { ...charge, ...changes } : charge))

const capture = (before: Model, amount: number | null): Step => {
  const taken = amount ?? before.amount
  if (taken > before.amount) return refused(before, `amount_too_large amount_to_capture ${before.amount}`)
  const charges = changeLast(before.charges, { amountCaptured: taken })
  return {
    after: { ...before, status: "succeeded", received: taken, capturable: 0, charges, dueAt: null },
    answer: "ok",
    events: ["charge.captured", "payment_intent.succeeded"]
  }
}

const giveUp = (before: Model, reason: string | null, chargeEvent: string): Step => {
  const held = before.status === "requires_capture"
  const charges = held ? changeLast(before.charges, { released: true }) : before.charges
  return {
    after: { ...before, status: "canceled", capturable: 0, charges, reason, authenticated: null, dueAt: null },
    answer: "ok",
    events: [...(held ? [chargeEvent] : []), "payment_intent.canceled"]
  }
}

/** The state table. */
export const table: Table<Creation, Command, Model, Seen> = {
  create,
  apply,
  timePasses,
  expected,
  nameOf: ({ status }) => status
}
