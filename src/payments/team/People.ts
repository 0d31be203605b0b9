/**
 * The lifecycle of people, who sign in to the dashboard of a merchant (semantics dashboard.people). The installation's
 * account holds them.
 *
 * An email address is unique within a merchant only: merchants cannot see each other's people. A merchant always has an
 * owner.
 */
import { Effect, Schema } from "effect"
import { ParameterInvalid, ResourceMissing } from "../../domain/Errors.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { Person, type Role } from "../../domain/Person.ts"
import { secondsOf } from "../../domain/Time.ts"
import type { Document } from "../../engine/log/Document.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import type { Kept } from "../shared/Documents.ts"
import * as Merchants from "../merchants/Merchants.ts"
import type { PasswordHash } from "./Passwords.ts"
import * as SecondFactors from "./SecondFactors.ts"

export const PersonHidden = Schema.Struct({
  password: Schema.NullOr(Schema.String),
  /** Epoch of the sessions: a session of another epoch has ended. */
  epoch: Schema.Int,
  /** Epoch of the sign-in links: a link of another epoch does not work. */
  link_epoch: Schema.Int
})
export type PersonHidden = typeof PersonHidden.Type
export type PersonDocument = Document<Person, PersonHidden>

export const PERSON: Kept<Person, PersonHidden> = {
  name: "person",
  shape: { value: Person, hidden: PersonHidden },
  prefix: PREFIXES.person,
  labels: ({ merchant_id }) => ({ merchant_id })
}

/** The people who share an email address. */
const PersonEmail = Schema.Struct({
  /** `person_email:<address, in lower case>` */
  id: Schema.String,
  people: Schema.Record(Schema.String, Schema.String)
})
export const PERSON_EMAIL: Kept<typeof PersonEmail.Type> = { name: "person_email", shape: { value: PersonEmail } }

export const personEmailId = (email: string): string => `person_email:${email.toLowerCase()}`

/** The people of a merchant, in the order in which they were added. */
const Team = Schema.Struct({
  /** `team:<merchant>` */
  id: Schema.String,
  people: Schema.Array(Schema.String)
})
export const TEAM: Kept<typeof Team.Type> = { name: "team", shape: { value: Team } }

export const teamId = (merchantId: string): string => `team:${merchantId}`

const PEOPLE_MAX = 100

const noPerson = (id: string) => new ResourceMissing({ kind: "Person", id, param: "id" })

const idsOf = Effect.fnUntraced(function* (
  merchantId: string
): Effect.fn.Return<ReadonlyArray<string>, never, Transaction> {
  const transaction = yield* Transaction
  return (yield* transaction.get(TEAM, teamId(merchantId)))?.value.people ?? []
})

/** Finds a person of a merchant. Fails with `ResourceMissing` if there is none. */
export const find = Effect.fnUntraced(function* (
  merchantId: string,
  id: string
): Effect.fn.Return<PersonDocument, ResourceMissing, Transaction> {
  const transaction = yield* Transaction
  const person = yield* transaction.get(PERSON, id)
  return person?.value.merchant_id === merchantId ? person : yield* noPerson(id)
})

const ownersOf = Effect.fnUntraced(function* (
  merchantId: string
): Effect.fn.Return<ReadonlyArray<Person>, never, Transaction> {
  const transaction = yield* Transaction
  const people = yield* Effect.forEach(yield* idsOf(merchantId), (id) => transaction.get(PERSON, id))
  return people.flatMap((person) => (person?.value.role === "owner" ? [person.value] : []))
})

const peopleOf = Effect.fnUntraced(function* (
  email: string
): Effect.fn.Return<Readonly<Record<string, string>>, never, Transaction> {
  const transaction = yield* Transaction
  return (yield* transaction.get(PERSON_EMAIL, personEmailId(email)))?.value.people ?? {}
})

/** Reserves an email address for a person. Fails with `ParameterInvalid` if another person of the merchant has it. */
const takeEmail = Effect.fnUntraced(function* (
  { id: person, merchant_id }: Pick<Person, "id" | "merchant_id">,
  email: string
): Effect.fn.Return<void, ParameterInvalid, Transaction> {
  const people = yield* peopleOf(email)
  const known = people[merchant_id]
  if (known !== undefined && known !== person) {
    return yield* new ParameterInvalid({
      param: "email",
      rule: "an address that no other person in the team signs in with"
    })
  }
  const transaction = yield* Transaction
  transaction.put(PERSON_EMAIL, { id: personEmailId(email), people: { ...people, [merchant_id]: person } })
})

const giveEmailBack = Effect.fnUntraced(function* ({
  email,
  merchant_id
}: Pick<Person, "email" | "merchant_id">): Effect.fn.Return<void, never, Transaction> {
  if (email === null) return
  const transaction = yield* Transaction
  const { [merchant_id]: _, ...others } = yield* peopleOf(email)
  const id = personEmailId(email)
  if (Object.keys(others).length === 0) transaction.delete(PERSON_EMAIL, id)
  else transaction.put(PERSON_EMAIL, { id, people: others })
})

