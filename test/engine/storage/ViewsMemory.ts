/** Views in memory, for tests, with the same contract as the views in Postgres. */
import { Clock, Context, Effect, Layer } from "effect"
import { EVENT_PREFIX } from "../../../src/engine/actor/Transaction.ts"
import type { AccountId, Millis } from "../../../src/engine/log/Document.ts"
import { idAt } from "../../../src/engine/log/Identifiers.ts"
import type { Between } from "../../../src/engine/log/Created.ts"
import { Journal } from "../../../src/engine/log/Journal.ts"
import { type Partition, partitionOf } from "../../../src/engine/process/Placement.ts"
import {
  type DeliveryRow,
  type DocumentRow,
  type EventRow,
  type KeyRow,
  moved,
  type ProjectedDocument,
  type Projection,
  type RevisionRow,
  type SubscriptionRow,
  sweepTables,
  type TimerRow
} from "../../../src/engine/views/Projection.ts"
import { type Filter, type SearchEntry, type SearchQuery, termNumbers } from "../../../src/engine/log/Search.ts"
import {
  piecesOf,
  sumsOf,
  type TalliesOfStep,
  tallyId,
  type TallyQuery,
  type TallyRow
} from "../../../src/engine/log/Tallies.ts"
import {
  type Cursor,
  deliveryId,
  type DueDelivery,
  eventId,
  type EventQuery,
  keyId,
  type ListQuery,
  recordId,
  type Revision,
  revisionId,
  type RevisionQuery,
  type TimerCount,
  type ViewRow,
  Views,
  type ViewsShape,
  type ViewTable
} from "../../../src/engine/views/Views.ts"

const byTime = (time: "dueAt" | "wakeAt") => (a: TimerRow, b: TimerRow) => a[time] - b[time] || (a.id < b.id ? -1 : 1)

class Tables {
  checkpoint = 0
  ahead = 0
  eventsFrom = 0
  number: number | null = null
  readonly documents = new Map<string, ProjectedDocument>()
  readonly revisions = new Map<string, RevisionRow>()
  readonly events = new Map<string, EventRow>()
  readonly timers = new Map<string, TimerRow>()
  readonly keys = new Map<string, KeyRow>()
  readonly subscriptions = new Map<string, SubscriptionRow>()
  readonly deliveries = new Map<string, DeliveryRow>()
  readonly tallies = new Map<string, TallyRow>()
  /** End of a delivery's lease, which is not in the journal. */
  readonly leases = new Map<string, Millis>()
  /** Time at which a first attempt became due: when its row was made, or its lease ended. */
  readonly seenAt = new Map<string, Millis>()

  /** Pending deliveries with the time at which they may be taken. */
  waiting(busy: ReadonlyArray<string>): ReadonlyArray<{ readonly row: DeliveryRow; readonly wakeAt: Millis }> {
    return [...this.deliveries.values()]
      .filter(({ destination, state }) => state === "pending" && !busy.includes(destination))
      .map((row) => ({ row, wakeAt: Math.max(this.earliest(row), this.leases.get(deliveryId(row)) ?? 0) }))
  }

  revise({ account, id, version }: RevisionRow): void {
    this.revisions.set(revisionId({ id, version }), { account, id, version })
  }

  /** Changes the sums by a document's contribution. */
  tally(row: ProjectedDocument | undefined, sign: 1 | -1): void {
    if (row === undefined) return
    for (const { amount, count, hour, hours, key } of row.tallies?.flatMap(sumsOf) ?? []) {
      const id = tallyId({ hour, hours, key })
      const before = this.tallies.get(id) ?? { count: 0, amount: 0 }
      const sums = { count: before.count + sign * count, amount: before.amount + sign * amount }
      if (sums.count === 0 && sums.amount === 0) this.tallies.delete(id)
      else this.tallies.set(id, { account: row.account, hour, hours, key, ...sums })
    }
  }

  /** Ends all leases. */
  free(now: Millis): void {
    for (const [id, row] of this.deliveries) {
      if (row.state !== "pending") continue
      const wakeAt = Math.max(this.earliest(row), this.leases.get(id) ?? 0)
      this.leases.delete(id)
      if (row.attempts.length === 0) this.seenAt.set(id, Math.min(wakeAt, now))
    }
  }

