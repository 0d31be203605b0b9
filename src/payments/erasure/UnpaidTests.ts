/**
 * Retention of unpaid payments of test environments (semantics storage.unpaid): payments that were canceled or never
 * paid, and expired Checkout Sessions, are deleted with everything that belongs to them, a number of days after their
 * last change.
 *
 * - A command deletes the documents of several payments, unless one has changed since it was read. Afterwards their
 *   texts and events leave the older records, as in an erasure (`Erasures.ts`).
 * - The command's record names the deleted documents, and its timer stands until that work is done: it goes on after a
 *   crash, or in the next process that serves the account.
 * - A payment stays while a webhook about one of its events is pending.
 */
import { Clock, Effect, Layer } from "effect"
import type { PaymentIntentStatus } from "../../domain/PaymentIntentStates.ts"
import { Accounts, type HistoryEntry, type Unavailable } from "../../engine/Accounts.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import * as Erasures from "../../engine/Erasures.ts"
import type { ErasureStore } from "../../engine/Erasures.ts"
import type { AccountId, Document, Identified, Kind, Labels, Millis } from "../../engine/log/Document.ts"
import { ErasureKey } from "../../engine/log/Erased.ts"
import { idAt } from "../../engine/log/Identifiers.ts"
import { Journal, type StorageFailure } from "../../engine/log/Journal.ts"
import {
  type Change,
  isAnswer,
  type JournalCorrupt,
  type JournalRecord,
  readRow,
  tryRead
} from "../../engine/log/Record.ts"
import { logOf } from "../../engine/process/Log.ts"
import { Placement } from "../../engine/process/Placement.ts"
import { type Paced, Pruning } from "../../engine/process/Pruning.ts"
import type { DocumentFormats } from "../../engine/views/DocumentFormats.ts"
import type { DocumentRow } from "../../engine/views/Projection.ts"
import { type Cursor, recordVersion, Views } from "../../engine/views/Views.ts"
import { isTest } from "../shared/AccountIds.ts"
import {
  CHARGE,
  CHECKOUT_SESSION,
  LINE_ITEMS,
  lineItemsId,
  OPERATION,
  PAYMENT_INTENT,
  REFUND
} from "../shared/Documents.ts"
import { NOTES_OF, notesOfId, PAYMENT_NOTE } from "../lifecycles/PaymentNotes.ts"
import { isDocumentOf } from "../shared/ReadDocument.ts"
import { amongCondition, FILTERED_PAYMENT_INTENT } from "../shared/Search.ts"
import { subjectOf, timer, timerId, type TimerName } from "../shared/TimerNames.ts"

const log = logOf("payments")

const UNPAID: ReadonlyArray<PaymentIntentStatus> = [
  "canceled",
  "requires_action",
  "requires_confirmation",
  "requires_payment_method"
]
const FORGET: TimerName = "data.forget"
const EVERY_MILLIS = 3_600_000
const DAY_MILLIS = 86_400_000
/** The timer is set again as often until the work is done. */
const LEASE_MILLIS = 3_600_000
const PAGE = 100
/** Documents that a command deletes, at least unless fewer are left. */
const BATCH = 100
/** Records replaced in one transaction, at most. */
const RECORDS_MAX = 100
/** Deliveries of one event. */
const DELIVERIES_MAX = 10_000

const DELETED = [CHARGE, CHECKOUT_SESSION, LINE_ITEMS, NOTES_OF, OPERATION, PAYMENT_INTENT, PAYMENT_NOTE, REFUND]
const KINDS = new Map(DELETED.map((kind) => [kind.name, kind as unknown as Kind<Identified, unknown>]))

type Failure = Unavailable | StorageFailure | JournalCorrupt

/** Deletes documents. Returns false, and changes nothing, if one of them is not as it was read. */
const forget = Effect.fnUntraced(function* (
  documents: ReadonlyArray<Document>
): Effect.fn.Return<boolean, never, Transaction> {
  const transaction = yield* Transaction
  for (const { id, kind, version } of documents) {
    if ((yield* transaction.get(KINDS.get(kind)!, id))?.version !== version) return false
  }
  for (const { id, kind } of documents) transaction.delete(KINDS.get(kind)!, id)
  transaction.setTimer(timer(FORGET, documents[0]!.id, transaction.now + LEASE_MILLIS))
  return true
})

/** Keeps the timer of work that is not done. */
export const resume = (id: string): Effect.Effect<void, never, Transaction> =>
  Effect.map(Transaction, (transaction) => transaction.setTimer(timer(FORGET, id, transaction.now + LEASE_MILLIS)))

