/**
 * Card processors.
 *
 * Port. A processor that is a pure function, such as the simulator, answers inside the command. One that has to be
 * called over a network must not: it is called between two commands, the first of which records the attempt, with the
 * attempt's id as its idempotency key.
 */
import { Context, Effect } from "effect"
import type { DeclineCode } from "../domain/Cards.ts"
import { ProcessorNotConfigured } from "../domain/Errors.ts"
import type { Card } from "../domain/PaymentMethod.ts"
import type { RefundFailureReason } from "../domain/Refund.ts"
import type { Millis } from "../engine/Document.ts"

/** A card as the payer typed it. Exists while a request is being decoded and tokenized, and nowhere else. */
export interface CardData {
  readonly number: string
  readonly exp_month: number
  readonly exp_year: number
  readonly cvc?: string | null
}

/** A card as it may be kept. */
export interface TokenizedCard extends Omit<Card, "fingerprint"> {
  /** What the processor knows the card by. */
  readonly token: string
}

/** A request to charge a card, or to reserve the amount on it. */
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

/** What becomes of a refund: as it stands now, and when to ask `settleRefund`, if it may still change. */
export interface RefundAnswer {
  readonly status: "pending" | "succeeded"
  readonly settlesAfterMillis: number | null
}

export type RefundSettlement =
  | { readonly status: "succeeded" }
  | { readonly status: "failed"; readonly failureReason: RefundFailureReason }

/** A processor that answers at once and changes nothing outside. */
export interface CardProcessor {
  readonly tokenize: (card: CardData) => TokenizedCard
  readonly authorize: (request: AuthorizationRequest) => Authorization
  /** The outcome of a pending authorization. */
  readonly settle: (token: string) => Settlement
  /** Returns money to the card. */
  readonly refund: (token: string) => RefundAnswer
  /** The outcome of a refund that was not final. */
  readonly settleRefund: (token: string) => RefundSettlement
}

/** The processor of each environment. */
export class Processor extends Context.Service<
  Processor,
  { readonly test: CardProcessor; readonly live: CardProcessor | null }
>()("till/payments/Processor") {}

/** The processor of an environment. */
export const processorFor = (livemode: boolean): Effect.Effect<CardProcessor, ProcessorNotConfigured, Processor> =>
  Effect.flatMap(Processor, ({ live, test }) => {
    const processor = livemode ? live : test
    return processor === null ? Effect.fail(new ProcessorNotConfigured()) : Effect.succeed(processor)
  })