  /** Deletes old events and their deliveries. */
  expireEvents(before: Millis, limit: number): number {
    const isPending = (id: string) =>
      [...this.deliveries.values()].some(({ event, state }) => event === id && state === "pending")
    const old = [...this.events.entries()]
      .filter(([, { id }]) => id < idAt(EVENT_PREFIX, before) && !isPending(id))
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, limit)
    if (old.length > 0) this.eventsFrom = Math.max(this.eventsFrom, before)
    for (const [key, { id }] of old) {
      this.events.delete(key)
      for (const [key, { event }] of this.deliveries) if (event === id) this.deliveries.delete(key)
    }
    return old.length
  }

  /** Due time of a delivery. A first attempt is due at once at any clock. */
  earliest(row: DeliveryRow): Millis {
    const { attempts, dueAt } = row
    return attempts.length > 0 ? dueAt! : Math.min(dueAt!, this.seenAt.get(deliveryId(row)) ?? Infinity)
  }
}

const descending = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? 1 : -1)
const ascending = (a: { readonly id: string }, b: { readonly id: string }) => descending(b, a)

const page = <Row extends { readonly id: string }>(
  rows: Array<Row>,
  { before = LAST, behind = "", newerThan, olderThan = LAST }: Cursor & Between,
  limit: number
) =>
  rows
    .filter(({ id }) => id > behind && id > (newerThan ?? "") && id < before && id < olderThan)
    .toSorted(newerThan === undefined ? descending : ascending)
    .slice(0, limit)

/** Sorts after every id. */
const LAST = "\u{10ffff}"

const matchesType = (type: string, { type: wanted }: EventQuery) =>
  wanted === undefined || ("exact" in wanted ? type === wanted.exact : type.startsWith(wanted.prefix))

const matchesLabels = (row: DocumentRow, { labels = {} }: ListQuery) =>
  Object.entries(labels).every(([name, value]) => row.labels[name] === value)

/** The fields of a document's row that are read back. */
const readRow = ({ search: _search, tallies: _tallies, ...row }: ProjectedDocument): DocumentRow => row

const listed = ({ documents }: Tables, query: ListQuery) => {
  const wanted = [...documents.values()].filter((row) => row.kind === query.kind && row.documentSpan !== null)
  return page(
    wanted.filter((row) => matchesLabels(row, query)),
    query,
    query.limit
  ).map(readRow)
}

/** Compares text by text, without an index. */
const searched = ({ documents }: Tables, account: AccountId, { filter, kind, ...query }: SearchQuery) => {
  const wanted = [...documents.values()].filter(
    ({ documentSpan, id, search, ...row }) =>
      row.kind === kind &&
      documentSpan !== null &&
      id.startsWith(`${query.prefix}_`) &&
      (filter.id === undefined || id === filter.id) &&
      search !== null &&
      mayMatch(search, filter, termNumbers(account, kind))
  )
  return page(wanted, query, query.limit).map(readRow)
}

const revisionsOf = (
  { documents, revisions }: Tables,
  { ids, labels = {}, limit, ...cursor }: RevisionQuery
): ReadonlyArray<Revision> => {
  const hasLabels = (row: DocumentRow) =>
    Object.keys(labels).length > 0 && Object.entries(labels).every(([name, value]) => row.labels[name] === value)
  const wanted = [...documents.values()].filter((row) => ids.includes(row.id) || hasLabels(row)).map(({ id }) => id)
  const records = new Map<string, Array<string>>()
  for (const { id, version } of [...documents.values(), ...revisions.values()]) {
    const record = recordId(version)
    if (wanted.includes(id)) records.set(record, [...(records.get(record) ?? []), id])
  }
  const rows = [...records].map(([id, documents]) => ({ id, documents: documents.toSorted() }))
  return page(rows, cursor, limit)
}

const talliesOf = ({ tallies }: Tables, query: TallyQuery): ReadonlyArray<TalliesOfStep> => {
  const steps = new Map<string, { step: number; key: string; count: number; amount: number }>()
  for (const { from, hours: span, step, until } of piecesOf(query)) {
    for (const { amount, count, hour, hours, key } of tallies.values()) {
      if (hours !== span || hour < from || hour >= until) continue
      const sum = steps.get(`${step} ${key}`) ?? { step, key, count: 0, amount: 0 }
      steps.set(`${step} ${key}`, { ...sum, count: sum.count + count, amount: sum.amount + amount })
    }
  }
  return [...steps.values()].filter(({ amount, count }) => count !== 0 || amount !== 0)
}

