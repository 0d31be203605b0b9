/** Erasures of the journal and the views in memory, for tests, with the same contract as those in Postgres. */
import { Effect, Layer } from "effect"
import { type ErasedPerson, ErasureStore, type Replacement } from "../../../src/engine/Erasures.ts"
import type { AccountId } from "../../../src/engine/log/Document.ts"
import { StorageFailure } from "../../../src/engine/log/Journal.ts"
import { deliveryId, revisionId } from "../../../src/engine/views/Views.ts"
import { JournalRows } from "./JournalMemory.ts"
import { ViewRows } from "./ViewsMemory.ts"

export const layerMemory: Layer.Layer<ErasureStore, never, JournalRows | ViewRows> = Layer.effect(
  ErasureStore,
  Effect.gen(function* () {
    const journal = yield* JournalRows
    const views = yield* ViewRows
    const people = new Map<string, ErasedPerson>()

    const replaceViews = (account: AccountId, { attempts, documents }: Replacement): void => {
      const tables = views.of(account)
      for (const { idBefore, ...row } of documents) {
        const before = tables.documents.get(idBefore)
        // A document that was written again since points to another record, and stays.
        if (before?.version === row.version) {
          tables.documents.delete(idBefore)
          tables.documents.set(row.id, { ...row, tallies: before.tallies })
        }
        if (tables.revisions.delete(revisionId({ id: idBefore, version: row.version }))) {
          tables.revisions.set(revisionId(row), { account, id: row.id, version: row.version })
        }
      }
      for (const { attempt: number, ...address } of attempts) {
        const row = tables.deliveries.get(deliveryId(address))
        if (row === undefined) continue
        const without = row.attempts.map(({ body, ...attempt }) =>
          body === undefined || attempt.attempt === number ? attempt : { ...attempt, body }
        )
        tables.deliveries.set(deliveryId(address), { ...row, attempts: without })
      }
    }

    return ErasureStore.of({
      people: Effect.sync(() => [...people.values()]),
      note: (person) => Effect.sync(() => void people.set(`${person.account} ${person.id}`, person)),
      replace: (account, replacement) =>
        Effect.suspend(() => {
          const rows = journal.of(account)
          const isOther = replacement.rows.some(
            ({ digestBefore, version }) => (rows[version - 1]!.erased ?? null) !== digestBefore
          )
          if (isOther) return new StorageFailure({ cause: "Another erasure has replaced one of the records" })
          for (const { digestBefore: _, ...row } of replacement.rows) rows[row.version - 1] = row
          replaceViews(account, replacement)
          return Effect.void
        }),
      // The log of requests is in Postgres alone.
      deleteRequests: () => Effect.void
    })
  })
)
