/**
 * Records, of which the journal consists.
 *
 * A record holds the results of one command, never its inputs, so that replaying it needs no business code. Records of
 * an account form a chain: each one's hash covers its predecessor's hash and its own text, so every reader of the chain
 * detects a changed, missing or reordered record.
 *
 * A person's data can be erased from a record (`Erasures.ts`). Its row then has another text, keeps its hash, and gets
 * a digest of both and of the predecessor's hash. A later record of the chain names the digest.
 */
import { hash } from "node:crypto"
import { Effect, Schema } from "effect"
import { joinJson } from "../../json/JoinJson.ts"
import { parseJson } from "../../json/JsonParse.ts"
import type { AccountId, Identified, Kind, Labels, Millis, Searchable } from "./Document.ts"
import { entriesOf, type TallyEntry } from "./Tallies.ts"

/**
 * Version of the record format that this code writes. It reads every version up to its own.
 *
 * A record repeats nothing that is stored elsewhere: its account and version are hashed with it, a change's id is read
 * from its document, and copies of a document are references to the document's place among the changes.
 */
export const FORMAT = 3

/** The maximum size of a record, in bytes. A storage may refuse to return more in one piece. */
export const RECORD_BYTES_MAX = 15 * 1_048_576

export const GENESIS = ""

/** The HTTP request behind a command. */
export interface RequestIdentity {
  /** `req_…` */
  readonly id: string
  readonly idempotencyKey: string | null
  /** SHA-256 of the request's content; equal for a repetition of the request. */
  readonly fingerprint: string | null
  /** `X-API-Version` in use. */
  readonly apiVersion: string
}

/** The position of a text in a record's bytes. */
export interface Span {
  readonly at: number
  readonly length: number
}

/** The part of a kind that defines its derived data. */
export type Derivation<Value extends Identified = Identified> = Pick<Kind<Value>, "search" | "tallies">

/** Data that the views derive from a document in the newest format, so the journal does not contain it. */
export interface Derived {
  /** Null for a deleted document, and for kinds without search. */
  readonly search: Searchable | null
  /** Empty for a deleted document; null for kinds without tallies. */
  readonly tallies: ReadonlyArray<TallyEntry> | null
}

export const NOTHING_DERIVED: Derived = { search: null, tallies: null }

export const derives = ({ search, tallies }: Derivation<never>): boolean =>
  search !== undefined || tallies !== undefined

/** Throws if a tally cannot be stored. */
export const derivedOf = <Value extends Identified>({ search, tallies }: Derivation<Value>, value: Value): Derived => ({
  search: search === undefined ? null : search(value),
  tallies: tallies === undefined ? null : entriesOf(tallies(value))
})

export const derivedOfDeleted = ({ tallies }: Derivation<never>): Derived =>
  tallies === undefined ? NOTHING_DERIVED : { search: null, tallies: entriesOf([]) }

/** Names records whose texts were replaced to erase a person's data. */
export interface Erased {
  /** Versions with the digests of their new rows, in ascending order. */
  readonly rows: ReadonlyArray<readonly [version: number, digest: string]>
  /** HMAC-SHA256 of the account and the rows, under a key of the installation's secret; see `Erasures.ts`. */
  readonly signature: string
}

/** A command's change of a document: the whole document afterwards, or null for a deletion. */
export interface Change extends Partial<Derived> {
  readonly id: string
  readonly kind: string
  /** JSON text. */
  readonly document: string | null
  /** JSON text. */
  readonly hidden: string | null
  readonly labels: Labels
  /** The document's format, counted per kind; see `DocumentFormats`. */
  readonly format: number
  /** Set if the id is known to be new. Never set for a change read from the journal, which does not store it. */
  readonly created: boolean
  /** The parsed document, if the change was read from the journal. */
  readonly value?: unknown
}

/** A change with the positions of its texts. */
export interface SealedChange extends Change {
  readonly documentSpan: Span | null
  readonly hiddenSpan: Span | null
}

/** The `format` of an event's object that was rendered in an older API version: later reads do not convert it. */
export const AS_SHOWN = 0

export interface EventEntry {
  readonly id: string
  readonly type: string
  /** JSON text of the object when the event happened. */
  readonly object: string
  /** The object's format, counted per kind. */
  readonly format: number
  readonly previous: Readonly<Record<string, unknown>> | null
}

