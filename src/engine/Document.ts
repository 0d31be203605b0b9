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
  /** How its ids begin, without the underscore: a list reads only the ids between `prefix_` and the next prefix. */
  readonly prefix?: string
  /** What lists can filter by: a few short strings without NUL and unpaired surrogates, indexed by the views. */
  readonly labels?: (value: Value) => Labels
  /** Only carries the type. */
  readonly _hidden?: Hidden
}

export interface Identified {
  readonly id: string
}

export type Labels = Readonly<Record<string, string>>

export interface Document<Value extends Identified = Identified, Hidden = unknown> {
  readonly id: string
  readonly kind: string
  /** The account's version that wrote this document. */
  readonly version: number
  readonly deleted: false
  readonly value: Value
  readonly hidden: Hidden
  readonly labels: Labels
  /** `value` as JSON: the bytes of every response. */
  readonly json: string
}

/** What stays of a deleted document: its id remains known (as a cursor, say), its content does not. */
export interface Tombstone {
  readonly id: string
  readonly kind: string
  readonly version: number
  readonly deleted: true
}

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

/** A document from its stored text; parsed when, and only if, somebody looks inside. */
export const stored = (row: {
  readonly id: string
  readonly kind: string
  readonly version: number
  readonly document: string | null
  readonly hidden: string | null
  readonly labels: Labels
}): Document | Tombstone =>
  row.document === null
    ? { id: row.id, kind: row.kind, version: row.version, deleted: true }
    : new StoredDocument(row.id, row.kind, row.version, row.labels, row.document, row.hidden)

/** What an entry takes up beside its texts, in bytes. */
const ENTRY_BYTES = 300

/** About how many bytes a document takes up in memory: its texts, and as much again once somebody has looked inside. */
export const weightOf = (document: Document | Tombstone): number =>
  document instanceof StoredDocument ? ENTRY_BYTES + 2 * document.textLength : ENTRY_BYTES

class StoredDocument implements Document {
  readonly id: string
  readonly kind: string
  readonly version: number
  readonly deleted = false
  readonly labels: Labels
  readonly json: string
  readonly #hiddenJson: string | null
  #value: Identified | undefined

  constructor(id: string, kind: string, version: number, labels: Labels, json: string, hiddenJson: string | null) {
    this.id = id
    this.kind = kind
    this.version = version
    this.labels = labels
    this.json = json
    this.#hiddenJson = hiddenJson
  }

  get textLength(): number {
    return this.json.length + (this.#hiddenJson?.length ?? 0)
  }

  get value(): Identified {
    return (this.#value ??= JSON.parse(this.json) as Identified)
  }

  get hidden(): unknown {
    return this.#hiddenJson === null ? undefined : JSON.parse(this.#hiddenJson)
  }
}