/** Returns a record without the texts of deleted documents, and without their events. */
const without =
  (documents: ReadonlySet<string>, events: ReadonlySet<string>) =>
  (record: JournalRecord): JournalRecord => {
    const changes = record.changes.map((change) => (documents.has(change.id) ? tombstoneOf(change) : change))
    const kept = record.events.filter(({ id }) => !events.has(id))
    const deliveries = record.deliveries.filter(({ event }) => !events.has(event))
    const first = changes.find((change, i) => change !== record.changes[i])
    const isSame =
      first === undefined && kept.length === record.events.length && deliveries.length === record.deliveries.length
    if (isSame) return record
    const { apiVersion, response } = record
    return {
      ...record,
      changes,
      events: kept,
      deliveries,
      apiVersion: kept.length === 0 ? null : apiVersion,
      response:
        first !== undefined && response !== null && isAnswer(response)
          ? { ...response, body: JSON.stringify({ id: first.id, object: first.kind, deleted: true }) }
          : response
    }
  }

const tombstoneOf = (change: Change): Change =>
  change.document === null
    ? change
    : { ...change, document: null, hidden: null, labels: {}, format: 1, value: undefined }

/** Reads payments with everything that belongs to them. */
const makeReads = Effect.gen(function* () {
  const accounts = yield* Accounts

  const historyOf = Effect.fnUntraced(function* (account: AccountId, ids: ReadonlyArray<string>, labels: Labels = {}) {
    const all: Array<HistoryEntry> = []
    for (let cursor: Cursor = {}; ;) {
      const { entries, hasMore } = yield* accounts.history(account, { ids, labels, limit: PAGE, ...cursor })
      all.push(...entries)
      if (!hasMore) return all
      cursor = { olderThan: entries.at(-1)!.id }
    }
  })

  /** Returns documents that may be deleted together; none if one was changed since a time or has a pending webhook. */
  const unchanged = Effect.fnUntraced(function* (
    account: AccountId,
    before: Millis,
    ids: ReadonlyArray<string>,
    labels?: Labels
  ): Effect.fn.Return<ReadonlyArray<Document>, Unavailable> {
    const entries = yield* historyOf(account, ids, labels)
    if (entries[0] === undefined || entries[0].at >= before) return []
    const pending = yield* accounts.pendingDeliveries(account, eventsOf(entries))
    if (pending.some((count) => count > 0)) return []
    const newest = new Map<string, HistoryEntry["documents"][number]>()
    for (const document of entries.flatMap(({ documents }) => documents)) {
      if (!newest.has(document.id)) newest.set(document.id, document)
    }
    return [...newest.values()].filter((document) => !document.deleted)
  })

  const ofPayment = Effect.fnUntraced(function* (account: AccountId, before: Millis, id: string) {
    const payment = yield* accounts.read(account, id)
    if (!isDocumentOf(payment, PAYMENT_INTENT) || payment.value.pending_operation !== undefined) return []
    const session = payment.hidden?.checkoutSession
    const ofSession = session === undefined ? [] : [session, lineItemsId(session)]
    const found = yield* unchanged(account, before, [id, notesOfId(id), ...ofSession], { payment_intent: id })
    const sessions = found.filter((document) => isDocumentOf(document, CHECKOUT_SESSION))
    return sessions.every(({ value }) => value.status === "expired") ? found : []
  })

  /** A session goes with its payment, if it has one. */
  const ofSession = Effect.fnUntraced(function* (account: AccountId, before: Millis, id: string) {
    const session = yield* accounts.read(account, id)
    if (!isDocumentOf(session, CHECKOUT_SESSION)) return []
    const { payment_intent } = session.value
    return payment_intent === null ? yield* unchanged(account, before, [id, lineItemsId(id)]) : []
  })

  return { historyOf, ofPayment, ofSession }
})

const eventsOf = (entries: ReadonlyArray<HistoryEntry>): ReadonlyArray<string> =>
  entries.flatMap(({ events }) => events.map(({ id }) => id))

