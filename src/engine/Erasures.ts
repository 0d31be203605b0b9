/**
 * Erasure: replaces texts of records, so that a person's data, or an object past its retention, is gone from the
 * journal and from everything that is read from it, and its chain of hashes still proves all records.
 *
 * - A replaced row keeps its hash and gets a digest of it, of the new text and of its predecessor's hash (`Record.ts`).
 *   A record of the same account notes the digests before the rows are replaced. It is chained like all others, and
 *   signed: `Verify.ts` accepts no other replaced row.
 * - Rows of views that point into a replaced text are replaced in the same transaction.
 * - A command may still copy data from the account's memory until that is dropped. So the records since then are read
 *   as well, until none is left to replace.
 * - It may end at any point and begin again: what is replaced already stays the same.
 */
import { Context, Effect } from "effect"
import { Accounts, type Unavailable } from "./Accounts.ts"
import { Transaction } from "./actor/Transaction.ts"
import type { AccountId } from "./log/Document.ts"
import { type ErasureKey, signatureOf } from "./log/Erased.ts"
import { Journal, type StorageFailure } from "./log/Journal.ts"
import {
  BEFORE_ALL,
  type ChainHead,
  checkLink,
  type DeliveryEntry,
  type Erased,
  type ErasedRow,
  type EventEntry,
  type JournalCorrupt,
  type JournalRecord,
  type JournalRow,
  missingRecord,
  replace,
  type Sealed,
  tryRead,
  unseal
} from "./log/Record.ts"
import { DocumentFormats } from "./views/DocumentFormats.ts"
import { type ProjectedDocument, project } from "./views/Projection.ts"

/** Records read at a time. */
const PAGE = 250

/** An attempt whose response is not kept. */
export interface ReplacedAttempt {
  readonly destination: string
  readonly id: string
  readonly attempt: number
}

/** A row with its new text. */
export interface ReplacedRow extends ErasedRow {
  /** The digest of the row that it replaces; null for an original one. */
  readonly digestBefore: string | null
}

/** A document of a replaced record. */
export interface ReplacedDocument extends ProjectedDocument {
  /** Its id in the record before: an id that held a person's data is replaced, too. */
  readonly idBefore: string
}

/** Rows to replace together. */
export interface Replacement {
  readonly rows: ReadonlyArray<ReplacedRow>
  /** Documents of these records; a row of the views is replaced if it has the same version. */
  readonly documents: ReadonlyArray<ReplacedDocument>
  readonly attempts: ReadonlyArray<ReplacedAttempt>
  /** Events and deliveries that these records no longer have: their rows leave the views. */
  readonly events: ReadonlyArray<Pick<EventEntry, "id" | "type">>
  readonly deliveries: ReadonlyArray<Pick<DeliveryEntry, "id" | "destination">>
}

/** A person whose data is erased, by the id of the customer or of the member of a team. */
export interface ErasedPerson {
  readonly account: AccountId
  readonly id: string
  readonly isDone: boolean
}

/** How a logged request is recognized. Texts are found in any case of letters. */
export interface Traces {
  /** Ids of objects that the request is about: in its path or answer or, if it was refused, in what was sent. */
  readonly ids: ReadonlyArray<string>
  /** Texts that no request may hold. */
  readonly texts: ReadonlyArray<string>
  /** Texts that the query of a search may not hold; other requests may have them by chance. */
  readonly searched: ReadonlyArray<string>
}

export interface ErasureStoreShape {
  /** All erasures that were begun, in ascending order of account and id. */
  readonly people: Effect.Effect<ReadonlyArray<ErasedPerson>, StorageFailure>
  /** Notes that an erasure is begun, perhaps once more, or done. */
  readonly note: (person: ErasedPerson) => Effect.Effect<void, StorageFailure>
  /** Replaces all rows, or none. Fails if one of them was replaced since it was read. */
  readonly replace: (account: AccountId, replacement: Replacement) => Effect.Effect<void, StorageFailure>
  /** Deletes the logged requests in which a person can be recognized. */
  readonly deleteRequests: (account: AccountId, traces: Traces) => Effect.Effect<void, StorageFailure>
}

