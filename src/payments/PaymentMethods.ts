/**
 * Payment methods: the cards of a merchant's payers (semantics payment_methods.create, payment_methods.card_data,
 * test_cards.*). Till stores a card's brand, its last four digits, its expiry date and a keyed fingerprint, from which
 * the number cannot be computed.
 *
 * Card data ends here (semantics payment_methods.card_data): the number and security code go to the processor, which
 * returns a token, and the number into the fingerprint. Commands contain only tokens, so no queue, record or log can
 * hold card data.
 */
import { createHmac } from "node:crypto"
import { Effect, Redacted } from "effect"
import { type BillingDetails, billingDetailsOf } from "../domain/Address.ts"
import { ParameterInvalid, ProcessorNotConfigured, type ResourceMissing } from "../domain/Errors.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import { mergeMetadata } from "../domain/Metadata.ts"
import {
  type Card,
  type PaymentMethod,
  type PaymentMethodData,
  type PaymentMethodState,
  paymentMethodStates
} from "../domain/PaymentMethod.ts"
import { cvcCheckOf, TEST_CARD_EXPIRY, type TestCard, testCardOf } from "../domain/TestCards.ts"
import { secondsOf } from "../domain/Time.ts"
import type { AccountId, Document } from "../engine/log/Document.ts"
import { Transaction } from "../engine/actor/Transaction.ts"
import { isLive } from "./AccountIds.ts"
import { findDocument, PAYMENT_METHOD, type PaymentMethodHidden } from "./Documents.ts"
import { PaymentsConfig, type PaymentsConfigShape } from "./PaymentsConfig.ts"
import type { Processor } from "./Processor.ts"

/** `PaymentMethodData` without card data. */
export interface TokenizedPaymentMethodData extends Omit<PaymentMethodData, "card"> {
  /** Null if nothing takes cards in this environment (semantics keys.live_processor). */
  readonly card: (Card & { readonly token: string }) | null
}

/** A payload with tokens instead of card data, as the lifecycles receive it. */
export type WithoutCardData<Payload> = Payload extends PaymentMethodData
  ? TokenizedPaymentMethodData
  : "payment_method_data" extends keyof Payload
    ? Omit<Payload, "payment_method_data"> & { readonly payment_method_data?: TokenizedPaymentMethodData | null }
    : Payload

export interface Tokenizer {
  readonly config: Pick<PaymentsConfigShape, "fingerprintKey">
  readonly processors: Processor["Service"]
  readonly account: AccountId
}

/** Sends the card to the account's processor and returns only the data that may be stored. */
export const tokenize = (
  { account, config, processors }: Tokenizer,
  { card, ...data }: PaymentMethodData
): TokenizedPaymentMethodData => {
  const processor = isLive(account) ? processors.live : processors.test
  if (processor === null) return { ...data, card: null }
  const { checks, ...kept } = processor.tokenize(card)
  return { ...data, card: { ...kept, fingerprint: fingerprint(config, account, card.number), checks } }
}

/** Computes the fingerprint of a card number: equal within one account, and useless without the installation's key. */
export const fingerprint = (
  { fingerprintKey }: Pick<PaymentsConfigShape, "fingerprintKey">,
  account: AccountId,
  number: string
): string =>
  createHmac("sha256", Redacted.value(fingerprintKey)).update(`${account}/${number}`).digest("base64url").slice(0, 22)

export interface PaymentSource {
  /** The id that PaymentIntents show; for a built-in one, the id that was sent (semantics payment_methods.built_in). */
  readonly id: string
  readonly token: string
  readonly card: Pick<Card, "brand" | "last4" | "exp_month" | "exp_year" | "funding" | "country">
  readonly billingDetails: BillingDetails
  readonly customer: string | null
  readonly state: PaymentMethodState
}

export type PaymentMethodDocument = Pick<Document<PaymentMethod, PaymentMethodHidden>, "value" | "hidden">

export const stateOf = ({ hidden, value }: PaymentMethodDocument): PaymentMethodState => {
  if (hidden.detached) return "detached"
  return value.customer === null ? "free" : "attached"
}

