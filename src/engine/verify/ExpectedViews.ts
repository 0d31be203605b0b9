/**
 * The rows that the views must hold for an account, or for a part of its rows, according to the journal. They are
 * folded from projections and compared with the views' rows in any order.
 *
 * Rows that a later record can change only by naming them are kept as digests. A missing one is therefore counted but
 * not named: `missingAmong` finds its name when the journal is read once more.
 */
import type { Millis } from "../log/Document.ts"
import { RowDigests } from "../process/RowDigests.ts"
import {
  type DeliveryRow,
  moved,
  type ProjectedDocument,
  type Projection,
  type RevisionRow,
  type SubscriptionRow,
  sweepTables,
  type TimerRow
} from "../views/Projection.ts"
import { rowText } from "../views/RowText.ts"
import { addTo, isNothing, type Sums, sumsOf, tallyId } from "../log/Tallies.ts"
import { deliveryId, eventId, keyId, revisionAt, revisionId, type ViewRow, type ViewTable } from "../views/Views.ts"

/** Memory of a whole row and of a sum, measured in digests. */
const WHOLE_ROW_WEIGHT = 8
const SUM_WEIGHT = 3

export interface Named {
  readonly table: ViewTable
  readonly id: string
}

/** Rows past their retention, which may be missing. */
export interface Forgettable {
  /** Keys used before this running time. */
  readonly keysBefore: Millis
  /** Events with smaller ids, and their deliveries. */
  readonly eventsBefore: string
}

export class ExpectedViews {
  readonly #holds: (id: string) => boolean
  readonly #forgettable: Forgettable
  readonly documents = new RowDigests()
  /** Revisions: the records that have written each document. The newest one is taken with the document's row. */
  readonly revisions = new RowDigests()
  readonly events = new RowDigests()
  readonly keys = new RowDigests()
  readonly #keysForgettable = new RowDigests()
  readonly #eventsForgettable = new RowDigests()
  readonly timers = new Map<string, TimerRow>()
  readonly subscriptions = new Map<string, SubscriptionRow>()
  readonly deliveries = new Map<string, DeliveryRow>()
  /** All sums that were ever counted, each over the documents seen in the views so far. */
  readonly tallies: Sums = new Map()

  /** Expects only rows whose ids `holds` accepts. */
  constructor(holds: (id: string) => boolean, forgettable: Forgettable) {
    this.#holds = holds
    this.#forgettable = forgettable
  }

  /** Memory of all rows that must or may be there, measured in digests. */
  get weight(): number {
    const { deliveries, documents, events, keys, revisions, subscriptions, tallies, timers } = this
    const whole = WHOLE_ROW_WEIGHT * (timers.size + subscriptions.size + deliveries.size) + SUM_WEIGHT * tallies.size
    const forgettable = this.#keysForgettable.size + this.#eventsForgettable.size
    return documents.size + revisions.size + events.size + keys.size + forgettable + whole
  }

  merge(projection: Projection): void {
    const { deliveriesMade, deliverySteps, documentsChanged, events, keys, subscriptionsSet, sweep } = projection
    const holds = this.#holds
    if (sweep !== null) this.#sweep(sweep)
    // In a projection read from the journal, all documents are in `documentsChanged`.
    for (const row of documentsChanged) {
      if (holds(row.id)) {
        this.documents.set(row.id, rowText.documents(row))
        this.#setRevision(row)
      }
      for (const sum of row.tallies?.flatMap(sumsOf) ?? []) {
        if (holds(tallyId(sum))) addTo(this.tallies, { ...sum, count: 0, amount: 0 })
      }
    }
    for (const row of projection.revisions) if (holds(row.id)) this.#setRevision(row)
    for (const row of events) {
      const id = eventId(row)
      const table = row.id < this.#forgettable.eventsBefore ? this.#eventsForgettable : this.events
      if (holds(id)) table.set(id, rowText.events(row))
    }
    for (const row of keys) {
      const id = keyId(row)
      const table = row.at < this.#forgettable.keysBefore ? this.#keysForgettable : this.keys
      if (holds(id)) table.set(id, rowText.keys(row))
    }
    for (const row of projection.timersSet) if (holds(row.id)) this.timers.set(row.id, row)
    for (const { id } of projection.timersCleared) this.timers.delete(id)
    for (const row of subscriptionsSet) if (holds(row.destination)) this.subscriptions.set(row.destination, row)
    for (const row of deliveriesMade) {
      const id = deliveryId(row)
      if (holds(id)) this.deliveries.set(id, row)
    }
    for (const step of deliverySteps) {
      const row = this.deliveries.get(deliveryId(step))
      if (row !== undefined) this.deliveries.set(deliveryId(step), moved(row, step))
    }
  }

