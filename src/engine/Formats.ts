/**
 * Formats: documents that an older Till wrote are read as if today's had written them.
 *
 * - Journal and views keep every document as it was written, and its format with it. Whoever reads one from there gets it
 *   in the newest format of its kind; the engine's memory holds nothing else, and a change writes it in that.
 * - What is in the newest format is neither parsed nor encoded: one look-up and one comparison tell.
 * - Images in events become what documents become when they are read through `Accounts`. Deliveries and the answers to
 *   repeated requests stay, byte for byte, what they were (semantics W8, I6).
 */
import { Context, Layer } from "effect"
import type { Document, JsonObject, Step, Tombstone } from "./Document.ts"
import { formatOf, stored } from "./Document.ts"
import { JournalCorrupt, lost } from "./Record.ts"
import type { StoredEvent } from "./StoredEvent.ts"
import type { DocumentTexts } from "./Views.ts"

/** What is to be known of a kind to read its older documents. */
interface Formatted {
  readonly name: string
  readonly steps?: ReadonlyArray<Step>
}

export interface FormatsShape {
  /**
   * What a row stands for. Throws `JournalCorrupt` if the journal has lost the record, for the object was there; or if a
   * newer Till wrote it.
   */
  readonly document: (row: DocumentTexts) => Document | Tombstone
  /** An event with its object in the newest format; `account` is who it happened to. Throws `JournalCorrupt`. */
  readonly event: (account: string, event: StoredEvent) => StoredEvent
}

/** The formats of all kinds that the engine is to keep. Whoever knows the kinds provides it. */
export class Formats extends Context.Service<Formats, FormatsShape>()("till/engine/Formats") {
  static readonly layer = (kinds: ReadonlyArray<Formatted>): Layer.Layer<Formats> => Layer.succeed(Formats, make(kinds))
}

const NO_STEPS: ReadonlyArray<Step> = []

export const make = (kinds: ReadonlyArray<Formatted>): FormatsShape => {
  // Kinds without steps have one format, and so need no entry.
  const stepsOf = new Map(kinds.flatMap(({ name, steps = [] }) => (steps.length === 0 ? [] : [[name, steps] as const])))
  const later = (account: string, { format, id, kind, version }: Written): ReadonlyArray<Step> => {
    const steps = stepsOf.get(kind) ?? NO_STEPS
    if (format <= steps.length) return steps.slice(format - 1)
    const problem = `holds ${id} in format ${format}, which a newer Till wrote; this one reads formats up to ${1 + steps.length}`
    throw new JournalCorrupt({ account, version, problem })
  }
  const newestOf = (kind: string): number => formatOf({ steps: stepsOf.get(kind) ?? NO_STEPS })
  return {
    document: (row) => {
      const { account, document, format, hidden, kind } = row
      if (row.documentSpan !== null && document === null) throw lost(account, row.version)
      if (document === null || format === newestOf(kind)) return stored(row)
      return stored({ ...row, ...textsAfter(later(account, row), document, hidden), format: newestOf(kind) })
    },
    event: (account, event) => {
      const { format, kind, object } = event
      if (kind === null || format === newestOf(kind)) return event
      const { document } = textsAfter(later(account, { ...event, kind }), object, null)
      return { ...event, object: document, format: newestOf(kind) }
    }
  }
}

interface Written {
  readonly id: string
  readonly kind: string
  readonly format: number
  readonly version: number
}

/** JSON texts of a document after steps. */
const textsAfter = (steps: ReadonlyArray<Step>, document: string, hidden: string | null) => {
  const older = { value: JSON.parse(document) as JsonObject, hidden: hidden === null ? undefined : JSON.parse(hidden) }
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

/** Fields that are new, with what they are in what was written before there were any. */
export const adding =
  (fields: JsonObject) =>
  (older: JsonObject): JsonObject => ({ ...older, ...fields })

/** Fields that have another name now, by their old ones. They keep their places. */
export const renaming =
  (names: Readonly<Record<string, string>>) =>
  (older: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(older).map(([name, value]) => [names[name] ?? name, value]))

/** A change of what lies in a field: of the object there, or of each one in a list. What is null stays so. */
export const inside =
  (field: string, change: (older: JsonObject) => JsonObject) =>
  (older: JsonObject): JsonObject => {
    const found = older[field]
    if (found === undefined || found === null) return older
    const changed = Array.isArray(found) ? found.map((item: JsonObject) => change(item)) : change(found as JsonObject)
    return { ...older, [field]: changed }
  }