/** A timer that was set, or cleared if `dueAt` is null. */
export interface TimerChange {
  readonly id: string
  readonly name: string
  readonly dueAt: Millis | null
}

export interface StoredAnswer {
  readonly status: number
  /** JSON text. */
  readonly body: string
}

/** A request's command has begun an operation. A later record with the same request has the answer. */
export interface Awaiting {
  /** The operation's id. */
  readonly awaits: string
}

/** The operation had no outcome to answer with: the idempotency key is free again. */
export interface Released {
  readonly released: true
}

/** The state that a record gives to the idempotency key of its request. */
export type Response = StoredAnswer | Awaiting | Released

export const RELEASED: Released = { released: true }

export const isAnswer = (response: Response): response is StoredAnswer => "status" in response

export const isAwaiting = (response: Response): response is Awaiting => "awaits" in response

export interface DeliveryEntry {
  readonly id: string
  readonly destination: string
  readonly event: string
  /** The version of the record that holds the event: this record's, or an earlier one if the event is sent again. */
  readonly eventVersion: number
}

export type DeliveryState = "pending" | "delivered" | "exhausted" | "canceled"

/** An attempt to deliver, as stored. */
export interface Attempt {
  /** 1, 2, 3, … */
  readonly attempt: number
  /** By the account's clock. */
  readonly startedAt: Millis
  readonly durationMillis: number
  /** The status of the response; null without a response. */
  readonly status: number | null
  readonly error: string | null
  /** The beginning of the body of an unsuccessful response; absent if the body was empty. */
  readonly body?: string
}

/** An attempt as its sender reports it. */
export interface AttemptOutcome extends Attempt {
  readonly id: string
  readonly destination: string
  /** By the wall clock, unlike the stored time. */
  readonly startedAt: Millis
  /** The delivery's next state; a pause counts from the end of the attempt. */
  readonly next: "delivered" | "exhausted" | { readonly retryAfterMillis: number }
}

export interface AttemptEntry extends Attempt {
  readonly id: string
  readonly destination: string
  readonly state: Exclude<DeliveryState, "canceled">
  /** By the account's clock; null unless pending. */
  readonly nextAttemptAt: Millis | null
}

/** A pending delivery whose next attempt is now due. Ignored if the attempt was made or the delivery ended. */
export interface HastenedEntry {
  readonly id: string
  readonly destination: string
  /** 2, 3, … */
  readonly attempt: number
}

/** The event types that a destination receives from this record on, `*` for all; null ends the subscription. */
export interface SubscriptionChange {
  readonly destination: string
  readonly types: ReadonlyArray<string> | null
}

export interface JournalRecord {
  readonly account: AccountId
  /** 1, 2, 3, … without gaps. */
  readonly version: number
  /** By the wall clock. */
  readonly at: Millis
  /** The running time (`RunningTime.ts`) from which the idempotency key's retention counts; `at` if absent. */
  readonly ran?: Millis
  /** By the account's clock. The record of a timer has the time at which the timer was due. */
  readonly now: Millis
  /** How far the account's clock is ahead of the wall clock. */
  readonly clock: Millis
  /** How far this command has advanced the account's clock. */
  readonly advanced: Millis
  /** Set if this command deleted all earlier data of the account. */
  readonly wiped: boolean
  /** The counter of the account's newest id: ids ascend even if the clock steps back between two starts. */
  readonly sequence: number
  readonly request: RequestIdentity | null
  readonly changes: ReadonlyArray<Change>
  readonly events: ReadonlyArray<EventEntry>
  /** The API version in which the events are rendered. Null if there are no events. */
  readonly apiVersion: string | null
  readonly timers: ReadonlyArray<TimerChange>
  readonly subscriptions: ReadonlyArray<SubscriptionChange>
  readonly deliveries: ReadonlyArray<DeliveryEntry>
  readonly attempts: ReadonlyArray<AttemptEntry>
  readonly hastened: ReadonlyArray<HastenedEntry>
  /** Absent unless the record replaces the texts of earlier ones. */
  readonly erased?: Erased
  readonly response: Response | null
}

