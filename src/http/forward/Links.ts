/**
 * Connections to the other processes of the installation, kept from one request to the next.
 *
 * A connection has one request at a time: behind another one it would wait for that one's answer, which may wait for
 * the storage, while there are connections to spare. Plain requests have a client and connections of their own
 * (PlainLink.ts), because the first request that is not so plain makes its connection one of node's parser for good.
 */
import type { IncomingHttpHeaders } from "node:http"
import type { Dispatcher } from "undici"
import { Pool } from "undici"
import { makeBursts } from "../Bursts.ts"
import { AWAITED_BODY_BYTES_MAX, HEAD_BYTES_MAX as PLAIN_HEAD_BYTES_MAX } from "../plain/PlainRequest.ts"
import type { PlainReply } from "../plain/PlainReply.ts"
import type { PlainReceiver } from "./PlainLink.ts"
import { PlainLink } from "./PlainLink.ts"

/** Requests to one process at a time: so many are carried, and others wait for a connection. */
const CONNECTIONS_MAX = 256
/** So many in all may be under way or wait. */
const UNDER_WAY_MAX = 2048
const CONNECT_MILLIS = 2000
/** Less than what the receiver keeps them for. */
const KEEP_ALIVE_MILLIS = 30_000
const HEAD_BYTES_MAX = 65_536
/** A longer answer, or one of unknown length, is passed on as it comes, if that can be done. */
const WHOLE_BYTES_MAX = 1_048_576

export interface Sent {
  readonly method: string
  readonly url: string
  readonly lines: Array<string>
  readonly body: Buffer
  /** True if the receiver can read it without node's parser, most likely. */
  readonly isPlain: boolean
}

export type Headers = Readonly<Record<string, string | ReadonlyArray<string>>>

export interface Reply {
  readonly status: number
  /** By names in lower case, in the order in which they came. */
  readonly headers: Headers
  readonly body: Buffer
}

/** Takes an answer as it comes. */
export interface Sink {
  /** `resume` is to be called once more can be taken, if it answers false. */
  readonly write: (chunk: Buffer, resume: () => void) => boolean
  readonly end: () => void
  /** The answer broke off. */
  readonly fail: () => void
}

/** One of these is called, once. */
export interface Receiver {
  readonly onReply: (reply: Reply) => void
  /** An answer begins that is too long to wait for its end. Without it, every answer is waited for. */
  readonly onLong?: ((head: Omit<Reply, "body">) => Sink) | undefined
  /** There is no answer, or no whole one. */
  readonly onLost: (wasSent: boolean) => void
}

interface Link {
  readonly plain: PlainLink
  readonly other: Pool
  underWay: number
}

const lengthOf = (headers: Headers): number => Number(headers["content-length"] ?? Number.NaN)

/** The bytes of a plain request; undefined if what the sender has added makes it too long to be one. */
const plainBytes = ({ body, lines, method, url }: Sent): Buffer | undefined => {
  let head = `${method} ${url} HTTP/1.1\r\n`
  for (let i = 0; i < lines.length; i += 2) head += `${lines[i]}: ${lines[i + 1]}\r\n`
  head += method === "POST" ? `content-length: ${body.length}\r\n\r\n` : "\r\n"
  if (head.length > PLAIN_HEAD_BYTES_MAX || body.length > AWAITED_BODY_BYTES_MAX) return undefined
  const bytes = Buffer.allocUnsafe(head.length + body.length)
  bytes.write(head, "latin1")
  body.copy(bytes, head.length)
  return bytes
}

/** A request on its way, by whichever client. */
class Request implements Dispatcher.DispatchHandler, PlainReceiver {
  readonly #link: Link
  readonly #sent: Sent
  readonly #receiver: Receiver
  /** Ends what is under way. */
  #abort: (() => void) | undefined
  #wasSent = false
  #status = 0
  #headers: Headers = {}
  #chunks: Array<Buffer> = []
  #sink: Sink | undefined
  #isOver = false

  constructor(link: Link, sent: Sent, receiver: Receiver) {
    this.#link = link
    this.#sent = sent
    this.#receiver = receiver
  }

