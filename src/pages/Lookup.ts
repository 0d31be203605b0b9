/**
 * Payers' pages find an object by nothing but its id. Anybody who has the id of a hosted session may see its page,
 * because an id cannot be guessed (semantics T21).
 */
import { Effect } from "effect"
import type { CheckoutSession, LineItem } from "../domain/CheckoutSession.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import { Accounts } from "../engine/Accounts.ts"
import type { AccountId, Document, Identified, Kind } from "../engine/Document.ts"
import { INSTALLATION, merchantIdOf } from "../payments/AccountIds.ts"
import type { CheckoutSessionHidden } from "../payments/Documents.ts"
import { CHECKOUT_SESSION, LINE_ITEMS, lineItemsId, PAYMENT_INTENT } from "../payments/Documents.ts"
import { MERCHANT } from "../payments/Merchants.ts"

/** A session with everything that its page shows. */
export interface FoundSession {
  readonly account: AccountId
  readonly merchant: string
  readonly session: CheckoutSession
  readonly hidden: CheckoutSessionHidden
  readonly lines: ReadonlyArray<LineItem>
  readonly paymentIntent: PaymentIntent | null
}

export interface FoundPaymentIntent {
  readonly account: AccountId
  readonly merchant: string
  readonly paymentIntent: PaymentIntent
  /** The id of the session that it belongs to; undefined if it belongs to none. */
  readonly checkoutSession: string | undefined
}

/** Ids begin with the prefix of their kind; nothing else is worth looking for. */
const isId = (prefix: string, id: string): boolean => new RegExp(`^${prefix}_[0-9A-Za-z]{1,64}$`).test(id)

/** The session with this id; undefined if there is none. */
export const findSession = Effect.fnUntraced(function* (id: string) {
  const accounts = yield* Accounts
  const account = isId(PREFIXES["checkout.session"], id) ? yield* accounts.holder(id) : undefined
  if (account === undefined) return undefined
  const document = yield* read(account, CHECKOUT_SESSION, id)
  if (document === undefined) return undefined
  const lines = yield* read(account, LINE_ITEMS, lineItemsId(id))
  const payment = document.value.payment_intent
  const paymentIntent = payment === null ? null : yield* read(account, PAYMENT_INTENT, payment)
  // A test environment can be emptied between two reads.
  if (lines === undefined || paymentIntent === undefined) return undefined
  const session: FoundSession = {
    account,
    merchant: yield* merchantName(account),
    session: document.value,
    hidden: document.hidden,
    lines: lines.value.data,
    paymentIntent: paymentIntent === null ? null : paymentIntent.value
  }
  return session
})

/** The PaymentIntent with this id; undefined if there is none. */
export const findPaymentIntent = Effect.fnUntraced(function* (id: string) {
  const accounts = yield* Accounts
  const account = isId(PREFIXES.payment_intent, id) ? yield* accounts.holder(id) : undefined
  const document = account === undefined ? undefined : yield* read(account, PAYMENT_INTENT, id)
  if (account === undefined || document === undefined) return undefined
  const found: FoundPaymentIntent = {
    account,
    merchant: yield* merchantName(account),
    paymentIntent: document.value,
    checkoutSession: document.hidden?.checkoutSession
  }
  return found
})

/** The name that the merchant of an account shows to payers. */
const merchantName = Effect.fnUntraced(function* (account: AccountId) {
  return (yield* read(INSTALLATION, MERCHANT, merchantIdOf(account)))!.value.name
})

/** The newest state of a document of this kind, if there is one. */
const read = Effect.fnUntraced(function* <A extends Identified, H>(account: AccountId, kind: Kind<A, H>, id: string) {
  const entry = yield* Accounts.use((accounts) => accounts.read(account, id))
  return entry === undefined || entry.deleted || entry.kind !== kind.name ? undefined : (entry as Document<A, H>)
})
