/**
 * The lifecycle of dashboard sessions and of the sign-in links that open them (semantics dashboard.links). The
 * installation's account holds them, with hashes only: the secret of a browser or a link cannot be read from it.
 *
 * A session lasts twelve hours. It ends earlier when the person signs out, revokes it, is removed, changes the
 * password, or opens too many other sessions. A link lasts ten minutes, a mailed one longer, and works once. It ends
 * earlier when its person is removed or gets another password or role.
 *
 * A person with two-step verification also proves the second step, whatever the first one was; a link that was not used
 * for lack of a right code stays.
 *
 * Only successful sign-ins are stored. People of several merchants can share an email address, and a stored failure
 * would show one merchant that, and from where, a person tries to sign in at another.
 */
import { hash, timingSafeEqual } from "node:crypto"
import { Effect, Redacted, Schema } from "effect"
import { type ParameterInvalid, ResourceMissing } from "../../domain/Errors.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { DashboardSession, type Origin, type Person, SignIn, SignInMeans } from "../../domain/Person.ts"
import { secondsOf } from "../../domain/Time.ts"
import type { Document, Millis } from "../../engine/log/Document.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import type { Kept } from "../shared/Documents.ts"
import { ensureOwner, PERSON, type PersonDocument } from "./People.ts"
import * as SecondFactors from "./SecondFactors.ts"
import { timer, timerId } from "../shared/TimerNames.ts"

/** The sessions that a person can have; one more ends the oldest. */
export const SESSIONS_MAX = 20
/** How long a session lasts, in seconds. */
export const SESSION_SECONDS = 12 * 60 * 60
/** How long a sign-in link lasts unless it is mailed, in seconds. */
export const LINK_SECONDS = 10 * 60
/** How long an identity confirmation stays valid, in seconds. */
export const CONFIRMED_SECONDS = 10 * 60
/** How old the noted last use of a session is at least, in seconds, before a newer one is noted. */
export const USE_SECONDS = 10 * 60

const SECRET_LENGTH = 32

export const DashboardSessionHidden = Schema.Struct({
  /** SHA-256 of the secret, hex. */
  hash: Schema.String,
  /** The person's epoch when the session was opened. */
  epoch: Schema.Int
})
export type DashboardSessionHidden = typeof DashboardSessionHidden.Type
export type DashboardSessionDocument = Document<DashboardSession, DashboardSessionHidden>

export const DASHBOARD_SESSION: Kept<DashboardSession, DashboardSessionHidden> = {
  name: "dashboard_session",
  shape: { value: DashboardSession, hidden: DashboardSessionHidden },
  prefix: PREFIXES.dashboard_session
}

/** The ids of a person's sessions, oldest first. */
const SessionsOf = Schema.Struct({
  /** `sessions_of:<person>` */
  id: Schema.String,
  sessions: Schema.Array(Schema.String)
})
export const SESSIONS_OF: Kept<typeof SessionsOf.Type> = { name: "sessions_of", shape: { value: SessionsOf } }

export const sessionsOfId = (person: string): string => `sessions_of:${person}`

export const SIGN_IN: Kept<SignIn> = {
  name: "sign_in",
  shape: { value: SignIn },
  prefix: PREFIXES.sign_in,
  labels: ({ merchant_id, person }) => ({ merchant_id, person })
}

const DashboardLink = Schema.Struct({
  /** `dashboard_link_<SHA-256 of the secret, hex>` */
  id: Schema.String,
  person: Schema.String,
  /** The person's link epoch when the link was created. */
  epoch: Schema.Int,
  /** How the person proved the identity: by the link itself, or by a password before it. */
  means: SignInMeans,
  expires_at: Schema.Int
})
export type DashboardLink = typeof DashboardLink.Type
export const DASHBOARD_LINK: Kept<DashboardLink> = {
  name: "dashboard_link",
  shape: { value: DashboardLink }
}

