/**
 * Verification: checks that the journal is intact and that the views match it.
 *
 * Folds the journal anew, account by account, and names the first record or row that differs. Keys and events past
 * their retention may be missing from the views; every other row must be there, and no more. Writes nothing.
 *
 * Each account is read in a snapshot, so a running service can continue. Journal and views share no order of rows, so
 * expected rows are kept in memory until they are seen. If they do not fit, each of several passes verifies a part.
 */
import { Clock, Effect, Fiber, Result } from "effect"
import { type AnchoredHead, timeOf } from "./Anchors.ts"
import type { AccountId } from "../log/Document.ts"
import { ErasedRows } from "./ErasedRows.ts"
import { ErasureKey } from "../log/Erased.ts"
import { ExpectedViews, type Forgettable, type Named } from "./ExpectedViews.ts"
import { DocumentFormats } from "../views/DocumentFormats.ts"
import { innermostMessage, Journal, type StorageFailure } from "../log/Journal.ts"
import { idAt } from "../log/Identifiers.ts"
import { RETENTION_MILLIS } from "../actor/RunningTime.ts"
import { EVENT_PREFIX } from "../actor/Transaction.ts"
import { VERIFIED_ROWS_MAX } from "../process/Memory.ts"
import { aheadAfter, piecesOf, project, type Projection } from "../views/Projection.ts"
import { Progress } from "../process/Progress.ts"
import { Projector } from "../actor/Projector.ts"
import { tryRead, GENESIS, JournalCorrupt, type JournalRow, missingRecord, unsealAll } from "../log/Record.ts"
import { Snapshot } from "../log/Snapshot.ts"
import { type Standing, type ViewRow, Views, type ViewTable, viewTables } from "../views/Views.ts"
import { logOf } from "../process/Log.ts"

const log = logOf("engine")

export interface Report {
  readonly accounts: number
  readonly records: number
  readonly anchored: number
  /** Records whose texts were replaced. */
  readonly erased: number
  /** The first difference of each damaged account, one line each. */
  readonly problems: ReadonlyArray<string>
}

export interface Manner {
  readonly rowsMax: number
  readonly page: number
  readonly pause: Effect.Effect<void>
}

export const SWIFTLY: Manner = { rowsMax: VERIFIED_ROWS_MAX, page: 1000, pause: Effect.void }

type AnchoredHeads = ReadonlyMap<AccountId, ReadonlyArray<AnchoredHead>>

export const verify = Effect.fnUntraced(function* (
  manner: Manner = SWIFTLY,
  anchored: AnchoredHeads = new Map()
): Effect.fn.Return<Report, StorageFailure, DocumentFormats | Journal | Views> {
  const journal = yield* Journal
  const views = yield* Views
  const problems: Array<string> = []
  let records = 0
  let erased = 0
  const listed = <R>(name: string, accounts: Effect.Effect<ReadonlyArray<AccountId>, StorageFailure, R>) =>
    onDamage(accounts, (reason) =>
      Effect.sync(() => {
        problems.push(`The accounts of the ${name} cannot be listed: ${reason}`)
        return []
      })
    )
  const inJournal = yield* listed("journal", Effect.tap(journal.accounts, announce))
  const accounts = new Set([...inJournal, ...(yield* listed("views", views.accounts)), ...anchored.keys()])
  for (const account of accounts) {
    const outcome = yield* verifyAccount(account, manner, anchored.get(account))
    records += outcome.records
    erased += outcome.erased ?? 0
    if (outcome.problem !== null) problems.push(outcome.problem)
  }
  const heads = anchored.values().map((heads) => heads.at(-1)?.version ?? 0)
  const anchoredRecords = heads.reduce((sum, version) => sum + version, 0)
  return { accounts: accounts.size, records, anchored: anchoredRecords, erased, problems }
})

/** Rewrites the views of every account from the journal. */
export const rebuild: Effect.Effect<number, StorageFailure | JournalCorrupt, Journal | Views | Projector> = Effect.gen(
  function* () {
    const journal = yield* Journal
    const views = yield* Views
    const projector = yield* Projector
    const accounts = new Set([...(yield* journal.accounts), ...(yield* views.accounts)])
    yield* announce([...accounts])
    for (const account of accounts) {
      yield* views.clear(account)
      yield* projector.catchUp(account)
    }
    return accounts.size
  }
)

const announce = Effect.fnUntraced(function* (accounts: ReadonlyArray<AccountId>) {
  const journal = yield* Journal
  const versions = yield* journal.versions(accounts)
  ;(yield* Progress).begin(versions.values().reduce((sum, version) => sum + version, 0))
})

