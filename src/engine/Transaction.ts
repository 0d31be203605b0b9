/**
 * What a command can do to its account. Only one command runs in an account at a time, so nothing here needs a lock,
 * and nothing becomes visible before the command's record is in the journal.
 *
 * A command that succeeds commits everything it did as one record; a command that fails commits nothing.
 * An outcome that must be kept although it is no success (a declined card) is therefore returned, not failed with.
 */
import { Context } from "effect"
import type { Effect } from "effect"
import type { AccountId, Document, Identified, Kind, Millis } from "./Document.ts"
import type { RequestIdentity } from "./Record.ts"

export interface Transaction {
  readonly account: AccountId
  /** Start of the command; the same for everything in one record. Milliseconds. */
  readonly now: Millis
  /** The HTTP request behind the command; null for a timer's. */
  readonly request: RequestIdentity | null

  /** The document with this id, as this command has left it so far; undefined if there is none of this kind (any more). */
  readonly get: <V extends Identified, H>(kind: Kind<V, H>, id: string) => Effect.Effect<Document<V, H> | undefined>

  /** Writes a document. Values are immutable: pass a new object for every change. */
  readonly put: <V extends Identified, H>(
    kind: Kind<V, H>,
    value: V,
    ...hidden: undefined extends H ? [hidden?: H] : [hidden: H]
  ) => void

  /** Leaves a tombstone. The document must have been read or written in this command. */
  readonly delete: <V extends Identified, H>(kind: Kind<V, H>, id: string) => void

  /**
   * Appends an event about a document as it stands now (for a deletion: call it before). Events keep their order.
   * `previous` holds the old values of what an update changed.
   */
  readonly emit: (type: string, id: string, previous?: Readonly<Record<string, unknown>>) => void

  /** Sets (or moves) the timer with this id: at `dueAt` the account runs the handler of `name`. */
  readonly setTimer: (timer: { readonly id: string; readonly name: string; readonly dueAt: Millis }) => void

  /** Clears a timer, if it is set. */
  readonly clearTimer: (id: string) => void

  /** `prefix_` and 24 characters; ids of one account are in ascending order of creation (semantics T21). */
  readonly newId: (prefix: string) => string

  /** Random base-62 characters from a CSPRNG, for secrets. */
  readonly newSecret: (length: number) => string
}

export const Transaction: Context.Key<Transaction, Transaction> = Context.Service<Transaction>("till/engine/Transaction")
