/** Port: asks processors about operations outside of their turn. */
import { Context, Effect, Option, Schema } from "effect"
import { OperationKind, type OperationResolvedBy } from "../../domain/Operation.ts"
import type { Unavailable } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import type { Adopted } from "./Operations.ts"

/** An operation at a processor that this installation has not begun. */
export interface Elsewhere extends Omit<Adopted, "payment"> {
  readonly processor: string
  readonly payment: string
}

/**
 * The parts of a reconciliation: first the processor's list, then Till's operations without an outcome, by status.
 * Every part has pages.
 */
export const ReconciledPart = Schema.Literals(["list", "open", "unresolved", "waiting", "decide"])
export type ReconciledPart = typeof ReconciledPart.Type

/** An operation on which Till and the processor did not agree. */
export const Discrepancy = Schema.Struct({
  /** The id at the processor. */
  id: Schema.String,
  result: Schema.Literals([
    /** Till had lost it, and has it again. */
    "taken_in",
    /** Till has no such payment. */
    "unknown_payment",
    /** Till has the payment, but cannot take the operation in. */
    "unknown_operation",
    /** Till has another outcome. */
    "differs",
    /** The processor gives no word about it. */
    "unanswered",
    /** A person has to decide. */
    "decide"
  ]),
  /** The processor's word for the state; null if only Till has the operation. */
  status: Schema.NullOr(Schema.String),
  kind: Schema.NullOr(OperationKind),
  payment: Schema.NullOr(Schema.String),
  reference: Schema.NullOr(Schema.String),
  /** In minor units. */
  amount: Schema.NullOr(Schema.Int),
  currency: Schema.NullOr(Schema.String)
})
export type Discrepancy = typeof Discrepancy.Type

export const ReconciledPage = Schema.Struct({
  /** The operations that were compared. */
  compared: Schema.Int,
  discrepancies: Schema.Array(Discrepancy),
  /** The cursor of the part's next page; null on its last one. */
  next: Schema.NullOr(Schema.String)
})
export type ReconciledPage = typeof ReconciledPage.Type

export interface ReconciliationStep {
  readonly processor: string
  /** Unix seconds. */
  readonly since: number
  readonly part: ReconciledPart
  readonly after: string | null
}

/** The processor does not give its list. `message` is a sentence for an operator. */
export class NotReconciled extends Schema.TaggedError<NotReconciled>()("NotReconciled", { message: Schema.String }) {}

export interface OperationDispatcherShape {
  /**
   * Asks the processor about an operation and applies its word: a message of the processor or the payer's return says
   * that there may be news. Returns true once the word is durable, and false if the processor has given none.
   */
  readonly look: (
    account: AccountId,
    operation: string,
    by: Extract<OperationResolvedBy, "look" | "webhook">
  ) => Effect.Effect<boolean, Unavailable>
  /**
   * Takes in an operation that the processor has carried out and this installation has not begun, if a look at the
   * processor finds it so. `unheard` if the processor gives no word, or another operation of the payment has none.
   */
  readonly adopt: (
    account: AccountId,
    made: Elsewhere,
    by: Extract<OperationResolvedBy, "look" | "webhook">
  ) => Effect.Effect<"adopted" | "nothing" | "unheard", Unavailable>
  /** Compares one page of a part (semantics processors.reconcile). */
  readonly reconcile: (
    account: AccountId,
    step: ReconciliationStep
  ) => Effect.Effect<ReconciledPage, NotReconciled | Unavailable>
}

export class OperationDispatcher extends Context.Service<OperationDispatcher, OperationDispatcherShape>()(
  "till/payments/OperationDispatcher"
) {}

/** Asks as `look` does. A process that cannot reach processors hears nothing. */
export const lookAt = (...asked: Parameters<OperationDispatcherShape["look"]>): Effect.Effect<boolean, Unavailable> =>
  Effect.flatMap(
    Effect.serviceOption(OperationDispatcher),
    Option.match({ onNone: () => Effect.succeed(false), onSome: ({ look }) => look(...asked) })
  )

/** Takes in as `adopt` does. A process that cannot reach processors hears nothing. */
export const adopt = (
  ...adopted: Parameters<OperationDispatcherShape["adopt"]>
): Effect.Effect<"adopted" | "nothing" | "unheard", Unavailable> =>
  Effect.flatMap(
    Effect.serviceOption(OperationDispatcher),
    Option.match({ onNone: () => Effect.succeed("unheard" as const), onSome: ({ adopt }) => adopt(...adopted) })
  )
