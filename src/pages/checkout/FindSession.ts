/**
 * Reads a session or PaymentIntent by its id alone. Anybody who has the id of a hosted session may see its page,
 * because ids cannot be guessed (semantics responses.ids).
 */
import { Clock, Effect } from "effect"
import type { CheckoutLocale, CheckoutSession, LineItem } from "../../domain/CheckoutSession.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import type { PaymentLink } from "../../domain/PaymentLink.ts"
import type { PaymentMethod } from "../../domain/PaymentMethod.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { INSTALLATION, isLive, merchantIdOf } from "../../payments/shared/AccountIds.ts"
import {
  CHECKOUT_SESSION,
  type CheckoutSessionHidden,
  HELD_PAYMENT_METHODS,
  heldPaymentMethodsId,
  LINE_ITEMS,
  lineItemsId,
  PAYMENT_INTENT,
  type PaymentIntentHidden,
  PAYMENT_LINK,
  PAYMENT_METHOD,
  PRICE,
  PRODUCT
} from "../../payments/shared/Documents.ts"
import { noteAccount } from "../../http/RequestContext.ts"
import { MERCHANT } from "../../payments/merchants/Merchants.ts"
import { type AccountProcessor, type CardEntry, cardEntryOf, Processors } from "../../payments/processing/Processor.ts"
import { readDocument } from "../../payments/shared/ReadDocument.ts"
import { type Brand, brandOf } from "../../html/Brand.ts"
import type { Goods } from "./CheckoutOrder.ts"
import { offeredOf } from "./SavedCards.ts"

/** A session with everything that its page shows. */
export interface FoundSession {
  readonly account: AccountId
  /** The merchant's name for payers. */
  readonly merchant: string
  readonly brand: Brand
  readonly session: CheckoutSession
  readonly hidden: CheckoutSessionHidden
  readonly lines: ReadonlyArray<LineItem>
  /** Price and product of each line; empty if the session is not open, because only the form shows them. */
  readonly goods: ReadonlyArray<Goods>
  readonly paymentIntent: PaymentIntent | null
  /** The payment link that the payer has followed; null without one. */
  readonly link: PaymentLink | null
  /** Saved cards of the session's customer that the form offers. */
  readonly saved: ReadonlyArray<PaymentMethod>
  readonly cards: CardEntry
}

export interface FoundPaymentIntent {
  readonly account: AccountId
  /** The merchant's name for payers. */
  readonly merchant: string
  readonly brand: Brand
  readonly paymentIntent: PaymentIntent
  /** Id of the checkout session; undefined without one. */
  readonly checkoutSession: string | undefined
  /** Language of the checkout session's pages; undefined without one. */
  readonly locale: CheckoutLocale | undefined
  /** The operation whose payer the processor has asked to authenticate; null if there is none. */
  readonly waiting: string | null
  readonly cards: CardEntry
}

/** True if the id has the prefix and the format of its kind. */
export const isId = (prefix: string, id: string): boolean => new RegExp(`^${prefix}_[0-9A-Za-z]{1,64}$`).test(id)

/** Returns the session; undefined if there is none. */
export const findSession = Effect.fnUntraced(function* (id: string) {
  const accounts = yield* Accounts
  const account = isId(PREFIXES["checkout.session"], id) ? yield* accounts.holder(id) : undefined
  if (account === undefined) return undefined
  const document = yield* readDocument(account, CHECKOUT_SESSION, id)
  if (document === undefined) return undefined
  const lines = yield* readDocument(account, LINE_ITEMS, lineItemsId(id))
  const payment = document.value.payment_intent
  const paymentIntent = payment === null ? null : yield* readDocument(account, PAYMENT_INTENT, payment)
  // The test environment may be wiped between two reads.
  if (lines === undefined || paymentIntent === undefined) return undefined
  const processor = (yield* Processors).of(account)
  const processorId = processor?.kind === "remote" ? processor.id : undefined
  const session: FoundSession = {
    account,
    ...(yield* merchantOf(account)),
    session: document.value,
    hidden: document.hidden,
    lines: lines.value.data,
    goods: document.value.status === "open" ? yield* findGoods(account, lines.value.data) : [],
    paymentIntent: paymentIntent === null ? null : paymentIntent.value,
    link: yield* linkOf(account, document.value),
    saved: yield* findSaved(account, document.value, processorId),
    cards: cardsOf(processor, paymentIntent?.hidden)
  }
  return session
})

