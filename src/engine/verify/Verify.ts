/**
 * Verification: does the journal hold what was written to it, and do the views say what the journal says?
 *
 * Folds the journal afresh, account by account, and names the first record or row that differs. Keys past their
 * retention may be gone from the views; everything else must be there, and nothing more. Writes nothing.
 *
 * Each account is read in a snapshot, so a service may go on with it meanwhile. Rows are in no order that journal and
 * views share, so what must be there is kept until it is seen. Where that is more than fits into memory, several passes
 * take a part of the rows each.
 */
import { Clock, Effect, Fiber, Result } from "effect"
import type { AnchoredHead } from "./Anchors.ts"
import { timeOf } from "./Anchors.ts"
import type { AccountId } from "../log/Document.ts"
import type { Named } from "./ExpectedViews.ts"
import { ExpectedViews } from "./ExpectedViews.ts"
import { DocumentFormats } from "../views/DocumentFormats.ts"
import type { StorageFailure } from "../log/Journal.ts"
import { innermostMessage, Journal } from "../log/Journal.ts"
import { RETENTION_MILLIS } from "../actor/IdempotencyRetention.ts"
import { VERIFIED_ROWS_MAX } from "../process/Memory.ts"
import type { Projection } from "../views/Projection.ts"
import { aheadAfter, piecesOf, project } from "../views/Projection.ts"
import { Progress } from "../process/Progress.ts"
import { Projector } from "../actor/Projector.ts"
import type { JournalRow } from "../log/Record.ts"
import { checked, GENESIS, JournalCorrupt, lost, unsealAll } from "../log/Record.ts"
import { Snapshot } from "../log/Snapshot.ts"
import type { Standing, ViewRow, ViewTable } from "../views/Views.ts"
import { Views, viewTables } from "../views/Views.ts"

export interface Report {
  readonly accounts: number
  readonly records: number
  /** How many of the records are anchored. */
  readonly anchored: number
  /** One line for each account that is not as it should be: what differs first. */
  readonly problems: ReadonlyArray<string>
}

/** How a verification goes about its work. */
export interface Manner {
  /** It keeps about so many rows in memory at once. */
  readonly rowsMax: number
  /** It reads so many records or rows at once. */
  readonly page: number
  /** It does this after each page. */
  readonly pause: Effect.Effect<void>
}

/** As fast as it can. */
export const SWIFTLY: Manner = { rowsMax: VERIFIED_ROWS_MAX, page: 1000, pause: Effect.void }

/** What must have been, by the account. */
type AnchoredHeads = ReadonlyMap<AccountId, ReadonlyArray<AnchoredHead>>

/** Checks every account, and that its journal has what is anchored of it. */
export const verify = Effect.fnUntraced(function* (
  manner: Manner = SWIFTLY,
  anchored: AnchoredHeads = new Map()
): Effect.fn.Return<Report, StorageFailure, DocumentFormats | Journal | Views> {
  const journal = yield* Journal
  const views = yield* Views
  const problems: Array<string> = []
  let records = 0
  const listed = <R>(name: string, accounts: Effect.Effect<ReadonlyArray<AccountId>, StorageFailure, R>) =>
    onDamage(accounts, (reason) =>
      Effect.sync(() => {
        problems.push(`The accounts of the ${name} cannot be listed: ${reason}`)
        return []
      })
    )
  const inJournal = yield* listed("journal", Effect.tap(journal.accounts, announced))
  const accounts = new Set([...inJournal, ...(yield* listed("views", views.accounts)), ...anchored.keys()])
  for (const account of accounts) {
    const outcome = yield* verifyAccount(account, manner, anchored.get(account))
    records += outcome.records
    if (outcome.problem !== null) problems.push(outcome.problem)
  }
  const heads = anchored.values().map((heads) => heads.at(-1)?.version ?? 0)
  return { accounts: accounts.size, records, anchored: heads.reduce((sum, version) => sum + version, 0), problems }
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
      // Another process may have made them meanwhile, and be using them.
      yield* views.clearOutdated(account)
      yield* projector.catchUp(account)
    }
    return accounts.length
  })

export interface Outcome {
  readonly records: number
  readonly problem: string | null
}

/** What a pass found. */
interface PassOutcome extends Outcome {
  /** A sum that is not that of the views' documents. Says so once all of these are known to be right. */
  readonly miscount?: string | null
}

/** Checks an account, in as many passes as it takes for none to keep too many rows. */
export const verifyAccount = Effect.fnUntraced(function* (
  account: AccountId,
  manner: Manner,
  anchored: ReadonlyArray<AnchoredHead> = [],
  passes: number = 1
): Effect.fn.Return<Outcome, StorageFailure, DocumentFormats | Journal | Views> {
  const { within } = yield* Snapshot
  let records = 0
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
    miscount ??= outcome.miscount ?? null
  }
  return { records, problem: miscount }
})