/** Adds a person without a password. */
export const add = Effect.fnUntraced(function* (
  merchantId: string,
  { email, role }: { readonly email: string | null; readonly role: Role }
): Effect.fn.Return<Person, ResourceMissing | ParameterInvalid, Transaction> {
  const transaction = yield* Transaction
  if ((yield* Merchants.find(merchantId)) === undefined) {
    return yield* new ResourceMissing({ kind: "Merchant", id: merchantId, param: "merchant" })
  }
  const people = yield* idsOf(merchantId)
  if (people.length >= PEOPLE_MAX) {
    return yield* new ParameterInvalid({ param: null, rule: `about one of at most ${PEOPLE_MAX} people of a merchant` })
  }
  const person: Person = {
    id: transaction.newId(PREFIXES.person),
    object: "person",
    merchant_id: merchantId,
    email,
    role,
    has_password: false,
    created: secondsOf(transaction.now)
  }
  if (email !== null) yield* takeEmail(person, email)
  transaction.put(PERSON, person, { password: null, epoch: 0, link_epoch: 0 })
  transaction.put(TEAM, { id: teamId(merchantId), people: [...people, person.id] })
  return person
})

/** Finds the first owner of a merchant, or adds one without an address. */
export const ensureOwner = Effect.fnUntraced(function* (
  merchantId: string
): Effect.fn.Return<Person, ResourceMissing | ParameterInvalid, Transaction> {
  const [owner] = yield* ownersOf(merchantId)
  return owner ?? (yield* add(merchantId, { email: null, role: "owner" }))
})

/**
 * Sets a person's address and password. Ends all sessions and links of the person, by new epochs; the caller can reopen
 * one session under the new epoch.
 */
export const setCredentials = Effect.fnUntraced(function* (
  merchantId: string,
  id: string,
  { email, password }: { readonly email: string; readonly password: PasswordHash }
): Effect.fn.Return<Person, ResourceMissing | ParameterInvalid, Transaction> {
  const transaction = yield* Transaction
  const { hidden, value } = yield* find(merchantId, id)
  yield* takeEmail(value, email)
  if (value.email !== null && personEmailId(value.email) !== personEmailId(email)) yield* giveEmailBack(value)
  const changed: Person = { ...value, email, has_password: true }
  transaction.put(PERSON, changed, { password, epoch: hidden.epoch + 1, link_epoch: hidden.link_epoch + 1 })
  return changed
})

/** Fails with `ParameterInvalid` if a merchant would be left without an owner. */
const requireOtherOwner = Effect.fnUntraced(function* (
  person: Person,
  param: string
): Effect.fn.Return<void, ParameterInvalid, Transaction> {
  if (person.role !== "owner" || (yield* ownersOf(person.merchant_id)).length > 1) return
  return yield* new ParameterInvalid({ param, rule: "such that an owner is left" })
})

/** Changes a person's role and ends older sign-in links. Fails with `ParameterInvalid` for the last owner. */
export const setRole = Effect.fnUntraced(function* (
  merchantId: string,
  id: string,
  role: Role
): Effect.fn.Return<Person, ResourceMissing | ParameterInvalid, Transaction> {
  const transaction = yield* Transaction
  const { hidden, value } = yield* find(merchantId, id)
  if (value.role === role) return value
  yield* requireOtherOwner(value, "role")
  const changed: Person = { ...value, role }
  transaction.put(PERSON, changed, { ...hidden, link_epoch: hidden.link_epoch + 1 })
  return changed
})

/** Sets the time zone of a person's pages and files; null removes the setting. */
export const setTimeZone = Effect.fnUntraced(function* (
  merchantId: string,
  id: string,
  zone: string | null
): Effect.fn.Return<Person, ResourceMissing, Transaction> {
  const transaction = yield* Transaction
  const { hidden, value } = yield* find(merchantId, id)
  const { time_zone: _, ...others } = value
  const changed: Person = { ...others, ...(zone !== null && { time_zone: zone }) }
  transaction.put(PERSON, changed, hidden)
  return changed
})

/** Removes a person and so ends the person's sessions. Fails with `ParameterInvalid` for the last owner. */
export const remove = Effect.fnUntraced(function* (
  merchantId: string,
  id: string
): Effect.fn.Return<Person, ResourceMissing | ParameterInvalid, Transaction> {
  const transaction = yield* Transaction
  const { value } = yield* find(merchantId, id)
  yield* requireOtherOwner(value, "id")
  yield* giveEmailBack(value)
  transaction.delete(PERSON, id)
  yield* SecondFactors.remove(id)
  const people = (yield* idsOf(merchantId)).filter((other) => other !== id)
  transaction.put(TEAM, { id: teamId(merchantId), people })
  return value
})
