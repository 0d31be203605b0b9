/**
 * Connections to the other processes of the installation, kept from one request to the next.
 *
 * A connection has one request at a time: behind another one it would wait for that one's answer, which may wait for
 * the storage, while there are connections to spare. What the receiver reads without node's parser has connections of
 * its own, because the first request that is not so plain makes its connection one of node's parser for good.
 */
import type { IncomingHttpHeaders } from "node:http"
import type { Dispatcher } from "undici"
import { Pool } from "undici"

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
  readonly plain: Pool
  readonly other: Pool
  underWay: number
}

const lengthOf = (headers: Headers): number => Number(headers["content-length"] ?? Number.NaN)

class Request implements Dispatcher.DispatchHandler {
  readonly #receiver: Receiver
  readonly #end: () => void
  #controller: Dispatcher.DispatchController | undefined
  #status = 0
  #headers: Headers = {}
  #chunks: Array<Buffer> = []
  #sink: Sink | undefined
  #isOver = false

  constructor(receiver: Receiver, end: () => void) {
    this.#receiver = receiver
    this.#end = end
  }

  /** Nobody waits for its answer any more. */
  readonly giveUp = (): void => {
    if (!this.#finish()) return
    this.#controller?.abort(new Error("Nobody waits for it."))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#isOver) controller.abort(new Error("Nobody waits for it."))
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
    if (!this.#finish()) return
    if (this.#sink === undefined) this.#receiver.onLost(this.#controller !== undefined)
    else this.#sink.fail()
  }

  #finish(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#end()
    return true
  }
}

export class Links {
  readonly #links = new Map<string, Link>()

  /** Sends a request; gives what gives it up. Undefined if too many are under way there. */
  send(url: string, sent: Sent, receiver: Receiver): (() => void) | undefined {
    const link = this.#linkTo(url)
    if (link.underWay >= UNDER_WAY_MAX) return undefined
    link.underWay++
    const request = new Request(receiver, () => {
      link.underWay--
    })
    const { body, isPlain, lines, method } = sent
    const pool = isPlain ? link.plain : link.other
    // The body's length is said with every request that may have one.
    const ofBody = body.length > 0 || method === "POST" ? { body } : {}
    pool.dispatch({ method: method as Dispatcher.HttpMethod, path: sent.url, headers: lines, ...ofBody }, request)
    return request.giveUp
  }

  /** Forgets a process that nobody is connected to, when it has gone away. */
  forget(url: string): void {
    const link = this.#links.get(url)
    if (link === undefined || link.underWay > 0) return
    this.#links.delete(url)
    for (const pool of [link.plain, link.other]) void pool.destroy()
  }

  async close(): Promise<void> {
    const pools = [...this.#links.values()].flatMap(({ other, plain }) => [plain, other])
    this.#links.clear()
    await Promise.all(pools.map((pool) => pool.destroy()))
  }

  #linkTo(url: string): Link {
    let link = this.#links.get(url)
    if (link === undefined) {
      const pool = () =>
        new Pool(url, {
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
      link = { plain: pool(), other: pool(), underWay: 0 }
      this.#links.set(url, link)
    }
    return link
  }
}
