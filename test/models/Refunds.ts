/**
 * Refunds: client programs, and the table that checks them, derived again from the text of semantics refunds.*,
 * independently of the implementation.
 */
import { Schema } from "effect"
import type { Charge } from "../../src/domain/Charge.ts"
import type { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import type { Refund } from "../../src/domain/Refund.ts"
import type { Step as StepOf, Table } from "./Program.ts"
import type { Wire } from "./Wire.ts"
import * as Over from "./Wire.ts"

export const CARDS = ["pm_card_visa", "pm_card_pendingRefund", "pm_card_refundFail"] as const
export type RefundCard = (typeof CARDS)[number]

/** The possible states of a payment of 5: its status and its captured amount. */
export const PAYMENTS = {
  open: { status: "requires_payment_method", captured: 0 },
  confirmable: { status: "requires_confirmation", captured: 0 },
  held: { status: "requires_capture", captured: 0 },
  canceled: { status: "canceled", captured: 0 },
  paid: { status: "succeeded", captured: 5 },
  partlyCaptured: { status: "succeeded", captured: 3 }
} as const
export type PaymentName = keyof typeof PAYMENTS

export interface ModelRefund {
  readonly amount: number
  readonly status: "pending" | "succeeded" | "failed"
  readonly failureReason: string | null
  readonly note: string | null
  /** The time of the next timed step. */
  readonly dueAt: number | null
}

export interface Model {
  readonly payment: PaymentName
  readonly card: RefundCard
  /** Oldest first. */
  readonly refunds: ReadonlyArray<ModelRefund>
}

export type Command =
  | { readonly op: "refund"; readonly amount: number | null }
  | { readonly op: "note"; readonly refund: number; readonly note: "a" | "b" | null }

/** The payment that is refunded. */
export interface Creation {
  readonly payment: PaymentName
  readonly card: RefundCard
}

export type Step = StepOf<Model>

export const creation = Schema.Struct({
  payment: Schema.Literals(["paid", "paid", "partlyCaptured", "held", "open", "confirmable", "canceled"]),
  card: Schema.Literals(CARDS)
})

export const command = Schema.Union([
  Schema.Struct({
    op: Schema.Literal("refund"),
    amount: Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 6 })))
  }),
  Schema.Struct({
    op: Schema.Literal("note"),
    refund: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 })),
    note: Schema.NullOr(Schema.Literals(["a", "b"]))
  })
])

export const wait = Schema.Struct({ op: Schema.Literal("wait"), millis: Schema.Literals([500, 1999, 2000]) })

/** The schema of all programs. */
export const program = Schema.Struct({
  creation,
  steps: Schema.Array(Schema.Union([command, command, wait])).check(Schema.isMaxLength(12))
})

/** Returns the parameters by which a payment of 5 euros reaches the named state. */
export const paymentOf = ({ card, payment }: Creation) => ({
  amount: 5,
  currency: "eur",
  ...(payment !== "open" && { payment_method: card }),
  capture_method: payment === "held" || payment === "partlyCaptured" ? ("manual" as const) : ("automatic" as const),
  confirm: payment !== "open" && payment !== "confirmable" && payment !== "canceled"
})

/** Returns the visible state, in the model's terms; refunds are oldest first. */
export const seenOf = (
  { amount_received, status }: PaymentIntent,
  charges: ReadonlyArray<Charge>,
  refunds: ReadonlyArray<Refund>
) => ({
  payment: { status: status as string, received: amount_received },
  charges: charges.map(({ amount_captured, amount_refunded, currency, refunded }) => ({
    currency,
    captured: amount_captured,
    total: amount_refunded,
    refunded
  })),
  refunds: refunds.map(({ amount, currency, failure_reason, metadata, status }) => ({
    amount,
    currency,
    status: status as string,
    failureReason: (failure_reason ?? null) as string | null,
    note: metadata["note"] ?? null
  }))
})

export type Seen = ReturnType<typeof seenOf>

export const expected = (model: Model): Seen => {
  const { captured, status } = PAYMENTS[model.payment]
  const total = reserved(model)
  const charge = { currency: "eur", captured, total, refunded: captured > 0 && total === captured }
  return {
    payment: { status, received: captured },
    charges: captured > 0 || status === "requires_capture" ? [charge] : [],
    refunds: model.refunds.map(({ amount, failureReason, note, status }) => ({
      amount,
      currency: "eur",
      status,
      failureReason,
      note
    }))
  }
}

