/** Reads a payment link by its token. Anybody with the link may see its page (semantics payment_links.url). */
import { Effect } from "effect"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { type PaymentLink, type PaymentLinkItem, stateOf } from "../../domain/PaymentLink.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import type { Brand } from "../../html/Brand.ts"
import { PAYMENT_LINK, PAYMENT_LINK_ITEMS } from "../../payments/shared/Documents.ts"
import { itemsId } from "../../payments/lifecycles/PaymentLinks.ts"
import { cardEntryOf, Processors } from "../../payments/processing/Processor.ts"
import { readDocument } from "../../payments/shared/ReadDocument.ts"
import type { Goods } from "./CheckoutOrder.ts"
import { findGoods, isId, merchantOf } from "./FindSession.ts"

/** A link with everything that its page shows. */
export interface FoundLink {
  readonly account: AccountId
  /** The merchant's name for payers. */
  readonly merchant: string
  readonly brand: Brand
  readonly link: PaymentLink
  readonly lines: ReadonlyArray<PaymentLinkItem>
  /** Price and product of each line. */
  readonly goods: ReadonlyArray<Goods>
  /** Whether the link takes payments and all that it sells is on sale. */
  readonly isOpen: boolean
  /** False if the merchant has no processor that takes a payer's card. */
  readonly takesCards: boolean
}

/** Returns the link; undefined if there is none. */
export const findLink = Effect.fnUntraced(function* (token: string) {
  const id = `${PREFIXES.payment_link}_${token}`
  const accounts = yield* Accounts
  const account = isId(PREFIXES.payment_link, id) ? yield* accounts.holder(id) : undefined
  if (account === undefined) return undefined
  const document = yield* readDocument(account, PAYMENT_LINK, id)
  const items = yield* readDocument(account, PAYMENT_LINK_ITEMS, itemsId(id))
  // The test environment may be wiped between two reads.
  if (document === undefined || items === undefined) return undefined
  const lines = items.value.data
  const goods = yield* findGoods(account, lines)
  const { ownPrices } = document.hidden
  const isOnSale = ({ price, product }: Goods): boolean =>
    price !== null && (price.active || ownPrices.includes(price.id)) && product?.active === true
  const found: FoundLink = {
    account,
    ...(yield* merchantOf(account)),
    link: document.value,
    lines,
    goods,
    isOpen: stateOf(document.value) === "open" && goods.every(isOnSale),
    takesCards: cardEntryOf((yield* Processors).of(account)).kind !== "none"
  }
  return found
})