/** Port. */
export class ErasureStore extends Context.Service<ErasureStore, ErasureStoreShape>()("till/engine/ErasureStore") {}

/** Chooses and changes the records that hold a person's data. */
export interface Eraser {
  /**
   * Returns a record without the data, or the same record if there is none in it; undefined if it does not concern the
   * person.
   */
  readonly without: (record: JournalRecord) => JournalRecord | undefined
  /**
   * Returns false for a row that does not concern the person: its hash is checked, and it is not parsed. All rows may,
   * unless given.
   */
  readonly mayConcern?: (row: JournalRow) => boolean
  /** Waits after each page, so that other work goes on. */
  readonly pause: Effect.Effect<void>
  /** Whether all records are replaced in one transaction; those of each page otherwise. */
  readonly atOnce?: boolean
}

interface Pass {
  readonly replaced: number
  readonly documents: ReadonlyArray<string>
  readonly keys: ReadonlyArray<string>
  readonly head: ChainHead
}

/** Makes the function that notes replacements of an account's records, and carries them out. */
const makeReplaceAll = Effect.fnUntraced(function* (key: ErasureKey) {
  const accounts = yield* Accounts
  const formats = yield* DocumentFormats
  const store = yield* ErasureStore
  return Effect.fnUntraced(function* (
    account: AccountId,
    replaced: ReadonlyArray<Replaced>
  ): Effect.fn.Return<void, Unavailable | StorageFailure | JournalCorrupt> {
    const rows = replaced.map(({ row }) => [row.version, row.erased] as const)
    yield* accounts.run(account, noting(key, account, rows))
    const documents = yield* tryRead(() =>
      replaced.flatMap(({ idsBefore, record }) =>
        project([formats.derived(record)]).documentsChanged.map((row) => ({
          ...row,
          idBefore: idsBefore.get(row.id) ?? row.id
        }))
      )
    )
    yield* store.replace(account, {
      rows: replaced.map(({ digestBefore, row }) => ({ ...row, digestBefore })),
      documents,
      attempts: replaced.flatMap(({ attempts }) => attempts),
      events: replaced.flatMap(({ events }) => events),
      deliveries: replaced.flatMap(({ deliveries }) => deliveries)
    })
  })
})

const everyRow = () => true

/** Checks consecutive rows, and parses those that may concern a person. */
const checked = (
  head: ChainHead,
  page: ReadonlyArray<JournalRow>,
  mayConcern: (row: JournalRow) => boolean
): ReadonlyArray<readonly [JournalRow, Sealed]> => {
  let previous = head
  return page.flatMap((row) => {
    const before = previous
    previous = row
    if (mayConcern(row)) return [[row, unseal(before, row)]]
    checkLink(before, row)
    return []
  })
}

