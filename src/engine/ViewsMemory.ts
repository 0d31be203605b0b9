/** Views in memory, for tests: the same contract as the ones in Postgres. */
import { Effect, Layer } from "effect"
import type { AccountId } from "./Document.ts"
import { Journal } from "./Journal.ts"
import type { DocumentRow, EventRow, KeyRow, Projection, TimerRow } from "./Projection.ts"
import type { Cursor, EventQuery, ListQuery, ViewRow } from "./Views.ts"
import { Views } from "./Views.ts"

class Tables {
  checkpoint = 0
  readonly documents = new Map<string, DocumentRow>()
  readonly events = new Map<string, EventRow>()
  readonly timers = new Map<string, TimerRow>()
  readonly keys = new Map<string, KeyRow>()
}

const descending = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? 1 : -1)
const ascending = (a: { readonly id: string }, b: { readonly id: string }) => descending(b, a)

const page = <Row extends { readonly id: string }>(
  rows: Array<Row>,
  { newerThan, olderThan }: Cursor,
  limit: number
) => {
  if (newerThan !== undefined)
    return rows
      .filter((row) => row.id > newerThan)
      .toSorted(ascending)
      .slice(0, limit)
  return rows
    .filter((row) => olderThan === undefined || row.id < olderThan)
    .toSorted(descending)
    .slice(0, limit)
}

const matchesType = (type: string, { type: wanted }: EventQuery) =>
  wanted === undefined || ("exact" in wanted ? type === wanted.exact : type.startsWith(wanted.prefix))

const matchesLabels = (row: DocumentRow, { labels = {} }: ListQuery) =>
  Object.entries(labels).every(([name, value]) => row.labels[name] === value)

export const layerMemory: Layer.Layer<Views, never, Journal> = Layer.effect(
  Views,
  Effect.gen(function* () {
    const journal = yield* Journal
    const accounts = new Map<AccountId, Tables>()
    const tables = (account: AccountId): Tables => {
      const known = accounts.get(account)
      if (known !== undefined) return known
      const made = new Tables()
      accounts.set(account, made)
      return made
    }

    const applyUnsafe = (projection: Projection): ReadonlyArray<AccountId> => {
      const refused = new Set<AccountId>()
      for (const { account, from, to } of projection.checkpoints) {
        if (tables(account).checkpoint === from) tables(account).checkpoint = to
        else refused.add(account)
      }
      const accepted = (row: { readonly account: AccountId }) => !refused.has(row.account)
      for (const row of projection.documents.filter(accepted)) tables(row.account).documents.set(row.id, row)
      for (const row of projection.events.filter(accepted)) tables(row.account).events.set(row.id, row)
      for (const row of projection.timersSet.filter(accepted)) tables(row.account).timers.set(row.id, row)
      for (const row of projection.timersCleared.filter(accepted)) tables(row.account).timers.delete(row.id)
      for (const row of projection.keys.filter(accepted)) tables(row.account).keys.set(row.key, row)
      return [...refused]
    }

    return Views.of({
      apply: (projection) => Effect.sync(() => applyUnsafe(projection)),
      checkpoint: (account) => Effect.sync(() => tables(account).checkpoint),
      behind: Effect.gen(function* () {
        const behind: Array<AccountId> = []
        for (const account of yield* journal.accounts) {
          const tail = yield* journal.read(account, tables(account).checkpoint, 1)
          if (tail.length > 0) behind.push(account)
        }
        return behind
      }),
      documents: (addresses) =>
        Effect.sync(() => addresses.map(({ account, id }) => tables(account).documents.get(id))),
      keys: (addresses) => Effect.sync(() => addresses.map(({ account, id }) => tables(account).keys.get(id))),
      timer: ({ account, id }) => Effect.sync(() => tables(account).timers.get(id)),
      nextTimers: (limit) =>
        Effect.sync(() =>
          [...accounts.values()]
            .flatMap((account) => [...account.timers.values()])
            .toSorted((a, b) => a.dueAt - b.dueAt || (a.id < b.id ? -1 : 1))
            .slice(0, limit)
        ),
      list: (account, query) =>
        Effect.sync(() => {
          const rows = [...tables(account).documents.values()]
          const wanted = rows.filter((row) => row.kind === query.kind && row.document !== null)
          return page(
            wanted.filter((row) => matchesLabels(row, query)),
            query,
            query.limit
          )
        }),
      event: ({ account, id }) => Effect.sync(() => tables(account).events.get(id)),
      events: (account, query) =>
        Effect.sync(() => {
          const rows = [...tables(account).events.values()]
          return page(
            rows.filter((row) => matchesType(row.type, query)),
            query,
            query.limit
          )
        }),
      expireKeys: (before) =>
        Effect.sync(() => {
          for (const { keys } of accounts.values()) {
            for (const [key, row] of keys) if (row.at < before) keys.delete(key)
          }
        }),
      accounts: Effect.sync(() => [...accounts].filter(([, { checkpoint }]) => checkpoint > 0).map(([id]) => id)),
      scan: (account, table, after, limit) =>
        Effect.sync(() =>
          [...(tables(account)[table] as Map<string, ViewRow["row"]>)]
            .map(([id, row]) => ({ id, row }))
            .filter(({ id }) => id > after)
            .toSorted(ascending)
            .slice(0, limit)
        ),
      clear: (account) => Effect.sync(() => void accounts.set(account, new Tables()))
    })
  })
)
