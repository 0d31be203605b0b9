/**
 * The port to card processors, of which an account has at most one.
 *
 * A processor that is a pure function, such as the simulator, runs inside the command. A processor behind a network is
 * called between two commands (`RemoteProcessor.ts`).
 */
import { Context, Effect } from "effect"
import type { DeclineCode } from "../../domain/Cards.ts"
import { ProcessorNotConfigured } from "../../domain/Errors.ts"
import type { Card } from "../../domain/PaymentMethod.ts"
import type { RefundFailureReason } from "../../domain/Refund.ts"
import type { AccountId, Millis } from "../../engine/log/Document.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import type { RemotePayment } from "../shared/Documents.ts"
import type { RemoteProcessor } from "./RemoteProcessor.ts"

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
  /** The end of a hold as the processor sees it, by the account's clock; absent without such an end. */
  readonly captureBefore?: Millis
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
  /** The result comes later: call `settle` after this time; null if the processor brings it. */
  | { readonly kind: "pending"; readonly settlesAfterMillis: number | null }
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
  readonly kind: "at_once"
  readonly tokenize: (card: CardData) => TokenizedCard
  /** Returns the card that a client's token stands for; undefined for an unknown token. */
  readonly cardOf: (token: string) => CardData | undefined
  readonly authorize: (request: AuthorizationRequest) => Authorization
  readonly settle: (token: string) => Settlement
  readonly refund: (token: string) => RefundAnswer
  readonly settleRefund: (token: string) => RefundSettlement
}

export type AccountProcessor = CardProcessor | RemoteProcessor

/** The way of a payer's card to the processor (semantics pages.card_frame). */
export type CardEntry =
  /** By the fields of Till's own page. */
  | { readonly kind: "fields" }
  /** By the processor's page in a frame, which gives a token for it. */
  | { readonly kind: "frame"; readonly url: string }
  | { readonly kind: "none" }

/** Card data for a processor behind a network never goes through Till's own fields. */
export const cardEntryOf = (processor: AccountProcessor | null): CardEntry => {
  if (processor?.kind === "at_once") return { kind: "fields" }
  const url = processor?.fieldsUrl ?? null
  return url === null ? { kind: "none" } : { kind: "frame", url }
}

export interface ProcessorsShape {
  /** Returns the processor that takes an account's new payments; null if there is none. */
  readonly of: (account: AccountId) => AccountProcessor | null
  /** Returns the processor that answers within a command, for payments of the account that have no other. */
  readonly atOnce: (account: AccountId) => CardProcessor | null
  /** Returns the processor with this id (`prc_…`), also one that takes no new payments; null if it is unknown. */
  readonly byId: (id: string) => RemoteProcessor | null
  /** Returns false while the processor with this id is out of order, and a new operation could not be executed. */
  readonly mayBegin: (id: string) => boolean
  /** Calls the listener with the id of each processor that was out of order and answers again. */
  readonly onBack?: (listener: (id: string) => void) => void
}

export class Processors extends Context.Service<Processors, ProcessorsShape>()("till/payments/Processors") {}

/**
 * Returns the processor of a payment: the one behind a network that the payment belongs to, else the account's. Live
 * mode may have none (semantics keys.live_processor).
 */
export const processorOf = (
  remote: RemotePayment | undefined
): Effect.Effect<AccountProcessor, ProcessorNotConfigured, Processors | Transaction> =>
  Effect.flatMap(Transaction, ({ account }) =>
    Effect.flatMap(Processors, ({ byId, of }) => found(remote === undefined ? of(account) : byId(remote.processor)))
  )

/** Returns the processor of a payment with charges that no processor behind a network has. */
export const processorAtOnce: Effect.Effect<CardProcessor, ProcessorNotConfigured, Processors | Transaction> =
  Effect.flatMap(Transaction, ({ account }) => Effect.flatMap(Processors, ({ atOnce }) => found(atOnce(account))))

/** Returns the processor behind a network that a payment belongs to. */
export const remoteProcessor = ({
  processor
}: RemotePayment): Effect.Effect<RemoteProcessor, ProcessorNotConfigured, Processors> =>
  Effect.flatMap(Processors, ({ byId }) => found(byId(processor)))

const found = <A>(processor: A | null): Effect.Effect<A, ProcessorNotConfigured> =>
  processor === null ? Effect.fail(new ProcessorNotConfigured()) : Effect.succeed(processor)
