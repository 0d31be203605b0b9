/**
 * Makes one attempt: one HTTP POST (semantics webhooks.headers, webhooks.errors). It never fails: its result describes
 * what went wrong.
 *
 * - The status line decides (`AnswerStart.ts`). Bytes after it (a long body, a body that drips or never ends, bytes
 *   that are not HTTP) are read up to 64 KiB and for a short while, so that the connection can be used again. Then the
 *   connection is closed. A refusal is reported only after the beginning of its body, which may explain it.
 * - Redirects are not followed. The time limit counts from the start and covers look-up, connecting, TLS, sending, and
 *   everything that a server sends before its status line.
 * - Connections are kept for the next attempt, but only for endpoints that may connect to the same hosts: live mode
 *   does not use the connections of test mode.
 * - The other side may close a kept connection just when a request is sent over it. If it closes before the first byte
 *   of an answer, the same request is sent once more, within the same attempt and time limit. A connection that was
 *   opened for the attempt gets no second try.
 */
import { Clock, Context, Effect, Exit, Layer, type Redacted, type Scope } from "effect"
import { Agent, type Dispatcher } from "undici"
import { clean } from "../domain/Secrets.ts"
import type { WebhookHosts } from "../domain/WebhookHosts.ts"
import { signatureOf } from "../domain/WebhookSignature.ts"
import type { Start } from "./AnswerStart.ts"
import {
  type AttemptResult,
  describeError,
  describeStart,
  INVALID_URL,
  isClosed,
  isSuccess,
  TIMED_OUT,
  unanswered
} from "./AttemptResult.ts"
import * as GuardedDial from "./GuardedDial.ts"

/** Time limit for an endpoint's answer (spec: Events, Delivery). */
const TIME_LIMIT_MILLIS = 30_000
/** Limits for reading an answer's body. */
const BODY_MAX_BYTES = 65_536
const BODY_MILLIS = 5000
/** Bytes kept of a refusal's text. */
export const KEPT_BYTES_MAX = 500
/** Connections on which a body is still arriving, at most. */
const BODIES_MAX = 256
const HEADERS_MAX_BYTES = 16_384
/** Less than the 5 s after which many servers close an idle connection: the next request could be on its way then. */
const KEEP_ALIVE_MILLIS = 4000

/** Destination of a delivery, in its state at the attempt (semantics webhooks.disabled). */
export interface Endpoint {
  readonly url: string
  /** The secrets that sign now, newest first. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  /** Hosts that the URL may lead to (semantics webhooks.url, webhooks.test_hosts). */
  readonly hosts: WebhookHosts
}

export interface Message {
  readonly endpoint: Endpoint
  readonly eventId: string
  /** Number of the attempt, from 1. */
  readonly attempt: number
  /** JSON text of the event, shared by all attempts. */
  readonly body: Buffer
  /** The attempt's span as a header; undefined unless the event's request was traced. */
  readonly traceparent?: string | undefined
}

export interface SenderShape {
  /** An interruption gives the attempt up. */
  readonly send: (message: Message) => Effect.Effect<AttemptResult>
}

export interface Options {
  readonly timeLimitMillis?: number
  readonly bodyMillis?: number
  /** Replaces the system's look-up. */
  readonly resolve?: GuardedDial.Resolve
  /** Certificates to trust instead of Node's, in PEM format. */
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
      // With HTTP/2 all attempts at a host would wait for its first connection, which negotiates the protocol.
      allowH2: false,
      keepAliveTimeout: KEEP_ALIVE_MILLIS,
      keepAliveMaxTimeout: KEEP_ALIVE_MILLIS,
      maxHeaderSize: HEADERS_MAX_BYTES,
      // `HttpAttempt` has its own time limits, for all phases.
      headersTimeout: 0,
      bodyTimeout: 0
    })
    return { agent, keepsText: (origin) => hosts.keepsPrivateAnswers === true || !isPrivate(origin) }
  }
  // One agent for each mode, for the life of the process.
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
    send: (message) =>
      Effect.callback((resume) => {
        const target = URL.parse(message.endpoint.url)
        if (target === null) return resume(Exit.succeed(unanswered(INVALID_URL)))
        const request = requestOf(message, target, Math.floor(clock.currentTimeMillisUnsafe() / 1000))
        const through = throughFor(message.endpoint.hosts)
        const attempt = new HttpAttempt(limits, request, through, (result) => resume(Exit.succeed(result)))
        attempt.begin()
        return Effect.sync(() => attempt.giveUp("interrupted"))
      })
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
    "Till-Webhooks/1",
    ...(message.traceparent === undefined ? [] : ["traceparent", message.traceparent])
  ],
  body: message.body
})

