/**
 * A client's connection whose requests have all been plain so far. At the first bytes that are not plain, it goes to
 * Node's parser and stays there.
 *
 * Requests are handled one at a time, each after the previous answer has been sent. A client that has ended its side
 * may still wait for its answers (semantics requests.half_closed): it receives them, then the connection ends.
 */
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import { Exit } from "effect"
import type { AtTurnsEnd } from "./WriteBatch.ts"
import { closeGracefully } from "./CloseGracefully.ts"
import type { Incoming } from "./Incoming.ts"
import { INCOMPLETE, NOT_PLAIN, parse, type PlainRequest } from "./PlainRequest.ts"
import { responseBytes } from "./PlainResponse.ts"
import type { Holder, ReadTurns } from "./ReadTurns.ts"

export interface Limits {
  /** How long a connection stays open without a request. */
  readonly idleMillis: number
  /** The longest time for a request to arrive with its body. */
  readonly arrivalMillis: number
  /** The longest stall of a connection with a request. */
  readonly stillMillis: number
  /** False if a client that has ended its side is gone. */
  readonly allowHalfOpen: boolean
}

/** The server's side of a connection. */
export interface Surroundings {
  readonly limits: Limits
  readonly turns: ReadTurns
  readonly atTurnsEnd: AtTurnsEnd
  /** Handles a request, which carries the function that answers it. */
  readonly onRequest: (incoming: Incoming) => void
  /** Passes a connection to Node's parser as if it were new. */
  readonly handOver: (socket: Socket) => void
  /** Refuses a request that has not arrived in time. */
  readonly refuseLate: (socket: Socket) => void
  /** Called when the connection is closed or no longer plain. */
  readonly forget: (socket: Socket) => void
  /** True once every answer ends its connection. */
  readonly isClosed: boolean
}

/** The most bytes that are read ahead of answers; the rest stays with the client. */
const AHEAD_BYTES_MAX = 65_536
/**
 * The most chunks of a request before its connection goes to Node's parser, which does not parse again from the start
 * with each chunk.
 */
const CHUNKS_MAX = 8

const nothing = Buffer.alloc(0)

export class PlainConnection {
  readonly socket: Socket
  readonly #all: Surroundings
  /** Bytes received and not yet parsed. */
  #ahead: Buffer = nothing
  /** Chunks received for the next request. */
  #chunks = 0
  #holder: Holder
  /** True while the next request waits for its turn. */
  #isWaiting = false
  /** The request that is being answered. */
  #request: PlainIncoming | undefined
  #response: string | Buffer = ""
  /** True if the answer announces the end of the connection. */
  #isLast = false
  /** When the last bytes of `#ahead` arrived, by `performance.now()`. */
  #aheadAt = 0
  /** True while the answer is being sent. */
  #isSending = false
  /** Since when the connection waits for the next event, by `performance.now()`. */
  #since = performance.now()
  #hasServed = false
  /** True once the client has ended its side. */
  #hasEnded = false
  #isHandedOver = false
  /** True once the connection has closed or gone to Node's parser. */
  #isForgotten = false

