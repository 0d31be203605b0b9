/** Mails that Till sends by itself (semantics mail.*): what each is about, to whom, and what became of it. */
import { Schema } from "effect"
import { isEmail } from "./Text.ts"
import { Timestamp } from "./Time.ts"

export const MailPurpose = Schema.Literals(["receipt", "invitation", "password_reset", "webhook_alert"])
export type MailPurpose = typeof MailPurpose.Type

/** Pending until the mail server has accepted the mail, or until it is given up. */
export const MailStatus = Schema.Literals(["pending", "sent", "failed"])
export type MailStatus = typeof MailStatus.Type

export const Mail = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("mail"),
  purpose: MailPurpose,
  /** The id of the object that the mail is about: a PaymentIntent, a person or a webhook endpoint. */
  subject: Schema.String,
  merchant_id: Schema.String,
  /** Null until the address is found: the customer's, or those of the team. */
  to: Schema.NullOr(Schema.String),
  status: MailStatus,
  /** Attempts that were begun. */
  attempts: Schema.Int,
  /** The outcome of the last attempt, unless the mail was sent. */
  error: Schema.NullOr(Schema.String),
  created: Timestamp,
  /** When the mail was sent or given up. */
  ended_at: Schema.NullOr(Timestamp)
})
export type Mail = typeof Mail.Type

/** Characters that have a meaning in a list of addresses or in an SMTP command. */
const SPECIAL = /[<>()[\]\\,;:"]/u

/** The local part and the length that every mail server accepts at least (RFC 5321, 4.5.3.1). */
const LOCAL_BYTES_MAX = 64
const ADDRESS_BYTES_MAX = 254

/**
 * Returns whether a mail can be addressed to an email address. Objects hold more than that: an address with a comma or
 * a bracket is an email address to the API (semantics parameters.email), and could be read as several by a mail server.
 */
export const isMailable = (address: string): boolean =>
  isEmail(address) &&
  !SPECIAL.test(address) &&
  address.isWellFormed() &&
  Buffer.byteLength(address) <= ADDRESS_BYTES_MAX &&
  Buffer.byteLength(address.slice(0, address.indexOf("@"))) <= LOCAL_BYTES_MAX

/** Characters that end a header, reorder the text around them, or cannot be seen. */
const UNFIT = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu
const HEADER_LENGTH_MAX = 200

/** Makes a text fit for a header: one line, without control or invisible characters, of bounded length. */
export const headerText = (text: string): string =>
  Array.from(
    text
      .slice(0, 4 * HEADER_LENGTH_MAX)
      .toWellFormed()
      .replaceAll(UNFIT, " ")
      .replaceAll(/ {2,}/gu, " ")
      .trim()
  )
    .slice(0, HEADER_LENGTH_MAX)
    .join("")
    .trimEnd()
