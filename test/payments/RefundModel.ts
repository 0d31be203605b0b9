/**
 * Refunds, written a second time from the text of semantics §1.14 and §2.4, without a look at the implementation: what
 * the lifecycle does must agree with it.
 */

export const CARDS = ["pm_card_visa", "pm_card_pendingRefund", "pm_card_refundFail"] as const
export type RefundCard = (typeof CARDS)[number]

/** What became of a payment of 5: its status, and how much of it was captured. */
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
  /** When something happens by itself. */
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

export interface Step {
  readonly after: Model
  readonly answer: string
  readonly events: ReadonlyArray<string>
}

/** What counts against the captured amount: everything that did not fail. */
export const reserved = ({ refunds }: Model): number =>
  refunds.filter(({ status }) => status !== "failed").reduce((sum, { amount }) => sum + amount, 0)

export const apply = (before: Model, command: Command, now: number): Step =>
  command.op === "refund" ? refund(before, command.amount, now) : note(before, command)

const refused = (before: Model, answer: string): Step => ({ after: before, answer, events: [] })

const refund = (before: Model, sent: number | null, now: number): Step => {
  const { captured, status } = PAYMENTS[before.payment]
  if (status !== "succeeded") return refused(before, `unexpected_state ${status}`)
  const remaining = captured - reserved(before)
  if (remaining === 0) return refused(before, "charge_already_refunded")
  if (sent !== null && sent > remaining) return refused(before, "amount_too_large")
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
  if (old === undefined) return refused(before, "resource_missing")
  const refunds = before.refunds.with(index, { ...old, note })
  return { after: { ...before, refunds }, answer: "ok", events: old.note === note ? [] : ["refund.updated"] }
}

/** What happens by itself until a time, in due order. */
export const timePasses = (before: Model, now: number): Step => {
  const due = before.refunds.flatMap(({ dueAt }, index) => (dueAt !== null && dueAt <= now ? [{ dueAt, index }] : []))
  const [next] = due.toSorted((a, b) => a.dueAt - b.dueAt || a.index - b.index)
  if (next === undefined) return { after: before, answer: "ok", events: [] }
  const old = before.refunds[next.index]!
  const fails = before.card === "pm_card_refundFail"
  const settled: ModelRefund = {
    ...old,
    status: fails ? "failed" : "succeeded",
    failureReason: fails ? "expired_or_canceled_card" : null,
    dueAt: null
  }
  const later = timePasses({ ...before, refunds: before.refunds.with(next.index, settled) }, now)
  const events = fails ? ["refund.updated", "refund.failed"] : ["refund.updated", "charge.refunded"]
  return { ...later, events: [...events, ...later.events] }
}
