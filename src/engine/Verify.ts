/**
 * Verification: does the journal hold what was written to it, and do the views say what the journal says?
 *
 * Folds the journal afresh, account by account, and names the first record or row that differs. Keys past their
 * retention may be gone from the views; everything else must be there, and nothing more. Writes nothing
 * but a checkpoint for an account that has none.
 *
 * Rows are in no order that journal and views share, so what must be there is kept until it is seen. Where that is more
 * than fits into memory, several passes take a part of the rows each.
 */
import { Clock, Effect, Fiber } from "effect"
import type { AccountId } from "./Document.ts"
import { Formats } from "./Formats.ts"
import type { StorageFailure } from "./Journal.ts"
import { Journal } from "./Journal.ts"
import { RETENTION_MILLIS } from "./KeyFilter.ts"
import type { DeliveryRow, Projection, TimerRow } from "./Projection.ts"
import { aheadAfter, moved, piecesOf, project, sweepTables } from "./Projection.ts"
import { Progress } from "./Progress.ts"
import { Projector } from "./Projector.ts"
import type { JournalCorrupt, JournalRow } from "./Record.ts"
import { VERIFIED_ROWS_MAX } from "./Memory.ts"
import { checked, GENESIS, lost, unsealAll } from "./Record.ts"
import * as RowText from "./RowText.ts"
import type { ViewRow, ViewTable } from "./Views.ts"
import { deliveryId, eventId, keyId, Views, viewTables } from "./Views.ts"

export interface Report {
  readonly accounts: number
  readonly records: number
  /** One line for each account that is not as it should be: what differs first. */
  readonly problems: ReadonlyArray<string>
}

const PAGE = 1000

/** Checks every account, with about so many of its rows in memory at once. */
export const verify = Effect.fnUntraced(function* (
  rowsMax: number = VERIFIED_ROWS_MAX
): Effect.fn.Return<Report, StorageFailure, Formats | Journal | Views> {
  const journal = yield* Journal
  const views = yield* Views
  const accounts = new Set([...(yield* journal.accounts), ...(yield* views.accounts)])
  const outdated = new Set(yield* views.outdated)
  yield* announced([...accounts])
  const problems: Array<string> = []
  let records = 0
  for (const account of accounts) {
    const outcome = yield* verifyAccount(account, rowsMax, !outdated.has(account))
    records += outcome.records
    if (outcome.problem !== null) problems.push(outcome.problem)
  }
  return { accounts: accounts.size, records, problems }
})

/** Rewrites the views of every account from the journal. */
export const rebuild: Effect.Effect<number, StorageFailure | JournalCorrupt, Journal | Views | Projector> = Effect.gen(
  function* () {
    const journal = yield* Journal
    const views = yield* Views
    const projector = yield* Projector
    const accounts = new Set([...(yield* journal.accounts), ...(yield* views.accounts)])
    yield* announced([...accounts])
    for (const account of accounts) {
      yield* views.clear(account)
      yield* projector.catchUp(account)
    }
    return accounts.size
  }
)

/** Tells the progress how many records these accounts have. */
const announced = Effect.fnUntraced(function* (accounts: ReadonlyArray<AccountId>) {
  const journal = yield* Journal
  const versions = yield* journal.versions(accounts)
  ;(yield* Progress).begin(versions.values().reduce((sum, version) => sum + version, 0))
})

/** Makes anew the views that a migration has left as an older Till made them. Says of how many accounts. */
export const remakeOutdated: Effect.Effect<number, StorageFailure | JournalCorrupt, Journal | Views | Projector> =
  Effect.gen(function* () {
    const views = yield* Views
    const projector = yield* Projector
    const accounts = yield* views.outdated
    if (accounts.length > 0) yield* Effect.logInfo(`The views of ${accounts.length} accounts are made anew`)
    yield* announced(accounts)
    for (const account of accounts) {
      yield* views.clear(account)
      yield* projector.catchUp(account)
    }
    return accounts.length
  })

