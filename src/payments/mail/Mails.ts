/**
 * The lifecycle of mails (semantics mail.*): a command that has a reason for a mail records it, a timer begins each
 * attempt, and the outcome of an attempt is a command. Nothing on the path of a request waits for a mail server.
 *
 * - The record with the reason contains the mail, so both are durable or neither. The mail's id is in its Message-ID:
 *   every attempt sends the same one, and a mail server or a reader can recognize a repetition.
 * - The timer's command records that an attempt begins, and hands the mail to the `Outbox`. It also sets the timer
 *   again: if the process dies before the attempt is over, the next attempt follows after `LEASE_MILLIS`. A mail can
 *   arrive twice only if the process, or the connection after the last byte of the mail, is lost before the server's
 *   answer is recorded.
 * - A secret in a mail, such as that of a sign-in link, is sealed until the mail has ended, and then removed.
 */
import { Context, Effect, Redacted, Schema } from "effect"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { Mail, type MailPurpose } from "../../domain/Mail.ts"
import { secondsOf } from "../../domain/Time.ts"
import type { AccountId, Document, Millis } from "../../engine/log/Document.ts"
import { Postponed } from "../../engine/actor/Timers.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { CUSTOMER, type Kept, PAYMENT_INTENT } from "../shared/Documents.ts"
import { PaymentsConfig, type PaymentsConfigShape } from "../shared/PaymentsConfig.ts"
import * as Sealing from "../shared/Sealing.ts"
import { timer, timerId } from "../shared/TimerNames.ts"

export const MailHidden = Schema.Struct({
  /** The secret of the mail's link, encrypted; null if it has none, and after the mail has ended. */
  sealedSecret: Schema.NullOr(Schema.String),
  /** The end of the link, in milliseconds of the account's clock: a mail is not sent after it. */
  expiresAt: Schema.NullOr(Schema.Int)
})
export type MailHidden = typeof MailHidden.Type
export type MailDocument = Document<Mail, MailHidden>

export const MAIL: Kept<Mail, MailHidden> = {
  name: "mail",
  shape: { value: Mail, hidden: MailHidden },
  prefix: PREFIXES.mail,
  labels: ({ subject }) => ({ subject })
}

/** Pauses after the first, second, … failed attempt, in seconds (semantics mail.attempts). */
export const RETRY_AFTER_SECONDS = [60, 300, 1800, 7200, 28_800, 86_400] as const
export const ATTEMPTS_MAX = RETRY_AFTER_SECONDS.length + 1
/** Time after which the mail is handed to the outbox again, unless the outbox still holds it. */
export const LEASE_MILLIS = 5 * 60 * 1000

/** An attempt that has been recorded. */
export interface BegunAttempt {
  readonly account: AccountId
  readonly id: string
  readonly attempt: number
}

/** Port: the mails that this process is about to send. */
export interface OutboxShape {
  /**
   * Takes an attempt whose record may not be durable yet. Answers `held` if an earlier attempt of the mail still waits
   * or is under way, and `full` while there is no room.
   */
  readonly offer: (attempt: BegunAttempt) => "taken" | "held" | "full"
}

/** Null in a process that sends no mail. */
export const Outbox = Context.Reference<OutboxShape | null>("till/payments/Outbox", { defaultValue: () => null })

/** The reason for a mail. */
export interface NewMail {
  readonly purpose: MailPurpose
  readonly subject: string
  readonly merchantId: string
  readonly to: string | null
  /** The secret of the mail's link, and the link's end in milliseconds of the account's clock. */
  readonly link?: { readonly secret: Redacted.Redacted; readonly expiresAt: Millis; readonly sealing: Keys }
}

type Keys = Pick<PaymentsConfigShape, "keyring">

const sealingOf = ({ keyring }: Keys, account: AccountId, id: string): Sealing.Sealing => ({
  keyring,
  purpose: `mail ${account}/${id}`
})

/** Seals the secret of a mail's link anew that is under an older secret (semantics operation.roll). */
export const resealed = (config: Keys, account: AccountId, { hidden, id }: MailDocument): MailHidden | undefined => {
  const { sealedSecret: before } = hidden
  const sealedSecret = before === null ? undefined : Sealing.reseal(sealingOf(config, account, id), before)
  return sealedSecret === undefined ? undefined : { ...hidden, sealedSecret }
}

/** Records a mail in the running command. Its first attempt begins at once. */
export const queue = (transaction: Transaction, { link, merchantId, purpose, subject, to }: NewMail): Mail => {
  const { account, now } = transaction
  const mail: Mail = {
    id: transaction.newId(PREFIXES.mail),
    object: "mail",
    purpose,
    subject,
    merchant_id: merchantId,
    to,
    status: "pending",
    attempts: 0,
    error: null,
    created: secondsOf(now),
    ended_at: null
  }
  transaction.put(MAIL, mail, {
    sealedSecret: link ? Sealing.seal(sealingOf(link.sealing, account, mail.id), Redacted.value(link.secret)) : null,
    expiresAt: link?.expiresAt ?? null
  })
  transaction.setTimer(timer("mail.attempt", mail.id, now))
  return mail
}

