/** A request of the API that Node's own parser has read, and the response that Node writes. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http"
import { Effect, Exit } from "effect"
import type { Unavailable } from "../engine/Accounts.ts"
import type { RequestTooLarge } from "./HttpErrors.ts"
import type { BodyLimits, Incoming } from "./Incoming.ts"
import { closeGracefully } from "./CloseGracefully.ts"
import type { ReadBody } from "./RequestBody.ts"

/**
 * The unread rest of a body that is read after the answer to keep the connection; with a longer rest, the connection
 * ends.
 */
const UNREAD_BYTES_MAX = 262_144

/** The head of a request, for the API and for pages. */
export class NodeHead implements Pick<Incoming, "method" | "url" | "headers" | "isRepeated"> {
  protected readonly source: IncomingMessage

  constructor(source: IncomingMessage) {
    this.source = source
  }

  get method(): string {
    return this.source.method!
  }

  get url(): string {
    return this.source.url!
  }

  get headers(): IncomingHttpHeaders {
    return this.source.headers
  }

  isRepeated(name: string): boolean {
    const { rawHeaders } = this.source
    let count = 0
    for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]!.toLowerCase() === name) count++
    return count > 1
  }
}

export class NodeIncoming extends NodeHead implements Incoming {
  readonly arrivedAt = performance.now()
  readonly #response: ServerResponse
  readonly #readBody: ReadBody
  #body: Exit.Exit<Buffer, RequestTooLarge | Unavailable> | undefined

  constructor(source: IncomingMessage, response: ServerResponse, readBody: ReadBody) {
    super(source)
    this.#response = response
    this.#readBody = readBody
  }

  get isWhole(): boolean {
    return this.source.method !== "POST" || this.#body !== undefined
  }

  get rawHeaders(): ReadonlyArray<string> {
    return this.source.rawHeaders
  }

  /** Keeps the body, because it is needed again if the request is forwarded after it was read here. */
  readBody(limits?: BodyLimits): Effect.Effect<Buffer, RequestTooLarge | Unavailable> {
    if (this.#body !== undefined) return this.#body
    const body = this.#readBody(this.source, this.#response, limits?.bytesMax, limits?.holder)
    if (Exit.isExit(body)) return body
    return Effect.onExit(body, (exit) =>
      Effect.sync(() => {
        if (!Exit.hasInterrupts(exit)) this.#body = exit
      })
    )
  }

  /** Node's parser reads each connection as it comes. */
  countFor(): void {}

  get remoteAddress(): string | undefined {
    return this.source.socket.remoteAddress
  }

  get isGone(): boolean {
    return this.source.socket.destroyed
  }

  onGone(listener: () => void): void {
    const response = this.#response
    response.on("close", () => {
      if (!response.writableEnded) listener()
    })
  }

  answer(status: number, headers: Readonly<Record<string, string>>, body: string): void {
    const response = this.#response
    if (response.destroyed) return
    const sent: Record<string, string | number> = { ...headers }
    if (status !== 204) sent["content-length"] = Buffer.byteLength(body)
    if (!this.source.complete) this.#leaveUnread(sent)
    response.writeHead(status, sent)
    // Node encodes headers like a text body: in UTF-8, which would alter a key that is not ASCII.
    response.end(isAscii(headers["idempotency-key"] ?? "") ? body : Buffer.from(body))
  }

  /** Reads and drops the rest of the body, so that the client can read its answer and send its next request. */
  #leaveUnread(headers: Record<string, string | number>): void {
    const { source } = this
    const { socket } = source
    const { "content-length": declared, expect } = source.headers
    // A client that waits for `100 Continue` may or may not send the body.
    if (expect !== undefined || Number(declared ?? 0) > UNREAD_BYTES_MAX) headers["connection"] = "close"
    // Node would destroy the connection after its last answer, and with it an answer that the client has not read yet.
    socket.destroySoon = () => closeGracefully(socket)
    // Runs before Node's own listener, which would read the whole rest, or nothing of a body half read.
    this.#response.prependListener("finish", () => {
      let bytes = 0
      source.on("data", (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes <= UNREAD_BYTES_MAX) return
        source.pause()
        closeGracefully(socket)
      })
      source.resume()
      // Makes Node start reading immediately.
      source.read(0)
    })
  }
}

// oxlint-disable-next-line no-control-regex
const isAscii = (text: string): boolean => !/[^\x00-\x7f]/.test(text)