/** Makes the function that erases a person's data from an account's records and returns the number of these. */
export const make = Effect.fnUntraced(function* (key: ErasureKey) {
  const accounts = yield* Accounts
  const journal = yield* Journal
  const replaceAll = yield* makeReplaceAll(key)

  const pass = Effect.fnUntraced(function* (
    account: AccountId,
    from: ChainHead,
    until: number,
    { atOnce = false, mayConcern = everyRow, pause, without }: Eraser
  ): Effect.fn.Return<Pass, Unavailable | StorageFailure | JournalCorrupt> {
    const documents = new Set<string>()
    const keys = new Set<string>()
    let head = from
    let count = 0
    let replaced: Array<Replaced> = []
    while (head.version < until) {
      const page = yield* journal.read(account, head.version, Math.min(PAGE, until - head.version))
      if (page.length === 0) break
      const concerning = yield* tryRead(() => checked(head, page, mayConcern))
      for (const [row, before] of concerning) {
        const after = without(before.record)
        if (after === undefined) continue
        for (const { id } of before.record.changes) documents.add(id)
        const idempotencyKey = before.record.request?.idempotencyKey
        if (idempotencyKey != null) keys.add(idempotencyKey)
        if (after !== before.record) replaced.push(replacedOf(before, after, row))
      }
      head = { version: page.at(-1)!.version, hash: page.at(-1)!.hash }
      if (replaced.length > 0 && (!atOnce || head.version >= until)) {
        yield* replaceAll(account, replaced)
        count += replaced.length
        replaced = []
      }
      yield* pause
    }
    return { replaced: count, documents: [...documents], keys: [...keys], head }
  })

  return Effect.fnUntraced(function* (
    account: AccountId,
    eraser: Eraser
  ): Effect.fn.Return<number, Unavailable | StorageFailure | JournalCorrupt> {
    let until = yield* accounts.dropReplaced(account, [], [])
    let head = BEFORE_ALL
    let count = 0
    for (let isFirst = true; ; isFirst = false) {
      const found = yield* pass(account, head, until, eraser)
      count += found.replaced
      head = found.head
      if (found.replaced === 0 && !isFirst) return count
      until = yield* accounts.dropReplaced(account, found.documents, found.keys)
    }
  })
})

/** Makes the function that changes an account's records of these versions, in ascending order, and no others. */
export const makeAt = Effect.fnUntraced(function* (key: ErasureKey) {
  const journal = yield* Journal
  const replaceAll = yield* makeReplaceAll(key)
  return Effect.fnUntraced(function* (
    account: AccountId,
    versions: ReadonlyArray<number>,
    without: (record: JournalRecord) => JournalRecord
  ): Effect.fn.Return<void, Unavailable | StorageFailure | JournalCorrupt> {
    const rows = yield* journal.at(versions.map((version) => ({ account, version })))
    const replaced = yield* tryRead(() =>
      rows.flatMap((row, i) => {
        if (row === undefined) throw missingRecord(account, versions[i]!)
        const before = unseal({ version: row.version - 1, hash: row.previous }, row)
        const after = without(before.record)
        return after === before.record ? [] : [replacedOf(before, after, row)]
      })
    )
    if (replaced.length > 0) yield* replaceAll(account, replaced)
  })
})

/** A command that notes the replacement of rows. */
export const noting = (
  key: ErasureKey,
  account: AccountId,
  rows: Erased["rows"]
): Effect.Effect<void, never, Transaction> =>
  Effect.map(Transaction, (transaction) => transaction.noteErased({ rows, signature: signatureOf(key, account, rows) }))

interface Replaced extends ReturnType<typeof replace> {
  readonly digestBefore: string | null
  /** The ids that were replaced, by the new ones. */
  readonly idsBefore: ReadonlyMap<string, string>
  readonly attempts: ReadonlyArray<ReplacedAttempt>
  readonly events: Replacement["events"]
  readonly deliveries: Replacement["deliveries"]
}

const replacedOf = (before: Sealed, after: JournalRecord, { erased }: JournalRow): Replaced => ({
  ...replace(before, after),
  digestBefore: erased ?? null,
  idsBefore: new Map(after.changes.map(({ id }, i) => [id, before.record.changes[i]!.id])),
  attempts: after.attempts.filter((attempt, i) => attempt.body !== before.record.attempts[i]?.body),
  events: missingIn(after.events, before.record.events),
  deliveries: missingIn(after.deliveries, before.record.deliveries)
})

/** The items of a list that a shorter one lacks. */
const missingIn = <A extends { readonly id: string }>(
  after: ReadonlyArray<A>,
  before: ReadonlyArray<A>
): ReadonlyArray<A> =>
  after.length === before.length ? [] : before.filter(({ id }) => after.every((other) => other.id !== id))
