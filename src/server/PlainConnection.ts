/**
 * One connection of a client whose requests have all been plain so far. With the first bytes that are not, it goes to
 * node's own parser, and stays there.
 *
 * Requests are taken up one at a time, each after the answer before it has left. A client that has ended its side may
 * still wait for its answers (semantics T27): they are given, and then the connection ends.
 */
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import { Exit } from "effect"
import type { AtTurnsEnd } from "./WriteBatch.ts"
import { closeGracefully } from "./CloseGracefully.ts"
import type { Incoming } from "./Incoming.ts"
import { INCOMPLETE, NOT_PLAIN, parse } from "./PlainRequest.ts"
import type { PlainRequest } from "./PlainRequest.ts"
import { responseBytes } from "./PlainResponse.ts"

export interface Limits {
  /** A connection stays open for so long without a request. */
  readonly idleMillis: number
  /** A request, with its body, may take so long to arrive. */
  readonly arrivalMillis: number
  /** Nothing may move for so long on a connection with a request. */
  readonly stillMillis: number
  /** False if a client that has ended its side has gone away. */
  readonly allowHalfOpen: boolean
}

/** What a connection has of its server. */
export interface Surroundings {
  readonly limits: Limits
  readonly atTurnsEnd: AtTurnsEnd
  /** Takes a request; it answers by itself. */
  readonly onRequest: (incoming: Incoming) => void
  /** Gives a connection to node's parser as if it were new. */
  readonly handOver: (socket: Socket) => void
  /** Refuses what has not come to its end in time. */
  readonly refuseLate: (socket: Socket) => void
  /** The connection is over, or no longer plain. */
  readonly forget: (socket: Socket) => void
  /** True once every answer ends its connection. */
  readonly isClosed: boolean
}

/** A client may be so many bytes ahead of its answers; what is more waits with the client. */
const AHEAD_BYTES_MAX = 65_536
/** Who sends a request in more pieces is served by node's parser, which need not begin anew with each. */
const PIECES_MAX = 8

const nothing = Buffer.alloc(0)

export class PlainConnection {
  readonly socket: Socket
  readonly #all: Surroundings
  /** What has come and is not taken up. */
  #ahead: Buffer = nothing
  /** So many pieces of a request have come. */
  #pieces = 0
  /** The request that is under way. */
  #request: PlainIncoming | undefined
  #response: string | Buffer = ""
  /** True if the answer says that the connection ends with it. */
  #isLast = false
  /** By `performance.now()`: what is ahead had come by then. */
  #aheadAt = 0
  /** True until the answer has left. */
  #isSending = false
  /** By `performance.now()`: since then it waits for what comes next. */
  #since = performance.now()
  #hasServed = false
  /** True once the client sends nothing more. */
  #hasEnded = false
  #isHandedOver = false

