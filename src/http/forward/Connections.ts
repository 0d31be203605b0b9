/**
 * Connections to the other processes of the installation, kept open between requests. All are TLS connections whose
 * other side has proved its membership (`RunnerTls.ts`) before any request is sent.
 *
 * A connection carries one request at a time: a second one would wait for the first answer, which may wait for the
 * storage, while other connections are free. Requests are written in batches, as answers are.
 */
import type { IncomingHttpHeaders } from "node:http"
import { buildConnector, type Dispatcher, Pool } from "undici"
import { type AtTurnsEnd, makeWriteBatch } from "../../server/WriteBatch.ts"
import type { RunnerTls } from "./RunnerTls.ts"

/** The most concurrent requests to one process; further ones wait for a connection. */
const CONNECTIONS_MAX = 256
/** The most requests to one process that are running or waiting. */
const PENDING_MAX = 2048
const CONNECT_MILLIS = 2000
/** Shorter than the receiver's limit. */
const KEEP_ALIVE_MILLIS = 30_000
const HEAD_BYTES_MAX = 65_536
/**
 * The longest answer that is received whole, in bytes. A longer one, or one of unknown length, is passed on in chunks
 * if the receiver supports it.
 */
const WHOLE_BYTES_MAX = 1_048_576

export interface Sent {
  readonly method: string
  readonly url: string
  readonly lines: Array<string>
  readonly body: Buffer
}

export type Headers = Readonly<Record<string, string | ReadonlyArray<string>>>

/** The response of another process. */
export interface RunnerResponse {
  readonly status: number
  /** Values by name in lower case, in the order received. */
  readonly headers: Headers
  readonly body: Buffer
}

/** Receives an answer in chunks. */
export interface Sink {
  /** Returns false if no more can be accepted; then calls `resume` once it can. */
  readonly write: (chunk: Buffer, resume: () => void) => boolean
  readonly end: () => void
  /** The answer broke off. */
  readonly fail: () => void
}

/** Callbacks for the outcome of a request. Exactly one is called, once. */
export interface Receiver {
  readonly onReply: (reply: RunnerResponse) => void
  /** Called at the head of a long answer. Without it, every answer is received whole. */
  readonly onLong?: ((head: Omit<RunnerResponse, "body">) => Sink) | undefined
  /** Called if there is no complete answer. */
  readonly onLost: (wasSent: boolean) => void
}

interface Link {
  readonly pool: Pool
  pending: number
}

const lengthOf = (headers: Headers): number => Number(headers["content-length"] ?? Number.NaN)

/** A request that is being sent and answered. */
class Request implements Dispatcher.DispatchHandler {
  readonly #link: Link
  readonly #sent: Sent
  readonly #receiver: Receiver
  /** Ends the running request. */
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
    this.#link.pending++
    atTurnsEnd(() => this.#dispatch())
  }

  /** Called when the answer is no longer needed. */
  readonly giveUp = (): void => {
    if (this.#finish()) this.#abort?.()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#wasSent = true
    this.#abort = () => controller.abort(new Error("The answer is no longer needed."))
    if (this.#isOver) this.#abort()
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, received: IncomingHttpHeaders): void {
    // An informational response (1xx).
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
    // Requests that may have a body always declare its length.
    const ofBody = body.length > 0 || method === "POST" ? { body } : {}
    const options = { method: method as Dispatcher.HttpMethod, path: url, headers: lines, ...ofBody }
    this.#link.pool.dispatch(options, this)
  }

  #finish(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#link.pending--
    return true
  }
}

/** Called with the reason for which a connection failed. */
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

  /** Sends a request. Returns the function that cancels it; undefined if too many requests are pending. */
  send(url: string, sent: Sent, receiver: Receiver): (() => void) | undefined {
    const link = this.#linkTo(url)
    if (link.pending >= PENDING_MAX) return undefined
    const request = new Request(link, sent, receiver)
    request.begin(this.#atTurnsEnd)
    return request.giveUp
  }

  /** Removes a process that has ended, unless requests to it are pending. */
  forget(url: string): void {
    const link = this.#links.get(url)
    if (link === undefined || link.pending > 0) return
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
      // With https, undici would put the client's Host in the ClientHello, and open connections for each other Host.
      const pool = new Pool(url.replace("https:", "http:"), {
        connections: CONNECTIONS_MAX,
        pipelining: 1,
        // Always TLS. Omits undici's server name, which is the client's Host.
        connect: ({ hostname, port }, callback) =>
          this.#connect({ hostname, port, protocol: "https:" }, (...outcome) => {
            const [error] = outcome
            if (error !== null) this.#onFailed(url, error)
            callback(...outcome)
          }),
        // No limits here: each caller has its own.
        headersTimeout: 0,
        bodyTimeout: 0,
        keepAliveTimeout: KEEP_ALIVE_MILLIS,
        keepAliveMaxTimeout: KEEP_ALIVE_MILLIS,
        maxHeaderSize: HEAD_BYTES_MAX
      })
      link = { pool, pending: 0 }
      this.#links.set(url, link)
    }
    return link
  }
}