/** A record with the positions of its documents. */
export interface SealedRecord extends JournalRecord {
  readonly changes: ReadonlyArray<SealedChange>
}

/** A record with its bytes and the hash that chains it to its predecessor. */
export interface Sealed {
  readonly record: SealedRecord
  /** JSON in UTF-8. */
  readonly bytes: Uint8Array
  readonly hash: string
  readonly previous: string
}

/** A stored record that is not checked yet. */
export interface JournalRow {
  readonly account: AccountId
  readonly version: number
  readonly hash: string
  /** JSON in UTF-8. */
  readonly bytes: Uint8Array
  /** The digest of a row whose text was replaced; absent otherwise. */
  readonly erased?: string
}

/** A row with the hash of the preceding row. */
export interface ChainedRow extends JournalRow {
  readonly previous: string
}

/** The journal was changed or damaged, or written by a newer Till. */
export class JournalCorrupt extends Schema.TaggedError<JournalCorrupt>()("JournalCorrupt", {
  account: Schema.String,
  version: Schema.Int,
  problem: Schema.String
}) {
  override get message() {
    return `Record ${this.version} of account ${this.account} ${this.problem}`
  }
}

export const missingRecord = (account: AccountId, version: number): JournalCorrupt =>
  new JournalCorrupt({ account, version, problem: "is missing, but the views have it" })

export const changedRecord = (account: AccountId, version: number, what: string): JournalCorrupt =>
  new JournalCorrupt({ account, version, problem: `is not what the views say of ${what}: one of both was changed` })

export const missingItem = (account: AccountId, version: number, what: string): JournalCorrupt =>
  new JournalCorrupt({ account, version, problem: `does not hold ${what}, but the views point there` })

/** Encodes a record and chains it to the one with hash `previous`. Throws if the record cannot be encoded. */
export const seal = (previous: string, record: JournalRecord): Sealed => {
  const { changes, changesAt, text } = toText(record)
  const front = frontOf(previous, record)
  // Encoded once, for both: the hashed bytes without the front are the stored bytes.
  const chained = Buffer.from(front + text)
  const bytes = chained.subarray(Buffer.byteLength(front))
  if (bytes.length > RECORD_BYTES_MAX) throw new Error(`A record of ${bytes.length} bytes could not be read again`)
  const sealed = { ...record, changes: located(record.changes, changes, changesAt, text, bytes) }
  return { record: sealed, bytes, hash: hash("sha256", chained, "hex"), previous }
}

/** Encodes the row that replaces a record's text. It keeps the record's place and hash. */
export const replace = (
  { hash, previous, record: { account, version } }: Sealed,
  record: JournalRecord
): { readonly record: SealedRecord; readonly row: ErasedRow } => {
  const { changes, changesAt, text } = toText(record)
  const bytes = Buffer.from(text)
  const row = { account, version, hash, bytes }
  const sealed = { ...record, changes: located(record.changes, changes, changesAt, text, bytes) }
  return { record: sealed, row: { ...row, erased: digestOf(previous, row) } }
}

/** A row whose text was replaced. */
export interface ErasedRow extends JournalRow {
  readonly erased: string
}

/** Returns the digest of a row with a replaced text. */
const digestOf = (previous: string, row: JournalRow): string =>
  hash("sha256", Buffer.concat([Buffer.from(`${frontOf(previous, row)}${row.hash} `), row.bytes]), "hex")

export interface ChainHead {
  readonly version: number
  readonly hash: string
}

export const BEFORE_ALL: ChainHead = { version: 0, hash: GENESIS }

const corruptAfter =
  ({ version }: ChainHead, { account }: JournalRow) =>
  (problem: string) =>
    new JournalCorrupt({ account, version: version + 1, problem })

/** Checks by its hash that a row follows its predecessor, without parsing it. Throws `JournalCorrupt`. */
export const checkLink = (previous: ChainHead, row: JournalRow): void => {
  const corrupt = corruptAfter(previous, row)
  if (row.version !== previous.version + 1) throw corrupt(`is missing: record ${row.version} follows`)
  requireChained(previous.hash, row)
}