  constructor(all: Surroundings, socket: Socket) {
    this.#all = all
    this.socket = socket
    socket.on("data", this.#onData)
    socket.on("end", this.#onEnd)
    socket.on("close", this.#onClose)
    socket.on("error", this.#onError)
  }

  get isBusy(): boolean {
    return this.#request !== undefined || this.#isSending
  }

  get isGone(): boolean {
    return this.socket.writableEnded || this.socket.destroyed
  }

  /** Sends the answer to the request that is under way. */
  answer(status: number, headers: Readonly<Record<string, string>>, body: string): void {
    this.#isLast = this.#all.isClosed || (this.#hasEnded && this.#ahead.length === 0)
    const keepAliveMillis = this.#isLast ? undefined : this.#all.limits.idleMillis
    this.#response = responseBytes(status, headers, body, keepAliveMillis)
    this.#all.atTurnsEnd(this.#write)
  }

  /** Ends the connection if it has waited for too long. */
  sweep(now: number): void {
    const { arrivalMillis, idleMillis, stillMillis } = this.#all.limits
    const waited = now - this.#since
    if (this.isGone) return
    if (this.#isSending) return this.#watch()
    if (this.#request !== undefined) {
      if (waited >= stillMillis) this.socket.destroy()
    } else if (this.#ahead.length === 0 && this.#hasServed) {
      if (waited >= idleMillis) closeGracefully(this.socket)
    } else if (waited >= arrivalMillis) {
      this.#all.refuseLate(this.socket)
    }
  }

  readonly #onData = (chunk: Buffer): void => {
    // Somebody who has been hung up on is read to the end, and no longer listened to.
    if (this.isGone) return
    this.#aheadAt = performance.now()
    if (this.#ahead.length === 0) {
      this.#ahead = chunk
      if (!this.isBusy) this.#since = this.#aheadAt
    } else this.#ahead = Buffer.concat([this.#ahead, chunk])
    if (this.isBusy) {
      if (this.#ahead.length > AHEAD_BYTES_MAX) this.socket.pause()
    } else {
      this.#pieces++
      this.#takeUp()
    }
  }

  /** Takes up the next request, unless it is still to come. */
  #takeUp(): void {
    const parsed = parse(this.#ahead, 0)
    if (parsed === NOT_PLAIN || (parsed === INCOMPLETE && this.#pieces >= PIECES_MAX)) return this.#handOver()
    if (parsed === INCOMPLETE) return
    this.#ahead = parsed.end === this.#ahead.length ? nothing : this.#ahead.subarray(parsed.end)
    this.#pieces = 0
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
    // Over TLS, what has left is always known a moment later.
    const onLate = socket instanceof TLSSocket ? this.#onLate : undefined
    if (typeof response === "string") socket.write(response, "latin1", onLate)
    else socket.write(response, onLate)
    if (socket.writableLength === 0) return this.#onSent()
    this.#isSending = true
    if (onLate !== undefined) return
    // The kernel has not taken all of it.
    this.#watch()
    socket.write(nothing, this.#onLate)
  }

  /** A timer of its own knows whether an answer moves that has not left. */
  #watch(): void {
    if (!this.socket.timeout) this.socket.setTimeout(this.#all.limits.stillMillis, this.#onStill)
  }

  readonly #onStill = (): void => void this.socket.destroy()

  readonly #onLate = (): void => {
    this.#isSending = false
    if (this.socket.timeout) this.socket.setTimeout(0, this.#onStill)
    if (!this.isGone) this.#onSent()
  }

  /** The answer has left: it is the next request's turn. */
  #onSent(): void {
    this.#hasServed = true
    // The server may have been closed since: a client that was promised a living connection sends on it.
    if (this.#isLast) {
      this.#ahead = nothing
      this.socket.resume()
      return closeGracefully(this.socket)
    }
    this.#since = performance.now()
    if (this.socket.isPaused()) this.socket.resume()
    if (this.#ahead.length > 0) this.#takeUp()
    if (this.#hasEnded && !this.isBusy) this.#finish()
  }

  /** The client sends nothing more. What is under way, and what it has sent ahead, is answered first. */
  readonly #onEnd = (): void => {
    this.#hasEnded = true
    if (this.isGone) return
    if (!this.isBusy) return this.#finish()
    if (this.#all.limits.allowHalfOpen) return
    this.socket.end()
    this.#leave()
  }

  /** Ends the connection of a client that has ended its side. A request that has not come whole is node's to judge. */
  #finish(): void {
    if (this.#isHandedOver) return
    if (this.#ahead.length === 0) closeGracefully(this.socket)
    else this.#handOver()
  }

  readonly #onClose = (): void => {
    this.#all.forget(this.socket)
    this.#leave()
  }

  // The connection closes after any error.
  readonly #onError = (): void => {}

  /** Tells the request under way that nobody waits for it. */
  #leave(): void {
    this.#ahead = nothing
    this.#request?.leave()
  }

  /** Gives the connection to node's parser, with the bytes that are not taken up. */
  #handOver(): void {
    const { socket } = this
    this.#isHandedOver = true
    this.#all.forget(this.socket)
    socket.off("data", this.#onData)
    socket.off("end", this.#onEnd)
    socket.off("close", this.#onClose)
    socket.off("error", this.#onError)
    this.#all.handOver(socket)
    // It listens to the socket, although what comes from now on reaches it past all listeners.
    if (this.#ahead.length > 0) socket.emit("data", this.#ahead)
    if (this.#hasEnded) socket.emit("end")
  }
}

/** A request on such a connection. */
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

  /** None is, or the request would not be plain. */
  isRepeated(): boolean {
    return false
  }

  readBody(): Exit.Exit<Buffer> {
    return Exit.succeed(this.#body)
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

  /** The client has gone away before its answer. */
  leave(): void {
    const listeners = this.#onGone
    this.#onGone = []
    for (const listener of listeners) listener()
  }
}