/** A payment stays with the processor of its first attempt. */
const cardsOf = (processor: AccountProcessor | null, hidden: PaymentIntentHidden | undefined): CardEntry => {
  const begunBy = hidden?.remote?.processor
  const isWith = begunBy === undefined || (processor?.kind === "remote" && processor.id === begunBy)
  return isWith ? cardEntryOf(processor) : { kind: "none" }
}

const linkOf = Effect.fnUntraced(function* (account: AccountId, { payment_link }: CheckoutSession) {
  const link = payment_link === undefined ? undefined : yield* readDocument(account, PAYMENT_LINK, payment_link)
  return link?.value ?? null
})

/** Returns the PaymentIntent; undefined if there is none. */
export const findPaymentIntent = Effect.fnUntraced(function* (id: string) {
  const accounts = yield* Accounts
  const account = isId(PREFIXES.payment_intent, id) ? yield* accounts.holder(id) : undefined
  const document = account === undefined ? undefined : yield* readDocument(account, PAYMENT_INTENT, id)
  if (account === undefined || document === undefined) return undefined
  const checkoutSession = document.hidden?.checkoutSession
  const session =
    checkoutSession === undefined ? undefined : yield* readDocument(account, CHECKOUT_SESSION, checkoutSession)
  const found: FoundPaymentIntent = {
    account,
    ...(yield* merchantOf(account)),
    paymentIntent: document.value,
    checkoutSession,
    locale: session?.value.locale,
    waiting: document.hidden?.remote?.waiting ?? null,
    cards: cardsOf((yield* Processors).of(account), document.hidden)
  }
  return found
})

/** Parallel reads of prices, products and cards. */
const READS_MAX = 8

/**
 * Reads price and product of each line, in order (semantics pages.order). After a wipe of the test environment they are
 * null.
 */
export const findGoods = Effect.fnUntraced(function* (
  account: AccountId,
  lines: ReadonlyArray<Pick<LineItem, "price">>
) {
  return yield* Effect.forEach(
    lines,
    Effect.fnUntraced(function* (line: Pick<LineItem, "price">) {
      const price = (yield* readDocument(account, PRICE, line.price))?.value ?? null
      const product = price === null ? null : ((yield* readDocument(account, PRODUCT, price.product))?.value ?? null)
      const goods: Goods = { price, product }
      return goods
    }),
    { concurrency: READS_MAX }
  )
})

/**
 * Reads the saved cards to offer, the most recently attached first (semantics pages.saved_cards). They are also read
 * for a complete session, whose form may be sent again. A card works with the processor that gave its token alone.
 */
const findSaved = Effect.fnUntraced(function* (
  account: AccountId,
  { customer }: CheckoutSession,
  processor: string | undefined
) {
  if (customer === null) return []
  const entry = yield* readDocument(account, HELD_PAYMENT_METHODS, heldPaymentMethodsId(customer))
  const ids = entry?.value.data.toReversed() ?? []
  const found = yield* Effect.forEach(ids, (id) => readDocument(account, PAYMENT_METHOD, id), {
    concurrency: READS_MAX
  })
  const held = found.flatMap((document) =>
    document?.value.customer === customer && document.hidden.processor === processor ? [document.value] : []
  )
  return offeredOf(held, yield* Clock.currentTimeMillis)
})

/** Reads the merchant's name and brand. */
export const merchantOf = Effect.fnUntraced(function* (account: AccountId) {
  yield* noteAccount(account)
  const { value } = (yield* readDocument(INSTALLATION, MERCHANT, merchantIdOf(account)))!
  return { merchant: value.name, brand: brandOf(value, isLive(account)) }
})