  #setRevision(row: RevisionRow): void {
    this.revisions.set(revisionId(row), rowText.revisions(row))
  }

  #sweep(sweep: NonNullable<Projection["sweep"]>): void {
    if (sweep.wiped) for (const rows of [this.#keysForgettable, this.#eventsForgettable]) rows.clear()
    sweepTables(this, sweep)
  }

  /** Takes a row of the views off the expected ones. Returns its problem, or null. */
  take(
    table: ViewTable,
    { id, row }: ViewRow
  ): "differs from the journal" | "is in the views, but not in the journal" | null {
    if (table === "documents") this.#count(row as ProjectedDocument)
    // A document and its revisions belong to the same part.
    if (!this.#holds(table === "revisions" ? revisionAt(id).id : id)) return null
    const text = (rowText[table] as (row: ViewRow["row"]) => string)(row)
    const found = this.#takeText(table, id, text)
    if (found === "taken" && table === "documents") this.#takeRevision(row as ProjectedDocument)
    if (found === "taken") return null
    return found === "other" ? "differs from the journal" : "is in the views, but not in the journal"
  }

  #takeRevision(row: RevisionRow): void {
    this.revisions.take(revisionId(row), rowText.revisions(row))
  }

  /** Adds a document to the sums. Every expected sum is over all documents, of all parts. */
  #count({ tallies }: ProjectedDocument): void {
    for (const sum of tallies?.flatMap(sumsOf) ?? []) if (this.tallies.has(tallyId(sum))) addTo(this.tallies, sum)
  }

  #takeText(table: ViewTable, id: string, text: string): "taken" | "other" | "absent" {
    switch (table) {
      case "documents":
      case "revisions":
        return this[table].take(id, text)
      case "events":
      case "keys": {
        const found = this[table].take(id, text)
        const forgettable = table === "keys" ? this.#keysForgettable : this.#eventsForgettable
        return found === "absent" ? forgettable.take(id, text) : found
      }
      case "tallies": {
        const sum = this.tallies.get(id)
        if (sum === undefined || isNothing(sum)) return "absent"
        if (rowText.tallies(sum) !== text) return "other"
        this.tallies.delete(id)
        return "taken"
      }
      default: {
        const rows: Map<string, TimerRow | SubscriptionRow | DeliveryRow> = this[table]
        const row = rows.get(id)
        if (row === undefined) return "absent"
        if ((rowText[table] as (row: ViewRow["row"]) => string)(row) !== text) return "other"
        rows.delete(id)
        return "taken"
      }
    }
  }

  /** A required row that was not taken, among the rows that are kept whole. */
  missing({ eventsBefore }: Forgettable): Named | undefined {
    for (const table of ["timers", "subscriptions"] as const) {
      for (const id of this[table].keys()) return { table, id }
    }
    for (const [id, { event }] of this.deliveries) if (event >= eventsBefore) return { table: "deliveries", id }
    return undefined
  }

  /** A required sum that was not taken. */
  get missingTally(): Named | undefined {
    for (const [id, sum] of this.tallies) if (!isNothing(sum)) return { table: "tallies", id }
    return undefined
  }

  /** Whether a required row that is kept as a digest was not taken. */
  get isIncomplete(): boolean {
    return this.documents.left + this.revisions.left + this.events.left + this.keys.left > 0
  }

  /** A row of a projection that was not taken. More rows may have become forgettable during the scan. */
  missingAmong(
    { documentsChanged, events, keys, revisions }: Projection,
    { eventsBefore, keysBefore }: Forgettable
  ): Named | undefined {
    for (const { id } of documentsChanged) if (this.documents.has(id)) return { table: "documents", id }
    for (const row of [...documentsChanged, ...revisions]) {
      if (this.revisions.has(revisionId(row))) return { table: "revisions", id: revisionId(row) }
    }
    for (const row of events) {
      if (row.id >= eventsBefore && this.events.has(eventId(row))) return { table: "events", id: eventId(row) }
    }
    for (const row of keys) {
      if (row.at >= keysBefore && this.keys.has(keyId(row))) return { table: "keys", id: keyId(row) }
    }
    return undefined
  }
}
