/**
 * The lifecycle of sessions in the dashboard, and of the links that open one (semantics 9.60). They lie in the
 * installation's account, and are known by hashes only: what a browser or a link holds cannot be had from here.
 *
 * A session is good for twelve hours. It ends earlier with a sign-out, when it is revoked, and when its person goes or
 * gets another password. A link is good for ten minutes, and once.
 */
import { hash, timingSafeEqual } from "node:crypto"
import { Effect, Redacted, Schema } from "effect"
import type { ParameterInvalid } from "../domain/Errors.ts"
import { ResourceMissing } from "../domain/Errors.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import type { Origin, Person, SignInMeans } from "../domain/Person.ts"
import { DashboardSession, SignIn } from "../domain/Person.ts"
import { secondsOf } from "../domain/Time.ts"
import type { Document, Millis } from "../engine/Document.ts"
import { Transaction } from "../engine/Transaction.ts"
import type { Kept } from "./Documents.ts"
import type { PersonDocument } from "./People.ts"
import { ensureOwner, PERSON } from "./People.ts"
import { timer, timerId } from "./TimerNames.ts"

/** A session is good for so long, in seconds. */
export const SESSION_SECONDS = 12 * 60 * 60
/** A link is good for so long, in seconds. */
export const LINK_SECONDS = 10 * 60
/** What proves who somebody is counts for so long, in seconds. */
export const CONFIRMED_SECONDS = 10 * 60

const SECRET_LENGTH = 32

export const DashboardSessionHidden = Schema.Struct({
  /** SHA-256 of the secret, hex. */
  hash: Schema.String,
  /** That of its person when it was opened. */
  epoch: Schema.Int
})
export type DashboardSessionHidden = typeof DashboardSessionHidden.Type
export type DashboardSessionDocument = Document<DashboardSession, DashboardSessionHidden>

export const DASHBOARD_SESSION: Kept<DashboardSession, DashboardSessionHidden> = {
  name: "dashboard_session",
  shape: { value: DashboardSession, hidden: DashboardSessionHidden },
  prefix: PREFIXES.dashboard_session,
  labels: ({ merchant_id, person }) => ({ merchant_id, person })
}

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
  /** Milliseconds. */
  expires_at: Schema.Int
})
export const DASHBOARD_LINK: Kept<typeof DashboardLink.Type> = {
  name: "dashboard_link",
  shape: { value: DashboardLink }
}

const hashOf = (secret: string): string => hash("sha256", secret, "hex")
const linkId = (secret: string): string => `dashboard_link_${hashOf(secret)}`

/** Makes a link for a person; the secret is in the answer, and nowhere else. */
export const makeLink = Effect.fnUntraced(function* (
  person: Pick<Person, "id">
): Effect.fn.Return<Redacted.Redacted, never, Transaction> {
  const transaction = yield* Transaction
  const secret = transaction.newSecret(SECRET_LENGTH)
  const expires_at = transaction.now + LINK_SECONDS * 1000
  transaction.put(DASHBOARD_LINK, { id: linkId(secret), person: person.id, expires_at })
  return Redacted.make(secret, { label: "sign-in link" })
})

/** Makes a link for the first owner of a merchant. Fails with `ResourceMissing` if there is no such merchant. */
export const makeOwnersLink = (
  merchantId: string
): Effect.Effect<Redacted.Redacted, ResourceMissing | ParameterInvalid, Transaction> =>
  Effect.flatMap(ensureOwner(merchantId), makeLink)

/** Where a link leads, below Till's address. */
export const pathOf = (link: Redacted.Redacted): string => `/dashboard/link/${Redacted.value(link)}`

/** A session that has just been opened, with what the browser is to show from now on. */
export interface OpenedSession {
  readonly session: DashboardSession
  readonly secret: Redacted.Redacted
}

/** Opens a session for a person who has proved to be it. */
export const open = Effect.fnUntraced(function* (
  { hidden, value: person }: PersonDocument,
  means: SignInMeans,
  origin: Origin
): Effect.fn.Return<OpenedSession, never, Transaction> {
  const transaction = yield* Transaction
  const secret = transaction.newSecret(SECRET_LENGTH)
  const now = secondsOf(transaction.now)
  const session: DashboardSession = {
    id: transaction.newId(PREFIXES.dashboard_session),
    object: "dashboard_session",
    person: person.id,
    merchant_id: person.merchant_id,
    means,
    ...origin,
    created: now,
    expires_at: now + SESSION_SECONDS,
    confirmed_at: now
  }
  transaction.put(DASHBOARD_SESSION, session, { hash: hashOf(secret), epoch: hidden.epoch })
  transaction.setTimer(timer("dashboard_session.expire", session.id, session.expires_at * 1000))
  remember(transaction, person, { means, origin, succeeded: true })
  return { session, secret: Redacted.make(secret, { label: "session" }) }
})