/** Opens the secret of a mail's link; null if the mail has none. */
export const secretOf = (config: Keys, account: AccountId, { hidden, id }: MailDocument): string | null =>
  hidden.sealedSecret === null ? null : Sealing.open(sealingOf(config, account, id), hidden.sealedSecret)

const findPending = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<MailDocument | undefined, never, Transaction> {
  const mail = yield* Transaction.pipe(Effect.flatMap((transaction) => transaction.get(MAIL, id)))
  return mail?.value.status === "pending" ? mail : undefined
})

const end = (
  transaction: Transaction,
  { hidden, value }: MailDocument,
  status: "sent" | "failed",
  error: string | null
): void => {
  const ended_at = secondsOf(transaction.now)
  transaction.put(MAIL, { ...value, status, error, ended_at }, { ...hidden, sealedSecret: null })
  transaction.clearTimer(timerId("mail.attempt", value.id))
}

/** The reason for which a pending mail must not be attempted; null if it may be. */
const obstacleTo = (
  { hidden, value }: MailDocument,
  now: Millis,
  { sendsMail }: PaymentsConfigShape
): string | null => {
  if (!sendsMail) return "Mail was turned off before it could be sent."
  if (hidden.expiresAt !== null && now >= hidden.expiresAt) return "Its link expired before it could be sent."
  if (value.attempts >= ATTEMPTS_MAX) return value.error ?? "It could not be sent."
  return null
}

/** The address of the customer of a payment without a Checkout Session; null if there is none. */
const customersAddress = Effect.fnUntraced(function* (
  paymentIntent: string
): Effect.fn.Return<string | null, never, Transaction> {
  const transaction = yield* Transaction
  const customer = (yield* transaction.get(PAYMENT_INTENT, paymentIntent))?.value.customer ?? null
  return customer === null ? null : ((yield* transaction.get(CUSTOMER, customer))?.value.email ?? null)
})

/**
 * Begins an attempt, when the timer is due. Fails with `Postponed` while the outbox has no room: the timer then fires
 * again, and the attempt is not counted.
 */
export const begin = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<void, Postponed, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  const mail = yield* findPending(id)
  if (mail === undefined) return
  const { account, now } = transaction
  const obstacle = obstacleTo(mail, now, yield* PaymentsConfig)
  if (obstacle !== null) return end(transaction, mail, "failed", obstacle)
  const { purpose, subject } = mail.value
  const to = mail.value.to ?? (purpose === "receipt" ? yield* customersAddress(subject) : null)
  // A customer without an address: there is nothing to send, and nothing to show.
  if (to === null && purpose === "receipt") return transaction.delete(MAIL, id)
  const attempts = mail.value.attempts + 1
  const outbox = yield* Outbox
  const answer = outbox?.offer({ account, id, attempt: attempts }) ?? "full"
  if (answer === "full") return yield* new Postponed()
  if (answer === "taken") transaction.put(MAIL, { ...mail.value, to, attempts }, mail.hidden)
  transaction.setTimer(timer("mail.attempt", id, now + LEASE_MILLIS))
})

/** The answer of the mail server: it has the mail, it may take it later, or it will never take it. */
export type MailOutcome =
  | { readonly _tag: "Accepted" }
  | { readonly _tag: "Deferred"; readonly error: string }
  | { readonly _tag: "Refused"; readonly error: string }

/** Records the outcome of an attempt. Does nothing for a mail that has ended. */
export const conclude = Effect.fnUntraced(function* (
  id: string,
  outcome: MailOutcome
): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const mail = yield* findPending(id)
  if (mail === undefined) return
  if (outcome._tag === "Accepted") return end(transaction, mail, "sent", null)
  const pause = RETRY_AFTER_SECONDS[mail.value.attempts - 1]
  if (outcome._tag === "Refused" || pause === undefined) return end(transaction, mail, "failed", outcome.error)
  transaction.put(MAIL, { ...mail.value, error: outcome.error }, mail.hidden)
  transaction.setTimer(timer("mail.attempt", id, transaction.now + pause * 1000))
})

/** Replaces a mail to a team by one to each address. Without an address, the mail has failed. */
export const addressTo = Effect.fnUntraced(function* (
  id: string,
  addresses: ReadonlyArray<string>
): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const mail = yield* findPending(id)
  if (mail === undefined || mail.value.to !== null) return
  const { merchant_id: merchantId, purpose, subject } = mail.value
  if (addresses.length === 0)
    return end(transaction, mail, "failed", "No owner or developer has an email address and a password.")
  transaction.delete(MAIL, id)
  transaction.clearTimer(timerId("mail.attempt", id))
  for (const to of new Set(addresses)) queue(transaction, { purpose, subject, merchantId, to })
})