interface Outcome {
  readonly records: number
  readonly problem: string | null
}

/** In as many passes as it takes for none to keep too many rows. */
const verifyAccount = Effect.fnUntraced(function* (
  account: AccountId,
  rowsMax: number,
  compares: boolean,
  passes: number = 1
): Effect.fn.Return<Outcome, StorageFailure, Formats | Journal | Views> {
  let records = 0
  for (let pass = 0; pass < passes; pass++) {
    const holds = (id: string) => passes === 1 || sumOf(id) % passes === pass
    const part = { share: 1 / passes, holds, rowsMax, compares }
    const outcome = yield* verifyPart(account, part)
    if (outcome === "too many rows") return yield* verifyAccount(account, rowsMax, compares, 2 * passes)
    if (outcome.problem !== null) return outcome
    records = outcome.records
  }
  return { records, problem: null }
})

/** Spreads texts evenly over numbers. */
const sumOf = (text: string): number => {
  let sum = 0
  for (let i = 0; i < text.length; i++) sum = (Math.imul(sum, 31) + text.charCodeAt(i)) >>> 0
  return sum
}

/** A pass looks at this part of the rows. */
interface Part {
  /** How much of all the account's work this is. */
  readonly share: number
  /** Which rows, by their ids. */
  readonly holds: (id: string) => boolean
  readonly rowsMax: number
  /** False for views that are outdated: the next start makes them anew. */
  readonly compares: boolean
}

/** Compares again if the account moved meanwhile: a running Till goes on projecting. */
const verifyPart = (
  account: AccountId,
  part: Part
): Effect.Effect<Outcome | "too many rows", StorageFailure, Formats | Journal | Views> =>
  Effect.gen(function* () {
    const views = yield* Views
    const checkpoint = yield* views.checkpoint(account)
    const fold = yield* Effect.result(foldJournal(account, checkpoint, part))
    if (fold._tag === "Failure") {
      if (fold.failure._tag === "JournalCorrupt") return { records: 0, problem: fold.failure.message }
      return yield* fold.failure
    }
    if (fold.success === "too many rows") return fold.success
    const { ahead, expected } = fold.success
    if (!part.compares) return { records: fold.success.records, problem: null }
    const isAhead = (yield* views.ahead(account)) === ahead
    const problem = isAhead
      ? yield* compare(account, expected, part, fold.success.records)
      : `The views say something else than the journal of how far the ids of account ${account} are ahead`
    if (problem !== null && (yield* views.checkpoint(account)) !== checkpoint) return yield* verifyPart(account, part)
    return { records: fold.success.records, problem }
  })

/** What each table of the views must hold: rows, or their texts where no later record changes them, by id. */
interface Expected extends Readonly<Record<Exclude<ViewTable, "timers" | "deliveries">, Map<string, string>>> {
  readonly timers: Map<string, TimerRow>
  readonly deliveries: Map<string, DeliveryRow>
}

const nothing = (): Expected => ({
  documents: new Map(),
  events: new Map(),
  timers: new Map(),
  keys: new Map(),
  subscriptions: new Map(),
  deliveries: new Map()
})

const foldJournal = Effect.fnUntraced(function* (account: AccountId, checkpoint: number, part: Part) {
  const formats = yield* Formats
  const journal = yield* Journal
  const progress = yield* Progress
  const expected = nothing()
  let head = { version: 0, hash: GENESIS }
  let ahead = 0
  const fold = (rows: ReadonlyArray<JournalRow>) => {
    const page = unsealAll(head, rows)
    const newest = page.at(-1)!
    head = { version: newest.record.version, hash: newest.hash }
    const records = page.map(({ record }) => record).filter(({ version }) => version <= checkpoint)
    for (const projection of piecesOf(records.map(formats.searched)).map(project)) {
      merge(expected, projection, part)
      ahead = aheadAfter(ahead, projection)
    }
    progress.advance((rows.length * part.share) / 2)
  }
  let next = yield* begun(journal.read(account, 0, PAGE))
  for (;;) {
    const rows = yield* Fiber.join(next)
    if (rows.length === 0) break
    next = yield* begun(journal.read(account, rows.at(-1)!.version, PAGE))
    yield* checked(() => fold(rows))
    if (rowsOf(expected) > part.rowsMax) {
      progress.advance((-head.version * part.share) / 2)
      return "too many rows" as const
    }
  }
  if (head.version < checkpoint) return yield* lost(account, head.version + 1)
  return { expected, ahead, records: head.version }
})

