/**
 * Hands one mail to the configured mail server, over a connection of its own. It never fails: its result says whether
 * the server has the mail, may take it later, or will never take it (semantics mail.attempts).
 *
 * - `smtps:` begins with TLS. `smtp:` upgrades by STARTTLS if the server offers it, and requires that if a password has
 *   to be sent to another machine. Certificates are verified in both cases.
 * - A lost connection, a silence and a 4xx answer are temporary, and so is a refused password: the operator may correct
 *   it. Any other 5xx answer is final.
 * - The recipient is in the envelope, and is checked not to be more than one address. Headers consist of one line.
 */
import { Effect, Redacted } from "effect"
import MailComposer from "nodemailer/lib/mail-composer"
import SMTPConnection from "nodemailer/lib/smtp-connection"
import { headerText, isMailable } from "../domain/Mail.ts"
import { clean } from "../domain/Secrets.ts"
import type { MailOutcome } from "../payments/mail/Mails.ts"
import { htmlOf, type Letter, textOf } from "./Letter.ts"
import type { MailServer, Sender } from "../domain/MailServer.ts"

/** Time limits for the phases of an attempt and for all of it, in milliseconds. */
const CONNECT_MILLIS = 10_000
const SILENCE_MILLIS = 20_000
const ATTEMPT_MILLIS_MAX = 45_000
/** Characters kept of the server's answer. */
const ANSWER_LENGTH_MAX = 300

export interface Message {
  readonly id: string
  readonly to: string
  /** Unix seconds. */
  readonly created: number
  readonly letter: Letter
}

export interface SmtpOptions {
  readonly server: MailServer
  readonly from: Sender
  /** Certificates to trust instead of Node's, in PEM format. */
  readonly certificates?: string
  readonly silenceMillisMax?: number
}

/** The Message-ID of a mail: the same at each attempt. */
const messageIdOf = (id: string, { address }: Sender): string => `<${id}@${address.slice(address.indexOf("@") + 1)}>`

/** Renders a mail as it goes over the wire. */
export const render = ({ created, id, letter, to }: Message, from: Sender): Promise<Buffer> =>
  new MailComposer({
    from: { name: headerText(letter.sender ?? from.name), address: from.address },
    to: { name: "", address: to },
    ...(letter.replyTo !== null && isMailable(letter.replyTo) && { replyTo: { name: "", address: letter.replyTo } }),
    subject: headerText(letter.subject),
    messageId: messageIdOf(id, from),
    date: new Date(created * 1000),
    text: textOf(letter),
    html: htmlOf(letter),
    // Out-of-office programs do not answer.
    headers: { "Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All" },
    textEncoding: "quoted-printable",
    disableFileAccess: true,
    disableUrlAccess: true
  })
    .compile()
    .build()

/** An error of the library. */
interface SmtpError extends Error {
  readonly code?: string
  readonly responseCode?: number
  readonly response?: string
}

const SENTENCES: Readonly<Record<string, string>> = {
  ECONNECTION: "The connection to the mail server was lost.",
  ESOCKET: "The mail server could not be reached.",
  ETIMEDOUT: "The mail server did not answer in time.",
  EDNS: "The mail server was not found.",
  ETLS: "No secure connection to the mail server could be made.",
  EPROTOCOL: "The mail server's answer was not SMTP."
}

/** The server's answer without line ends, secrets and links: a filter may quote the mail. */
const answerOf = (response: string): string =>
  clean(response.slice(0, 4 * ANSWER_LENGTH_MAX))
    .replaceAll(/https?:\/\/\S*/giu, "…")
    .replaceAll(/\p{Cc}+/gu, " ")
    .slice(0, ANSWER_LENGTH_MAX)
    .toWellFormed()

/** The library has one code for a socket's errors; those of certificates and handshakes are known by their texts. */
const TLS_ERROR = /certificate|\b(?:tls|ssl)\b/iu

export const outcomeOf = ({ code = "", message, response = "", responseCode = 0 }: SmtpError): MailOutcome => {
  if (code === "EAUTH" || code === "ENOAUTH") {
    return { _tag: "Deferred", error: "The mail server refused the user name or password in TILL_SMTP_URL." }
  }
  const isAnswer = responseCode >= 400 && response !== ""
  const error = isAnswer
    ? `The mail server answered: ${answerOf(response)}`
    : (SENTENCES[TLS_ERROR.test(message) ? "ETLS" : code] ?? SENTENCES["ESOCKET"]!)
  return { _tag: isAnswer && responseCode >= 500 ? "Refused" : "Deferred", error }
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/iu

const connectionTo = ({ certificates, server, silenceMillisMax = SILENCE_MILLIS }: SmtpOptions): SMTPConnection => {
  const { host, isSecure, port, user } = server
  return new SMTPConnection({
    host,
    port,
    secure: isSecure,
    requireTLS: !isSecure && user !== null && !LOOPBACK.test(host),
    tls: { minVersion: "TLSv1.2", ...(certificates !== undefined && { ca: certificates }) },
    connectionTimeout: CONNECT_MILLIS,
    greetingTimeout: silenceMillisMax,
    dnsTimeout: CONNECT_MILLIS,
    socketTimeout: silenceMillisMax,
    socketCloseTimeout: 0,
    logger: false
  })
}

/** Sends rendered bytes to one recipient. Interruption closes the connection. */
const transfer = (options: SmtpOptions, to: string, bytes: Buffer): Effect.Effect<MailOutcome> =>
  Effect.callback((resume) => {
    const connection = connectionTo(options)
    const { password, user } = options.server
    let settled = false
    const settle = (outcome: MailOutcome) => {
      if (settled) return
      settled = true
      resume(Effect.succeed(outcome))
      connection.close()
    }
    const fail = (error: unknown) => settle(outcomeOf(error as SmtpError))
    const send = () =>
      connection.send({ from: options.from.address, to: [to], size: bytes.length }, bytes, (error) => {
        if (error) return fail(error)
        settle({ _tag: "Accepted" })
      })
    connection.on("error", fail)
    connection.on("end", () => fail(Object.assign(new Error(), { code: "ECONNECTION" })))
    connection.connect((error) => {
      if (error) return fail(error)
      if (user === null) return send()
      connection.login(
        { user, pass: Redacted.value(password), credentials: { user, pass: Redacted.value(password) } },
        (error) => (error ? fail(error) : send())
      )
    })
    return Effect.sync(() => {
      settled = true
      connection.close()
    })
  })

/** Makes one attempt. */
export const send = (options: SmtpOptions, message: Message): Effect.Effect<MailOutcome> => {
  if (!isMailable(message.to)) return Effect.succeed({ _tag: "Refused", error: "Mail cannot be sent to this address." })
  return Effect.promise(() => render(message, options.from)).pipe(
    Effect.flatMap((bytes) => transfer(options, message.to, bytes)),
    Effect.timeoutOrElse({
      duration: ATTEMPT_MILLIS_MAX,
      orElse: () => Effect.succeed(outcomeOf(Object.assign(new Error(), { code: "ETIMEDOUT" })))
    })
  )
}
