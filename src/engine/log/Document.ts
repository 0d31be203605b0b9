import { parseJson } from "../../json/JsonParse.ts"
/**
 * Documents, the content of accounts.
 *
 * A document is one object as of one version of its account. Its `value` is public and its JSON is encoded once, when
 * it is written; the same text goes into the journal, the views and every response. `hidden` holds the data that must
 * never leave the service.
 */

/** An account: one merchant in one environment, such as `mer_…:test`. The unit of consistency and of ordering. */
export type AccountId = string

export type Millis = number

export interface Kind<Value extends Identified, Hidden = undefined> {
  /** Name in the journal and the views, e.g. `customer`. */
  readonly name: string
  /** Ids begin with this and an underscore: a list reads only the ids between `prefix_` and the next prefix. */
  readonly prefix?: string
  /** Set if links contain only the ids, which then carry their account's number (semantics responses.ids). */
  readonly foundById?: boolean
  /**
   * Returns the labels that lists filter by: a few short strings without NUL and unpaired surrogates, indexed by the
   * views. Journal and views keep the labels that were written, so no step may change the fields they derive from.
   */
  readonly labels?: (value: Value) => Labels
  /**
   * Returns the search terms of a document in the newest format: the views derive them from the journal. A change of
   * this function for existing documents needs a migration that marks views as outdated.
   */
  readonly search?: (value: Value) => Searchable
  /** Returns a document's tallies; see `Tallies.ts`. A change needs a migration, as for `search`. */
  readonly tallies?: (value: Value) => ReadonlyArray<Tally>
  /** Convert older formats into the newest on reading, oldest step first; see `DocumentFormats`. */
  readonly steps?: ReadonlyArray<Step>
  /** Only carries the type. */
  readonly _hidden?: Hidden
}

/** A conversion from one format to the next, by pure functions of JSON. A part without a function stays. */
export interface Step {
  /** Converts the public part by itself: images in events, and copies inside other documents, have no hidden part. */
  readonly value?: (older: JsonObject) => JsonObject
  /** Converts the hidden part; `value` is the public part before the step. */
  readonly hidden?: (older: unknown, value: JsonObject) => unknown
}

export type JsonObject = Readonly<Record<string, unknown>>

/** Returns the format that documents of a kind are written in, from 1. */
export const formatOf = ({ steps }: { readonly steps?: ReadonlyArray<Step> }): number => 1 + (steps?.length ?? 0)

export interface Identified {
  readonly id: string
}

export type Labels = Readonly<Record<string, string>>

/** The search terms and the measure of a document; see `Search.ts`. */
export interface Searchable {
  readonly terms: ReadonlyArray<string>
  /** A safe integer, 0 or more; null for a document that no range finds. */
  readonly measure: number | null
}

/** A document's contribution to the sums of a key; see `Tallies.ts`. */
export interface Tally {
  /** Seconds since the Unix epoch; the tally counts for the hour of this time. */
  readonly at: number
  /** Without quotation marks, backslashes and control characters. */
  readonly key: string
  /** Integers of up to 15 digits. */
  readonly count: number
  readonly amount: number
}

export interface Document<Value extends Identified = Identified, Hidden = unknown> {
  readonly id: string
  readonly kind: string
  /** The account's version that wrote this document. */
  readonly version: number
  /** The newest format of its kind, whatever format it was written in. */
  readonly format: number
  readonly deleted: false
  readonly value: Value
  readonly hidden: Hidden
  readonly labels: Labels
  /** `value` as JSON, the bytes of every response. */
  readonly json: string
}

/** The remainder of a deleted document: its id stays valid, for example as a cursor; its content is gone. */
export interface Tombstone {
  readonly id: string
  readonly kind: string
  readonly version: number
  readonly deleted: true
}

/*
 * One memo for the module, because a document is encoded twice in a row: by the transaction that writes it, and then by
 * the response with it. Passing a memo through every lifecycle would cost each command more than this comparison of one
 * reference.
 */
let newest: { readonly value: object; readonly json: string } | undefined

/** Encodes an immutable value as JSON; the last text is remembered. Throws if the value has no JSON. */
export const encode = (value: object): string => {
  if (newest?.value === value) return newest.json
  const json: string | undefined = JSON.stringify(value)
  if (json === undefined) throw new TypeError(`${String(value)} has no JSON`)
  newest = { value, json }
  return json
}

export interface StoredTexts {
  readonly id: string
  readonly kind: string
  readonly version: number
  readonly format: number
  /** JSON text; null for a tombstone. */
  readonly document: string | null
  readonly hidden: string | null
  readonly labels: Labels
}

/** Makes a document of its stored text in the newest format, which is parsed at the first use of `value`. */
export const stored = (row: StoredTexts): Document | Tombstone =>
  row.document === null
    ? { id: row.id, kind: row.kind, version: row.version, deleted: true }
    : new StoredDocument(row, row.document)

/** The approximate memory of an entry without its texts, in bytes. */
const ENTRY_BYTES = 300

/** Returns the approximate memory of a document, in bytes: its texts, and as much again for the parsed value. */
export const weightOf = (document: Document | Tombstone): number =>
  document instanceof StoredDocument ? ENTRY_BYTES + 2 * document.textLength : ENTRY_BYTES

class StoredDocument implements Document {
  readonly id: string
  readonly kind: string
  readonly version: number
  readonly format: number
  readonly deleted = false
  readonly labels: Labels
  readonly json: string
  readonly #hiddenJson: string | null
  #value: Identified | undefined

  constructor({ format, hidden, id, kind, labels, version }: StoredTexts, json: string) {
    this.id = id
    this.kind = kind
    this.version = version
    this.format = format
    this.labels = labels
    this.json = json
    this.#hiddenJson = hidden
  }

  get textLength(): number {
    return this.json.length + (this.#hiddenJson?.length ?? 0)
  }

  get value(): Identified {
    return (this.#value ??= parseJson(this.json) as Identified)
  }

  get hidden(): unknown {
    return this.#hiddenJson === null ? undefined : parseJson(this.#hiddenJson)
  }
}