/** The storage works on the next page while the last one is worked on here. */
const begun = <A, E, R>(page: Effect.Effect<A, E, R>) => Effect.forkChild(page, { startImmediately: true })

const rowsOf = (expected: Expected): number => viewTables.reduce((sum, table) => sum + expected[table].size, 0)

const merge = (expected: Expected, projection: Projection, part: Part): void => {
  const { deliveriesMade, deliverySteps, documentsChanged, events, keys, subscriptionsSet, sweep } = projection
  if (sweep !== null) sweepTables(expected, sweep)
  // Of what was read from the journal no document is known to be new.
  for (const row of documentsChanged) {
    if (part.holds(row.id)) expected.documents.set(row.id, RowText.documents(row))
  }
  for (const row of events) {
    const id = eventId(row)
    if (part.holds(id)) expected.events.set(id, RowText.events(row))
  }
  for (const row of keys) {
    const id = keyId(row)
    if (part.holds(id)) expected.keys.set(id, RowText.keys(row))
  }
  for (const row of projection.timersSet) if (part.holds(row.id)) expected.timers.set(row.id, row)
  for (const { id } of projection.timersCleared) expected.timers.delete(id)
  for (const row of subscriptionsSet) {
    if (part.holds(row.destination)) expected.subscriptions.set(row.destination, RowText.subscriptions(row))
  }
  for (const row of deliveriesMade) {
    const id = deliveryId(row)
    if (part.holds(id)) expected.deliveries.set(id, row)
  }
  for (const step of deliverySteps) {
    const row = expected.deliveries.get(deliveryId(step))
    if (row !== undefined) expected.deliveries.set(deliveryId(step), moved(row, step))
  }
}

/** Compares each table with what it must hold, which is used up by this. Says what differs first. */
const compare = Effect.fnUntraced(function* (account: AccountId, expected: Expected, part: Part, records: number) {
  const views = yield* Views
  const progress = yield* Progress
  const total = rowsOf(expected)
  for (const table of viewTables) {
    const wanted: Map<string, string | TimerRow | DeliveryRow> = expected[table]
    const textOf = RowText[table] as (row: ViewRow["row"]) => string
    const differing = (rows: ReadonlyArray<ViewRow>): string | null => {
      for (const { id, row } of rows) {
        if (!part.holds(id)) continue
        const known = wanted.get(id)
        if (known === undefined) return `${table} ${id} of account ${account} is in the views, but not in the journal`
        if ((typeof known === "string" ? known : textOf(known)) !== textOf(row)) {
          return `${table} ${id} of account ${account} is not what the journal says`
        }
        wanted.delete(id)
      }
      return null
    }
    let next = yield* begun(views.scan(account, table, "", PAGE))
    for (;;) {
      const rows = yield* Fiber.join(next)
      if (rows.length === PAGE) next = yield* begun(views.scan(account, table, rows.at(-1)!.id, PAGE))
      const before = wanted.size
      const problem = differing(rows)
      if (problem !== null) return problem
      progress.advance((((before - wanted.size) / total) * records * part.share) / 2)
      if (rows.length < PAGE) break
    }
    // A running Till may have forgotten keys during the scan.
    const forgotten = (yield* Clock.currentTimeMillis) - RETENTION_MILLIS
    for (const [id, text] of wanted) {
      if (table === "keys" && RowText.answeredAt(text as string) < forgotten) continue
      return `${table} ${id} of account ${account} is in the journal, but not in the views`
    }
  }
  return null
})
