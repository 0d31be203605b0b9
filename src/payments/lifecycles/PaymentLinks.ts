/**
 * The lifecycle of payment links, one function per operation of their state table (semantics payment_links.*).
 *
 * A link sells the same lines to any number of payers: `visit` opens a Checkout Session for one of them, which is paid
 * like any other. `PaymentLinkUse.ts` decides whether a session of the link can still be paid, and counts the completed
 * ones.
 */
import { Effect } from "effect"
import { type LineItemParameter, SESSION_LIFETIME_SECONDS_MAX } from "../../domain/CheckoutSession.ts"
import type { CheckoutSession } from "../../domain/CheckoutSession.ts"
import { ParameterInvalid, ParameterMissing, PaymentLinkInactive, type ResourceMissing } from "../../domain/Errors.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { mergeMetadata, updateMetadata } from "../../domain/Metadata.ts"
import {
  ADJUSTABLE_QUANTITY_DEFAULT_MAX,
  type AdjustableQuantity,
  type AfterCompletion,
  type AfterCompletionParameter,
  type CreatePaymentLink,
  type PaymentLink,
  type PaymentLinkItem,
  type PaymentLinkItemParameter,
  paymentLinkStates,
  stateOf,
  type UpdatePaymentLink
} from "../../domain/PaymentLink.ts"
import { secondsOf } from "../../domain/Time.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { isLive } from "../shared/AccountIds.ts"
import {
  type Cart,
  fillCart,
  findReferences,
  lineItemOf,
  type LinesRefused,
  type References,
  requireAcceptedCurrencies,
  requireOnePrice,
  requireOnSale,
  requireSomePrice,
  saveNewPrices
} from "./CheckoutSessionLines.ts"
import * as CheckoutSessions from "./CheckoutSessions.ts"
import { findDocument, PAYMENT_LINK, PAYMENT_LINK_ITEMS } from "../shared/Documents.ts"
import { emit, previousAttributes } from "../shared/Events.ts"
import { saveLink } from "./PaymentLinkUse.ts"
import { PaymentsConfig } from "../shared/PaymentsConfig.ts"

/** The id of the document with a link's lines. */
export const itemsId = (paymentLinkId: string): string => `${paymentLinkId}_line_items`

/** The path of a link's page: the id without its prefix, which is as hard to guess (semantics payment_links.url). */
export const pathOf = (paymentLinkId: string): string => `/pay/${paymentLinkId.slice(PREFIXES.payment_link.length + 1)}`

/** Creates a link. Emits `payment_link.created`. */
export const create = Effect.fnUntraced(function* (
  parameters: CreatePaymentLink
): Effect.fn.Return<PaymentLink, LinesRefused, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  const { publicUrl } = yield* PaymentsConfig
  const { line_items } = parameters
  yield* requireAcceptedCurrencies(parameters)
  const references = yield* findReferences(line_items)
  yield* requireOnSale(references)
  yield* requireSomePrice(line_items)
  const after_completion = yield* afterCompletionOf(parameters.after_completion)
  yield* requireOnePrice(line_items)
  const cart = yield* fillCart(line_items, references, parameters.currency ?? null)
  const quantities = yield* Effect.forEach(line_items, (item, index) => adjustableQuantityOf(item, index, cart))

  const data = parameters.payment_intent_data
  const limit = parameters.restrictions?.completed_sessions.limit
  const id = transaction.newId(PREFIXES.payment_link)
  const link: PaymentLink = {
    id,
    object: "payment_link",
    active: true,
    url: publicUrl + pathOf(id),
    currency: cart.currency,
    after_completion,
    inactive_message: parameters.inactive_message || null,
    restrictions: limit === undefined ? null : { completed_sessions: { count: 0, limit } },
    customer_creation: parameters.customer_creation ?? "if_required",
    billing_address_collection: parameters.billing_address_collection ?? "auto",
    phone_number_collection: parameters.phone_number_collection ?? { enabled: false },
    payment_intent_data: {
      capture_method: data?.capture_method ?? "automatic",
      description: data?.description || null,
      statement_descriptor: data?.statement_descriptor || null,
      metadata: mergeMetadata({}, data?.metadata ?? null)
    },
    metadata: mergeMetadata({}, parameters.metadata ?? null),
    livemode: isLive(transaction.account),
    created: secondsOf(transaction.now)
  }
  saveLink(transaction, link, { completed: 0, ownPrices: saveNewPrices(transaction, cart) })
  const items = quantities.map((adjustable_quantity, index): PaymentLinkItem => ({
    ...lineItemOf(transaction.newId(PREFIXES["payment_link.item"]), cart, index),
    adjustable_quantity
  }))
  transaction.put(PAYMENT_LINK_ITEMS, { id: itemsId(id), data: items })
  emit(transaction, "payment_link.created", id)
  return link
})

/** Changes a link. Emits `payment_link.updated` if anything changes (semantics payment_links.update). */
export const update = Effect.fnUntraced(function* (
  id: string,
  parameters: UpdatePaymentLink
): Effect.fn.Return<PaymentLink, ResourceMissing | ParameterMissing | ParameterInvalid, Transaction> {
  const transaction = yield* Transaction
  const { hidden, value: before } = yield* findDocument(PAYMENT_LINK, id)
  const { active, after_completion, inactive_message, metadata, restrictions } = parameters
  const limit = restrictions?.completed_sessions.limit
  const after: PaymentLink = {
    ...before,
    active: active ?? before.active,
    after_completion:
      after_completion === undefined ? before.after_completion : yield* afterCompletionOf(after_completion),
    inactive_message: inactive_message === undefined ? before.inactive_message : inactive_message || null,
    restrictions:
      restrictions === undefined
        ? before.restrictions
        : limit === undefined
          ? null
          : { completed_sessions: { count: hidden.completed, limit } },
    metadata: yield* updateMetadata(before.metadata, metadata)
  }
  const previous = previousAttributes(before, after)
  if (Object.keys(previous).length === 0) return before
  paymentLinkStates.requireTransition(id, "update", stateOf(before), stateOf(after))
  saveLink(transaction, after, hidden)
  emit(transaction, "payment_link.updated", id, previous)
  return after
})