/** Goes on after damage. Any other failure ends the check, which could not be done. */
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
  const found = (what: string) => ({ records: 0, problem: `${what} cannot be read: ${reason}` })
  const record = yield* firstUnreadable((last: JournalRow | undefined, limit) =>
    journal.read(account, last?.version ?? 0, limit)
  )
  if (record !== undefined) return found(`Record ${(record.last?.version ?? 0) + 1} of account ${account}`)
  for (const table of viewTables) {
    const row = yield* firstUnreadable((last: ViewRow | undefined, limit) =>
      views.scan(account, table, last?.id ?? "", limit)
    )
    if (row === undefined) continue
    const last = row.last === undefined ? "the first one" : `the one behind ${row.last.id}`
    return found(`Of the ${table} of account ${account}, ${last}`)
  }
  return found(`Account ${account}`)
})

/** Goes on behind the last row that can be read, in ever smaller pages, until the next single row fails. */
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

/** Rows are not spread evenly over records, nor over passes. */
const ROOM = 1.2

/** Spreads texts evenly over numbers. */
const sumOf = (text: string): number => {
  let sum = 0
  for (let i = 0; i < text.length; i++) sum = (Math.imul(sum, 31) + text.charCodeAt(i)) >>> 0
  return sum
}

/** A pass looks at this part of an account's rows. */
interface Part extends Manner {
  readonly account: AccountId
  /** How much of all the account's work this is. */
  readonly share: number
  /** Which rows, by their ids. */
  readonly holds: (id: string) => boolean
  readonly anchored: ReadonlyArray<AnchoredHead>
}

/** Of too many rows to keep, this part did fit. */
interface TooMany {
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
    const ran = yield* views.runningTime(yield* Clock.currentTimeMillis)
    const expected = new ExpectedViews(part.holds, ran - RETENTION_MILLIS)
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
    // The next start makes views anew that are outdated.
    if ((yield* views.outdated).includes(account)) return { records: records.read, problem: null }
    const problem =
      standing.ahead === ahead
        ? yield* compare(part, standing, expected, records.read)
        : `The views say something else than the journal of how far the ids of account ${account} are ahead`
    const miscount = problem === null ? yield* compareTallies(part, expected) : null
    return { records: records.read, problem, miscount }
  }).pipe(Effect.catchTag("JournalCorrupt", ({ message }) => Effect.succeed({ records: 0, problem: message })))

/**
 * Reads an account's journal and checks its chain. Hands on what its records make of the views, as far as these are,
 * until that answers with false.
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
  const fold = (rows: ReadonlyArray<JournalRow>): boolean => {
    const sealed = unsealAll(head, rows)
    for (const { hash, record } of sealed) {
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
        checked(() => fold(rows)),
        pause
      )
  )
  if (isWhole && head.version < projected) return yield* lost(account, head.version + 1)
  if (isWhole && ahead < anchored.length) return yield* cutOff(account, head.version + 1, anchored[ahead]!)
  return { read: head.version, isCutShort: !isWhole }
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
 * Works on page after page, up to an empty one or until the work answers with false, and says whether it was done with
 * all. The storage reads the next page meanwhile; it is done with that when this ends.
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

/** Compares the tables but that of sums with what they must hold, which is used up by this. Says what differs first. */
const compare = Effect.fnUntraced(function* (part: Part, standing: Standing, expected: ExpectedViews, records: number) {
  const { share } = part
  const progress = yield* Progress
  // All of the account's rows are seen in each pass.
  const recordsPerRow = (records * share * share) / 2 / Math.max(expected.weight, 1)
  for (const table of viewTables) {
    if (table === "tallies") continue
    const problem = yield* compareTable(part, table, expected, (rows) => progress.advance(rows * recordsPerRow))
    if (problem !== null) return problem
  }
  const missing = yield* missingOf(part, standing, expected)
  return missing === undefined ? null : notThere(part, missing)
})

/** Compares the sums of this part with those of the documents that were seen. */
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
      const what = expected.take(table, row)
      if (what === null) continue
      problem = `${table} ${row.id} of account ${account} is ${what}`
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

/** What must be in the views and was not seen there. The journal says what it is. */
const missingOf = Effect.fnUntraced(function* (part: Part, standing: Standing, expected: ExpectedViews) {
  if (expected.missing !== undefined || !expected.isIncomplete) return expected.missing
  // Without a snapshot, a running Till may have forgotten keys during the scan.
  const views = yield* Views
  const forgotten = (yield* views.runningTime(yield* Clock.currentTimeMillis)) - RETENTION_MILLIS
  let missing: Named | undefined
  yield* overJournal(part, standing, (projections) => {
    missing ??= projections
      .values()
      .map((projection) => expected.missingAmong(projection, forgotten))
      .find(Boolean)
    return missing === undefined
  })
  return missing
})