/** Rebuilds the views that a migration has marked as outdated. Returns the number of their accounts. */
export const remakeOutdated: Effect.Effect<number, StorageFailure | JournalCorrupt, Journal | Views | Projector> =
  Effect.gen(function* () {
    const views = yield* Views
    const projector = yield* Projector
    const accounts = yield* views.outdated
    if (accounts.length > 0)
      yield* log.info(`The views of ${accounts.length} accounts are made anew`, undefined, { cause: "anew" })
    yield* announce(accounts)
    for (const account of accounts) {
      // Only if they are still outdated: another process may have rebuilt them, and be using them.
      yield* views.clearOutdated(account)
      yield* projector.catchUp(account)
    }
    return accounts.length
  })

export interface Outcome {
  readonly records: number
  /** Records whose texts were replaced; absent for none. */
  readonly erased?: number
  readonly problem: string | null
}

interface PassOutcome extends Outcome {
  /** A sum that differs from that of the views' documents. Reported only if all these documents are correct. */
  readonly miscount?: string | null
}

/** Checks an account, in as many passes as memory requires. */
export const verifyAccount = Effect.fnUntraced(function* (
  account: AccountId,
  manner: Manner,
  anchored: ReadonlyArray<AnchoredHead> = [],
  passes: number = 1
): Effect.fn.Return<Outcome, StorageFailure, DocumentFormats | Journal | Views> {
  const { within } = yield* Snapshot
  let records = 0
  let erased = 0
  let miscount: string | null = null
  for (let pass = 0; pass < passes; pass++) {
    const holds = (id: string) => passes === 1 || sumOf(id) % passes === pass
    const part = { account, share: 1 / passes, holds, anchored, ...manner }
    const outcome = yield* onDamage(within(verifyPart(part)), (reason) => unreadable(account, reason))
    if ("fitting" in outcome) {
      const more = Math.max(2, Math.ceil(ROOM / outcome.fitting))
      return yield* verifyAccount(account, manner, anchored, passes * more)
    }
    if (outcome.problem !== null) return outcome
    records = outcome.records
    erased = outcome.erased ?? 0
    miscount ??= outcome.miscount ?? null
  }
  return { records, erased, problem: miscount }
})

/** Handles damage of the storage. Any other failure ends the verification. */
const onDamage = <A, R, B, R2>(
  reading: Effect.Effect<A, StorageFailure, R>,
  handle: (reason: string) => Effect.Effect<B, StorageFailure, R2>
) =>
  Effect.catch(reading, (failure) =>
    failure.isDamage === true ? handle(innermostMessage(failure)) : Effect.fail(failure)
  )

/** Names the first record or row of an account that cannot be read, after a page with it has failed. */
const unreadable = Effect.fnUntraced(function* (
  account: AccountId,
  reason: string
): Effect.fn.Return<PassOutcome, StorageFailure, Journal | Views> {
  const journal = yield* Journal
  const views = yield* Views
  const problemOf = (place: string) => ({ records: 0, problem: `${place} cannot be read: ${reason}` })
  const record = yield* firstUnreadable((last: JournalRow | undefined, limit) =>
    journal.read(account, last?.version ?? 0, limit)
  )
  if (record !== undefined) return problemOf(`Record ${(record.last?.version ?? 0) + 1} of account ${account}`)
  for (const table of viewTables) {
    const row = yield* firstUnreadable((last: ViewRow | undefined, limit) =>
      views.scan(account, table, last?.id ?? "", limit)
    )
    if (row === undefined) continue
    const last = row.last === undefined ? "the first one" : `the one behind ${row.last.id}`
    return problemOf(`Of the ${table} of account ${account}, ${last}`)
  }
  return problemOf(`Account ${account}`)
})

/** Reads on after the last readable row, in ever smaller pages, until a single row fails. Returns the row before it. */
const firstUnreadable = Effect.fnUntraced(function* <Row, R>(
  read: (last: Row | undefined, limit: number) => Effect.Effect<ReadonlyArray<Row>, StorageFailure, R>
) {
  let last: Row | undefined
  let limit = SWIFTLY.page
  for (;;) {
    const page = yield* Effect.result(read(last, limit))
    if (Result.isSuccess(page)) {
      if (page.success.length === 0) return undefined
      last = page.success.at(-1)
    } else if (page.failure.isDamage !== true) return yield* Effect.fail(page.failure)
    else if (limit === 1) return { last }
    else limit = Math.floor(limit / 2)
  }
})