class Accounts {
  readonly all = new Map<AccountId, Tables>()
  runningTime: Millis | null = null

  of(account: AccountId): Tables {
    const known = this.all.get(account)
    if (known !== undefined) return known
    const made = new Tables()
    this.all.set(account, made)
    return made
  }

  /** Rows whose accounts lie in the partitions. */
  in(partitions: ReadonlyArray<Partition>): ReadonlyArray<Tables> {
    return [...this.all].flatMap(([account, tables]) => (partitions.includes(partitionOf(account)) ? [tables] : []))
  }

  numbered(wanted: number | null): ReadonlyArray<AccountId> {
    return [...this.all].flatMap(([account, { number }]) => (number === wanted ? [account] : []))
  }

  nextTimers(
    limit: number,
    except: ReadonlyArray<AccountId>,
    partitions: ReadonlyArray<Partition> | null
  ): ReadonlyArray<TimerRow> {
    return [...this.all]
      .filter(([account]) => !except.includes(account) && partitions?.includes(partitionOf(account)) !== false)
      .flatMap(([, { timers }]) => [...timers.values()])
      .toSorted(byTime("wakeAt"))
      .slice(0, limit)
  }

  timersNamed(name: string, partitions: ReadonlyArray<Partition> | null, before: Millis): ReadonlyArray<TimerRow> {
    return this.nextTimers(Infinity, [], partitions).filter((timer) => timer.name === name && timer.wakeAt < before)
  }

  timerCounts(name: string): ReadonlyArray<TimerCount> {
    return [...this.all].flatMap(([account, { timers }]) => {
      const count = [...timers.values()].filter((timer) => timer.name === name).length
      return count === 0 ? [] : [{ account, count }]
    })
  }

  /** Applies the rows that the checkpoints allow, and returns the refused accounts. */
  apply(projection: Projection, leasedUntil: Millis, now: Millis): ReadonlyArray<AccountId> {
    const refused = new Set<AccountId>()
    for (const { account, ahead, from, to } of projection.checkpoints) {
      const tables = this.of(account)
      if (tables.checkpoint !== from) refused.add(account)
      else {
        tables.checkpoint = to
        tables.ahead = Math.max(ahead, projection.sweep?.wiped === true ? 0 : tables.ahead)
      }
    }
    const accepted = (row: { readonly account: AccountId }) => !refused.has(row.account)
    const { sweep } = projection
    if (sweep !== null && accepted(sweep)) sweepTables(this.of(sweep.account), sweep)
    for (const row of projection.documentsCreated.filter(accepted)) {
      const { documents } = this.of(row.account)
      if (documents.has(row.id)) throw new Error(`${row.id} is not new`)
      documents.set(row.id, row)
      this.of(row.account).tally(row, 1)
    }
    for (const row of projection.revisions.filter(accepted)) this.of(row.account).revise(row)
    for (const row of projection.documentsChanged.filter(accepted)) {
      const of = this.of(row.account)
      const before = of.documents.get(row.id)
      if (before !== undefined) of.revise(before)
      if (row.tallies !== null) of.tally(before, -1)
      of.documents.set(row.id, row)
      of.tally(row, 1)
    }
    for (const row of projection.events.filter(accepted)) this.of(row.account).events.set(eventId(row), row)
    for (const row of projection.timersSet.filter(accepted)) this.of(row.account).timers.set(row.id, row)
    for (const row of projection.timersCleared.filter(accepted)) this.of(row.account).timers.delete(row.id)
    for (const row of projection.keys.filter(accepted)) this.of(row.account).keys.set(keyId(row), row)
    for (const row of projection.subscriptionsSet.filter(accepted)) {
      this.of(row.account).subscriptions.set(row.destination, row)
    }
    for (const row of projection.deliveriesMade.filter(accepted)) {
      this.of(row.account).deliveries.set(deliveryId(row), row)
      if (row.attempts.length > 0) continue
      this.of(row.account).leases.set(deliveryId(row), leasedUntil)
      this.of(row.account).seenAt.set(deliveryId(row), now)
    }
    // Like in one SQL statement, each step sees its row in the state before all of them.
    const steps = projection.deliverySteps
      .filter(accepted)
      .map((step) => ({ step, row: this.of(step.account).deliveries.get(deliveryId(step)) }))
    for (const { row, step } of steps) {
      const { deliveries, leases } = this.of(step.account)
      if (row === undefined) continue
      const after = moved(row, step)
      deliveries.set(deliveryId(step), after)
      if (after !== row && step.attempt !== null) leases.delete(deliveryId(step))
    }
    return [...refused]
  }
}

