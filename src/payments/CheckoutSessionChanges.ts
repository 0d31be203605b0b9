/**
 * How the lifecycle changes a Checkout Session. Every change goes through here, so that none can leave the state table
 * or break an invariant: a lifecycle with a bug dies, and its command commits nothing.
 */
import { Effect } from "effect"
import type { CheckoutSession } from "../domain/CheckoutSession.ts"
import { violatedInvariant } from "../domain/CheckoutSession.ts"
import type { CheckoutSessionOperation } from "../domain/CheckoutSessionStates.ts"
import { checkoutSessionStates, stateOf } from "../domain/CheckoutSessionStates.ts"
import type { Document } from "../engine/Document.ts"
import type { Transaction } from "../engine/Transaction.ts"
import type { CheckoutSessionHidden } from "./Documents.ts"
import { CHECKOUT_SESSION, findDocument } from "./Documents.ts"

export type CheckoutSessionDocument = Document<CheckoutSession, CheckoutSessionHidden>

/** The session of the path, with what is hidden of it. */
export const find = (id: string) => findDocument(CHECKOUT_SESSION, id)

/** The session that a PaymentIntent or a timer names: it is there. */
export const known = (id: string): Effect.Effect<CheckoutSessionDocument, never, Transaction> => Effect.orDie(find(id))

/** The session after one step of an operation. */
export const change = (
  operation: CheckoutSessionOperation,
  before: CheckoutSession,
  changes: Partial<CheckoutSession>
): CheckoutSession => {
  const after = { ...before, ...changes }
  checkoutSessionStates.requireTransition(before.id, operation, stateOf(before), stateOf(after))
  return after
}

/** Writes the session, with what is to be hidden of it from now on. */
export const save = (transaction: Transaction, session: CheckoutSession, hidden: CheckoutSessionHidden): void => {
  const violated = violatedInvariant(session)
  if (violated !== undefined) throw new Error(`${session.id} would not be sound: ${violated}`)
  transaction.put(CHECKOUT_SESSION, session, hidden)
}