  constructor(all: Surroundings, socket: Socket) {
    this.#all = all
    this.socket = socket
    this.#holder = all.turns.hold()
    socket.on("data", this.#onData)
    socket.on("end", this.#onEnd)
    socket.on("close", this.#onClose)
    socket.on("error", this.#onError)
  }

  get isBusy(): boolean {
    return this.#request !== undefined || this.#isSending || this.#isWaiting
  }

  get isGone(): boolean {
    return this.socket.writableEnded || this.socket.destroyed
  }

  /** Sends the answer to the current request. */
  answer(status: number, headers: Readonly<Record<string, string>>, body: string): void {
    this.#isLast = this.#all.isClosed || (this.#hasEnded && this.#ahead.length === 0)
    const keepAliveMillis = this.#isLast ? undefined : this.#all.limits.idleMillis
    this.#response = responseBytes(status, headers, body, keepAliveMillis)
    this.#all.atTurnsEnd(this.#write)
  }

  /** Ends the connection if it has exceeded a time limit. */
  sweep(now: number): void {
    const { arrivalMillis, idleMillis, stillMillis } = this.#all.limits
    const waited = now - this.#since
    if (this.isGone) return
    if (this.#isSending) return this.#watch()
    if (this.#isWaiting) return
    if (this.#request !== undefined) {
      if (waited >= stillMillis) this.socket.destroy()
    } else if (this.#ahead.length === 0 && this.#hasServed) {
      if (waited >= idleMillis) closeGracefully(this.socket)
    } else if (waited >= arrivalMillis) {
      this.#all.refuseLate(this.socket)
    }
  }

  readonly #onData = (chunk: Buffer): void => {
    // An ended connection is read to its end, and the bytes are dropped.
    if (this.isGone) return
    this.#aheadAt = performance.now()
    if (this.#ahead.length === 0) {
      this.#ahead = chunk
      if (!this.isBusy) this.#since = this.#aheadAt
    } else this.#ahead = Buffer.concat([this.#ahead, chunk])
    if (this.isBusy) {
      if (this.#ahead.length > AHEAD_BYTES_MAX) this.socket.pause()
    } else {
      this.#chunks++
      this.#enter()
    }
  }

  /** Handles the next request in the turn of its holder. */
  #enter(): void {
    this.#isWaiting = true
    this.#all.turns.enter(this.#holder, this)
  }

  take(): void {
    this.#isWaiting = false
    if (this.isGone) return
    if (this.#ahead.length > AHEAD_BYTES_MAX) this.socket.resume()
    this.#takeNext()
    if (this.#hasEnded && !this.isBusy) this.#finish()
  }

  /** Counts the next requests for an account or an address. */
  countFor(holder: string): void {
    if (holder === this.#holder.name || this.#isForgotten) return
    const { turns } = this.#all
    turns.release(this.#holder)
    this.#holder = turns.hold(holder)
  }

  /** Handles the next request if it has arrived. */
  #takeNext(): void {
    const parsed = parse(this.#ahead, 0)
    if (parsed === NOT_PLAIN || (parsed === INCOMPLETE && this.#chunks >= CHUNKS_MAX)) return this.#handOver()
    if (parsed === INCOMPLETE) return
    this.#ahead = parsed.end === this.#ahead.length ? nothing : this.#ahead.subarray(parsed.end)
    this.#chunks = 0
    this.#since = performance.now()
    this.#request = new PlainIncoming(this, parsed, this.#aheadAt)
    this.#all.onRequest(this.#request)
  }

  readonly #write = (): void => {
    this.#request = undefined
    const { socket } = this
    if (this.isGone) return
    const response = this.#response
    this.#response = ""
    // Over TLS, the end of a write is always reported a moment later.
    const onLate = socket instanceof TLSSocket ? this.#onLate : undefined
    if (typeof response === "string") socket.write(response, "latin1", onLate)
    else socket.write(response, onLate)
    if (socket.writableLength === 0) return this.#onSent()
    this.#isSending = true
    if (onLate !== undefined) return
    // The kernel has not accepted all bytes.
    this.#watch()
    socket.write(nothing, this.#onLate)
  }

  /** Sets a timer that ends the connection if the unsent rest of an answer stalls. */
  #watch(): void {
    if (!this.socket.timeout) this.socket.setTimeout(this.#all.limits.stillMillis, this.#onStill)
  }

  readonly #onStill = (): void => void this.socket.destroy()

  readonly #onLate = (): void => {
    this.#isSending = false
    if (this.socket.timeout) this.socket.setTimeout(0, this.#onStill)
    if (!this.isGone) this.#onSent()
  }

  /** The answer was sent: handles the next request. */
  #onSent(): void {
    this.#hasServed = true
    // Checks `#isLast` and not `isClosed`: if the server was closed after the answer promised an open connection, the
    // client sends on it.
    if (this.#isLast) {
      this.#ahead = nothing
      this.socket.resume()
      return closeGracefully(this.socket)
    }
    this.#since = performance.now()
    if (this.socket.isPaused()) this.socket.resume()
    if (this.#ahead.length > 0) this.#enter()
    else if (this.#hasEnded) this.#finish()
  }

  /** Called when the client has ended its side. The current request, and those sent ahead, are answered first. */
  readonly #onEnd = (): void => {
    this.#hasEnded = true
    if (this.isGone) return
    if (!this.isBusy) return this.#finish()
    if (this.#all.limits.allowHalfOpen) return
    this.socket.end()
    this.#leave()
  }

  /** Ends the connection of a client that has ended its side. An incomplete request is left to Node's parser. */
  #finish(): void {
    if (this.#isHandedOver) return
    if (this.#ahead.length === 0) closeGracefully(this.socket)
    else this.#handOver()
  }

  readonly #onClose = (): void => {
    this.#forget()
    this.#leave()
  }

  #forget(): void {
    this.#all.forget(this.socket)
    this.#all.turns.release(this.#holder)
    this.#isForgotten = true
  }

  // The connection closes after any error.
  readonly #onError = (): void => {}

  /** Notifies the current request that its client is gone. */
  #leave(): void {
    this.#ahead = nothing
    this.#request?.leave()
  }

  /** Passes the connection to Node's parser, with the bytes that are not parsed. */
  #handOver(): void {
    const { socket } = this
    this.#isHandedOver = true
    this.#forget()
    socket.off("data", this.#onData)
    socket.off("end", this.#onEnd)
    socket.off("close", this.#onClose)
    socket.off("error", this.#onError)
    this.#all.handOver(socket)
    // Emitted, because Node's parser has added its listeners; later bytes reach it directly, past all listeners.
    if (this.#ahead.length > 0) socket.emit("data", this.#ahead)
    if (this.#hasEnded) socket.emit("end")
  }
}

/** A plain request. */
class PlainIncoming implements Incoming {
  readonly method: string
  readonly url: string
  readonly headers: PlainRequest["headers"]
  readonly arrivedAt: number
  readonly isWhole = true
  readonly #connection: PlainConnection
  readonly #body: Buffer
  #isAnswered = false
  #onGone: Array<() => void> = []

  constructor(connection: PlainConnection, { body, headers, method, url }: PlainRequest, arrivedAt: number) {
    this.arrivedAt = arrivedAt
    this.method = method
    this.url = url
    this.headers = headers
    this.#connection = connection
    this.#body = body
  }

  get rawHeaders(): ReadonlyArray<string> {
    return Object.entries(this.headers as Readonly<Record<string, string>>).flat()
  }

  /** Always false, because a request with a repeated header is not plain. */
  isRepeated(): boolean {
    return false
  }

  readBody(): Exit.Exit<Buffer> {
    return Exit.succeed(this.#body)
  }

  countFor(holder: string): void {
    this.#connection.countFor(holder)
  }

  get remoteAddress(): string | undefined {
    return this.#connection.socket.remoteAddress
  }

  get isGone(): boolean {
    return this.#connection.isGone
  }

  onGone(listener: () => void): void {
    this.#onGone.push(listener)
  }

  answer(status: number, headers: Readonly<Record<string, string>>, body: string): void {
    if (this.#isAnswered || this.isGone) return
    this.#connection.answer(status, headers, body)
    this.#isAnswered = true
  }

  /** Called when the client is gone before its answer. */
  leave(): void {
    const listeners = this.#onGone
    this.#onGone = []
    for (const listener of listeners) listener()
  }
}
