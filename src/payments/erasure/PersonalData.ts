/**
 * The data of a person in an account's records, and its removal from them (semantics erasure.data). Amounts, times,
 * states and ids stay; so does a card's brand, country, expiry and last four digits, by which a payment is found in
 * statements and disputes.
 *
 * Documents of all formats, objects of events in all API versions and stored answers name their members alike, so the
 * tables here hold for all of them, at any depth.
 */
import { EMITTED_EVENT_TYPES } from "../../domain/Event.ts"
import type { JsonObject } from "../../engine/log/Document.ts"
import {
  type Change,
  type EventEntry,
  isAnswer,
  type JournalRecord,
  type JournalRow,
  type Response
} from "../../engine/log/Record.ts"
import { parseJson } from "../../json/JsonParse.ts"

/** Members with a person's data, and the values that an erasure leaves. */
type Members = Readonly<Record<string, unknown>>

const CONTACT: Members = { email: null, name: null, phone: null, address: null }
const PAID: Members = { ...CONTACT, description: null, statement_descriptor: null, metadata: {}, return_url: null }

/** A customer's data, by the kind of the document. A kind that is not here has none. */
const OF_CUSTOMER: Readonly<Record<string, Members>> = {
  customer: { ...CONTACT, description: null, metadata: {} },
  payment_intent: PAID,
  charge: PAID,
  refund: { metadata: {} },
  payment_method: { ...CONTACT, metadata: {} },
  "checkout.session": {
    ...PAID,
    customer_email: null,
    client_reference_id: null,
    success_url: null,
    cancel_url: null
  },
  // The hidden part has names of its own.
  operation: { ...PAID, message: null, detail: null, descriptor: null, returnUrl: null, sealedChallenge: null },
  mail: { to: null, error: null },
  payment_note: { text: "" },
  audit_entry: { detail: null }
}

/** The kinds of the objects in events. */
const KINDS_OF_EVENTS: Readonly<Record<string, string>> = EMITTED_EVENT_TYPES

/** Ids (`Identifiers.ts`) as values in JSON. */
const IDS = /"([a-z]{1,12}_[0-9A-Za-z]{24})"/g

/** Members whose texts identify a person by themselves: the log of requests is searched for them. */
const IDENTIFYING: ReadonlySet<string> = new Set(["email", "customer_email", "name", "phone", "line1"])
/** Shorter texts are in too many requests of others. */
const IDENTIFYING_LENGTH_MIN = 6
/** Members by which a person's objects are searched for, although others may have the same texts. */
const SEARCHABLE: ReadonlySet<string> = new Set(["description", "metadata"])

/** Removes a customer's data from the records of an account. */
export class PersonalData {
  readonly #customer: string
  /** Ids of the customer, and of objects that do not name one of the others. */
  readonly #ids: Set<string>
  /** Ids of all objects whose data was found, with events and deliveries about them. */
  readonly found = new Set<string>()
  /** Texts by which requests are recognized. */
  readonly texts = new Set<string>()
  /** Texts by which searches are recognized. */
  readonly searched = new Set<string>()
  readonly #deliveries = new Set<string>()
  /** How often an object of the customer was met. */
  #met = 0

  /** `ids` are those of the customer's payments, and of objects that have named the customer. */
  constructor(customer: string, ids: Iterable<string>) {
    this.#customer = customer
    this.#ids = new Set([customer, ...ids])
  }