  begin(): void {
    this.#link.underWay++
    const bytes = this.#sent.isPlain ? plainBytes(this.#sent) : undefined
    if (bytes === undefined) this.#dispatch()
    else this.#abort = this.#link.plain.send(bytes, this)
  }

  /** Nobody waits for its answer any more. */
  readonly giveUp = (): void => {
    if (this.#finish()) this.#abort?.()
  }

  readonly onReply = (reply: PlainReply): void => {
    if (this.#finish()) this.#receiver.onReply(reply)
  }

  readonly onOther = (): void => {
    this.#wasSent = true
    this.#dispatch()
  }

  readonly onLost = (wasSent: boolean): void => {
    if (!this.#finish()) return
    if (this.#sink === undefined) this.#receiver.onLost(wasSent)
    else this.#sink.fail()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#wasSent = true
    this.#abort = () => controller.abort(new Error("Nobody waits for it."))
    if (this.#isOver) this.#abort()
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, received: IncomingHttpHeaders): void {
    // An interim answer.
    if (status < 200 || this.#isOver) return
    const headers = received as Headers
    this.#status = status
    this.#headers = headers
    const { onLong } = this.#receiver
    if (onLong !== undefined && !(lengthOf(headers) <= WHOLE_BYTES_MAX)) this.#sink = onLong({ status, headers })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#sink === undefined) this.#chunks.push(chunk)
    else if (!this.#sink.write(chunk, () => controller.resume())) controller.pause()
  }

  onResponseEnd(): void {
    if (!this.#finish()) return
    if (this.#sink !== undefined) return this.#sink.end()
    const [first] = this.#chunks
    const body = this.#chunks.length === 1 ? first! : Buffer.concat(this.#chunks)
    this.#receiver.onReply({ status: this.#status, headers: this.#headers, body })
  }

  onResponseError(): void {
    this.onLost(this.#wasSent)
  }

  #dispatch(): void {
    const { body, lines, method, url } = this.#sent
    this.#abort = undefined
    // The body's length is said with every request that may have one.
    const ofBody = body.length > 0 || method === "POST" ? { body } : {}
    const options = { method: method as Dispatcher.HttpMethod, path: url, headers: lines, ...ofBody }
    this.#link.other.dispatch(options, this)
  }

  #finish(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#link.underWay--
    return true
  }
}

const destroy = ({ other, plain }: Link): Promise<void> => {
  plain.destroy()
  return other.destroy()
}

export class Links {
  readonly #atTurnsEnd = makeBursts()
  readonly #links = new Map<string, Link>()

  /** Sends a request; gives what gives it up. Undefined if too many are under way there. */
  send(url: string, sent: Sent, receiver: Receiver): (() => void) | undefined {
    const link = this.#linkTo(url)
    if (link.underWay >= UNDER_WAY_MAX) return undefined
    const request = new Request(link, sent, receiver)
    request.begin()
    return request.giveUp
  }

  /** Forgets a process that nobody is connected to, when it has gone away. */
  forget(url: string): void {
    const link = this.#links.get(url)
    if (link === undefined || link.underWay > 0) return
    this.#links.delete(url)
    void destroy(link)
  }

  async close(): Promise<void> {
    const links = [...this.#links.values()]
    this.#links.clear()
    await Promise.all(links.map(destroy))
  }

  #linkTo(url: string): Link {
    let link = this.#links.get(url)
    if (link === undefined) {
      const other = new Pool(url, {
        connections: CONNECTIONS_MAX,
        pipelining: 1,
        connect: { timeout: CONNECT_MILLIS },
        allowH2: false,
        // Whoever waits has a limit of its own.
        headersTimeout: 0,
        bodyTimeout: 0,
        keepAliveTimeout: KEEP_ALIVE_MILLIS,
        keepAliveMaxTimeout: KEEP_ALIVE_MILLIS,
        maxHeaderSize: HEAD_BYTES_MAX
      })
      const plain = new PlainLink(url, {
        connectionsMax: CONNECTIONS_MAX,
        connectMillis: CONNECT_MILLIS,
        idleMillis: KEEP_ALIVE_MILLIS,
        atTurnsEnd: this.#atTurnsEnd
      })
      link = { plain, other, underWay: 0 }
      this.#links.set(url, link)
    }
    return link
  }
}