/** Keeps that somebody has tried to sign in. */
const remember = (
  transaction: Transaction,
  person: Pick<Person, "id" | "merchant_id">,
  { means, origin, succeeded }: { readonly means: SignInMeans; readonly origin: Origin; readonly succeeded: boolean }
): void =>
  transaction.put(SIGN_IN, {
    id: transaction.newId(PREFIXES.sign_in),
    object: "sign_in",
    person: person.id,
    merchant_id: person.merchant_id,
    means,
    succeeded,
    ...origin,
    created: secondsOf(transaction.now)
  })

/** Keeps that somebody has tried a wrong password. */
export const refused = Effect.fnUntraced(function* (
  person: Pick<Person, "id" | "merchant_id">,
  origin: Origin
): Effect.fn.Return<void, never, Transaction> {
  remember(yield* Transaction, person, { means: "password", origin, succeeded: false })
})

/**
 * Opens a session by a link, which is of no use any more then. Fails with `ResourceMissing` if there is no such link,
 * if it was used before or is too old, and if its person has gone.
 */
export const openByLink = Effect.fnUntraced(function* (
  secret: string,
  origin: Origin
): Effect.fn.Return<OpenedSession, ResourceMissing, Transaction> {
  const transaction = yield* Transaction
  const link = yield* transaction.get(DASHBOARD_LINK, linkId(secret))
  const person = link === undefined ? undefined : yield* transaction.get(PERSON, link.value.person)
  if (link === undefined || person === undefined || transaction.now >= link.value.expires_at) {
    return yield* new ResourceMissing({ kind: "Session", id: "link", param: "id" })
  }
  transaction.delete(DASHBOARD_LINK, link.id)
  return yield* open(person, "link", origin)
})

/** Has a session go on whose person got another password in it just now; all others of the person have ended. */
export const keep = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const session = yield* transaction.get(DASHBOARD_SESSION, id)
  const person = session === undefined ? undefined : yield* transaction.get(PERSON, session.value.person)
  if (session === undefined || person === undefined) return
  transaction.put(DASHBOARD_SESSION, session.value, { ...session.hidden, epoch: person.hidden.epoch })
})

/** Notes that somebody has just proved again who they are. */
export const confirm = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<DashboardSession, ResourceMissing, Transaction> {
  const transaction = yield* Transaction
  const found = yield* transaction.get(DASHBOARD_SESSION, id)
  if (found === undefined) return yield* new ResourceMissing({ kind: "Session", id, param: "id" })
  const confirmed = { ...found.value, confirmed_at: secondsOf(transaction.now) }
  transaction.put(DASHBOARD_SESSION, confirmed, found.hidden)
  return confirmed
})

/**
 * Ends a session. Fails with `ResourceMissing` if there is none, or if it is not one of the merchant's, where one is
 * given.
 */
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
  return found.value
})

/** Ends a session of a person's own. Fails with `ResourceMissing` if it is none of theirs. */
export const endOf = Effect.fnUntraced(function* (
  person: Pick<Person, "id">,
  id: string
): Effect.fn.Return<DashboardSession, ResourceMissing, Transaction> {
  const transaction = yield* Transaction
  const found = yield* transaction.get(DASHBOARD_SESSION, id)
  if (found?.value.person !== person.id) return yield* new ResourceMissing({ kind: "Session", id, param: "id" })
  return yield* end(id)
})

/** Removes a session whose time is over, when its timer fires. */
export const expire = (id: string): Effect.Effect<void, never, Transaction> => Effect.ignore(end(id))

/** Tells whether a session of that person has not ended, at a time in milliseconds. */
export const isOpen = ({ hidden, value }: DashboardSessionDocument, person: PersonDocument, now: Millis): boolean =>
  hidden.epoch === person.hidden.epoch && now < value.expires_at * 1000

/** Tells whether a browser with this secret is in that session of that person, at a time in milliseconds. */
export const isGood = (
  session: DashboardSessionDocument,
  person: PersonDocument,
  secret: string,
  now: Millis
): boolean =>
  timingSafeEqual(Buffer.from(session.hidden.hash, "hex"), Buffer.from(hashOf(secret), "hex")) &&
  isOpen(session, person, now)

/** Tells whether somebody has proved lately who they are, at a time in milliseconds. */
export const isConfirmed = ({ confirmed_at }: DashboardSession, now: Millis): boolean =>
  now < (confirmed_at + CONFIRMED_SECONDS) * 1000
