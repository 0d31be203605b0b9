/**
 * The port to card processors.
 *
 * A processor that is a pure function, such as the simulator, answers inside the command. One that has to be
 * called over a network must not: it is called between two commands, the first of which records the attempt, with the
 * attempt's id as its idempotency key.
 */
import { Context, Effect } from "effect"
import type { DeclineCode } from "../domain/Cards.ts"
import { ProcessorNotConfigured } from "../domain/Errors.ts"
import type { Card } from "../domain/PaymentMethod.ts"
import type { RefundFailureReason } from "../domain/Refund.ts"
import type { Millis } from "../engine/log/Document.ts"

/** A payer types a card so. It exists while a request is being decoded and tokenized, and nowhere else. */
export interface CardData {
  readonly number: string
  readonly exp_month: number
  readonly exp_year: number
  readonly cvc?: string | null
}

/** A card may be kept so. */
export interface TokenizedCard extends Omit<Card, "fingerprint"> {
  /** The processor knows the card by it. */
  readonly token: string
}

/** Asks to charge a card, or to reserve the amount on it. */
export interface AuthorizationRequest {
  readonly token: string
  readonly card: Pick<Card, "exp_month" | "exp_year">
  /** Whether the payer has passed the card's authentication (3D Secure). */
  readonly authenticated: boolean
  readonly now: Millis
}

export interface Approved {
  readonly kind: "approved"
}

export interface Declined {
  readonly kind: "declined"
  readonly declineCode: DeclineCode
  /** For the payer. */
  readonly message: string
}

export type Settlement = Approved | Declined

export type Authorization =
  | Settlement
  /** The payer has to authenticate first. */
  | { readonly kind: "challenge" }
  /** The answer comes later: ask `settle` after a while. */
  | { readonly kind: "pending"; readonly settlesAfterMillis: number }
  | { readonly kind: "unavailable" }

/** Says how a refund stands now, and when to ask `settleRefund`, if it may still change. */
export interface RefundAnswer {
  readonly status: "pending" | "succeeded"
  readonly settlesAfterMillis: number | null
}

export type RefundSettlement =
  | { readonly status: "succeeded" }
  | { readonly status: "failed"; readonly failureReason: RefundFailureReason }

/** Such a processor answers at once and changes nothing outside. */
export interface CardProcessor {
  readonly tokenize: (card: CardData) => TokenizedCard
  readonly authorize: (request: AuthorizationRequest) => Authorization
  /** Says how a pending authorization has ended. */
  readonly settle: (token: string) => Settlement
  /** Returns money to the card. */
  readonly refund: (token: string) => RefundAnswer
  /** Says how a refund has ended that was not final. */
  readonly settleRefund: (token: string) => RefundSettlement
}

/** Each environment has its processor. */
export class Processor extends Context.Service<
  Processor,
  { readonly test: CardProcessor; readonly live: CardProcessor | null }
>()("till/payments/Processor") {}

/**
 * Finds the processor of an environment. Fails with `ProcessorNotConfigured` where live mode has none (semantics A10).
 */
export const processorFor = (livemode: boolean): Effect.Effect<CardProcessor, ProcessorNotConfigured, Processor> =>
  Effect.flatMap(Processor, ({ live, test }) => {
    const processor = livemode ? live : test
    return processor === null ? Effect.fail(new ProcessorNotConfigured()) : Effect.succeed(processor)
  })