/** The beginning of an answer without card numbers and secrets; undefined if it is empty or not text. */
const textOf = (chunks: ReadonlyArray<Buffer>): string | undefined => {
  // The limit may cut a character in two.
  const text = Buffer.concat(chunks)
    .subarray(0, KEPT_BYTES_MAX)
    .toString()
    .replace(/\uFFFD$/u, "")
  if (text.includes("\uFFFD")) return undefined
  return clean(text).replaceAll("\0", "").trim() || undefined
}

/** The reason for which an attempt ends its exchange early. */
class CutOff extends Error {}

interface Limits {
  readonly timeLimitMillis: number
  readonly bodyMillis: number
  /** Attempts of all endpoints whose body is still arriving, oldest first. */
  readonly bodies: Set<HttpAttempt>
}

/** The connections to the endpoints of a mode. */
interface Through {
  readonly agent: Agent
  /** Whether the text of an answer that an origin gives now may be kept (semantics webhooks.response_body). */
  readonly keepsText: (origin: string) => boolean
}

/** One attempt: a request and its answer, reported by undici. */
class HttpAttempt implements Dispatcher.DispatchHandler {
  readonly #limits: Limits
  readonly #request: Dispatcher.DispatchOptions
  readonly #through: Through
  #report: ((result: AttemptResult) => void) | null
  #controller: Dispatcher.DispatchController | null = null
  #timer: NodeJS.Timeout
  #mayRepeat = true
  #bodyBytes = 0
  /** The status of a refusal, which is reported once its text has arrived. */
  #refusal: number | null = null
  #keepsText = false
  #text: Array<Buffer> = []

  constructor(
    limits: Limits,
    request: Dispatcher.DispatchOptions,
    through: Through,
    report: (result: AttemptResult) => void
  ) {
    this.#limits = limits
    this.#request = request
    this.#through = through
    this.#report = report
    this.#timer = setTimeout(() => this.giveUp(TIMED_OUT), limits.timeLimitMillis)
  }

  begin(): void {
    try {
      this.#through.agent.dispatch(this.#request, this)
    } catch (error) {
      this.onResponseError(null, error as Error)
    }
  }

  /** Ends the attempt in any phase. */
  giveUp(error: string): void {
    this.#settle(unanswered(error))
    this.#end()
    this.#controller?.abort(new CutOff(error))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    // The attempt was given up while it waited for a connection.
    if (this.#report === null) controller.abort(new CutOff("given up"))
    else GuardedDial.expectAnswer((start) => this.#onStart(start))
  }

  #onStart(start: Start): void {
    if (start._tag !== "Status") return this.giveUp(describeStart(start))
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

  /** Does nothing: `AnswerStart` has reported the status, and the parser may have skipped an earlier answer. */
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
    if (this.#mayRepeat && this.#report !== null && isClosed(error) && GuardedDial.isClosedIdle(error)) {
      this.#mayRepeat = false
      return this.begin()
    }
    this.#end()
    this.#settle(unanswered(describeError(error)))
  }

  #end(): void {
    clearTimeout(this.#timer)
    this.#limits.bodies.delete(this)
  }

  /** Reports once: the refusal if there is one, whatever happened to its text; otherwise `result`, if not null. */
  #settle(result: AttemptResult | null): void {
    const report = this.#report
    if (report === null) return
    const settled = this.#refusalResult() ?? result
    if (settled === null) return
    this.#report = null
    this.#text = []
    report(settled)
  }

  #refusalResult(): AttemptResult | null {
    const status = this.#refusal
    if (status === null) return null
    const body = textOf(this.#text)
    return { status, error: null, ...(body !== undefined && { body }) }
  }
}
