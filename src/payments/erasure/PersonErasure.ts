/**
 * The erasure of a person who was removed from a team (semantics erasure.people): their email addresses leave all
 * records of the installation and of the merchant, and the addresses and browsers of their sign-ins.
 *
 * - An address is replaced as a text, wherever it occurs: audit entries and mails have it in sentences, and the id of a
 *   document contains it. Equal addresses become equal texts, so documents stay apart.
 * - The person's own documents name the addresses. They are erased last, and all at once: after a crash the addresses
 *   are still known, or nothing is left to erase.
 * - An address that another person of the installation signs in with stays.
 */
import { Effect } from "effect"
import { ResourceMissing } from "../../domain/Errors.ts"
import type { Person } from "../../domain/Person.ts"
import { Accounts, type Unavailable } from "../../engine/Accounts.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import type { AccountId, Document } from "../../engine/log/Document.ts"
import { type AttemptEntry, type Change, isAnswer, type JournalRecord } from "../../engine/log/Record.ts"
import { parseJson } from "../../json/JsonParse.ts"
import { INSTALLATION } from "../shared/AccountIds.ts"
import { LEASE_MILLIS } from "./CustomerErasure.ts"
import { DASHBOARD_SESSION, SIGN_IN } from "../team/DashboardSessions.ts"
import { PERSON, PERSON_EMAIL, personEmailId } from "../team/People.ts"
import { readDocument } from "../shared/ReadDocument.ts"
import { timer, timerId } from "../shared/TimerNames.ts"

const PAGE = 100

/** The states in which a person was stored, newest first. */
export const statesOf = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<ReadonlyArray<Person>, Unavailable, Accounts> {
  const accounts = yield* Accounts
  const states: Array<Person> = []
  let last: string | undefined
  for (;;) {
    const cursor = last === undefined ? {} : { olderThan: last }
    const { entries, hasMore } = yield* accounts.history(INSTALLATION, { ids: [id], limit: PAGE, ...cursor })
    for (const entry of entries.flatMap(({ documents }) => documents)) {
      if (!entry.deleted && entry.kind === PERSON.name) states.push((entry as Document<Person>).value)
    }
    if (!hasMore) return states
    last = entries.at(-1)!.id
  }
})

/** Returns the addresses of a person that no other person signs in with, oldest first. */
export const emailsOf = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<ReadonlyArray<string>, Unavailable, Accounts> {
  const emails = new Map<string, string>()
  for (const { email } of (yield* statesOf(id)).toReversed()) {
    if (email !== null) emails.set(email.toLowerCase(), email)
  }
  const free: Array<string> = []
  for (const email of emails.values()) {
    if ((yield* readDocument(INSTALLATION, PERSON_EMAIL, personEmailId(email))) === undefined) free.push(email)
  }
  return free
})

const WITH_ORIGIN: ReadonlySet<string> = new Set([SIGN_IN.name, DASHBOARD_SESSION.name])

/** Removes a person's data from the records of an account. */
export class MemberData {
  readonly #person: string
  readonly #pattern: RegExp | undefined
  readonly #emails: ReadonlyArray<string>

  constructor(person: string, emails: ReadonlyArray<string>) {
    this.#person = person
    this.#emails = emails.map((email) => inJson(email).toLowerCase())
    // Longer ones first: one address may be the end of another.
    const longest = this.#emails.toSorted((a, b) => b.length - a.length)
    this.#pattern = longest.length === 0 ? undefined : new RegExp(longest.map(escaped).join("|"), "gi")
  }

  /** Returns a record without the data, unless it is of the person's own documents. */
  readonly withoutOthers = (record: JournalRecord): JournalRecord | undefined =>
    this.#isOwn(record) ? undefined : this.without(record)

  /** Returns a record without the data; the same one if it has none, undefined if it does not concern the person. */
  readonly without = (record: JournalRecord): JournalRecord | undefined => {
    const { response } = record
    const changes = record.changes.map((change) => this.#change(change))
    const events = record.events.map((event) => {
      const object = this.#clean(event.object)
      const previous =
        event.previous && (parseJson(this.#clean(JSON.stringify(event.previous))) as typeof event.previous)
      return { ...event, object, previous }
    })
    const attempts = record.attempts.map((attempt) => this.#attempt(attempt))
    const answer =
      response !== null && isAnswer(response) ? { ...response, body: this.#clean(response.body) } : response
    const after = { ...record, changes, events, attempts, response: answer }
    if (JSON.stringify(textsOf(after)) !== JSON.stringify(textsOf(record))) return after
    return this.#isOwn(record) ? record : undefined
  }

  #isOwn({ changes }: JournalRecord): boolean {
    return changes.some(
      ({ id, kind }) => id === this.#person || (kind === PERSON_EMAIL.name && this.#clean(inJson(id)) !== inJson(id))
    )
  }

  #change(change: Change): Change {
    const { document, hidden, id, kind } = change
    const value = document === null ? null : this.#clean(document)
    return {
      ...change,
      id: parseJson(`"${this.#clean(inJson(id))}"`) as string,
      document: value !== null && WITH_ORIGIN.has(kind) ? this.#withoutOrigin(value) : value,
      hidden: hidden === null ? null : this.#clean(hidden),
      value: undefined
    }
  }

  /** Removes the network address and the browser of the person's sign-ins. */
  #withoutOrigin(document: string): string {
    const value = parseJson(document) as SignedIn
    if (value.person !== this.#person) return document
    const used = value.last_used === undefined ? {} : { last_used: { ...value.last_used, address: "" } }
    return JSON.stringify({ ...value, address: "", agent: "", ...used })
  }

  #attempt(attempt: AttemptEntry): AttemptEntry {
    const { body } = attempt
    return body === undefined ? attempt : { ...attempt, body: parseJson(this.#clean(JSON.stringify(body))) as string }
  }

  /** Replaces the addresses in a JSON text. */
  #clean(json: string): string {
    if (this.#pattern === undefined) return json
    return json.replace(
      this.#pattern,
      (found) => `${this.#emails.indexOf(found.toLowerCase())}.${this.#person}@erased.invalid`
    )
  }
}

interface SignedIn {
  readonly person: string
  readonly last_used?: object
}

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)

/** Returns a text as it is inside of a JSON text. */
const inJson = (text: string): string => JSON.stringify(text).slice(1, -1)

/** The parts of a record that an erasure may change. */
const textsOf = ({ attempts, changes, events, response }: JournalRecord) => [
  changes.map(({ document, hidden, id }) => [id, document, hidden]),
  events.map(({ object, previous }) => [object, previous]),
  attempts.map(({ body }) => body),
  response
]

/** Begins an erasure in one account. A person in a team has to be removed first. */
export const begin = Effect.fnUntraced(function* (
  account: AccountId,
  id: string
): Effect.fn.Return<void, ResourceMissing | Unavailable, Accounts> {
  const accounts = yield* Accounts
  if ((yield* statesOf(id)).length === 0) return yield* new ResourceMissing({ kind: "Person", id, param: "id" })
  yield* accounts.run(
    account,
    Effect.map(Transaction, (transaction) =>
      transaction.setTimer(timer("data.erase", id, transaction.now + LEASE_MILLIS))
    )
  )
})

/** Ends an erasure, when the data is gone. */
export const conclude = (id: string): Effect.Effect<void, never, Transaction> =>
  Effect.map(Transaction, (transaction) => transaction.clearTimer(timerId("data.erase", id)))
