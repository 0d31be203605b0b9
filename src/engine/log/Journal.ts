/**
 * The journal: the only source of truth. Append only, one chain of records per account.
 *
 * Port. `(account, version)` is unique, which is the fence: of two owners of an account only one can append a version,
 * and only one who knows the version before it.
 */
import { Context, type Effect, Schema } from "effect"
import type { AccountId } from "./Document.ts"
import type { ChainedRow, JournalRow, Span } from "./Record.ts"

/**
 * Gives what the innermost of errors that wrap one another says, in one line, because it tells most:
 * "password authentication failed", "connect ECONNREFUSED".
 */
export const innermostMessage = (error: unknown): string => {
  if (!(error instanceof Error)) return line(String(error))
  // Several addresses of a host were tried: the first speaks for all.
  if (error instanceof AggregateError && error.message === "") return innermostMessage(error.errors[0] ?? error.name)
  return error.cause instanceof Error && error.cause !== error ? innermostMessage(error.cause) : line(error.message)
}

const line = (text: string): string => text.trim().replaceAll(/\s+/g, " ").replace(/\.$/, "")

/** The journal or the views cannot be reached; whether the last write happened is not known. */
export class StorageFailure extends Schema.TaggedError<StorageFailure>()("StorageFailure", {
  cause: Schema.Defect(),
  /** Present if the storage answers, but cannot give what it has stored: its bytes are not those that were written. */
  isDamage: Schema.optionalKey(Schema.Literal(true))
}) {
  override get message() {
    return `The storage failed: ${innermostMessage(this.cause)}`
  }
}

/** The first of each account's rows. They are what has to follow upon what is there: the others follow upon them. */
export const firsts = (rows: ReadonlyArray<ChainedRow>): ReadonlyArray<ChainedRow> => {
  const accounts = new Set<AccountId>()
  return rows.filter(({ account }) => accounts.size < accounts.add(account).size)
}

/**
 * Somebody else owns these accounts now: versions of them are taken, or what these records follow upon is not there
 * (any more, if the storage was put back to an earlier state). Nothing of the batch was written.
 */
export class Fenced extends Schema.TaggedError<Fenced>()("Fenced", { accounts: Schema.Array(Schema.String) }) {}

/** A place says where a record lies. */
export interface Place {
  readonly account: AccountId
  readonly version: number
}

/** A part of a record. */
export interface Slice extends Place {
  readonly span: Span
}

export interface JournalShape {
  /** True while it is known that it does not answer: nothing is to be made that would have to be written. */
  readonly isHanging: () => boolean
  /** Writes all rows durably, or none. */
  readonly append: (rows: ReadonlyArray<ChainedRow>) => Effect.Effect<void, Fenced | StorageFailure>
  /**
   * The account's rows after a version, oldest first, at most `limit`, and none behind those that weigh
   * `READ_BYTES_MAX` together. So the end is where there are none, not where there are fewer than were asked for.
   */
  readonly read: (
    account: AccountId,
    after: number,
    limit: number
  ) => Effect.Effect<ReadonlyArray<JournalRow>, StorageFailure>
  /**
   * The rows at these places, in their order; undefined where there is none. A row whose predecessor is not there
   * either comes as if it were the first.
   */
  readonly at: (places: ReadonlyArray<Place>) => Effect.Effect<ReadonlyArray<ChainedRow | undefined>, StorageFailure>
  /** The texts of these parts, in their order; undefined where there is no record. */
  readonly slices: (slices: ReadonlyArray<Slice>) => Effect.Effect<ReadonlyArray<string | undefined>, StorageFailure>
  /** The newest version of each of these accounts that has a record. */
  readonly versions: (
    accounts: ReadonlyArray<AccountId>
  ) => Effect.Effect<ReadonlyMap<AccountId, number>, StorageFailure>
  /** Every account that has a record, in ascending order. */
  readonly accounts: Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  /** The newest version of each of those, in ascending order of account: all as of one moment. */
  readonly heads: Effect.Effect<ReadonlyMap<AccountId, number>, StorageFailure>
}

export class Journal extends Context.Service<Journal, JournalShape>()("till/engine/Journal") {}