const textsOf = Effect.fnUntraced(function* (journal: Journal["Service"], projected: ProjectedDocument | undefined) {
  if (projected === undefined) return undefined
  const row = readRow(projected)
  const { account, documentSpan, hiddenSpan, version } = row
  const [document = null, hidden = null] = yield* Effect.forEach([documentSpan, hiddenSpan], (span) =>
    span === null
      ? Effect.succeed(null)
      : Effect.map(journal.slices([{ account, version, span }]), ([text = null]) => text)
  )
  return { ...row, document, hidden }
})

const deliveryViews = (
  accounts: Accounts
): Pick<
  ViewsShape,
  | "subscriptions"
  | "deliveries"
  | "delivery"
  | "eventDeliveries"
  | "pendingDeliveries"
  | "takeDeliveries"
  | "nextDelivery"
  | "freeDeliveries"
> => ({
  subscriptions: (account) => Effect.sync(() => [...accounts.of(account).subscriptions.values()]),
  deliveries: (account, query) =>
    Effect.sync(() => {
      const rows = [...accounts.of(account).deliveries.values()]
      return page(
        rows.filter(({ destination }) => destination === query.destination),
        query,
        query.limit
      )
    }),
  delivery: (account, destination, id) =>
    Effect.sync(() => accounts.of(account).deliveries.get(deliveryId({ destination, id }))),
  eventDeliveries: (events, limit) =>
    Effect.sync(() =>
      events.map(({ account, id }) =>
        [...accounts.of(account).deliveries.values()]
          .filter(({ event }) => event === id)
          .toSorted(descending)
          .slice(0, limit)
      )
    ),
  pendingDeliveries: (events) =>
    Effect.sync(() =>
      events.map(({ account, id }) => {
        const rows = [...accounts.of(account).deliveries.values()]
        return rows.filter(({ event, state }) => event === id && state === "pending").length
      })
    ),
  takeDeliveries: ({ busy, leasedUntil, limit, now, partitions }) =>
    Effect.sync(() =>
      accounts
        .in(partitions)
        .flatMap((account) => account.waiting(busy))
        .filter(({ wakeAt }) => wakeAt <= now)
        .toSorted((a, b) => a.wakeAt - b.wakeAt || ascending(a.row, b.row))
        .slice(0, limit)
        .toSorted((a, b) => a.row.dueAt! - b.row.dueAt! || (deliveryId(a.row) < deliveryId(b.row) ? -1 : 1))
        .map(({ row }): DueDelivery => {
          accounts.of(row.account).leases.set(deliveryId(row), leasedUntil)
          const { account, attempts, destination, event, eventVersion, id } = row
          return { account, id, destination, event, eventVersion, attempt: attempts.length + 1 }
        })
    ),
  nextDelivery: (busy, partitions) =>
    Effect.sync(() =>
      accounts
        .in(partitions)
        .flatMap((account) => account.waiting(busy))
        .reduce((nearest, { wakeAt }) => Math.min(nearest, wakeAt), Infinity)
    ),
  freeDeliveries: (partitions) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      for (const tables of accounts.in(partitions)) tables.free(now)
    })
})

/** Access of `ErasuresMemory.ts` to the rows. */
export class ViewRows extends Context.Service<
  ViewRows,
  { readonly of: (account: AccountId) => Pick<Tables, "deliveries" | "documents" | "revisions"> }
>()("test/ViewRows") {}

export const layerMemory: Layer.Layer<Views | ViewRows, never, Journal> = Layer.effectContext(
  Effect.gen(function* () {
    const accounts = new Accounts()
    const views = viewsOf(yield* Journal, accounts)
    return Context.make(Views, views).pipe(Context.add(ViewRows, { of: (account) => accounts.of(account) }))
  })
)