/** Makes the function that takes the texts of deleted documents out of the records before. */
const makeTakeAway = Effect.fnUntraced(function* (key: ErasureKey) {
  const accounts = yield* Accounts
  const journal = yield* Journal
  const rewrite = yield* Erasures.makeAt(key)
  const { historyOf } = yield* makeReads

  /** Returns the documents that the record of a deletion has deleted; none after a wipe. */
  const deletedWith = Effect.fnUntraced(function* (
    account: AccountId,
    id: string
  ): Effect.fn.Return<ReadonlyArray<string>, Failure> {
    const entry = yield* accounts.read(account, id)
    const [row] = entry?.deleted === true ? yield* journal.at([{ account, version: entry.version }]) : []
    const changes = row === undefined ? [] : (yield* tryRead(() => readRow(row))).changes
    return changes.filter(({ document }) => document === null).map(({ id }) => id)
  })

  return Effect.fnUntraced(function* (account: AccountId, subject: string): Effect.fn.Return<void, Failure> {
    const ids = yield* deletedWith(account, subject)
    const entries = ids.length === 0 ? [] : yield* historyOf(account, ids)
    const events = eventsOf(entries)
    // An event that was sent again has deliveries in other records, too.
    const sent = (yield* accounts.eventDeliveries(account, events, DELIVERIES_MAX)).flat()
    const found = new Set([...entries.map(({ id }) => recordVersion(id)), ...sent.map(({ version }) => version)])
    const versions = [...found].toSorted((a, b) => a - b)
    const change = without(new Set(ids), new Set(events))
    for (let i = 0; i < versions.length; i += RECORDS_MAX) {
      yield* rewrite(account, versions.slice(i, i + RECORDS_MAX), change)
    }
    yield* accounts.run(
      account,
      Effect.map(Transaction, (transaction) => transaction.clearTimer(timerId(FORGET, subject)))
    )
  })
})

type Needs = Accounts | DocumentFormats | ErasureStore | Journal | Placement | Views

/** Makes a pass over the test environments that this process serves: it deletes what was last changed before a time. */
export const make = Effect.fnUntraced(function* (
  key: ErasureKey
): Effect.fn.Return<(before: Millis, paced: Paced) => Effect.Effect<void, StorageFailure>, never, Needs> {
  const accounts = yield* Accounts
  const placement = yield* Placement
  const views = yield* Views
  const takeAway = yield* makeTakeAway(key)
  const { ofPayment, ofSession } = yield* makeReads
  const [filter] = amongCondition("status", UNPAID, FILTERED_PAYMENT_INTENT).filters

  const ofAccount = Effect.fnUntraced(function* (
    account: AccountId,
    before: Millis,
    paced: Paced
  ): Effect.fn.Return<void, Failure> {
    let batch: Array<Document> = []
    const end = Effect.suspend((): Effect.Effect<void, Failure> => {
      const [documents, subject] = [batch, batch[0]?.id]
      batch = []
      if (subject === undefined) return Effect.void
      const deleted = accounts.run(account, forget(documents))
      return paced(Effect.flatMap(deleted, (isDone) => (isDone ? takeAway(account, subject) : Effect.void)))
    })
    const each = Effect.fnUntraced(function* (
      read: (cursor: Cursor) => Effect.Effect<ReadonlyArray<DocumentRow>, StorageFailure>,
      documentsOf: (
        account: AccountId,
        before: Millis,
        id: string
      ) => Effect.Effect<ReadonlyArray<Document>, Unavailable>
    ): Effect.fn.Return<void, Failure> {
      for (let cursor: Cursor = {}; ;) {
        const rows = yield* paced(read(cursor))
        for (const { id } of rows) {
          batch.push(...(yield* paced(documentsOf(account, before, id))))
          if (batch.length >= BATCH) yield* end
        }
        yield* end
        if (rows.length < PAGE) return
        cursor = { olderThan: rows.at(-1)!.id }
      }
    })
    const [payments, sessions] = [PAYMENT_INTENT, CHECKOUT_SESSION].map(({ name: kind, prefix }) => ({
      kind,
      prefix: prefix!,
      before: idAt(prefix!, before),
      limit: PAGE
    }))
    yield* each((cursor) => views.search(account, { ...payments!, filter: filter!, ...cursor }), ofPayment)
    const labels = { status: "expired" }
    yield* each((cursor) => views.list(account, { ...sessions!, labels, ...cursor }), ofSession)
  })

  /** An account that fails does not keep the others. */
  const safely = (account: AccountId, work: Effect.Effect<void, Failure>) =>
    Effect.catchCause(work, (cause) =>
      log.warning(`Old test payments of account ${account} could not be deleted`, cause, { cause: "not forgotten" })
    )

  return Effect.fnUntraced(function* (before, paced) {
    for (const { account, id } of yield* views.timersNamed(FORGET, placement.held(), Number.MAX_SAFE_INTEGER)) {
      yield* safely(account, paced(takeAway(account, subjectOf(id))))
    }
    for (const account of yield* views.accounts) {
      if (isTest(account) && placement.isHere(account)) yield* safely(account, ofAccount(account, before, paced))
    }
  })
})

/** Deletes unpaid payments of test environments `days` days after their last change. */
export const layer = (days: number): Layer.Layer<never, never, Needs | Pruning> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const key = yield* ErasureKey
      if (key === null) return
      const pass = yield* make(key)
      yield* (yield* Pruning).add({
        name: "test payments",
        everyMillis: EVERY_MILLIS,
        pass: (paced) => Effect.flatMap(Clock.currentTimeMillis, (now) => pass(now - days * DAY_MILLIS, paced))
      })
    })
  )
