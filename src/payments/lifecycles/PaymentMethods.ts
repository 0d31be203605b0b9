/**
 * Payment methods: the cards of a merchant's payers (semantics payment_methods.create, payment_methods.card_data,
 * test_cards.*). Till stores a card's brand, its last four digits, its expiry date and a keyed fingerprint, from which
 * the number cannot be computed.
 *
 * Card data ends here (semantics payment_methods.card_data): the number and security code go to the simulator, which
 * returns a token, and the number into the fingerprint. A processor behind a network gets no card data, only tokens of
 * its own. Commands contain only tokens, so no queue, record or log can hold card data.
 */
import { createHmac } from "node:crypto"
import { Effect, Exit, Option, Redacted } from "effect"
import { forgetMatch } from "../../domain/Cards.ts"
import { type BillingDetails, billingDetailsOf } from "../../domain/Address.ts"
import {
  CardDataRefused,
  ParameterInvalid,
  ParametersExclusive,
  ProcessorNotConfigured,
  ProcessorUnavailable,
  type ResourceMissing
} from "../../domain/Errors.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { mergeMetadata } from "../../domain/Metadata.ts"
import {
  type Card,
  type PaymentMethod,
  type PaymentMethodData,
  type PaymentMethodState,
  paymentMethodStates
} from "../../domain/PaymentMethod.ts"
import { cvcCheckOf, TEST_CARD_EXPIRY, type TestCard, testCardOf } from "../../domain/TestCards.ts"
import { secondsOf } from "../../domain/Time.ts"
import type { AccountId, Document } from "../../engine/log/Document.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { isLive } from "../shared/AccountIds.ts"
import { findDocument, PAYMENT_METHOD, type PaymentMethodHidden } from "../shared/Documents.ts"
import { PaymentsConfig, type PaymentsConfigShape } from "../shared/PaymentsConfig.ts"
import type { AccountProcessor, Processors } from "../processing/Processor.ts"

/** `PaymentMethodData` with the processor's description of the card in place of the card or token that was sent. */
export interface TokenizedPaymentMethodData extends Omit<PaymentMethodData, "card" | "token"> {
  /** Null if nothing takes cards in this environment (semantics keys.live_processor). */
  readonly card: TokenOfCard | null
}

interface TokenOfCard extends Card {
  readonly token: string
  /** The processor behind a network that has the card; null for the simulator. */
  readonly processor: string | null
}

/** A payload with tokens instead of card data, as the lifecycles receive it. */
export type WithoutCardData<Payload> = Payload extends PaymentMethodData
  ? TokenizedPaymentMethodData
  : "payment_method_data" extends keyof Payload
    ? Omit<Payload, "payment_method_data"> & { readonly payment_method_data?: TokenizedPaymentMethodData | null }
    : Payload

export interface Tokenizer {
  readonly config: Pick<PaymentsConfigShape, "fingerprintKey">
  readonly processors: Processors["Service"]
  readonly account: AccountId
}

/** How long a processor may take to describe a token. An operation and this fit into the time of a request. */
const DESCRIBE_MILLIS = 8000

export type TokenFailure = ParametersExclusive | ParameterInvalid | CardDataRefused | ProcessorUnavailable

/**
 * Sends the card or token to the account's processor and returns only the data that may be stored. A processor behind a
 * network is asked about a token, so this never happens within a command. `at` is the path of `data` in the request.
 */
export const tokenize = (
  { account, config, processors }: Tokenizer,
  { card, token, ...data }: PaymentMethodData,
  at: (name: string) => string
): Effect.Effect<TokenizedPaymentMethodData, TokenFailure> => {
  if (card && token) return Exit.fail(new ParametersExclusive({ first: at("card"), second: at("token") }))
  const processor = processors.of(account)
  if (processor === null) return Exit.succeed({ ...data, card: null })
  const unknown = () => Exit.fail(new ParameterInvalid({ param: at("token"), rule: "a token of the processor" }))
  if (processor.kind === "at_once") {
    const sent = card ?? processor.cardOf(token!)
    if (sent === undefined) return unknown()
    const { checks, ...kept } = processor.tokenize(sent)
    const print = fingerprint(config, account, sent.number)
    forgetMatch()
    return Exit.succeed({ ...data, card: { ...kept, fingerprint: print, checks, processor: null } })
  }
  if (card) return Exit.fail(new CardDataRefused({ param: at("card") }))
  const described = Effect.timeoutOption(processor.describe(token!), DESCRIBE_MILLIS)
  return Effect.flatMap(described, (described): Exit.Exit<TokenizedPaymentMethodData, TokenFailure> => {
    const description = Option.getOrElse(described, () => ({ kind: "unavailable" }) as const)
    if (description.kind === "unavailable") return Exit.fail(new ProcessorUnavailable())
    if (description.kind === "refused") return unknown()
    const { fingerprint: number, ...shown } = description.card
    const print = fingerprint(config, account, `${processor.id}/${number ?? token}`)
    const checks = { cvc_check: null }
    const kept = { ...shown, fingerprint: print, checks, token: token!, processor: processor.id }
    return Exit.succeed({ ...data, card: kept })
  })
}

/**
 * Computes the fingerprint of a card number, or of a processor's own fingerprint: equal within one account, and useless
 * without the installation's key.
 */
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
  /** The processor behind a network that gave the token; null for the simulator's. */
  readonly processor: string | null
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
  const { processor, token, ...card } = data.card
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
  const hidden = { token, detached: false, ...(processor !== null && { processor }) }
  transaction.put(PAYMENT_METHOD, paymentMethod, hidden)
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

/** Fails with `ParameterInvalid` for a token of another processor (semantics operations.cards). */
export const requireTokenOf = (
  source: PaymentSource,
  processor: AccountProcessor
): Effect.Effect<void, ParameterInvalid> =>
  source.processor === (processor.kind === "remote" ? processor.id : null)
    ? Effect.void
    : Effect.fail(
        new ParameterInvalid({ param: "payment_method", rule: "a payment method of the payment's processor" })
      )

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
  processor: document.hidden.processor ?? null,
  card: cardOf(document.value.card),
  billingDetails: document.value.billing_details,
  customer: document.value.customer,
  state: stateOf(document)
})

const builtInSource = (id: string, { brand, country, funding, ids, numbers }: TestCard): PaymentSource => ({
  id,
  token: ids[0],
  processor: null,
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
