/** The state table of payment methods (semantics §2.7): who may get one, and whether it can still be charged. */
import type { OperationOf } from "./StateTable.ts"
import { stateTable } from "./StateTable.ts"

/** No customer has had a `free` one yet. A `detached` one was a customer's, and is nobody's any more. */
export type PaymentMethodState = "free" | "attached" | "detached"

export const paymentMethodStates = stateTable<PaymentMethodState>()({
  /** The customer who has it already may be named again; any other one is refused. */
  attach: { free: ["attached"], attached: ["attached"] },
  /** By request, or because its customer is deleted. */
  detach: { attached: ["detached"] },
  /** An attempt to pay with it. One that was detached is never charged again. */
  charge: { free: ["free"], attached: ["attached"] }
})

export type PaymentMethodOperation = OperationOf<typeof paymentMethodStates>
