/** The shared objects as sequential models. */
import type { Answer } from "../support/HttpExchange.ts"
import type { Model } from "./Linearizability.ts"
import { isStateRefusal, type Operation } from "./Operations.ts"

export type Shared = Exclude<Operation, { f: "pay" | "decline" | "hold" | "enroll" }> | { f: "read"; id: string }

/** An operation with its answer; undefined if the outcome is unknown. */
export interface Answered {
  readonly operation: Shared
  readonly answer: Answer | undefined
}

/** The model of a customer's value. */
export const register = (initial: number): Model<number, Answered> => ({
  initial,
  nameOf: String,
  step: (value, { answer, operation }) => {
    if (operation.f === "write") return operation.value
    return answer === undefined || answer.body.metadata.value === String(value) ? value : undefined
  }
})

export interface Payment {
  readonly status: "requires_capture" | "succeeded" | "canceled"
  readonly received: number
  readonly refunded: number
}

/** Returns the payment's state in a read. */
export const seenIn = ({ body }: Answer): Payment => ({
  status: body.status,
  received: body.amount_received,
  refunded: body.charges.data[0].amount_refunded
})

/** Returns the state after a command; undefined if the payment's state refuses it. */
const after = (before: Payment, operation: Shared): Payment | undefined => {
  const { received, refunded, status } = before
  switch (operation.f) {
    case "capture":
      return status === "requires_capture" ? { status: "succeeded", received: operation.amount, refunded } : undefined
    case "cancel":
      return status === "requires_capture" ? { ...before, status: "canceled" } : undefined
    case "refund":
      return status === "succeeded" && refunded + operation.amount <= received
        ? { ...before, refunded: refunded + operation.amount }
        : undefined
    default:
      return before
  }
}

export const payment: Model<Payment, Answered> = {
  initial: { status: "requires_capture", received: 0, refunded: 0 },
  nameOf: ({ received, refunded, status }) => `${status} ${received} ${refunded}`,
  step: (before, { answer, operation }) => {
    if (operation.f === "read") {
      return answer === undefined || payment.nameOf(seenIn(answer)) === payment.nameOf(before) ? before : undefined
    }
    const next = after(before, operation)
    if (answer === undefined) return next
    const isRefused = isStateRefusal(answer)
    return isRefused === (next === undefined) ? (next ?? before) : undefined
  }
}
