/**
 * The journal: the only source of truth. Append only, one chain of records per account; only the erasure of a person's
 * data replaces texts of records (`Erasures.ts`).
 *
 * Port. `(account, version)` is unique, which is the fence: if two processes own an account, only one of them can
 * append a version, and only with the hash of the version before it.
 */
import { Context, type Effect, Schema } from "effect"
import type { AccountId } from "./Document.ts"
import type { ChainedRow, JournalRow, Span } from "./Record.ts"

/** Returns the message of the innermost of nested errors, in one line: it is the most specific. */
export const innermostMessage = (error: unknown): string => {
  if (!(error instanceof Error)) return line(String(error))
  // All addresses of a host failed: the first error stands for all.
  if (error instanceof AggregateError && error.message === "") return innermostMessage(error.errors[0] ?? error.name)
  return error.cause instanceof Error && error.cause !== error ? innermostMessage(error.cause) : line(error.message)
}

const line = (text: string): string => text.trim().replaceAll(/\s+/g, " ").replace(/\.$/, "")

/** The journal or the views cannot be reached. The last write may or may not have happened. */
export class StorageFailure extends Schema.TaggedError<StorageFailure>()("StorageFailure", {
  cause: Schema.Defect(),
  /** Set if the storage answers, but its stored bytes are damaged. */
  isDamage: Schema.optionalKey(Schema.Literal(true))
}) {
  override get message() {
    return `The storage failed: ${innermostMessage(this.cause)}`
  }
}

/** Returns the first row of each account: these must follow the stored records, and the other rows follow them. */
export const firsts = (rows: ReadonlyArray<ChainedRow>): ReadonlyArray<ChainedRow> => {
  const accounts = new Set<AccountId>()
  return rows.filter(({ account }) => accounts.size < accounts.add(account).size)
}

/**
 * Another process owns these accounts: it has written their versions, or the records before these rows are missing, as
 * after the storage was reset to an earlier state. No row of the batch was written.
 */
export class Fenced extends Schema.TaggedError<Fenced>()("Fenced", { accounts: Schema.Array(Schema.String) }) {}

export interface Place {
  readonly account: AccountId
  readonly version: number
}

/** A row whose text was replaced, and its digest. */
export interface ErasedPlace extends Place {
  readonly erased: string
}

export interface Slice extends Place {
  readonly span: Span
}

export interface JournalShape {
  /** True while the storage is known not to answer: no command that writes may start. */
  readonly isHanging: () => boolean
  /** Durably writes all rows, or none. */
  readonly append: (rows: ReadonlyArray<ChainedRow>) => Effect.Effect<void, Fenced | StorageFailure>
  /** Returns the rows after a version, oldest first, by number and `READ_BYTES_MAX`. Only the end returns none. */
  readonly read: (
    account: AccountId,
    after: number,
    limit: number
  ) => Effect.Effect<ReadonlyArray<JournalRow>, StorageFailure>
  /**
   * Returns the rows at these places, in their order; undefined where a row is missing. A row whose predecessor is
   * missing is returned as if it were the account's first.
   */
  readonly at: (places: ReadonlyArray<Place>) => Effect.Effect<ReadonlyArray<ChainedRow | undefined>, StorageFailure>
  /** Returns the texts of these slices, in their order; undefined where the record is missing. */
  readonly slices: (slices: ReadonlyArray<Slice>) => Effect.Effect<ReadonlyArray<string | undefined>, StorageFailure>
  /** Returns the newest version of each of these accounts that has a record. */
  readonly versions: (
    accounts: ReadonlyArray<AccountId>
  ) => Effect.Effect<ReadonlyMap<AccountId, number>, StorageFailure>
  /** All accounts that have a record, in ascending order. */
  readonly accounts: Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  /** The rows whose texts were replaced, in ascending order. */
  readonly erased: Effect.Effect<ReadonlyArray<ErasedPlace>, StorageFailure>
  /** The newest version of each account, in ascending order of account, as one snapshot. */
  readonly heads: Effect.Effect<ReadonlyMap<AccountId, number>, StorageFailure>
}

export class Journal extends Context.Service<Journal, JournalShape>()("till/engine/Journal") {}
