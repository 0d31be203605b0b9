import { parseJson } from "../../json/JsonParse.ts"
/**
 * Documents: what an account holds.
 *
 * A document is one object as of one version of its account. Its `value` is public and its JSON is encoded once, when
 * it is written; the same text goes into the journal, the views and every response. What must never leave the service
 * lies in `hidden`.
 */

/** An account: one merchant in one environment, such as `mer_…:test`. The unit of consistency and of ordering. */
export type AccountId = string

/** Milliseconds since the Unix epoch. */
export type Millis = number

/** Names a kind of document, with the types of its public and hidden parts. */
export interface Kind<Value extends Identified, Hidden = undefined> {
  /** Name in the journal and the views, e.g. `customer`. */
  readonly name: string
  /** Its ids begin with this and an underscore: a list reads only the ids between `prefix_` and the next prefix. */
  readonly prefix?: string
  /** Says that links name its documents by nothing but their ids: such ids lead to their accounts (semantics T21). */
  readonly foundById?: boolean
  /**
   * What lists can filter by: a few short strings without NUL and unpaired surrogates, indexed by the views. Journal
   * and views keep those that a document was written with, so no step may change what they are made of.
   */
  readonly labels?: (value: Value) => Labels
  /**
   * What searches find it by. Of today's documents: the views derive it anew from those that an older Till wrote.
   * Whoever changes it for documents that there are adds a migration that says that views are outdated.
   */
  readonly search?: (value: Value) => Searchable
  /** What it counts as, if anything; see `Tallies.ts`. For whoever changes it, the same holds as for `search`. */
  readonly tallies?: (value: Value) => ReadonlyArray<Tally>
  /**
   * These steps turn an older Till's documents into today's when they are read, oldest step first; see `Formats.ts`.
   */
  readonly steps?: ReadonlyArray<Step>
  /** Only carries the type. */
  readonly _hidden?: Hidden
}

/**
 * From one format of a kind to the next, as pure functions of JSON that do not change what they are given. What is left
 * out stays as it is.
 */
export interface Step {
  /** Of the public part alone: the images in events, and copies inside other documents, have no other. */
  readonly value?: (older: JsonObject) => JsonObject
  /** Gets the public part as well, as it was before the step. */
  readonly hidden?: (older: unknown, value: JsonObject) => unknown
}

export type JsonObject = Readonly<Record<string, unknown>>

/** The format that documents of a kind are written in, from 1. */
export const formatOf = ({ steps }: { readonly steps?: ReadonlyArray<Step> }): number => 1 + (steps?.length ?? 0)

export interface Identified {
  readonly id: string
}

export type Labels = Readonly<Record<string, string>>

/** What a document is found by; see `Search.ts`. */
export interface Searchable {
  readonly terms: ReadonlyArray<string>
  /** A safe integer, 0 or more; null for a document that is in no range. */
  readonly measure: number | null
}

/** A document counts as so many of something, and so much of it; see `Tallies.ts`. */
export interface Tally {
  /** Seconds since the Unix epoch; counts for the hour in which that is. */
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
  /** The newest format of its kind, whatever it was written in. */
  readonly format: number
  readonly deleted: false
  readonly value: Value
  readonly hidden: Hidden
  readonly labels: Labels
  /** `value` as JSON: the bytes of every response. */
  readonly json: string
}

/** A tombstone stays of a deleted document: its id remains known (as a cursor, say), its content does not. */
export interface Tombstone {
  readonly id: string
  readonly kind: string
  readonly version: number
  readonly deleted: true
}

/*
 * One memo for the module, because whoever encodes has just been here: the transaction that writes a document, and then
 * the answer with it. Handing a memo through every lifecycle would cost each command more than this look at one
 * reference.
 */
let newest: { readonly value: object; readonly json: string } | undefined

/**
 * JSON of an immutable value; encoded once if it is asked for again at once, as by the command that writes it and then
 * answers with it. Throws if the value has none.
 */
export const encode = (value: object): string => {
  if (newest?.value === value) return newest.json
  const json: string | undefined = JSON.stringify(value)
  if (json === undefined) throw new TypeError(`${String(value)} has no JSON`)
  newest = { value, json }
  return json
}

/** `StoredTexts` is a document as it is stored. */
export interface StoredTexts {
  readonly id: string
  readonly kind: string
  readonly version: number
  readonly format: number
  /** JSON text; null for a tombstone. */
  readonly document: string | null
  /** JSON text. */
  readonly hidden: string | null
  readonly labels: Labels
}

/** A document from its stored text in the newest format; parsed when, and only if, somebody looks inside. */
export const stored = (row: StoredTexts): Document | Tombstone =>
  row.document === null
    ? { id: row.id, kind: row.kind, version: row.version, deleted: true }
    : new StoredDocument(row, row.document)

/** An entry takes up about so many bytes beside its texts. */
const ENTRY_BYTES = 300

/** About how many bytes a document takes up in memory: its texts, and as much again once somebody has looked inside. */
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
