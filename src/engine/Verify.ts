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
import { hash } from "node:crypto"
import { Clock, Effect } from "effect"
import type { AccountId, Millis } from "./Document.ts"
import { Formats } from "./Formats.ts"
import type { StorageFailure } from "./Journal.ts"
import { Journal } from "./Journal.ts"
import { RETENTION_MILLIS } from "./KeyFilter.ts"
import type { DeliveryRow, Projection, TimerRow } from "./Projection.ts"
import { aheadAfter, moved, piecesOf, project, sweepTables } from "./Projection.ts"
import { Projector } from "./Projector.ts"
import type { JournalCorrupt } from "./Record.ts"
import { VERIFIED_ROWS_MAX } from "./Memory.ts"
import { checked, GENESIS, lost, unsealAll } from "./Record.ts"
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
    for (const account of accounts) {
      yield* views.clear(account)
      yield* projector.catchUp(account)
    }
    return accounts.size
  }
)

/** Makes anew the views that a migration has left as an older Till made them. Says of how many accounts. */
export const remakeOutdated: Effect.Effect<number, StorageFailure | JournalCorrupt, Journal | Views | Projector> =
  Effect.gen(function* () {
    const views = yield* Views
    const projector = yield* Projector
    const accounts = yield* views.outdated
    if (accounts.length > 0) yield* Effect.logInfo(`The views of ${accounts.length} accounts are made anew`)
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
    const part = { holds: (id: string) => passes === 1 || sumOf(id) % passes === pass, rowsMax, compares }
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
      ? yield* compare(account, expected, part)
      : `The views say something else than the journal of how far the ids of account ${account} are ahead`
    if (problem !== null && (yield* views.checkpoint(account)) !== checkpoint) return yield* verifyPart(account, part)
    return { records: fold.success.records, problem }
  })

/** What each table of the views must hold: rows, or their fingerprints where no later record changes them, by id. */
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
  const expected = nothing()
  let head = { version: 0, hash: GENESIS }
  let ahead = 0
  for (;;) {
    const from = head
    const rows = yield* journal.read(account, from.version, PAGE)
    const page = yield* checked(() => unsealAll(from, rows))
    const newest = page.at(-1)
    if (newest === undefined) break
    head = { version: newest.record.version, hash: newest.hash }
    const records = page.map(({ record }) => record).filter(({ version }) => version <= checkpoint)
    const searched = yield* checked(() => records.map(formats.searched))
    for (const projection of piecesOf(searched).map(project)) {
      merge(expected, projection, part)
      ahead = aheadAfter(ahead, projection)
    }
    if (rowsOf(expected) > part.rowsMax) return "too many rows" as const
  }
  if (head.version < checkpoint) return yield* lost(account, head.version + 1)
  return { expected, ahead, records: head.version }
})

const rowsOf = (expected: Expected): number => viewTables.reduce((sum, table) => sum + expected[table].size, 0)

const merge = (expected: Expected, projection: Projection, part: Part): void => {
  const { deliveriesMade, deliverySteps, documentsChanged, events, keys, subscriptionsSet, sweep } = projection
  const set = <Value>(rows: Map<string, Value>, id: string, value: () => Value) =>
    part.holds(id) && rows.set(id, value())
  if (sweep !== null) sweepTables(expected, sweep)
  // Of what was read from the journal no document is known to be new.
  for (const row of documentsChanged) set(expected.documents, row.id, () => fingerprint(row))
  for (const row of events) set(expected.events, eventId(row), () => fingerprint(row))
  for (const row of keys) set(expected.keys, keyId(row), () => fingerprint(row))
  for (const row of projection.timersSet) set(expected.timers, row.id, () => row)
  for (const { id } of projection.timersCleared) expected.timers.delete(id)
  for (const row of subscriptionsSet) set(expected.subscriptions, row.destination, () => fingerprint(row))
  for (const row of deliveriesMade) set(expected.deliveries, deliveryId(row), () => row)
  for (const step of deliverySteps) {
    const row = expected.deliveries.get(deliveryId(step))
    if (row !== undefined) expected.deliveries.set(deliveryId(step), moved(row, step))
  }
}

const compare = Effect.fnUntraced(function* (account: AccountId, expected: Expected, part: Part) {
  const views = yield* Views
  for (const table of viewTables) {
    const wanted = new Map<string, string>()
    for (const [id, row] of expected[table]) wanted.set(id, typeof row === "string" ? row : fingerprint(row))
    for (let after = ""; ;) {
      const rows: ReadonlyArray<ViewRow> = yield* views.scan(account, table, after, PAGE)
      for (const { id, row } of rows) {
        if (!part.holds(id)) continue
        const known = wanted.get(id)
        if (known === undefined) return `${table} ${id} of account ${account} is in the views, but not in the journal`
        if (known !== fingerprint(row)) return `${table} ${id} of account ${account} is not what the journal says`
        wanted.delete(id)
      }
      if (rows.length < PAGE) break
      after = rows.at(-1)!.id
    }
    // A running Till may have forgotten keys during the scan.
    const forgotten = (yield* Clock.currentTimeMillis) - RETENTION_MILLIS
    for (const [id, print] of wanted) {
      if (table === "keys" && answeredAt(print) < forgotten) continue
      return `${table} ${id} of account ${account} is in the journal, but not in the views`
    }
  }
  return null
})

/** Hash of a row; for keys with the time in front, because old ones may be missing. */
const fingerprint = (row: ViewRow["row"]): string => {
  const fields = JSON.stringify(row, (_, value: unknown) => (isPlain(value) ? sorted(value) : value))
  return `${"key" in row ? row.at : 0} ${hash("sha256", fields, "base64url")}`
}

const isPlain = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const sorted = (value: object) => Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))

const answeredAt = (print: string): Millis => Number(print.slice(0, print.indexOf(" ")))
