/**
 * Payers' pages find an object by nothing but its id. Anybody who has the id of a hosted session may see its page,
 * because an id cannot be guessed (semantics T21).
 */
import { Clock, Effect } from "effect"
import type { CheckoutSession, LineItem } from "../../domain/CheckoutSession.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import type { PaymentMethod } from "../../domain/PaymentMethod.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { INSTALLATION, isLive, merchantIdOf } from "../../payments/AccountIds.ts"
import type { CheckoutSessionHidden } from "../../payments/Documents.ts"
import {
  CHECKOUT_SESSION,
  HELD_PAYMENT_METHODS,
  heldPaymentMethodsId,
  LINE_ITEMS,
  lineItemsId,
  PAYMENT_INTENT,
  PAYMENT_METHOD,
  PRICE,
  PRODUCT
} from "../../payments/Documents.ts"
import { MERCHANT } from "../../payments/Merchants.ts"
import { readDocument } from "../../payments/ReadDocument.ts"
import type { Brand } from "../../html/Brand.ts"
import { brandOf } from "../../html/Brand.ts"
import type { Goods } from "./CheckoutOrder.ts"
import { offeredOf } from "./SavedCards.ts"

/** A session with everything that its page shows. */
export interface FoundSession {
  readonly account: AccountId
  /** The name that the merchant shows to payers. */
  readonly merchant: string
  readonly brand: Brand
  readonly session: CheckoutSession
  readonly hidden: CheckoutSessionHidden
  readonly lines: ReadonlyArray<LineItem>
  /** What each line is of; empty if the session is not open, because only its form shows that. */
  readonly goods: ReadonlyArray<Goods>
  readonly paymentIntent: PaymentIntent | null
  /** The cards of the session's customer that its form offers. */
  readonly saved: ReadonlyArray<PaymentMethod>
}

export interface FoundPaymentIntent {
  readonly account: AccountId
  /** The name that the merchant shows to payers. */
  readonly merchant: string
  readonly brand: Brand
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
  const document = yield* readDocument(account, CHECKOUT_SESSION, id)
  if (document === undefined) return undefined
  const lines = yield* readDocument(account, LINE_ITEMS, lineItemsId(id))
  const payment = document.value.payment_intent
  const paymentIntent = payment === null ? null : yield* readDocument(account, PAYMENT_INTENT, payment)
  // A test environment can be emptied between two reads.
  if (lines === undefined || paymentIntent === undefined) return undefined
  const session: FoundSession = {
    account,
    ...(yield* merchantOf(account)),
    session: document.value,
    hidden: document.hidden,
    lines: lines.value.data,
    goods: document.value.status === "open" ? yield* findGoods(account, lines.value.data) : [],
    paymentIntent: paymentIntent === null ? null : paymentIntent.value,
    saved: yield* findSaved(account, document.value)
  }
  return session
})

/** The PaymentIntent with this id; undefined if there is none. */
export const findPaymentIntent = Effect.fnUntraced(function* (id: string) {
  const accounts = yield* Accounts
  const account = isId(PREFIXES.payment_intent, id) ? yield* accounts.holder(id) : undefined
  const document = account === undefined ? undefined : yield* readDocument(account, PAYMENT_INTENT, id)
  if (account === undefined || document === undefined) return undefined
  const found: FoundPaymentIntent = {
    account,
    ...(yield* merchantOf(account)),
    paymentIntent: document.value,
    checkoutSession: document.hidden?.checkoutSession
  }
  return found
})

/** So many prices and products are read at once. */
const READS_MAX = 8

/**
 * What the lines are of, in their order (semantics 9.15). A test environment can be emptied meanwhile; then there is
 * nothing to show of them.
 */
const findGoods = Effect.fnUntraced(function* (account: AccountId, lines: ReadonlyArray<LineItem>) {
  return yield* Effect.forEach(
    lines,
    Effect.fnUntraced(function* (line: LineItem) {
      const price = (yield* readDocument(account, PRICE, line.price))?.value ?? null
      const product = price === null ? null : ((yield* readDocument(account, PRODUCT, price.product))?.value ?? null)
      const goods: Goods = { price, product }
      return goods
    }),
    { concurrency: READS_MAX }
  )
})

/**
 * The cards to offer, those first that were attached last (semantics 9.18). A form that is sent again asks for them
 * after its session is complete.
 */
const findSaved = Effect.fnUntraced(function* (account: AccountId, { customer }: CheckoutSession) {
  if (customer === null) return []
  const entry = yield* readDocument(account, HELD_PAYMENT_METHODS, heldPaymentMethodsId(customer))
  const ids = entry?.value.data.toReversed() ?? []
  const found = yield* Effect.forEach(ids, (id) => readDocument(account, PAYMENT_METHOD, id), {
    concurrency: READS_MAX
  })
  const held = found.flatMap((document) => (document?.value.customer === customer ? [document.value] : []))
  return offeredOf(held, yield* Clock.currentTimeMillis)
})

/** What the merchant of an account shows to payers. */
const merchantOf = Effect.fnUntraced(function* (account: AccountId) {
  const { value } = (yield* readDocument(INSTALLATION, MERCHANT, merchantIdOf(account)))!
  return { merchant: value.name, brand: brandOf(value, isLive(account)) }
})