const hashOf = (secret: string): string => hash("sha256", secret, "hex")
export const linkIdOf = (secret: string): string => `dashboard_link_${hashOf(secret)}`

/** Creates a link for a person; only the result has its secret. Fails with `ResourceMissing` without the person. */
export const makeLink = Effect.fnUntraced(function* (
  { id }: Pick<Person, "id">,
  means: SignInMeans = "link",
  seconds: number = LINK_SECONDS
): Effect.fn.Return<Redacted.Redacted, ResourceMissing, Transaction> {
  const transaction = yield* Transaction
  const person = yield* transaction.get(PERSON, id)
  if (person === undefined) return yield* new ResourceMissing({ kind: "Person", id, param: "id" })
  const secret = transaction.newSecret(SECRET_LENGTH)
  const link: DashboardLink = {
    id: linkIdOf(secret),
    person: id,
    epoch: person.hidden.link_epoch,
    means,
    expires_at: transaction.now + seconds * 1000
  }
  transaction.put(DASHBOARD_LINK, link)
  transaction.setTimer(timer("dashboard_link.expire", link.id, link.expires_at))
  return Redacted.make(secret, { label: "sign-in link" })
})

/** Creates a link after the right password; fails with `ResourceMissing` if person or password changed since. */
export const makeLinkAfterPassword = Effect.fnUntraced(function* (
  proved: PersonDocument
): Effect.fn.Return<Redacted.Redacted, ResourceMissing, Transaction> {
  yield* requireSame(proved)
  return yield* makeLink(proved.value, "password")
})

/** Fails with `ResourceMissing` if the person or the password changed since the authentication. */
const requireSame = Effect.fnUntraced(function* (
  proved: PersonDocument
): Effect.fn.Return<PersonDocument, ResourceMissing, Transaction> {
  const person = yield* (yield* Transaction).get(PERSON, proved.id)
  if (person === undefined || person.hidden.epoch !== proved.hidden.epoch) {
    return yield* new ResourceMissing({ kind: "Person", id: proved.id, param: "id" })
  }
  return person
})

export const isLinkGood = ({ epoch, expires_at }: DashboardLink, { hidden }: PersonDocument, now: Millis): boolean =>
  epoch === hidden.link_epoch && now < expires_at

export const expireLink = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  if ((yield* transaction.get(DASHBOARD_LINK, id)) !== undefined) transaction.delete(DASHBOARD_LINK, id)
})

/** Creates a link for the first owner of a merchant. Fails with `ResourceMissing` if there is no such merchant. */
export const makeOwnersLink = (
  merchantId: string
): Effect.Effect<Redacted.Redacted, ResourceMissing | ParameterInvalid, Transaction> =>
  Effect.flatMap(ensureOwner(merchantId), makeLink)

/** Returns the path of a link, below Till's address. */
export const pathOf = (link: Redacted.Redacted): string => `/dashboard/link/${Redacted.value(link)}`

/** Returns the path of a mailed link, which leads to the page where the person sets a password. */
export const pathOfMailed = (secret: string): string =>
  `${pathOf(Redacted.make(secret))}?${new URLSearchParams({ to: "/test/account" })}`

/** A new session, with the secret that the browser's cookie holds. */
export interface OpenedSession {
  readonly session: DashboardSession
  readonly secret: Redacted.Redacted
}

/** The proof of the second step; null without one. */
type SecondProof = SecondFactors.Proof | null

/**
 * Opens a session, or fails: with `ResourceMissing` if person or password changed since the authentication, with
 * `CodeNeeded` or `CodeUsed` if the person has two-step verification and the proof is missing or outdated.
 */
