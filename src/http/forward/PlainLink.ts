/**
 * Connections by which plain requests go to another process of the installation. A request leaves in one write, and its
 * answer is read without a general parser, as the request is where it comes to: a fifth less work for who forwards.
 *
 * A connection that has brought anything else than a plain answer to what was asked is not used again.
 */
import type { Socket } from "node:net"
import { connect } from "node:net"
import type { AtTurnsEnd } from "../Bursts.ts"
import { INCOMPLETE, NOT_PLAIN } from "../plain/PlainRequest.ts"
import type { PlainReply } from "../plain/PlainReply.ts"
import { parseReply } from "../plain/PlainReply.ts"

export interface Terms {
  /** So many connections at most; further requests wait for one. */
  readonly connectionsMax: number
  readonly connectMillis: number
  /** A connection is kept for so long without a request. */
  readonly idleMillis: number
  readonly atTurnsEnd: AtTurnsEnd
}

/** One of these is called, once, unless the request is given up. */
export interface PlainReceiver {
  readonly onReply: (reply: PlainReply) => void
  /** There is an answer that is not plain: it is to be asked for in another way. */
  readonly onOther: () => void
  /** There is no answer, or no whole one. */
  readonly onLost: (wasSent: boolean) => void
}

interface Asked {
  readonly bytes: Buffer
  readonly receiver: PlainReceiver
  /** The one that it was given to. */
  connection: PlainClient | undefined
  isGivenUp: boolean
}

const nothing = Buffer.alloc(0)

export class PlainLink {
  readonly #host: string
  readonly #port: number
  readonly #terms: Terms
  readonly #all = new Set<PlainClient>()
  /** The last one to have been used comes last, and is used first. */
  #idle: Array<PlainClient> = []
  readonly #waiting: Array<Asked> = []
  #sweeping: NodeJS.Timeout | undefined

  constructor(url: string, terms: Terms) {
    const { hostname, port } = new URL(url)
    this.#host = hostname.replaceAll(/[[\]]/g, "")
    this.#port = Number(port)
    this.#terms = terms
  }

  /** Sends a request's bytes; gives what gives it up. */
  send(bytes: Buffer, receiver: PlainReceiver): () => void {
    const asked: Asked = { bytes, receiver, connection: undefined, isGivenUp: false }
    const idle = this.#idle.pop()
    if (idle !== undefined) idle.take(asked)
    else if (this.#all.size < this.#terms.connectionsMax) this.#open().take(asked)
    else this.#waiting.push(asked)
    return () => {
      asked.isGivenUp = true
      asked.connection?.close()
    }
  }

  /** Closes all connections; what is under way is lost. */
  destroy(): void {
    clearInterval(this.#sweeping)
    for (const connection of this.#all) connection.close()
    for (const { isGivenUp, receiver } of this.#waiting.splice(0)) if (!isGivenUp) receiver.onLost(false)
  }

  #open(): PlainClient {
    const { atTurnsEnd, connectMillis } = this.#terms
    const socket = connect({ host: this.#host, port: this.#port, noDelay: true, timeout: connectMillis })
    const connection = new PlainClient(socket, atTurnsEnd, {
      onFree: () => {
        const next = this.#next()
        if (next === undefined) this.#idle.push(connection)
        else connection.take(next)
      },
      onClosed: () => this.#forget(connection)
    })
    this.#all.add(connection)
    this.#sweeping ??= setInterval(this.#sweep, this.#terms.idleMillis / 2).unref()
    return connection
  }

  #forget(connection: PlainClient): void {
    this.#all.delete(connection)
    this.#idle = this.#idle.filter((idle) => idle !== connection)
    const next = this.#next()
    if (next !== undefined) this.#open().take(next)
  }

  #next(): Asked | undefined {
    let next = this.#waiting.shift()
    while (next?.isGivenUp === true) next = this.#waiting.shift()
    return next
  }

  readonly #sweep = (): void => {
    const before = performance.now() - this.#terms.idleMillis
    for (const connection of this.#idle) if (connection.since < before) connection.close()
    if (this.#all.size > 0) return
    clearInterval(this.#sweeping)
    this.#sweeping = undefined
  }
}

interface Owner {
  /** The next request may come. */
  readonly onFree: () => void
  readonly onClosed: () => void
}

/** One connection, which has one request at a time. */
class PlainClient {
  readonly #socket: Socket
  readonly #atTurnsEnd: AtTurnsEnd
  readonly #owner: Owner
  #asked: Asked | undefined
  #received: Buffer = nothing
  #isOpen = false
  #wasSent = false
  /** By `performance.now()`: since then it has no request. */
  since = performance.now()

  constructor(socket: Socket, atTurnsEnd: AtTurnsEnd, owner: Owner) {
    this.#socket = socket
    this.#atTurnsEnd = atTurnsEnd
    this.#owner = owner
    socket.on("connect", this.#onConnect)
    socket.on("timeout", () => socket.destroy())
    socket.on("data", this.#onData)
    socket.on("end", () => socket.destroy())
    socket.on("close", this.#onClose)
    // The connection closes after any error.
    socket.on("error", () => {})
  }

  take(asked: Asked): void {
    this.#asked = asked
    this.#wasSent = false
    asked.connection = this
    if (this.#isOpen) this.#atTurnsEnd(this.#write)
  }

  close(): void {
    this.#socket.destroy()
  }

  readonly #onConnect = (): void => {
    this.#isOpen = true
    this.#socket.setTimeout(0)
    if (this.#asked !== undefined) this.#write()
  }

  readonly #write = (): void => {
    if (this.#asked === undefined || this.#socket.destroyed) return
    this.#wasSent = true
    this.#socket.write(this.#asked.bytes)
  }

  readonly #onData = (chunk: Buffer): void => {
    if (!this.#wasSent) return this.close()
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    const reply = parseReply(this.#received)
    if (reply === INCOMPLETE) return
    const { isGivenUp, receiver } = this.#asked!
    const isLast = reply === NOT_PLAIN || reply.end < this.#received.length || reply.headers["connection"] === "close"
    this.#asked = undefined
    this.#received = nothing
    this.#wasSent = false
    this.since = performance.now()
    if (isLast) this.close()
    else this.#owner.onFree()
    if (isGivenUp) return
    if (reply === NOT_PLAIN) receiver.onOther()
    else receiver.onReply(reply)
  }

  readonly #onClose = (): void => {
    const asked = this.#asked
    this.#asked = undefined
    this.#owner.onClosed()
    if (asked?.isGivenUp === false) asked.receiver.onLost(this.#wasSent)
  }
}