  /** Returns whether a record's text names one of the objects: only then `without` finds something in it. */
  readonly mayConcern = ({ bytes }: Pick<JournalRow, "bytes">): boolean => {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1")
    for (const [, id] of text.matchAll(IDS)) {
      if (this.#ids.has(id!) || this.found.has(id!) || this.#deliveries.has(id!)) return true
    }
    return false
  }

  /** Notes the texts and ids of a record, and leaves it as it is. */
  readonly lookAt = (record: JournalRecord): undefined => void this.without(record)

  /** Returns a record without the data; the same one if it has none, undefined if it does not concern the customer. */
  readonly without = (record: JournalRecord): JournalRecord | undefined => {
    const before = this.#met
    const changes = record.changes.map((change) => this.#change(change))
    const events = record.events.map((event) => this.#event(event))
    const response = record.response && this.#response(record.response)
    for (const { event, id } of record.deliveries) if (this.found.has(event)) this.#deliveries.add(id)
    const attempts = record.attempts.map((attempt) => {
      if (!this.#deliveries.has(attempt.id)) return attempt
      this.#met++
      const { body, ...others } = attempt
      return body === undefined ? attempt : others
    })
    if (this.#met === before) return undefined
    const isSame =
      changes.every((change, i) => change === record.changes[i]) &&
      events.every((event, i) => event === record.events[i]) &&
      attempts.every((attempt, i) => attempt === record.attempts[i]) &&
      response === record.response
    return isSame ? record : { ...record, changes, events, attempts, response }
  }

  /** Returns a document's value without the data. */
  value<A extends object>(value: A): A {
    return this.#visit(value, undefined) as A
  }

  /** Returns a hidden part without the data. */
  hidden<A>(kind: string, hidden: A): A {
    return this.#visit(hidden, OF_CUSTOMER[kind]) as A
  }

  #change(change: Change): Change {
    const { document, hidden, id, kind, labels } = change
    const value = document === null ? { id } : (parseJson(document) as JsonObject)
    if (!this.#isTheirs(value)) return change
    this.found.add(id)
    const members = OF_CUSTOMER[kind]
    if (document === null || members === undefined) return change
    const changed = {
      document: JSON.stringify(this.#visit(value, members)),
      hidden: hidden === null ? null : JSON.stringify(this.#visit(parseJson(hidden), members))
    }
    const kept = Object.fromEntries(Object.entries(labels).filter(([name]) => !(name in members)))
    const isSame =
      changed.document === document &&
      changed.hidden === hidden &&
      Object.keys(kept).length === Object.keys(labels).length
    // The parsed value is the one of the text before.
    return isSame ? change : { ...change, ...changed, labels: kept, value: undefined }
  }

  #event(event: EventEntry): EventEntry {
    const object = parseJson(event.object) as JsonObject
    if (!this.#isTheirs(object)) return event
    this.found.add(event.id)
    const members = OF_CUSTOMER[KINDS_OF_EVENTS[event.type] ?? ""]
    const text = JSON.stringify(this.#visit(object, members))
    const previous = this.#visit(event.previous, members) as EventEntry["previous"]
    const isSame = text === event.object && JSON.stringify(previous) === JSON.stringify(event.previous)
    return isSame ? event : { ...event, object: text, previous }
  }

  #response(response: Response): Response {
    if (!isAnswer(response)) return response
    const body = JSON.stringify(this.#visit(parseJson(response.body), undefined))
    return body === response.body ? response : { ...response, body }
  }

  /** Whether an object is the customer's: by its id, or by the ids that it names. */
  #isTheirs({ customer, id, payment_intent, subject }: JsonObject): boolean {
    const isKnown = (name: unknown) => typeof name === "string" && this.#ids.has(name)
    const isTheirs = customer === this.#customer || isKnown(id) || isKnown(payment_intent) || isKnown(subject)
    if (isTheirs) this.#met++
    return isTheirs
  }

  /** Copies JSON, with the values that an erasure leaves. An object with an id inside of it is judged by itself. */
  #visit(value: unknown, members: Members | undefined): unknown {
    if (typeof value !== "object" || value === null) return value
    if (Array.isArray(value)) return value.map((item) => this.#visit(item, members))
    const object = value as JsonObject
    const inside = this.#membersOf(object, members)
    return Object.fromEntries(
      Object.entries(object).map(([name, member]) => {
        if (inside === undefined || !Object.hasOwn(inside, name)) return [name, this.#visit(member, inside)]
        this.#note(name, member)
        return [name, member === null ? null : inside[name]]
      })
    )
  }

  #membersOf(object: JsonObject, members: Members | undefined): Members | undefined {
    const { id, object: kind } = object
    if (typeof kind !== "string" || typeof id !== "string") return members
    if (!this.#isTheirs(object)) return undefined
    this.found.add(id)
    return OF_CUSTOMER[kind]
  }

  #note(name: string, member: unknown): void {
    if (typeof member === "string") {
      const into = IDENTIFYING.has(name) ? this.texts : SEARCHABLE.has(name) ? this.searched : undefined
      if (member.length >= IDENTIFYING_LENGTH_MIN) into?.add(member)
    } else if (typeof member === "object" && member !== null) {
      // Merchants name the members of metadata.
      for (const [inner, text] of Object.entries(member)) this.#note(name === "metadata" ? name : inner, text)
    }
  }
}