/** Reserve for the uneven distribution of rows over records and passes. */
const ROOM = 1.2

/** Hashes a text, evenly distributed. */
const sumOf = (text: string): number => {
  let sum = 0
  for (let i = 0; i < text.length; i++) sum = (Math.imul(sum, 31) + text.charCodeAt(i)) >>> 0
  return sum
}

/** The part of an account's rows that one pass verifies. */
interface Part extends Manner {
  readonly account: AccountId
  /** Share of the account's whole work, from 0 to 1. */
  readonly share: number
  readonly holds: (id: string) => boolean
  readonly anchored: ReadonlyArray<AnchoredHead>
}

interface TooMany {
  /** Records whose rows did fit. */
  readonly fitting: number
}

const verifyPart = (
  part: Part
): Effect.Effect<PassOutcome | TooMany, StorageFailure, DocumentFormats | Journal | Views> =>
  Effect.gen(function* () {
    const { account, share } = part
    const views = yield* Views
    const progress = yield* Progress
    const standing = yield* views.standing(account)
    const expected = new ExpectedViews(part.holds, yield* forgettable(standing))
    let ahead = 0
    const records = yield* overJournal(part, standing, (projections, records) => {
      for (const projection of projections) {
        expected.merge(projection)
        ahead = aheadAfter(ahead, projection)
      }
      progress.advance((records * share) / 2)
      return expected.weight <= part.rowsMax
    })
    if (records.isCutShort) {
      progress.advance((-records.read * share) / 2)
      return { fitting: records.read / Math.max(records.read, standing.projected) }
    }
    // Outdated views are rebuilt at the next start.
    if ((yield* views.outdated).includes(account))
      return { records: records.read, erased: records.erased, problem: null }
    const problem =
      standing.ahead === ahead
        ? yield* compare(part, standing, expected, records.read)
        : `Views and journal differ in how far the ids of account ${account} are ahead`
    const miscount = problem === null ? yield* compareTallies(part, expected) : null
    return { records: records.read, erased: records.erased, problem, miscount }
  }).pipe(Effect.catchTag("JournalCorrupt", ({ message }) => Effect.succeed({ records: 0, problem: message })))

/**
 * Reads an account's journal and checks its chain. Passes the projections of its records, up to the views' checkpoint,
 * to `onProjections`, until that returns false.
 */
const overJournal = Effect.fnUntraced(function* (
  { account, anchored, page, pause }: Part,
  { projected }: Standing,
  onProjections: (projections: ReadonlyArray<Projection>, records: number) => boolean
) {
  const formats = yield* DocumentFormats
  const journal = yield* Journal
  let head = { version: 0, hash: GENESIS }
  let ahead = 0
  const erased = new ErasedRows(account, yield* ErasureKey)
  const fold = (rows: ReadonlyArray<JournalRow>): boolean => {
    const sealed = unsealAll(head, rows)
    for (const [i, { hash, record }] of sealed.entries()) {
      erased.add(rows[i]!, record.erased)
      if (record.version !== anchored[ahead]?.version) continue
      if (hash !== anchored[ahead]!.hash) throw rewritten(account, anchored, ahead)
      ahead++
    }
    const newest = sealed.at(-1)!
    head = { version: newest.record.version, hash: newest.hash }
    const records = sealed.map(({ record }) => record).filter(({ version }) => version <= projected)
    return onProjections(piecesOf(records.map(formats.derived)).map(project), rows.length)
  }
  const isWhole = yield* overPages(
    (last: JournalRow | undefined) => journal.read(account, last?.version ?? 0, page),
    (rows) =>
      Effect.tap(
        tryRead(() => fold(rows)),
        pause
      )
  )
  if (isWhole) yield* tryRead(() => erased.requireNoted())
  if (isWhole && head.version < projected) return yield* missingRecord(account, head.version + 1)
  if (isWhole && ahead < anchored.length) return yield* cutOff(account, head.version + 1, anchored[ahead]!)
  return { read: head.version, erased: erased.size, isCutShort: !isWhole }
})

const rewritten = (account: AccountId, anchored: ReadonlyArray<AnchoredHead>, index: number) => {
  const { at, version } = anchored[index]!
  const first = (anchored[index - 1]?.version ?? 0) + 1
  const which = first === version ? "it" : `one of the records from ${first} on`
  return new JournalCorrupt({
    account,
    version,
    problem: `is not what was anchored at ${timeOf(at)}: ${which} was rewritten`
  })
}