/** Checks a row against its predecessor and parses it. Throws `JournalCorrupt`. */
export const unseal = (previous: ChainHead, row: JournalRow): Sealed => {
  checkLink(previous, row)
  const corrupt = corruptAfter(previous, row)
  const text = textOf(row.bytes)
  const record = read(row, text)
  const changes = record.changes.map(changeText)
  const changesAt = text.indexOf(changes.join(","))
  if (changesAt === -1) throw corrupt("holds a document that is not canonical JSON")
  const sealed = { ...record, changes: located(record.changes, changes, changesAt, text, row.bytes) }
  return { record: sealed, bytes: row.bytes, hash: row.hash, previous: previous.hash }
}

/** Checks a row against the hash of the preceding row; one with a replaced text by its digest. */
const requireChained = (previous: string, row: JournalRow): void => {
  const { account, erased, version } = row
  const corrupt = (what: string) =>
    new JournalCorrupt({ account, version, problem: `is not what was written: its ${what} does not match` })
  if (erased !== undefined) {
    if (digestOf(previous, row) !== erased) throw corrupt("digest")
    return
  }
  const front = frontOf(previous, row)
  if (hash("sha256", Buffer.concat([Buffer.from(front), row.bytes]), "hex") !== row.hash) throw corrupt("hash")
}

/** The text that is hashed in front of a record's bytes. */
const frontOf = (previous: string, { account, version }: Pick<JournalRow, "account" | "version">) =>
  `${previous} ${account} ${version} `

/** Checks consecutive rows, the first of which follows `previous`, and parses them. Throws `JournalCorrupt`. */
export const unsealAll = (previous: ChainHead, rows: ReadonlyArray<JournalRow>): ReadonlyArray<Sealed> => {
  let head = previous
  return rows.map((row) => {
    const sealed = unseal(head, row)
    head = { version: row.version, hash: row.hash }
    return sealed
  })
}

/** Runs `read`, which throws only `JournalCorrupt`. */
export const tryRead = <A>(read: () => A): Effect.Effect<A, JournalCorrupt> =>
  Effect.try({ try: read, catch: (error) => error as JournalCorrupt })

/**
 * Adds the positions of the changes' texts, which lie in the record from `changesAt` on, separated by commas. Positions
 * are in bytes, so that the storage can read a slice without the bytes in front of it.
 */
const located = (
  changes: ReadonlyArray<Change>,
  texts: ReadonlyArray<string>,
  changesAt: number,
  text: string,
  bytes: Uint8Array
): ReadonlyArray<SealedChange> => {
  const isAscii = bytes.length === text.length
  const spanOf = (at: number, part: string): Span =>
    isAscii
      ? { at, length: part.length }
      : { at: Buffer.byteLength(text.slice(0, at)), length: Buffer.byteLength(part) }
  let start = changesAt
  return changes.map((change, i) => {
    const { created, document, hidden, id, kind, labels, search = null, tallies = null, value } = change
    const documentAt = start + headText(change).length
    const hiddenAt = documentAt + (document ?? "null").length + HIDDEN.length
    start += texts[i]!.length + 1
    const documentSpan = document === null ? null : spanOf(documentAt, document)
    const hiddenSpan = hidden === null ? null : spanOf(hiddenAt, hidden)
    return {
      id,
      kind,
      document,
      hidden,
      labels,
      format: change.format,
      created,
      search,
      tallies,
      value,
      documentSpan,
      hiddenSpan
    }
  })
}

/*
 * The text. Documents are embedded unchanged. An event's object or a response's body that repeats a document is a
 * reference to the document's place among the changes: `"of": 0`.
 */
const toText = (
  record: JournalRecord
): { readonly text: string; readonly changes: ReadonlyArray<string>; readonly changesAt: number } => {
  const changes = record.changes.map(changeText)
  const events = record.events.map((event) => {
    const head = `{"id":"${event.id}","type":"${event.type}",`
    const previous = event.previous === null ? "" : `,"previous":${JSON.stringify(event.previous)}`
    const object = imageText(record.changes, "object", event.object)
    // A reference has the format of its change.
    return `${head}${object}${object.startsWith(OF) ? "" : formatText(event)}${previous}}`
  })
  const head =
    `{"format":${FORMAT},"at":${record.at},"sequence":${record.sequence},` +
    `"request":${record.request === null ? "null" : JSON.stringify(record.request)},"changes":[`
  const tail =
    `${joinJson(changes)}],${events.length === 0 ? "" : `"events":[${joinJson(events)}],`}` +
    `${rareText(record)}"response":${responseText(record)}}`
  return { text: head + tail, changes, changesAt: head.length }
}

