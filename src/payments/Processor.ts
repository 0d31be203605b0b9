/**
 * The port to card processors.
 *
 * A processor that is a pure function, such as the simulator, runs inside the command. A processor behind a network
 * must not: call it between two commands, the first of which records the attempt, with the attempt's id as its
 * idempotency key.
 */
import { Context, Effect } from "effect"
import type { DeclineCode } from "../domain/Cards.ts"
import { ProcessorNotConfigured } from "../domain/Errors.ts"
import type { Card } from "../domain/PaymentMethod.ts"
import type { RefundFailureReason } from "../domain/Refund.ts"
import type { Millis } from "../engine/log/Document.ts"

/** A card as the payer enters it. It exists only while a request is decoded and tokenized. */
export interface CardData {
  readonly number: string
  readonly exp_month: number
  readonly exp_year: number
  readonly cvc?: string | null
}

export interface TokenizedCard extends Omit<Card, "fingerprint"> {
  readonly token: string
}

/** A request to charge a card, or to hold the amount on it. */
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
  readonly message: string
}

export type Settlement = Approved | Declined

export type Authorization =
  | Settlement
  /** The payer has to authenticate first. */
  | { readonly kind: "challenge" }
  /** The result comes later: call `settle` after this time. */
  | { readonly kind: "pending"; readonly settlesAfterMillis: number }
  | { readonly kind: "unavailable" }

/** The status of a refund, and when to call `settleRefund`; null if the status is final. */
export interface RefundAnswer {
  readonly status: "pending" | "succeeded"
  readonly settlesAfterMillis: number | null
}

export type RefundSettlement =
  | { readonly status: "succeeded" }
  | { readonly status: "failed"; readonly failureReason: RefundFailureReason }

/** A processor that returns immediately and has no effect outside of its result. */
export interface CardProcessor {
  readonly tokenize: (card: CardData) => TokenizedCard
  readonly authorize: (request: AuthorizationRequest) => Authorization
  readonly settle: (token: string) => Settlement
  readonly refund: (token: string) => RefundAnswer
  readonly settleRefund: (token: string) => RefundSettlement
}

export class Processor extends Context.Service<
  Processor,
  { readonly test: CardProcessor; readonly live: CardProcessor | null }
>()("till/payments/Processor") {}

/** Returns an environment's processor. Live mode may have none (semantics keys.live_processor). */
export const processorFor = (livemode: boolean): Effect.Effect<CardProcessor, ProcessorNotConfigured, Processor> =>
  Effect.flatMap(Processor, ({ live, test }) => {
    const processor = livemode ? live : test
    return processor === null ? Effect.fail(new ProcessorNotConfigured()) : Effect.succeed(processor)
  })
