/**
 * One attempt: one HTTP POST (semantics W7, W9). Never fails; what went wrong is its result. No fiber waits for it:
 * there are thousands a second.
 *
 * - The status line decides (`AnswerStart.ts`). Whatever comes after it (a long body, one that drips or never ends,
 *   what is no HTTP) is read up to 64 KiB for a short while, so that the connection can be used again, and then the
 *   connection is closed. A result that is no success waits meanwhile for the beginning of the body, which may say why.
 * - No redirect is followed. The time limit counts from the start, and covers look-up, connecting, TLS, sending, and
 *   whatever a server sends before its status line.
 * - Connections are kept for the next attempt, of endpoints that may go to the same hosts only: what was dialled for
 *   test mode is not used by live mode.
 * - A kept connection may be closed by the other side just when a request is sent by it. If it ends without a byte of
 *   an answer, the same request is sent once more, within the same attempt and time limit. One that was opened for the
 *   attempt is given no second try.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { Scope } from "effect"
import { Agent } from "undici"
import type { Dispatcher } from "undici"
import { clean } from "../domain/Secrets.ts"
import type { WebhookHosts } from "../domain/WebhookHosts.ts"
import type { Start } from "./AnswerStart.ts"
import * as AttemptErrors from "./AttemptErrors.ts"
import * as GuardedDial from "./GuardedDial.ts"
import type { Endpoint } from "./Endpoints.ts"
import { signatureOf } from "./Signature.ts"

/** An endpoint may take this long to answer (spec: Events, Delivery). */
const TIME_LIMIT_MILLIS = 30_000
/** The sender reads so much of an answer's body, and for so long. */
const BODY_MAX_BYTES = 65_536
const BODY_MILLIS = 5000
/** So much of the text of an answer that is no success is kept. */
export const KEPT_BYTES_MAX = 500
/** Connections that bring a body after their status line, at most. */
const BODIES_MAX = 256
const HEADERS_MAX_BYTES = 16_384
/** Less than the 5 s after which many servers close an idle connection, just when the next request is on its way. */
const KEEP_ALIVE_MILLIS = 4000

export interface Message {
  readonly endpoint: Endpoint
  readonly eventId: string
  /** Numbered from 1. */
  readonly attempt: number
  /** JSON text of the event. All attempts share it. */
  readonly body: Buffer
}

/** The status that came, with what the answer said if it was no success; or a short text about why none came. */
export type Result =
  | { readonly status: number; readonly error: null; readonly body?: string }
  | { readonly status: null; readonly error: string }

/** A 2xx status, and nothing else. */
export const isDelivered = ({ status }: Result): boolean => status !== null && isSuccess(status)

const isSuccess = (status: number): boolean => status >= 200 && status < 300

export interface SenderShape {
  /**
   * Begins an attempt. `done` is called with its result, once, perhaps at once; and not any more once the function has
   * been called that this answers with, which gives the attempt up.
   */
  readonly begin: (message: Message, done: (result: Result) => void) => () => void
}

export interface Options {
  readonly timeLimitMillis?: number
  readonly bodyMillis?: number
  /** Instead of the system's look-up. */
  readonly resolve?: GuardedDial.Resolve
  /** Certificates to trust instead of those that Node trusts, in PEM format. */
  readonly certificates?: string
}

export class Sender extends Context.Service<Sender, SenderShape>()("till/webhooks/Sender") {
  static readonly layer = (options: Options = {}): Layer.Layer<Sender> => Layer.effect(Sender, make(options))
}

const make = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<SenderShape, never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const limits: Limits = {
    timeLimitMillis: options.timeLimitMillis ?? TIME_LIMIT_MILLIS,
    bodyMillis: options.bodyMillis ?? BODY_MILLIS,
    bodies: new Set()
  }
  const resolve = GuardedDial.sharing(options.resolve ?? GuardedDial.resolveBySystem)
  const { certificates } = options
  const throughOf = (hosts: WebhookHosts): Through => {
    const { connect, isPrivate } = GuardedDial.make({
      hosts,
      connectMillis: limits.timeLimitMillis,
      resolve,
      certificates
    })
    const agent = new Agent({
      connect,
      // Otherwise all attempts at a host wait for the first one's connection, which tells what the host speaks.
      allowH2: false,
      keepAliveTimeout: KEEP_ALIVE_MILLIS,
      keepAliveMaxTimeout: KEEP_ALIVE_MILLIS,
      maxHeaderSize: HEADERS_MAX_BYTES,
      // The limits here are the exchange's own, in all its phases.
      headersTimeout: 0,
      bodyTimeout: 0
    })
    return { agent, keepsText: (origin) => hosts.keepsPrivateAnswers === true || !isPrivate(origin) }
  }
  // There is one of each mode, as long as the process lives.
  const agents = yield* Effect.acquireRelease(
    Effect.sync(() => new Map<WebhookHosts, Through>()),
    (agents) => Effect.promise(() => Promise.all([...agents.values()].map(({ agent }) => agent.destroy())))
  )
  const throughFor = (hosts: WebhookHosts): Through => {
    const known = agents.get(hosts)
    if (known !== undefined) return known
    const through = throughOf(hosts)
    agents.set(hosts, through)
    return through
  }

  return {
    begin: (message, done) => {
      const target = URL.parse(message.endpoint.url)
      if (target === null) {
        done(failed(AttemptErrors.INVALID_URL))
        return () => {}
      }
      const request = requestOf(message, target, Math.floor(clock.currentTimeMillisUnsafe() / 1000))
      const exchange = new Exchange(limits, request, throughFor(message.endpoint.hosts), done)
      exchange.begin()
      return () => exchange.abandon()
    }
  }
})