/** Runs programs over HTTP. */
export const over = (wire: Wire) => {
  let payment: string
  let eventsBefore = 0
  return Over.driver<Creation, Command, Seen>(
    wire,
    {
      create: async (sent) => {
        payment = (await Over.post(wire, "/v1/payment_intents", paymentOf(sent))).id
        const path = `/v1/payment_intents/${payment}`
        if (sent.payment === "partlyCaptured") await Over.post(wire, `${path}/capture`, { amount_to_capture: 3 })
        if (sent.payment === "canceled") await Over.post(wire, `${path}/cancel`, {})
        eventsBefore = (await Over.all(wire, "/v1/events")).length
        return "ok"
      },
      run: async (command) => {
        if (command.op === "refund") {
          const amount = command.amount === null ? {} : { amount: command.amount }
          return Over.answerOf(await wire.request("POST", "/v1/refunds", { payment_intent: payment, ...amount }))
        }
        const refund = (await Over.all(wire, "/v1/refunds"))[command.refund]
        const path = `/v1/refunds/${refund?.id ?? "ref_none"}`
        return Over.answerOf(await wire.request("POST", path, { metadata: { note: command.note } }))
      },
      seen: async () =>
        seenOf(
          await Over.get(wire, `/v1/payment_intents/${payment}`),
          await Over.all(wire, "/v1/charges"),
          await Over.all(wire, "/v1/refunds")
        )
    },
    () => eventsBefore
  )
}

/** Returns the reserved part of the captured amount: all refunds that did not fail. */
export const reserved = ({ refunds }: Model): number =>
  refunds.filter(({ status }) => status !== "failed").reduce((sum, { amount }) => sum + amount, 0)

export const apply = (before: Model, command: Command, now: number): Step =>
  command.op === "refund" ? refund(before, command.amount, now) : note(before, command)

const refused = (before: Model, answer: string): Step => ({ after: before, answer, events: [] })

const refund = (before: Model, sent: number | null, now: number): Step => {
  const { captured, status } = PAYMENTS[before.payment]
  if (status !== "succeeded") return refused(before, `payment_intent_unexpected_state ${status}`)
  const remaining = captured - reserved(before)
  if (remaining === 0) return refused(before, "charge_already_refunded payment_intent")
  if (sent !== null && sent > remaining) return refused(before, "amount_too_large amount")
  const starts = {
    pm_card_visa: { status: "succeeded", dueAt: null, events: ["refund.created", "charge.refunded"] },
    pm_card_pendingRefund: { status: "pending", dueAt: now + 2000, events: ["refund.created"] },
    pm_card_refundFail: { status: "succeeded", dueAt: now + 2000, events: ["refund.created", "charge.refunded"] }
  } as const
  const { dueAt, events, status: first } = starts[before.card]
  const made: ModelRefund = { amount: sent ?? remaining, status: first, failureReason: null, note: null, dueAt }
  return { after: { ...before, refunds: [...before.refunds, made] }, answer: "ok", events }
}

const note = (before: Model, { note, refund: index }: Extract<Command, { op: "note" }>): Step => {
  const old = before.refunds[index]
  if (old === undefined) return refused(before, "resource_missing id")
  const refunds = before.refunds.with(index, { ...old, note })
  return { after: { ...before, refunds }, answer: "ok", events: old.note === note ? [] : ["refund.updated"] }
}

/** Returns the next timed step until a time, in due order. */
const timePasses = (before: Model, until: number): Step | undefined => {
  const due = before.refunds.flatMap(({ dueAt }, index) => (dueAt !== null && dueAt <= until ? [{ dueAt, index }] : []))
  const [next] = due.toSorted((a, b) => a.dueAt - b.dueAt || a.index - b.index)
  if (next === undefined) return undefined
  const old = before.refunds[next.index]!
  const fails = before.card === "pm_card_refundFail"
  const settled: ModelRefund = {
    ...old,
    status: fails ? "failed" : "succeeded",
    failureReason: fails ? "expired_or_canceled_card" : null,
    dueAt: null
  }
  const events = fails ? ["refund.updated", "refund.failed"] : ["refund.updated", "charge.refunded"]
  return { after: { ...before, refunds: before.refunds.with(next.index, settled) }, answer: "ok", events }
}

/** The state table. */
export const table: Table<Creation, Command, Model, Seen> = {
  create: (creation) => ({ after: { ...creation, refunds: [] }, answer: "ok", events: [] }),
  apply,
  timePasses,
  expected,
  nameOf: ({ payment }) => payment
}