/** Creates a payment method, except in live mode without a processor (semantics keys.live_processor). */
export const create = Effect.fnUntraced(function* (
  data: TokenizedPaymentMethodData
): Effect.fn.Return<PaymentMethod, ProcessorNotConfigured, Transaction> {
  const transaction = yield* Transaction
  if (data.card === null) return yield* new ProcessorNotConfigured()
  const { token, ...card } = data.card
  const paymentMethod: PaymentMethod = {
    id: transaction.newId(PREFIXES.payment_method),
    object: "payment_method",
    type: "card",
    livemode: isLive(transaction.account),
    created: secondsOf(transaction.now),
    customer: null,
    card,
    billing_details: billingDetailsOf(data.billing_details ?? {}),
    metadata: mergeMetadata({}, data.metadata ?? null)
  }
  transaction.put(PAYMENT_METHOD, paymentMethod, { token, detached: false })
  return paymentMethod
})

/** Finds the payment method that a parameter refers to, built in or stored (semantics parameters.references). */
export const resolve = Effect.fnUntraced(function* (
  id: string,
  param: string
): Effect.fn.Return<PaymentSource, ResourceMissing, Transaction> {
  const { account } = yield* Transaction
  const testCard = isLive(account) ? undefined : testCardOf(id)
  return testCard === undefined ? sourceOf(yield* findDocument(PAYMENT_METHOD, id, param)) : builtInSource(id, testCard)
})

/** Creates a payment method from inline data, for an attempt. Fails as `create` does. */
export const createSource = Effect.fnUntraced(function* (
  data: TokenizedPaymentMethodData
): Effect.fn.Return<PaymentSource, ProcessorNotConfigured, Transaction> {
  const { id } = yield* create(data)
  const transaction = yield* Transaction
  return sourceOf((yield* transaction.get(PAYMENT_METHOD, id))!)
})

/**
 * Fails with `ParameterInvalid` for a detached payment method, or one of another customer than the payment's, which may
 * have none (semantics payment_intents.customer).
 */
export const requireUsableBy = (
  { customer, state }: PaymentSource,
  payer: string | null
): Effect.Effect<void, ParameterInvalid> => {
  const refuse = (rule: string) => Effect.fail(new ParameterInvalid({ param: "payment_method", rule }))
  if (!paymentMethodStates.isAllowed("charge", state)) return refuse("a payment method that was not detached before")
  return customer === null || customer === payer ? Effect.void : refuse("a payment method that no other customer owns")
}

/** Returns a built-in payment method; undefined for other ids, and in live mode (semantics test_cards.table). */
export const builtIn = (
  config: PaymentsConfig["Service"],
  account: AccountId,
  id: string
): PaymentMethod | undefined => {
  const testCard = isLive(account) ? undefined : testCardOf(id)
  if (testCard === undefined) return undefined
  return {
    id,
    object: "payment_method",
    type: "card",
    livemode: false,
    created: 0,
    customer: null,
    card: {
      ...builtInSource(id, testCard).card,
      fingerprint: fingerprint(config, account, testCard.numbers[0]),
      checks: { cvc_check: cvcCheckOf(testCard) }
    },
    billing_details: billingDetailsOf({}),
    metadata: {}
  }
}

/** Returns whether the id is that of a built-in test payment method. */
export const isBuiltIn = (account: AccountId, id: string): boolean => !isLive(account) && testCardOf(id) !== undefined

/** Copies a built-in payment method, for a customer to hold; undefined for any other id. */
export const copyOfBuiltIn = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<PaymentMethodDocument | undefined, never, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  const shown = builtIn(yield* PaymentsConfig, transaction.account, id)
  if (shown === undefined) return undefined
  const { token } = builtInSource(id, testCardOf(id)!)
  const own = { id: transaction.newId(PREFIXES.payment_method), created: secondsOf(transaction.now) }
  return { value: { ...shown, ...own }, hidden: { token, detached: false } }
})

const sourceOf = (document: PaymentMethodDocument): PaymentSource => ({
  id: document.value.id,
  token: document.hidden.token,
  card: cardOf(document.value.card),
  billingDetails: document.value.billing_details,
  customer: document.value.customer,
  state: stateOf(document)
})

const builtInSource = (id: string, { brand, country, funding, ids, numbers }: TestCard): PaymentSource => ({
  id,
  token: ids[0],
  card: { brand, last4: numbers[0].slice(-4), ...TEST_CARD_EXPIRY, funding, country },
  billingDetails: billingDetailsOf({}),
  customer: null,
  state: "free"
})

const cardOf = (card: PaymentSource["card"]): PaymentSource["card"] => ({
  brand: card.brand,
  last4: card.last4,
  exp_month: card.exp_month,
  exp_year: card.exp_year,
  funding: card.funding,
  country: card.country
})