const cutOff = (account: AccountId, version: number, { at, version: newest }: AnchoredHead) =>
  new JournalCorrupt({ account, version, problem: `is missing, but record ${newest} was anchored at ${timeOf(at)}` })

/**
 * Works on page after page until one is empty or `work` returns false; returns whether all pages were worked on. The
 * next page is read during the work on the previous one; no read is running when this returns.
 */
const overPages = Effect.fnUntraced(function* <Row, E1, R1, E2, R2>(
  read: (last: Row | undefined) => Effect.Effect<ReadonlyArray<Row>, E1, R1>,
  work: (rows: ReadonlyArray<Row>) => Effect.Effect<boolean, E2, R2>
): Effect.fn.Return<boolean, E1 | E2, R1 | R2> {
  const begun = (last: Row | undefined) => Effect.forkChild(read(last), { startImmediately: true })
  let next = yield* begun(undefined)
  for (;;) {
    const rows = yield* Fiber.join(next)
    if (rows.length === 0) return true
    const following = yield* begun(rows.at(-1))
    const goesOn = yield* Effect.onError(work(rows), () => Fiber.await(following))
    if (!goesOn) {
      yield* Fiber.await(following)
      return false
    }
    next = following
  }
})

/** Compares all tables except the sums with the expected rows, and uses these up. Returns the first difference. */
const compare = Effect.fnUntraced(function* (part: Part, standing: Standing, expected: ExpectedViews, records: number) {
  const { share } = part
  const progress = yield* Progress
  // Each pass scans all rows of the account.
  const recordsPerRow = (records * share * share) / 2 / Math.max(expected.weight, 1)
  for (const table of viewTables) {
    if (table === "tallies") continue
    const problem = yield* compareTable(part, table, expected, (rows) => progress.advance(rows * recordsPerRow))
    if (problem !== null) return problem
  }
  const missing = yield* missingOf(part, standing, expected)
  return missing === undefined ? null : notThere(part, missing)
})

/** Compares the sums of this part with the sums over the documents that were seen. */
const compareTallies = Effect.fnUntraced(function* (part: Part, expected: ExpectedViews) {
  const problem = yield* compareTable(part, "tallies", expected, () => {})
  const missing = expected.missingTally
  return problem !== null || missing === undefined ? problem : notThere(part, missing)
})

const compareTable = Effect.fnUntraced(function* (
  { account, page, pause }: Part,
  table: ViewTable,
  expected: ExpectedViews,
  onSame: (rows: number) => void
) {
  const views = yield* Views
  let problem: string | null = null
  const isSame = (rows: ReadonlyArray<ViewRow>): boolean => {
    for (const row of rows) {
      const difference = expected.take(table, row)
      if (difference === null) continue
      problem = `${table} ${row.id} of account ${account} ${difference}`
      return false
    }
    onSame(rows.length)
    return true
  }
  yield* overPages(
    (last: ViewRow | undefined) => views.scan(account, table, last?.id ?? "", page),
    (rows) =>
      Effect.tap(
        Effect.sync(() => isSame(rows)),
        pause
      )
  )
  return problem as string | null
})

const notThere = ({ account }: Part, { id, table }: Named): string =>
  `${table} ${id} of account ${account} is in the journal, but not in the views`

/** Returns the rows that may be missing from an account's views. */
const forgettable = Effect.fnUntraced(function* ({
  eventsFrom
}: Standing): Effect.fn.Return<Forgettable, StorageFailure, Views> {
  const ran = yield* (yield* Views).runningTime(yield* Clock.currentTimeMillis)
  return { keysBefore: ran - RETENTION_MILLIS, eventsBefore: idAt(EVENT_PREFIX, eventsFrom) }
})

/** Finds an expected row that was not seen in the views; its name may have to be read from the journal. */
const missingOf = Effect.fnUntraced(function* (part: Part, standing: Standing, expected: ExpectedViews) {
  // Without a snapshot, a running Till may have deleted rows during the scan.
  const views = yield* Views
  const forgotten = yield* forgettable(yield* views.standing(part.account))
  let missing = expected.missing(forgotten)
  if (missing !== undefined || !expected.isIncomplete) return missing
  yield* overJournal(part, standing, (projections) => {
    missing ??= projections
      .values()
      .map((projection) => expected.missingAmong(projection, forgotten))
      .find(Boolean)
    return missing === undefined
  })
  return missing
})
