/**
 * The use of a payment link by its sessions (semantics payment_links.limit, payment_links.late).
 *
 * A session that pays loads its link, and the link counts the session in the record that completes it. An account
 * carries out one command at a time, so of two payers of the last place the first to complete takes it, and the second
 * is refused before anything is charged.
 */
import { Effect } from "effect"
import type { CheckoutSession } from "../../domain/CheckoutSession.ts"
import { PaymentLinkInactive } from "../../domain/Errors.ts"
import { type PaymentLink, paymentLinkStates, stateOf, violatedInvariant } from "../../domain/PaymentLink.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import type { Document } from "../../engine/log/Document.ts"
import { findDocument, PAYMENT_LINK, type PaymentLinkHidden } from "../shared/Documents.ts"

/** A link as changed by the running command, with its hidden part. */
export type PaymentLinkDocument = Pick<Document<PaymentLink, PaymentLinkHidden>, "value" | "hidden">

/** A session, and the link that its payer has followed; null for a session of another origin. */
interface OfLink {
  readonly value: CheckoutSession
  readonly link: PaymentLinkDocument | null
}

/** Finds the link of a session. Links are never deleted, so it must exist. */
export const findLinkOf = ({
  payment_link
}: CheckoutSession): Effect.Effect<PaymentLinkDocument | null, never, Transaction> =>
  payment_link === undefined ? Effect.succeed(null) : Effect.orDie(findDocument(PAYMENT_LINK, payment_link))

/** Writes the link. Throws if an invariant is violated. */
export const saveLink = (transaction: Transaction, value: PaymentLink, hidden: PaymentLinkHidden): void => {
  const violated = violatedInvariant(value, hidden.completed)
  if (violated !== undefined) throw new Error(`${value.id} would not be sound: ${violated}`)
  transaction.put(PAYMENT_LINK, value, hidden)
}

/** Returns whether the session can be paid as far as its link is concerned. A complete session has its place. */
export const isLinkOpen = ({ link, value: { status } }: OfLink): boolean =>
  link === null || status !== "open" || stateOf(link.value) === "open"

/** Fails for an open session whose link takes no more payments (semantics payment_links.late). */
export const requireOpenLink = (session: OfLink): Effect.Effect<void, PaymentLinkInactive> =>
  isLinkOpen(session) ? Effect.void : Effect.fail(new PaymentLinkInactive({ id: session.link!.value.id }))

/** Counts a session that completes. Throws if the link takes no more payments: the command has not checked it. */
export const countCompleted = (transaction: Transaction, { hidden, value }: PaymentLinkDocument): void => {
  const completed = hidden.completed + 1
  const { restrictions } = value
  const after: PaymentLink = {
    ...value,
    restrictions: restrictions && {
      completed_sessions: { ...restrictions.completed_sessions, count: completed }
    }
  }
  paymentLinkStates.requireTransition(value.id, "complete", stateOf(value), stateOf(after))
  saveLink(transaction, after, { ...hidden, completed })
}
