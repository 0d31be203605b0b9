/**
 * The port to processors behind a network.
 *
 * A call never happens within a command. One command records the operation, a call follows whose idempotency key is the
 * operation's id, and another command applies the outcome (semantics operations.states). No call fails: what is not
 * certain is `unknown`.
 */
import type { Effect } from "effect"
import type { BillingDetails } from "../../domain/Address.ts"
import type { DeclineCode } from "../../domain/Cards.ts"
import type { Card } from "../../domain/PaymentMethod.ts"
import type { Millis } from "../../engine/log/Document.ts"

/** The part of an operation that answers about it are compared with. */
export interface OperationTerms {
  /** `op_…`, the idempotency key of the call. */
  readonly id: string
  readonly kind: "authorize" | "capture" | "void" | "refund"
  /** `pi_…`, the reference under which the processor keeps all operations of a payment. */
  readonly payment: string
  /** In minor units. */
  readonly amount: number
  readonly currency: string
}

/** Everything that a call needs. It is part of the record that begins the operation. */
export interface OperationRequest extends OperationTerms {
  /** The processor's name for a card; null unless the operation is an authorization. */
  readonly token: string | null
  /** The processor's reference of the payment, from an earlier operation. */
  readonly reference: string | null
  readonly capture: "automatic" | "manual"
  /** Whether the payer has passed the challenge, and the payment waited for a second confirmation. */
  readonly authenticated: boolean
  readonly offSession: boolean
  readonly returnUrl: string | null
  readonly customer: string | null
  readonly description: string | null
  readonly descriptor: string | null
  readonly billingDetails: BillingDetails | null
  readonly begunAt: Millis
}

export type Outcome =
  | {
      readonly kind: "approved"
      readonly reference: string
      readonly amount: number
      readonly currency: string
      /** The end of a hold, as the processor sees it. */
      readonly captureBefore: Millis | null
    }
  | {
      readonly kind: "declined"
      readonly declineCode: DeclineCode
      readonly message: string
      /** The processor's own code, for the operation only. */
      readonly processorCode: string | null
    }
  /** The payer has to authenticate at this address. */
  | { readonly kind: "challenge"; readonly url: string; readonly reference: string | null }
  | { readonly kind: "pending"; readonly reference: string | null }
  /** The payer has passed the challenge, and the payment waits for another confirmation. */
  | { readonly kind: "authenticated"; readonly reference: string | null }
  /** The processor refused the request: it was never carried out, and never will be. */
  | { readonly kind: "refused"; readonly param: string | null; readonly code: string; readonly message: string }
  /** A capture or a void of a payment that is final already. */
  | { readonly kind: "too_late"; readonly now: "succeeded" | "canceled"; readonly reference: string | null }
  /** Never carried out. Only a fence promises that it never will be. */
  | { readonly kind: "not_executed"; readonly why: string; readonly retryAfterMillis: number | null }
  /** Another amount, currency or payment than the operation's. An operator decides. */
  | { readonly kind: "mismatch"; readonly why: string }
  | { readonly kind: "in_progress" }
  | { readonly kind: "unknown"; readonly why: string }

/** A card as the processor shows it for a token. */
export type TokenDescription =
  | {
      readonly kind: "card"
      readonly card: Omit<Card, "fingerprint" | "checks"> & { readonly fingerprint: string | null }
    }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "unavailable"; readonly why: string }

/** An operation in the processor's list. Nothing in it is an outcome: a look at the operation gives one. */
export interface ListedOperation {
  /** Till's id; of a refund that was made at the processor, its reference. */
  readonly id: string
  /** The processor's word for the state: `approved`, `declined`, … */
  readonly status: string
  readonly kind: OperationRequest["kind"] | null
  readonly payment: string | null
  readonly reference: string | null
  /** In minor units. */
  readonly amount: number | null
  readonly currency: string | null
}

export type OperationPage =
  /** `next` is null on the last page. */
  | { readonly kind: "page"; readonly operations: ReadonlyArray<ListedOperation>; readonly next: string | null }
  | { readonly kind: "unavailable"; readonly why: string }

/** A message from the processor. It only causes a look, because messages are late, repeated and out of order. */
export type Notice =
  | { readonly kind: "operation"; readonly operation: string; readonly payment: string }
  /** A refund at the processor: one of Till's operations, or made elsewhere. */
  | { readonly kind: "refund"; readonly payment: string; readonly reference: string; readonly amount: number }
  | { readonly kind: "dispute"; readonly payment: string }
  /** A type that Till does not use. */
  | { readonly kind: "other" }
  /** Signed, but no message of the protocol. */
  | { readonly kind: "unreadable" }

export interface RemoteProcessor {
  readonly kind: "remote"
  /** `prc_…`. */
  readonly id: string
  /** The time for which the processor surely returns the first outcome for a repeated id. */
  readonly keyMillis: Millis
  /** The processor's page with the inputs of a card, for a frame; null if it has none. */
  readonly fieldsUrl: string | null
  readonly describe: (token: string) => Effect.Effect<TokenDescription>
  /** Executes an operation. The same id may be sent again, with the same request. */
  readonly perform: (request: OperationRequest) => Effect.Effect<Outcome>
  /** Reads the state of an operation; `not_executed` if the processor has never seen it. */
  readonly look: (terms: OperationTerms) => Effect.Effect<Outcome>
  /** Makes sure that an operation that was not carried out never will be: `not_executed` is then final. */
  readonly fence: (terms: OperationTerms) => Effect.Effect<Outcome>
  /** Lists operations since a time in Unix seconds, `after` a page's `next`; null begins with the first page. */
  readonly list: (since: number, after: string | null) => Effect.Effect<OperationPage>
  /** True until a restored installation is reconciled with the processor: no operation is performed or given up. */
  readonly onlyLooks: boolean
  /** Checks the signature of an inbound message, then reads it; null if it is not the processor's. */
  readonly verify: (
    headers: Readonly<Record<string, string | undefined>>,
    raw: Uint8Array,
    now: Millis
  ) => Notice | null
}
