/** A real mail server in the test's process, with the mails that it has taken and every command that it was sent. */
import { once } from "node:events"
import type { AddressInfo, Socket } from "node:net"
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from "smtp-server"
import type { MailServer } from "../../src/domain/MailServer.ts"
import { Redacted } from "effect"
import { KEY, LOCALHOST } from "../webhooks/Certificates.ts"

export interface ReceivedMail {
  readonly from: string
  readonly to: ReadonlyArray<string>
  readonly isEncrypted: boolean
  readonly user: string | null
  /** The mail as it came over the wire. */
  readonly raw: string
  /** Names in lower case, with unfolded and decoded values. */
  readonly headers: ReadonlyMap<string, string>
  readonly text: string
  readonly html: string
}

/** The answer to one mail: null to accept it, or an error's status; `cut` closes the connection without an answer. */
export type Answer = null | number | "cut"

export interface MailServerOptions {
  /** A free port unless given. */
  readonly port?: number
  readonly secure?: boolean
  readonly offersTls?: boolean
  /** The only user and password that are accepted; any connection may send unless given. */
  readonly login?: { readonly user: string; readonly password: string }
  /** The answer to a recipient. */
  readonly onRecipient?: (address: string) => Answer
  /** The answer after the last byte of a mail. */
  readonly onData?: (mail: ReceivedMail) => Answer | Promise<Answer>
}

export interface RunningMailServer {
  readonly port: number
  readonly server: MailServer
  readonly url: string
  /** All mails whose last byte has arrived, whether they were accepted or not. */
  readonly received: ReadonlyArray<ReceivedMail>
  /** Waits until so many mails have arrived. */
  readonly waitFor: (count: number) => Promise<ReadonlyArray<ReceivedMail>>
  readonly close: () => Promise<void>
}

const failure = (status: number): Error & { readonly responseCode: number } =>
  Object.assign(new Error(`refused with ${status}\r\nin two lines, see https://spam.example/why?id=1`), {
    responseCode: status
  })

/** Decodes quoted-printable text. */
const decodeQuotedPrintable = (text: string): string =>
  Buffer.from(
    text
      .replaceAll(/=\r\n/g, "")
      .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16))),
    "latin1"
  ).toString()

const decodeWords = (value: string): string =>
  value
    .replaceAll(/\?=\s+=\?/g, "?==?")
    .replaceAll(/=\?utf-8\?([BQ])\?([^?]*)\?=/gi, (_, kind: string, text: string) =>
      kind.toUpperCase() === "B"
        ? Buffer.from(text, "base64").toString()
        : decodeQuotedPrintable(text.replaceAll("_", " "))
    )

const headersOf = (head: string): ReadonlyMap<string, string> =>
  new Map(
    head
      .replaceAll(/\r\n[ \t]+/g, " ")
      .split("\r\n")
      .map((line) => [
        line.slice(0, line.indexOf(":")).toLowerCase(),
        decodeWords(line.slice(line.indexOf(":") + 1).trim())
      ])
  )

const splitHead = (part: string): readonly [string, string] => {
  const end = part.indexOf("\r\n\r\n")
  return [part.slice(0, end), part.slice(end + 4)]
}

export const parseMail = (raw: string): Pick<ReceivedMail, "raw" | "headers" | "text" | "html"> => {
  const [head, body] = splitHead(raw)
  const headers = headersOf(head)
  const boundary = /boundary="([^"]+)"/.exec(headers.get("content-type") ?? "")![1]!
  const parts = body.split(`--${boundary}`).slice(1, -1)
  const [text, html] = parts.map((part) => {
    const [partHead, content] = splitHead(part.replace(/^\r\n/, ""))
    const encoding = headersOf(partHead).get("content-transfer-encoding")
    return encoding === "quoted-printable" ? decodeQuotedPrintable(content) : content
  }) as [string, string]
  return { raw, headers, text: text.replaceAll("\r\n", "\n"), html }
}

const textOf = async (stream: AsyncIterable<Buffer>): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const receivedIn = (session: SMTPServerSession, raw: string): ReceivedMail => ({
  from: session.envelope.mailFrom === false ? "" : session.envelope.mailFrom.address,
  to: session.envelope.rcptTo.map(({ address }) => address),
  isEncrypted: session.secure,
  user: typeof session.user === "string" ? session.user : null,
  ...parseMail(raw)
})

export const startMailServer = async (options: MailServerOptions = {}): Promise<RunningMailServer> => {
  const {
    login,
    offersTls = false,
    onData = () => null,
    onRecipient = () => null,
    port: wanted = 0,
    secure = false
  } = options
  const received: Array<ReceivedMail> = []
  let notify = () => {}
  const sockets = new Map<string, Socket>()
  const settings: SMTPServerOptions = {
    secure,
    authOptional: login === undefined,
    key: KEY,
    cert: LOCALHOST,
    disabledCommands: [...(offersTls ? [] : ["STARTTLS"]), ...(login === undefined ? ["AUTH"] : [])],
    allowInsecureAuth: true,
    disableReverseLookup: true,
    logger: false,
    onAuth: ({ password, username }, _, done) =>
      username === login?.user && password === login?.password
        ? done(null, { user: username! })
        : done(Object.assign(new Error("wrong"), { responseCode: 535 })),
    onRcptTo: ({ address }, _, done) => {
      const answer = onRecipient(address)
      if (typeof answer === "number") done(failure(answer))
      else done()
    },
    onData: (stream, session, done) => {
      void textOf(stream).then(async (raw) => {
        const mail = receivedIn(session, raw)
        received.push(mail)
        notify()
        const answer = await onData(mail)
        if (answer === "cut") for (const socket of sockets.values()) socket.destroy()
        else done(answer === null ? null : failure(answer))
      })
    }
  }
  const server = new SMTPServer(settings)
  // Some clients close without a farewell.
  server.on("error", () => {})
  server.server.on(secure ? "secureConnection" : "connection", (socket: Socket) => {
    const key = `${socket.remotePort}`
    sockets.set(key, socket)
    socket.on("error", () => {})
    socket.on("close", () => sockets.delete(key))
  })
  server.listen(wanted, "127.0.0.1")
  await once(server.server, "listening")
  const { port } = server.server.address() as AddressInfo
  const { password = "", user = null } = login ?? {}
  const credentials = user === null ? "" : `${encodeURIComponent(user)}:${encodeURIComponent(password)}@`
  return {
    port,
    server: { host: "127.0.0.1", port, isSecure: secure, user, password: Redacted.make(password) },
    url: `${secure ? "smtps" : "smtp"}://${credentials}127.0.0.1:${port}`,
    received,
    waitFor: async (count) => {
      while (received.length < count) await new Promise<void>((resolve) => (notify = resolve))
      return received
    },
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets.values()) socket.destroy()
        server.close(() => resolve())
      })
  }
}