export const open = Effect.fnUntraced(function* (
  proved: PersonDocument,
  means: SignInMeans,
  origin: Origin,
  proof: SecondProof = null
): Effect.fn.Return<OpenedSession, ResourceMissing | SecondFactors.CodeNeeded | SecondFactors.CodeUsed, Transaction> {
  const transaction = yield* Transaction
  const person = yield* requireSame(proved)
  const second = yield* SecondFactors.useUp(person.id, proof)
  const secret = transaction.newSecret(SECRET_LENGTH)
  const now = secondsOf(transaction.now)
  const opened = { means, ...origin, created: now }
  const { merchant_id } = person.value
  const session: DashboardSession = {
    id: transaction.newId(PREFIXES.dashboard_session),
    object: "dashboard_session",
    person: person.id,
    merchant_id,
    ...opened,
    expires_at: now + SESSION_SECONDS,
    confirmed_at: now
  }
  transaction.put(DASHBOARD_SESSION, session, { hash: hashOf(secret), epoch: person.hidden.epoch })
  transaction.setTimer(timer("dashboard_session.expire", session.id, session.expires_at * 1000))
  yield* addToSessions(session)
  const id = transaction.newId(PREFIXES.sign_in)
  const how = { ...opened, ...(second !== undefined && { second_means: second }) }
  transaction.put(SIGN_IN, { id, object: "sign_in", person: person.id, merchant_id, ...how })
  return { session, secret: Redacted.make(secret, { label: "session" }) }
})

const addToSessions = Effect.fnUntraced(function* ({
  id,
  person
}: DashboardSession): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const known = yield* transaction.get(SESSIONS_OF, sessionsOfId(person))
  const sessions = [...(known?.value.sessions ?? []), id]
  transaction.put(SESSIONS_OF, { id: sessionsOfId(person), sessions })
  for (const oldest of sessions.slice(0, -SESSIONS_MAX)) yield* Effect.ignore(end(oldest))
})

const takeFromSessions = Effect.fnUntraced(function* ({
  id,
  person
}: DashboardSession): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const known = yield* transaction.get(SESSIONS_OF, sessionsOfId(person))
  const sessions = known?.value.sessions.filter((other) => other !== id) ?? []
  if (sessions.length > 0) transaction.put(SESSIONS_OF, { id: sessionsOfId(person), sessions })
  else if (known !== undefined) transaction.delete(SESSIONS_OF, known.id)
})

/** Opens a session by a link and removes the link; fails with `ResourceMissing` for a used or outdated link. */
export const openByLink = Effect.fnUntraced(function* (
  secret: string,
  origin: Origin,
  proof: SecondProof = null
): Effect.fn.Return<OpenedSession, ResourceMissing | SecondFactors.CodeNeeded | SecondFactors.CodeUsed, Transaction> {
  const transaction = yield* Transaction
  const link = yield* transaction.get(DASHBOARD_LINK, linkIdOf(secret))
  const person = link === undefined ? undefined : yield* transaction.get(PERSON, link.value.person)
  if (link === undefined || person === undefined || !isLinkGood(link.value, person, transaction.now)) {
    return yield* new ResourceMissing({ kind: "Session", id: "link", param: "id" })
  }
  transaction.delete(DASHBOARD_LINK, link.id)
  transaction.clearTimer(timerId("dashboard_link.expire", link.id))
  return yield* open(person, link.value.means, origin, proof)
})

/** Keeps the session open in which its person has just changed the password; all other sessions of the person end. */
export const keepOpen = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const session = yield* transaction.get(DASHBOARD_SESSION, id)
  const person = session === undefined ? undefined : yield* transaction.get(PERSON, session.value.person)
  if (session === undefined || person === undefined) return
  transaction.put(DASHBOARD_SESSION, session.value, { ...session.hidden, epoch: person.hidden.epoch })
})

