/** The journal in memory, for tests. Its records end with the layer. */
import { Context, Effect, Layer } from "effect"
import type { AccountId } from "../../../src/engine/log/Document.ts"
import { Fenced, firsts, Journal } from "../../../src/engine/log/Journal.ts"
import { READ_BYTES_MAX } from "../../../src/engine/process/Memory.ts"
import { GENESIS, type JournalRow, textOf } from "../../../src/engine/log/Record.ts"

/** Rows read at a time. */
const pageOf = (rows: ReadonlyArray<JournalRow>): ReadonlyArray<JournalRow> => {
  let bytes = 0
  const last = rows.findIndex((row) => (bytes += row.bytes.length) >= READ_BYTES_MAX)
  return last === -1 ? rows : rows.slice(0, last + 1)
}

/** Access of `ErasuresMemory.ts` to the rows. */
export class JournalRows extends Context.Service<
  JournalRows,
  { readonly of: (account: AccountId) => Array<JournalRow> }
>()("test/JournalRows") {}

export const layerMemory: Layer.Layer<Journal | JournalRows> = Layer.effectContext(
  Effect.sync(() => {
    const chains = new Map<AccountId, Array<JournalRow>>()
    const chain = (account: AccountId): Array<JournalRow> => {
      const known = chains.get(account)
      if (known !== undefined) return known
      const made: Array<JournalRow> = []
      chains.set(account, made)
      return made
    }
    const journal = Journal.of({
      isHanging: () => false,
      append: (rows) =>
        Effect.suspend(() => {
          const lost = firsts(rows).filter(({ account, previous, version }) => {
            const there = chain(account)
            return there.length !== version - 1 || (version > 1 && there.at(-1)!.hash !== previous)
          })
          if (lost.length > 0) return new Fenced({ accounts: lost.map(({ account }) => account) })
          for (const { previous: _, ...row } of rows) chain(row.account).push(row)
          return Effect.void
        }),
      read: (account, after, limit) => Effect.sync(() => pageOf(chain(account).slice(after, after + limit))),
      at: (places) =>
        Effect.sync(() =>
          places.map(({ account, version }) => {
            const row = chain(account)[version - 1]
            return row && { ...row, previous: chain(account)[version - 2]?.hash ?? GENESIS }
          })
        ),
      slices: (slices) =>
        Effect.sync(() =>
          slices.map(({ account, span: { at, length }, version }) => {
            const row = chain(account)[version - 1]
            return row && textOf(row.bytes.subarray(at, at + length))
          })
        ),
      versions: (accounts) => Effect.sync(() => new Map(accounts.map((account) => [account, chain(account).length]))),
      erased: Effect.sync(() =>
        [...chains.values()].flatMap((rows) =>
          rows.flatMap(({ account, erased, version }) => (erased === undefined ? [] : [{ account, version, erased }]))
        )
      ),
      accounts: Effect.sync(() => [...chains.keys()].filter((account) => chain(account).length > 0).toSorted()),
      heads: Effect.sync(
        () =>
          new Map(
            [...chains.keys()]
              .filter((account) => chain(account).length > 0)
              .toSorted()
              .map((account) => [account, chain(account).length])
          )
      )
    })
    return Context.make(Journal, journal).pipe(Context.add(JournalRows, { of: chain }))
  })
)