const responseText = ({ changes, response }: JournalRecord): string => {
  if (response === null) return "null"
  return isAnswer(response)
    ? `{"status":${response.status},${imageText(changes, "body", response.body, canonical)}}`
    : JSON.stringify(response)
}

const rareText = (record: JournalRecord): string => {
  const { advanced, apiVersion, at, attempts, clock, deliveries, events, hastened, now, ran = at, request } = record
  const { erased, subscriptions, timers, wiped } = record
  let text = apiVersion === likelyApiVersion(events, request) ? "" : `"apiVersion":${JSON.stringify(apiVersion)},`
  if (timers.length > 0) text += `"timers":${JSON.stringify(timers)},`
  if (deliveries.length > 0) text += `"deliveries":${JSON.stringify(deliveries)},`
  if (subscriptions.length > 0) text += `"subscriptions":${JSON.stringify(subscriptions)},`
  if (attempts.length > 0) text += `"attempts":${JSON.stringify(attempts)},`
  if (hastened.length > 0) text += `"hastened":${JSON.stringify(hastened)},`
  if (ran !== at) text += `"ran":${ran - at},`
  if (now !== at + clock) text += `"now":${now},`
  if (clock !== 0) text += `"clock":${clock},`
  if (advanced !== 0) text += `"advanced":${advanced},`
  if (wiped) text += `"wiped":true,`
  if (erased !== undefined) text += `"erased":${JSON.stringify(erased)},`
  return text
}

/** Returns the API version of events whose record does not store one: that of the request. */
const likelyApiVersion = (events: ReadonlyArray<unknown>, request: RequestIdentity | null): string | null =>
  events.length === 0 ? null : (request?.apiVersion ?? null)

const NOTHING: ReadonlyArray<never> = []

const headText = ({ document, id, kind }: Change): string => {
  const idText = `"id":${JSON.stringify(id)}`
  const isInside = document !== null && beginsWith(document, idText)
  return `{${isInside ? "" : `${idText},`}"kind":"${kind}","document":`
}

/** Returns whether a JSON object begins with a field. */
const beginsWith = (json: string, field: string): boolean => {
  const end = json.charAt(1 + field.length)
  return json.startsWith(field, 1) && (end === "," || end === "}")
}

const HIDDEN = `,"hidden":`

const changeText = (change: Change): string => {
  const hidden = change.hidden === null ? "" : `${HIDDEN}${change.hidden}`
  let labels = ""
  for (const _ in change.labels) {
    labels = `,"labels":${JSON.stringify(change.labels)}`
    break
  }
  return `${headText(change)}${change.document ?? "null"}${hidden}${labels}${formatText(change)}}`
}

const formatText = ({ format }: { readonly format: number }): string => (format === 1 ? "" : `,"format":${format}`)

const OF = `"of":`

const imageText = (
  images: ReadonlyArray<Change>,
  name: string,
  json: string,
  check: (json: string) => string = (json) => json
): string => {
  const place = images.findIndex(({ document }) => document === json)
  return place === -1 ? `"${name}":${check(json)}` : `${OF}${place}`
}

/** Requires text that parsing and encoding does not change: only such a body can be replayed byte for byte. */
const canonical = (json: string): string => {
  if (JSON.stringify(parseJson(json)) !== json) throw new Error("A response's body is not canonical JSON")
  return json
}

interface RecordJson {
  readonly format: number
  readonly at: Millis
  readonly sequence: number
  readonly request: RequestIdentity | null
  readonly changes: ReadonlyArray<{
    /** Absent if the document contains it. */
    id?: string
    kind: string
    document: unknown
    hidden?: unknown
    labels?: Labels
    format?: number
  }>
  readonly events?: ReadonlyArray<{
    id: string
    type: string
    of?: Reference
    object?: unknown
    format?: number
    previous?: EventEntry["previous"]
  }>
  readonly timers?: ReadonlyArray<TimerChange>
  readonly deliveries?: ReadonlyArray<DeliveryEntry>
  readonly apiVersion?: string
  readonly subscriptions?: ReadonlyArray<SubscriptionChange>
  readonly attempts?: ReadonlyArray<AttemptEntry>
  readonly hastened?: ReadonlyArray<HastenedEntry>
  /** Relative to `at`. */
  readonly ran?: Millis
  readonly now?: Millis
  readonly clock?: Millis
  readonly advanced?: Millis
  readonly wiped?: boolean
  readonly erased?: Erased
  readonly response:
    | { readonly status: number; readonly of?: Reference; readonly body?: unknown }
    | Awaiting
    | Released
    | null
}