/** The quantities that the payer has chosen, by the index of the line; other lines have their own. */
export type ChosenQuantities = ReadonlyMap<number, number>

/** The parameter that names the quantity of a line in a payer's form. */
export const quantityParam = (index: number): string => `quantity[${index}]`

/**
 * Opens a session for a payer (semantics payment_links.visit). Fails with `PaymentLinkInactive` if the link takes no
 * more payments, with `PriceInactive` or `ProductInactive` for lines that are archived, and with `ParameterInvalid` for
 * a quantity out of bounds.
 */
export const visit = Effect.fnUntraced(function* (
  id: string,
  chosen: ChosenQuantities
): Effect.fn.Return<CheckoutSession, LinesRefused | PaymentLinkInactive, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  const { publicUrl } = yield* PaymentsConfig
  const { hidden, value: link } = yield* findDocument(PAYMENT_LINK, id)
  if (stateOf(link) !== "open") return yield* new PaymentLinkInactive({ id })
  const { value: items } = yield* Effect.orDie(findDocument(PAYMENT_LINK_ITEMS, itemsId(id)))
  const lines = yield* Effect.forEach(items.data, (item, index) => chosenLine(item, index, chosen))
  const references = yield* findReferences(lines)
  yield* requireOnSale(withoutOwn(references, hidden.ownPrices))
  const cart = yield* fillCart(lines, references, link.currency)
  const { billing_address_collection, customer_creation, metadata, payment_intent_data, phone_number_collection } = link
  const terms: CheckoutSessions.SessionTerms = {
    mode: "payment",
    success_url: link.after_completion.redirect?.url ?? null,
    cancel_url: link.url,
    customer_creation,
    billing_address_collection,
    phone_number_collection,
    payment_intent_data,
    metadata,
    expires_at: secondsOf(transaction.now) + SESSION_LIFETIME_SECONDS_MAX,
    payment_link: id
  }
  return CheckoutSessions.open(transaction, publicUrl, terms, cart, null)
})

const chosenLine = (
  { adjustable_quantity: bounds, price, quantity }: PaymentLinkItem,
  index: number,
  chosen: ChosenQuantities
): Effect.Effect<LineItemParameter, ParameterInvalid> => {
  const asked = chosen.get(index)
  if (bounds === null || asked === undefined) return Effect.succeed({ price, quantity })
  if (Number.isInteger(asked) && asked >= bounds.minimum && asked <= bounds.maximum) {
    return Effect.succeed({ price, quantity: asked })
  }
  return Effect.fail(new ParameterInvalid({ param: quantityParam(index), rule: ruleOf(bounds) }))
}

/** Leaves out the link's own prices, which are inactive so that nothing else sells by them. */
const withoutOwn = (references: References, ownPrices: ReadonlyArray<string>): References =>
  references.map((line) =>
    line.map((reference) =>
      reference.price !== null && ownPrices.includes(reference.price.id) ? { ...reference, price: null } : reference
    )
  )

/** Fails if `redirect` does not fit `type` (semantics payment_links.after_completion). */
const afterCompletionOf = (
  sent: AfterCompletionParameter | null | undefined
): Effect.Effect<AfterCompletion, ParameterMissing | ParameterInvalid> => {
  const param = "after_completion[redirect]"
  const type = sent?.type ?? "hosted_confirmation"
  const redirect = sent?.redirect ?? null
  if (type === "redirect" && redirect === null) return Effect.fail(new ParameterMissing({ param }))
  if (type !== "redirect" && redirect !== null) {
    return Effect.fail(new ParameterInvalid({ param, rule: "absent unless `type` is `redirect`" }))
  }
  return Effect.succeed({ type, redirect })
}

const ruleOf = ({ maximum, minimum }: Pick<AdjustableQuantity, "maximum" | "minimum">): string =>
  `an integer from ${minimum} to ${maximum}`

/** Returns the quantities that the payer can choose; null if there is no choice (semantics payment_links.quantity). */
const adjustableQuantityOf = (
  { adjustable_quantity: sent }: PaymentLinkItemParameter,
  index: number,
  { lines }: Cart
): Effect.Effect<AdjustableQuantity | null, ParameterInvalid> => {
  const within = `line_items[${index}]`
  const refuse = (field: string, rule: string) => Effect.fail(new ParameterInvalid({ param: within + field, rule }))
  if (sent == null) return Effect.succeed(null)
  if (!sent.enabled) {
    const unused = (["minimum", "maximum"] as const).find((bound) => sent[bound] != null)
    if (unused === undefined) return Effect.succeed(null)
    return refuse(`[adjustable_quantity][${unused}]`, "absent unless `enabled` is true")
  }
  const { price, quantity } = lines[index]!
  if (price.custom_unit_amount !== undefined) {
    return refuse("[adjustable_quantity]", "absent for a price whose amount the payer chooses")
  }
  const minimum = sent.minimum ?? 1
  const maximum = sent.maximum ?? Math.max(ADJUSTABLE_QUANTITY_DEFAULT_MAX, minimum, quantity)
  if (maximum < minimum) return refuse("[adjustable_quantity][maximum]", "at least `minimum`")
  if (quantity < minimum || quantity > maximum) return refuse("[quantity]", ruleOf({ minimum, maximum }))
  return Effect.succeed({ enabled: true, minimum, maximum })
}
