/**
 * Formats of documents: converts documents of older releases into the newest format when they are read.
 *
 * - Journal and views keep every document as it was written, with its format. Every read converts it into the newest
 *   format of its kind; the engine's memory holds no other, and a change writes that format.
 * - A document in the newest format is neither parsed nor encoded: it costs one look-up and one comparison.
 * - Images in events that are read through `Accounts` are converted in the same way. Deliveries and the answers to
 *   repeated requests keep their bytes (semantics webhooks.body, idempotency.replay).
 */
import { Context, Layer } from "effect"
import { parseJson } from "../../json/JsonParse.ts"
import { ofDocument } from "../log/Checksum.ts"
import {
  type AccountId,
  type Document,
  type JsonObject,
  type Step,
  stored,
  type StoredTexts,
  type Tombstone
} from "../log/Document.ts"
import type { StoredEvent } from "../log/Events.ts"
import {
  AS_SHOWN,
  type Change,
  changedRecord,
  type Derivation,
  derivedOf,
  derivedOfDeleted,
  derives,
  JournalCorrupt,
  missingRecord,
  type SealedRecord
} from "../log/Record.ts"
import type { DocumentTexts } from "./Views.ts"

/** The part of a kind that this module uses. */
export interface Formatted extends Derivation<never> {
  readonly name: string
  readonly steps?: ReadonlyArray<Step>
}

export interface DocumentFormatsShape {
  /** Converts a row to its document. Throws `JournalCorrupt` for a changed or lost one, or a newer Till's. */
  readonly document: (row: DocumentTexts) => Document | Tombstone
  /** Converts a change to its document. Throws `JournalCorrupt` if a newer Till wrote it. */
  readonly change: (account: AccountId, version: number, change: Change) => Document | Tombstone
  /** Converts the object of an event into the newest format. Throws `JournalCorrupt` if a newer Till wrote it. */
  readonly event: (account: AccountId, event: StoredEvent) => StoredEvent
  /** Adds search terms and tallies to a record from the journal. Throws `JournalCorrupt` for a newer Till's. */
  readonly derived: (record: SealedRecord) => SealedRecord
}

/**
 * The formats of all kinds of documents; `kindOfEvent` returns the kind of the object in events of a type. The module
 * that owns the kinds provides this service.
 */
export class DocumentFormats extends Context.Service<DocumentFormats, DocumentFormatsShape>()(
  "till/engine/DocumentFormats"
) {
  static readonly layer = (
    kinds: ReadonlyArray<Formatted>,
    kindOfEvent: (type: string) => string | undefined
  ): Layer.Layer<DocumentFormats> => Layer.succeed(DocumentFormats, make(kinds, kindOfEvent))
}

const NO_STEPS: ReadonlyArray<Step> = []

export const make = (
  kinds: ReadonlyArray<Formatted>,
  kindOfEvent: (type: string) => string | undefined
): DocumentFormatsShape => {
  const known = new Map(kinds.map(({ name, steps = NO_STEPS }) => [name, steps]))
  const stepsOf = (kind: string): ReadonlyArray<Step> => known.get(kind) ?? NO_STEPS
  /** Converts the texts of a document into the newest format. */
  const newestOf = (account: AccountId, texts: StoredTexts): Document | Tombstone => {
    const { document, format, hidden, id, kind, version } = texts
    const steps = stepsOf(kind)
    const newest = 1 + steps.length
    if (document === null || format === newest) return stored(texts)
    if (format > newest) throw tooNew(account, version, id, format, newest)
    return stored({ ...texts, ...textsAfter(steps.slice(format - 1), document, hidden), format: newest })
  }
  const derivations = new Map(
    kinds.filter(derives).map((kind): readonly [string, Derivation<never>] => [kind.name, kind])
  )
  return {
    derived: (record) => {
      if (!record.changes.some(({ kind }) => derivations.has(kind))) return record
      const changes = record.changes.map((change) => {
        const { document, format, id, kind } = change
        const derivation = derivations.get(kind)
        if (derivation === undefined) return change
        if (document === null) return { ...change, ...derivedOfDeleted(derivation) }
        const steps = stepsOf(kind)
        if (format > 1 + steps.length) throw tooNew(record.account, record.version, id, format, 1 + steps.length)
        const newer =
          format === 1 + steps.length
            ? (change.value ?? parseJson(document))
            : parseJson(textsAfter(steps.slice(format - 1), document, change.hidden).document)
        return { ...change, ...derivedOf(derivation, newer as never) }
      })
      return { ...record, changes }
    },
    document: (row) => {
      const { account, document, hidden, id, version } = row
      if (document === null && row.documentSpan !== null) throw missingRecord(account, version)
      if (ofDocument(row, document, hidden) !== row.checksum) throw changedRecord(account, version, id)
      return newestOf(account, row)
    },
    change: (account, version, { document, format, hidden, id, kind, labels }) =>
      newestOf(account, { id, kind, version, format, document, hidden, labels }),
    event: (account, event) => {
      const { format, id, object, version } = event
      const steps = stepsOf(kindOfEvent(event.type) ?? "")
      const newest = 1 + steps.length
      if (format === newest || format === AS_SHOWN) return event
      if (format > newest) throw tooNew(account, version, id, format, newest)
      // An image has no hidden part.
      const values = steps.slice(format - 1).flatMap(({ value }) => (value === undefined ? [] : [{ value }]))
      return { ...event, object: textsAfter(values, object, null).document, format: newest }
    }
  }
}

const tooNew = (account: AccountId, version: number, id: string, format: number, newest: number): JournalCorrupt => {
  const problem = `holds ${id} in format ${format}, which a newer Till wrote; this one reads formats up to ${newest}`
  return new JournalCorrupt({ account, version, problem })
}

/** Runs steps on the JSON texts of a document, and returns the new texts. */
const textsAfter = (steps: ReadonlyArray<Step>, document: string, hidden: string | null) => {
  const older = { value: parseJson(document) as JsonObject, hidden: hidden === null ? undefined : parseJson(hidden) }
  const newer = steps.reduce(
    ({ hidden, value }, step) => ({
      value: step.value === undefined ? value : step.value(value),
      hidden: step.hidden === undefined ? hidden : step.hidden(hidden, value)
    }),
    older
  )
  return {
    document: JSON.stringify(newer.value),
    hidden: newer.hidden === undefined ? null : JSON.stringify(newer.hidden)
  }
}

/** A step that adds fields, with their values in older documents. */
export const adding =
  (fields: JsonObject) =>
  (older: JsonObject): JsonObject => ({ ...older, ...fields })

/** A step that renames fields, given as old name to new name. The fields keep their positions. */
export const renaming =
  (names: Readonly<Record<string, string>>) =>
  (older: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(older).map(([name, value]) => [names[name] ?? name, value]))

/** A step that changes the object in a field, or each object in a list there. Null stays null. */
export const inside =
  (field: string, change: (older: JsonObject) => JsonObject) =>
  (older: JsonObject): JsonObject => {
    const found = older[field]
    if (found === undefined || found === null) return older
    const changed = Array.isArray(found) ? found.map((item: JsonObject) => change(item)) : change(found as JsonObject)
    return { ...older, [field]: changed }
  }