const viewsOf = (journal: Journal["Service"], accounts: Accounts): ViewsShape => {
  const tables = (account: AccountId) => accounts.of(account)
  return Views.of({
    apply: (projection, leasedUntil) =>
      Effect.map(Clock.currentTimeMillis, (now) => accounts.apply(projection, leasedUntil, now)),
    checkpoint: (account) => Effect.sync(() => tables(account).checkpoint),
    standing: (account) =>
      Effect.sync(() => {
        const { ahead, checkpoint: projected, eventsFrom } = tables(account)
        return { projected, ahead, eventsFrom }
      }),
    // This storage always has the code's version.
    outdated: Effect.succeed([]),
    revisions: (account, query) => Effect.sync(() => revisionsOf(tables(account), query)),
    tallies: (account, query) => Effect.sync(() => talliesOf(tables(account), query)),
    search: (account, query) => Effect.sync(() => searched(tables(account), account, query)),
    behind: Effect.gen(function* () {
      const behind: Array<AccountId> = []
      for (const account of yield* journal.accounts) {
        const tail = yield* journal.read(account, tables(account).checkpoint, 1)
        if (tail.length > 0) behind.push(account)
      }
      return behind
    }),
    documents: (addresses) =>
      Effect.forEach(addresses, ({ account, id }) => textsOf(journal, tables(account).documents.get(id))),
    keepNumber: (account, number) => Effect.sync(() => void (tables(account).number = number)),
    accountsNumbered: (number) => Effect.sync(() => accounts.numbered(number)),
    accountsUnnumbered: (limit) => Effect.sync(() => accounts.numbered(null).slice(0, limit)),
    keys: (addresses) =>
      Effect.sync(() =>
        addresses.map(({ account, id }) => [...tables(account).keys.values()].findLast(({ key }) => key === id))
      ),
    timers: (account, limit) =>
      Effect.sync(() => [...tables(account).timers.values()].toSorted(byTime("dueAt")).slice(0, limit)),
    nextTimers: (...options) => Effect.sync(() => accounts.nextTimers(...options)),
    timersNamed: (...options) => Effect.sync(() => accounts.timersNamed(...options)),
    timerCounts: (name) => Effect.sync(() => accounts.timerCounts(name)),
    list: (account, query) => Effect.sync(() => listed(tables(account), query)),
    newest: (queries) => Effect.sync(() => queries.map(({ account, ...query }) => listed(tables(account), query))),
    event: ({ account, id }) =>
      Effect.sync(() => [...tables(account).events.values()].find((event) => event.id === id)),
    events: (account, query) =>
      Effect.sync(() => {
        const rows = [...tables(account).events.values()]
        return page(
          rows.filter((row) => matchesType(row.type, query)),
          query,
          query.limit
        )
      }),
    ...deliveryViews(accounts),
    runningTime: (now) =>
      Effect.sync(() => {
        const used = [...accounts.all.values()].flatMap(({ keys }) => [...keys.values()].map(({ at }) => at))
        return accounts.runningTime ?? (used.length === 0 ? now : used.reduce((a, b) => Math.max(a, b)))
      }),
    keepRunningTime: (at) => Effect.sync(() => (accounts.runningTime = Math.max(accounts.runningTime ?? at, at))),
    expireKeys: (before, limit) =>
      Effect.sync(() => {
        let count = 0
        for (const { keys } of accounts.all.values()) {
          for (const [key, row] of keys) if (row.at < before && count < limit && keys.delete(key)) count++
        }
        return count
      }),
    expireEvents: (account, before, limit) => Effect.sync(() => tables(account).expireEvents(before, limit)),
    accounts: Effect.sync(() => [...accounts.all].filter(([, { checkpoint }]) => checkpoint > 0).map(([id]) => id)),
    scan: (account, table, after, limit) =>
      Effect.sync(() =>
        [...(tables(account)[table satisfies ViewTable] as Map<string, ViewRow["row"]>)]
          .map(([id, row]) => ({ id, row }))
          .filter(({ id }) => id > after)
          .toSorted(ascending)
          .slice(0, limit)
      ),
    clear: (account) =>
      Effect.sync(() => {
        const { number } = tables(account)
        accounts.all.set(account, Object.assign(new Tables(), { number }))
      }),
    clearOutdated: () => Effect.void
  })
}

/** Returns whether an entry passes a filter, apart from `id` and `created`. */
const mayMatch = ({ measure, terms }: SearchEntry, filter: Filter, numberOf: (term: string) => number): boolean => {
  const has = (term: string) => terms.includes(numberOf(term))
  const { from, to } = filter.measure ?? { from: -Infinity, to: Infinity }
  return (
    filter.all.every(has) &&
    filter.any.every((group) => group.some(has)) &&
    !filter.none.some(has) &&
    (filter.measure === undefined || (measure !== null && measure >= from && measure <= to))
  )
}
