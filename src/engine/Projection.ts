/**
 * Projection: the fold of records into rows of the views. Pure; the one definition of what the views hold.
 *
 * Several changes of one document within a batch become one row: only the last is ever looked at.
 */
import type { AccountId, Labels, Millis } from "./Document.ts"
import type { JournalRecord } from "./Record.ts"

export interface DocumentRow {
  readonly account: AccountId
  readonly id: string
  readonly kind: string
  readonly version: number
  /** JSON text; null for a tombstone. */
  readonly document: string | null
  readonly hidden: string | null
  readonly labels: Labels
}

/** Points to an event inside the journal. */
export interface EventRow {
  readonly account: AccountId
  readonly id: string
  readonly type: string
  readonly version: number
}

export interface TimerRow {
  readonly account: AccountId
  readonly id: string
  readonly name: string
  readonly version: number
  readonly dueAt: Millis
}

/** Points to the response to a request inside the journal. */
export interface KeyRow {
  readonly account: AccountId
  readonly key: string
  readonly fingerprint: string
  readonly version: number
  readonly at: Millis
}

export interface Projection {
  /** From which version to which the rows carry each account. */
  readonly checkpoints: ReadonlyArray<{ readonly account: AccountId; readonly from: number; readonly to: number }>
  readonly documents: ReadonlyArray<DocumentRow>
  readonly events: ReadonlyArray<EventRow>
  readonly timersSet: ReadonlyArray<TimerRow>
  readonly timersCleared: ReadonlyArray<{ readonly account: AccountId; readonly id: string }>
  readonly keys: ReadonlyArray<KeyRow>
}

/** Folds records, each account's in ascending order without a gap, into rows. */
export const project = (records: ReadonlyArray<JournalRecord>): Projection => {
  const checkpoints = new Map<AccountId, { account: AccountId; from: number; to: number }>()
  const documents = new Map<string, DocumentRow>()
  const timers = new Map<
    string,
    TimerRow | { readonly account: AccountId; readonly id: string; readonly dueAt: null }
  >()
  const keys = new Map<string, KeyRow>()
  const events: Array<EventRow> = []
  for (const { account, at, changes, events: emitted, request, response, timers: moved, version } of records) {
    const checkpoint = checkpoints.get(account)
    if (checkpoint === undefined) checkpoints.set(account, { account, from: version - 1, to: version })
    else checkpoint.to = version
    for (const { document, hidden, id, kind, labels } of changes) {
      documents.set(`${account}/${id}`, { account, id, kind, version, document, hidden, labels })
    }
    for (const { id, type } of emitted) events.push({ account, id, type, version })
    for (const { dueAt, id, name } of moved) {
      timers.set(`${account}/${id}`, dueAt === null ? { account, id, dueAt } : { account, id, name, version, dueAt })
    }
    if (response !== null && request?.idempotencyKey != null && request.fingerprint !== null) {
      const { fingerprint, idempotencyKey: key } = request
      keys.set(`${account}/${key}`, { account, key, fingerprint, version, at })
    }
  }
  const timersSet: Array<TimerRow> = []
  const timersCleared: Array<{ account: AccountId; id: string }> = []
  for (const timer of timers.values()) {
    if (timer.dueAt === null) timersCleared.push({ account: timer.account, id: timer.id })
    else timersSet.push(timer as TimerRow)
  }
  return {
    checkpoints: [...checkpoints.values()],
    documents: [...documents.values()],
    events,
    timersSet,
    timersCleared,
    keys: [...keys.values()]
  }
}
