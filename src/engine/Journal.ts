/**
 * The journal: the only source of truth. Append only, one chain of records per account.
 *
 * Port. `(account, version)` is unique, which is the fence: of two owners of an account only one can append a version.
 */
import { Context, Effect, Layer, Schema } from "effect"
import type { AccountId } from "./Document.ts"
import { Faults } from "./Faults.ts"
import type { JournalRow } from "./Record.ts"

/** The journal or the views cannot be reached; whether the last write happened is not known. */
export class StorageFailure extends Schema.TaggedError<StorageFailure>()("StorageFailure", { cause: Schema.Defect() }) {
  override get message() {
    return `The storage failed: ${String(this.cause)}`
  }
}

/** Versions of these accounts are taken: somebody else owns them now. Nothing of the batch was written. */
export class Fenced extends Schema.TaggedError<Fenced>()("Fenced", { accounts: Schema.Array(Schema.String) }) {}

export interface JournalShape {
  /** Writes all rows durably, or none. */
  readonly append: (rows: ReadonlyArray<JournalRow>) => Effect.Effect<void, Fenced | StorageFailure>
  /** The account's rows after a version, oldest first, at most `limit`. */
  readonly read: (
    account: AccountId,
    after: number,
    limit: number
  ) => Effect.Effect<ReadonlyArray<JournalRow>, StorageFailure>
  /** The rows with these versions, in any order; missing ones are left out. */
  readonly at: (
    account: AccountId,
    versions: ReadonlyArray<number>
  ) => Effect.Effect<ReadonlyArray<JournalRow>, StorageFailure>
  /** Every account that has a record, in ascending order. */
  readonly accounts: Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
}

export class Journal extends Context.Service<Journal, JournalShape>()("till/engine/Journal") {
  /** A journal in memory, for tests. It fails where `Faults` says so. */
  static readonly layerMemory: Layer.Layer<Journal> = Layer.effect(
    Journal,
    Effect.gen(function* () {
      const { at: fault } = yield* Faults
      const chains = new Map<AccountId, Array<JournalRow>>()
      const taken = (row: JournalRow) => (chains.get(row.account)?.length ?? 0) >= row.version
      const append = Effect.fnUntraced(function* (rows: ReadonlyArray<JournalRow>) {
        yield* fault("append.before")
        const accounts = [...new Set(rows.filter(taken).map((row) => row.account))]
        if (accounts.length > 0) return yield* new Fenced({ accounts })
        for (const row of rows) {
          const chain = chains.get(row.account)
          if (chain === undefined) chains.set(row.account, [row])
          else chain.push(row)
        }
        yield* fault("append.after")
      })
      return Journal.of({
        append,
        read: (account, after, limit) =>
          Effect.as(fault("read"), undefined).pipe(
            Effect.map(() => (chains.get(account) ?? []).slice(after, after + limit))
          ),
        at: (account, versions) =>
          Effect.map(fault("read"), () =>
            versions.flatMap((version) => chains.get(account)?.slice(version - 1, version) ?? [])
          ),
        accounts: Effect.sync(() => [...chains.keys()].toSorted())
      })
    })
  )
}
