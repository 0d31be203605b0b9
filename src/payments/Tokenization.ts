/**
 * Where card data ends (semantics H3, I-9, §7.22): a card's number and security code go to the processor, which answers
 * with a token, and to a keyed fingerprint. Commands are only ever made of what is left, so neither a queue nor a
 * record nor a log can hold more.
 */
import { createHmac } from "node:crypto"
import { Redacted } from "effect"
import type { Card, PaymentMethodData } from "../domain/PaymentMethod.ts"
import type { AccountId } from "../engine/Document.ts"
import { isLive } from "./AccountIds.ts"
import type { PaymentsConfigShape } from "./PaymentsConfig.ts"
import type { Processor } from "./Processor.ts"

/** `PaymentMethodData` without card data. */
export interface TokenizedPaymentMethodData extends Omit<PaymentMethodData, "card"> {
  /** Null if nothing takes cards in this environment (semantics A10). */
  readonly card: (Card & { readonly token: string }) | null
}

/** A payload with tokens in the place of card data: all that a lifecycle gets to see of it. */
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

/** Gives the card to the account's processor and keeps what may be kept. */
export const tokenize = (
  { account, config, processors }: Tokenizer,
  { card, ...data }: PaymentMethodData
): TokenizedPaymentMethodData => {
  const processor = isLive(account) ? processors.live : processors.test
  if (processor === null) return { ...data, card: null }
  const { checks, ...kept } = processor.tokenize(card)
  return { ...data, card: { ...kept, fingerprint: fingerprint(config, account, card.number), checks } }
}

/**
 * Makes the fingerprint of a card number: equal for equal numbers within one account, and of no use without the
 * installation's key.
 */
export const fingerprint = (
  { fingerprintKey }: Pick<PaymentsConfigShape, "fingerprintKey">,
  account: AccountId,
  number: string
): string =>
  createHmac("sha256", Redacted.value(fingerprintKey)).update(`${account}/${number}`).digest("base64url").slice(0, 22)
