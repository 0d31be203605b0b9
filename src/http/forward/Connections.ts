/**
 * Connections to the other processes of the installation, kept from one request to the next. All of them are TLS in
 * which the other side has proved that it is one (`RunnerTls.ts`), before it is sent anything.
 *
 * A connection has one request at a time: behind another one it would wait for that one's answer, which may wait for
 * the storage, while there are connections to spare. Requests leave in bursts, as answers do.
 */
import type { IncomingHttpHeaders } from "node:http"
import type { Dispatcher } from "undici"
import { buildConnector, Pool } from "undici"
import type { AtTurnsEnd } from "../../server/WriteBatch.ts"
import { makeWriteBatch } from "../../server/WriteBatch.ts"
import type { RunnerTls } from "./RunnerTls.ts"

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
  readonly pool: Pool
  underWay: number
}

const lengthOf = (headers: Headers): number => Number(headers["content-length"] ?? Number.NaN)

/** A request on its way. */
class Request implements Dispatcher.DispatchHandler {
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

  begin(atTurnsEnd: AtTurnsEnd): void {
    this.#link.underWay++
    atTurnsEnd(() => this.#dispatch())
  }

  /** Nobody waits for its answer any more. */
  readonly giveUp = (): void => {
    if (this.#finish()) this.#abort?.()
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
    if (!this.#finish()) return
    if (this.#sink === undefined) this.#receiver.onLost(this.#wasSent)
    else this.#sink.fail()
  }

  #dispatch(): void {
    if (this.#isOver) return
    const { body, lines, method, url } = this.#sent
    // The body's length is said with every request that may have one.
    const ofBody = body.length > 0 || method === "POST" ? { body } : {}
    const options = { method: method as Dispatcher.HttpMethod, path: url, headers: lines, ...ofBody }
    this.#link.pool.dispatch(options, this)
  }

  #finish(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#link.underWay--
    return true
  }
}

/** Takes why there is no connection to a process. */
export type OnFailed = (url: string, error: Error) => void

export class Connections {
  readonly #atTurnsEnd = makeWriteBatch()
  readonly #links = new Map<string, Link>()
  readonly #connect: buildConnector.connector
  readonly #onFailed: OnFailed

  constructor({ client }: RunnerTls, onFailed: OnFailed) {
    this.#connect = buildConnector({ ...client, timeout: CONNECT_MILLIS, maxCachedSessions: 0, allowH2: false })
    this.#onFailed = onFailed
  }

  /** Sends a request; gives what gives it up. Undefined if too many are under way there. */
  send(url: string, sent: Sent, receiver: Receiver): (() => void) | undefined {
    const link = this.#linkTo(url)
    if (link.underWay >= UNDER_WAY_MAX) return undefined
    const request = new Request(link, sent, receiver)
    request.begin(this.#atTurnsEnd)
    return request.giveUp
  }

  /** Forgets a process that nobody is connected to, when it has gone away. */
  forget(url: string): void {
    const link = this.#links.get(url)
    if (link === undefined || link.underWay > 0) return
    this.#links.delete(url)
    void link.pool.destroy()
  }

  async close(): Promise<void> {
    const links = [...this.#links.values()]
    this.#links.clear()
    await Promise.all(links.map(({ pool }) => pool.destroy()))
  }

  #linkTo(url: string): Link {
    let link = this.#links.get(url)
    if (link === undefined) {
      // By https, undici would name the client's Host in the ClientHello, and connect anew for each other Host.
      const pool = new Pool(url.replace("https:", "http:"), {
        connections: CONNECTIONS_MAX,
        pipelining: 1,
        // Nothing goes without TLS. The name of the server that undici has is the client's Host: it is left out.
        connect: ({ hostname, port }, callback) =>
          this.#connect({ hostname, port, protocol: "https:" }, (...outcome) => {
            const [error] = outcome
            if (error !== null) this.#onFailed(url, error)
            callback(...outcome)
          }),
        // Whoever waits has a limit of its own.
        headersTimeout: 0,
        bodyTimeout: 0,
        keepAliveTimeout: KEEP_ALIVE_MILLIS,
        keepAliveMaxTimeout: KEEP_ALIVE_MILLIS,
        maxHeaderSize: HEAD_BYTES_MAX
      })
      link = { pool, underWay: 0 }
      this.#links.set(url, link)
    }
    return link
  }
}