const requestOf = (message: Message, target: URL, seconds: number): Dispatcher.DispatchOptions => ({
  origin: target.origin,
  path: `${target.pathname}${target.search}`,
  method: "POST",
  headers: [
    "content-type",
    "application/json",
    "x-signature",
    signatureOf(message.endpoint.secrets, seconds, message.body),
    "x-webhook-id",
    message.eventId,
    "x-webhook-attempt",
    String(message.attempt),
    "user-agent",
    "Till-Webhooks/1"
  ],
  body: message.body
})

const failed = (error: string): Result => ({ status: null, error })

/** What an answer begins with, as far as it is text, without card numbers and secrets; undefined if that is nothing. */
const textOf = (chunks: ReadonlyArray<Buffer>): string | undefined => {
  // A character may have been cut off.
  const text = Buffer.concat(chunks)
    .subarray(0, KEPT_BYTES_MAX)
    .toString()
    .replace(/\uFFFD$/u, "")
  if (text.includes("\uFFFD")) return undefined
  return clean(text).replaceAll("\0", "").trim() || undefined
}

/** The reason for which an exchange is cut off. */
class CutOff extends Error {}

interface Limits {
  readonly timeLimitMillis: number
  readonly bodyMillis: number
  /** Exchanges whose body is still coming, of all endpoints; the oldest first. */
  readonly bodies: Set<Exchange>
}

/** The connections to the endpoints of a mode. */
interface Through {
  readonly agent: Agent
  /** Says whether the text of an answer that an origin gives now may be kept (semantics W9). */
  readonly keepsText: (origin: string) => boolean
}

/** A request and its answer, as undici reports them. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #limits: Limits
  readonly #request: Dispatcher.DispatchOptions
  readonly #through: Through
  #report: ((result: Result) => void) | null
  #controller: Dispatcher.DispatchController | null = null
  #timer: NodeJS.Timeout
  #mayRepeat = true
  #bodyBytes = 0
  /** The status of an answer that is no success: it is reported once its text is there. */
  #refusal: number | null = null
  #keepsText = false
  #text: Array<Buffer> = []

  constructor(limits: Limits, request: Dispatcher.DispatchOptions, through: Through, report: (result: Result) => void) {
    this.#limits = limits
    this.#request = request
    this.#through = through
    this.#report = report
    this.#timer = setTimeout(() => this.giveUp(AttemptErrors.TIMED_OUT), limits.timeLimitMillis)
  }

  begin(): void {
    try {
      this.#through.agent.dispatch(this.#request, this)
    } catch (error) {
      this.onResponseError(null, error as Error)
    }
  }

  /** Ends it, whatever it is doing. */
  giveUp(error: string): void {
    this.#settle(failed(error))
    this.#end()
    this.#controller?.abort(new CutOff(error))
  }

  /** The same, and nobody hears of it. */
  abandon(): void {
    this.#report = null
    this.giveUp("abandoned")
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    // Given up while it was waiting for a connection.
    if (this.#report === null) controller.abort(new CutOff("given up"))
    else GuardedDial.expectAnswer((start) => this.#onStart(start))
  }

  #onStart(start: Start): void {
    if (start._tag !== "Status") return this.giveUp(AttemptErrors.ofStart(start))
    const { status } = start
    clearTimeout(this.#timer)
    const { bodies, bodyMillis } = this.#limits
    this.#timer = setTimeout(() => this.giveUp("the body takes too long"), bodyMillis)
    bodies.add(this)
    if (bodies.size > BODIES_MAX) bodies.values().next().value?.giveUp("the body takes too long")
    if (isSuccess(status)) return this.#settle({ status, error: null })
    this.#mayRepeat = false
    this.#refusal = status
    this.#keepsText = this.#through.keepsText(String(this.#request.origin))
  }

  /** The status is known already, and perhaps this answer is not the first that the parser has understood. */
  onResponseStart(): void {}

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#bodyBytes < KEPT_BYTES_MAX && this.#keepsText) this.#text.push(chunk)
    this.#bodyBytes += chunk.length
    if (this.#bodyBytes >= KEPT_BYTES_MAX) this.#settle(null)
    if (this.#bodyBytes > BODY_MAX_BYTES) controller.abort(new CutOff("the body is too long"))
  }

  onResponseEnd(): void {
    this.#end()
    this.#settle(null)
  }

  onResponseError(_controller: unknown, error: Error): void {
    if (this.#mayRepeat && this.#report !== null && AttemptErrors.isClosed(error) && GuardedDial.isClosedIdle(error)) {
      this.#mayRepeat = false
      return this.begin()
    }
    this.#end()
    this.#settle(failed(AttemptErrors.of(error)))
  }

  #end(): void {
    clearTimeout(this.#timer)
    this.#limits.bodies.delete(this)
  }

  /** Reports once: an answer that is no success, whatever has happened to its text; else what is given, if anything. */
  #settle(result: Result | null): void {
    const report = this.#report
    if (report === null) return
    const settled = this.#refused() ?? result
    if (settled === null) return
    this.#report = null
    this.#text = []
    report(settled)
  }

  #refused(): Result | null {
    const status = this.#refusal
    if (status === null) return null
    const body = textOf(this.#text)
    return { status, error: null, ...(body !== undefined && { body }) }
  }
}