/** Notes that the person has proved the identity again: by the password, and the second step if there is one. */
export const confirm = Effect.fnUntraced(function* (
  id: string,
  proof: SecondProof
): Effect.fn.Return<
  DashboardSession,
  ResourceMissing | SecondFactors.CodeNeeded | SecondFactors.CodeUsed,
  Transaction
> {
  const transaction = yield* Transaction
  const found = yield* transaction.get(DASHBOARD_SESSION, id)
  if (found === undefined) return yield* new ResourceMissing({ kind: "Session", id, param: "id" })
  yield* SecondFactors.useUp(found.value.person, proof)
  const confirmed = { ...found.value, confirmed_at: secondsOf(transaction.now) }
  transaction.put(DASHBOARD_SESSION, confirmed, found.hidden)
  return confirmed
})

/** Returns whether a use of the session is worth noting, at a time in Unix seconds. */
export const isUseNew = ({ created, last_used }: DashboardSession, now: number): boolean =>
  now >= (last_used?.at ?? created) + USE_SECONDS

/** Notes a use of a session. Changes nothing if the session has ended or a recent use is noted. */
export const noteUse = Effect.fnUntraced(function* (
  id: string,
  address: string
): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const found = yield* transaction.get(DASHBOARD_SESSION, id)
  const now = secondsOf(transaction.now)
  if (found === undefined || !isUseNew(found.value, now)) return
  transaction.put(DASHBOARD_SESSION, { ...found.value, last_used: { at: now, address } }, found.hidden)
})

/** Ends all sessions of a person but one. */
export const endOthers = Effect.fnUntraced(function* (
  person: Pick<Person, "id">,
  kept: string
): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const sessions = (yield* transaction.get(SESSIONS_OF, sessionsOfId(person.id)))?.value.sessions ?? []
  for (const id of sessions) if (id !== kept) yield* Effect.ignore(end(id))
})

/** Ends a session. Fails with `ResourceMissing` if there is none, or none of the given merchant. */
export const end = Effect.fnUntraced(function* (
  id: string,
  merchantId?: string
): Effect.fn.Return<DashboardSession, ResourceMissing, Transaction> {
  const transaction = yield* Transaction
  const found = yield* transaction.get(DASHBOARD_SESSION, id)
  if (found === undefined || (merchantId !== undefined && found.value.merchant_id !== merchantId)) {
    return yield* new ResourceMissing({ kind: "Session", id, param: "id" })
  }
  transaction.delete(DASHBOARD_SESSION, id)
  transaction.clearTimer(timerId("dashboard_session.expire", id))
  yield* takeFromSessions(found.value)
  return found.value
})

/** Ends a session of this person. Fails with `ResourceMissing` if the session belongs to another person. */
export const endOwn = Effect.fnUntraced(function* (
  person: Pick<Person, "id">,
  id: string
): Effect.fn.Return<DashboardSession, ResourceMissing, Transaction> {
  const transaction = yield* Transaction
  const found = yield* transaction.get(DASHBOARD_SESSION, id)
  if (found?.value.person !== person.id) return yield* new ResourceMissing({ kind: "Session", id, param: "id" })
  return yield* end(id)
})

/** Removes an expired session, when its timer fires. */
export const expire = (id: string): Effect.Effect<void, never, Transaction> => Effect.ignore(end(id))

/** Returns whether a session of the person is still open, at a time in milliseconds. */
export const isOpen = ({ hidden, value }: DashboardSessionDocument, person: PersonDocument, now: Millis): boolean =>
  hidden.epoch === person.hidden.epoch && now < value.expires_at * 1000

/** Returns whether a browser's secret opens the session of the person, at a time in milliseconds. */
export const isGood = (
  session: DashboardSessionDocument,
  person: PersonDocument,
  secret: string,
  now: Millis
): boolean =>
  timingSafeEqual(Buffer.from(session.hidden.hash, "hex"), Buffer.from(hashOf(secret), "hex")) &&
  isOpen(session, person, now)

/** Returns whether the identity confirmation is still valid, at a time in milliseconds. */
export const isConfirmed = ({ confirmed_at }: DashboardSession, now: Millis): boolean =>
  now < (confirmed_at + CONFIRMED_SECONDS) * 1000