/** The place of a change among the record's changes, from 0. */
type Reference = number

const STAMP_LENGTH_MAX = 64
const STAMP = /^\{"format":(\d+),"at":(\d+),/u

/** Returns when a record was written, and parses nothing else. Throws `JournalCorrupt` if a newer Till wrote it. */
export const timeOf = (row: JournalRow): Millis => {
  const stamp = STAMP.exec(Buffer.from(row.bytes.subarray(0, STAMP_LENGTH_MAX)).toString("latin1"))
  return stamp === null || Number(stamp[1]) > FORMAT ? read(row, textOf(row.bytes)).at : Number(stamp[2])
}

/** Checks a row against the hash of the preceding row, and parses it. Throws `JournalCorrupt`. */
export const readRow = (row: ChainedRow): JournalRecord => {
  requireChained(row.previous, row)
  return read(row, textOf(row.bytes))
}

const read = (row: JournalRow, text: string): JournalRecord => {
  const corrupt = (problem: string) => new JournalCorrupt({ account: row.account, version: row.version, problem })
  const json = parse(text)
  if (json === undefined) throw corrupt("is not JSON")
  if (!(json.format >= 1 && json.format <= FORMAT)) {
    throw corrupt(`has format ${json.format}, which a newer Till wrote; this one reads formats up to ${FORMAT}`)
  }
  // Till's own JSON is the same text after parsing and encoding, so the texts are exact.
  const changes = json.changes.map((change) => ({
    id: change.id ?? (change.document as Identified).id,
    kind: change.kind,
    document: change.document === null ? null : JSON.stringify(change.document),
    hidden: change.hidden === undefined ? null : JSON.stringify(change.hidden),
    labels: change.labels ?? {},
    format: change.format ?? 1,
    created: false,
    value: change.document
  }))
  const imageOf = (of: Reference): Pick<EventEntry, "object" | "format"> => {
    const { document: object, format = 1 } = changes[of] ?? {}
    if (object == null) throw corrupt(`refers to ${of}, which it does not change`)
    return { object, format }
  }
  const { events = NOTHING, request } = json
  return {
    account: row.account,
    version: row.version,
    at: json.at,
    ...(json.ran !== undefined && { ran: json.at + json.ran }),
    sequence: json.sequence,
    request,
    changes,
    events: events.map(({ format = 1, id, object, of, previous = null, type }) => {
      const kept = of === undefined ? { object: JSON.stringify(object), format } : imageOf(of)
      return { id, type, ...kept, previous }
    }),
    apiVersion: json.apiVersion ?? likelyApiVersion(events, request),
    timers: json.timers ?? NOTHING,
    now: json.now ?? json.at + (json.clock ?? 0),
    clock: json.clock ?? 0,
    advanced: json.advanced ?? 0,
    wiped: json.wiped ?? false,
    subscriptions: json.subscriptions ?? NOTHING,
    deliveries: json.deliveries ?? NOTHING,
    attempts: json.attempts ?? NOTHING,
    hastened: json.hastened ?? NOTHING,
    ...(json.erased !== undefined && { erased: json.erased }),
    response: responseOf(json.response, imageOf)
  }
}

const responseOf = (
  response: RecordJson["response"],
  imageOf: (of: Reference) => Pick<EventEntry, "object">
): Response | null => {
  if (response === null || !("status" in response)) return response
  const { body, of, status } = response
  return { status, body: of === undefined ? JSON.stringify(body) : imageOf(of).object }
}

export const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()

const parse = (text: string): RecordJson | undefined => {
  try {
    return parseJson(text) as RecordJson
  } catch {
    return undefined
  }
}
