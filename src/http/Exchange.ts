/**
 * An exchange is one request and its response. Every response shows the same headers (semantics T19), and every failure
 * becomes a response (§3, T20).
 */
import type { IncomingMessage } from "node:http"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Cause, Context, Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpServerResponse } from "effect/http"
import { API_VERSION_NEWEST } from "../domain/ApiVersion.ts"
import type { OlderVersion } from "../domain/ApiVersions.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import { Unavailable } from "../engine/Accounts.ts"
import { idOf, nextSequence } from "../engine/Identifiers.ts"
import type { Failure } from "./ErrorTable.ts"
import { envelope, internalError, shownPath, wireErrorOf } from "./ErrorTable.ts"
import { singleIdempotencyKey } from "./RequestHeaders.ts"

/** Holds what is known of a request so far; an error response shows what was found until then. */
export interface Exchange {
  readonly request: HttpServerRequest.HttpServerRequest
  readonly source: IncomingMessage
  /** `req_…` */
  readonly id: string
  readonly method: string
  /** As it was sent, not decoded. */
  readonly path: string
  /** Without the question mark; empty if there is none. */
  readonly query: string
  /** The response echoes it; undefined if there is none, or none that is valid. */
  readonly idempotencyKey: string | undefined
  apiVersion: string
  /** Says how that version is served; undefined for the newest. */
  older: OlderVersion | undefined
  /** The endpoint's, as versions name it, once it is found. */
  route: string | undefined
}

export interface Answer {
  readonly status: number
  /** JSON text. */
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Gives the request as Node has it: Effect's own would copy all headers, of every request. */
export const sourceOf = (request: HttpServerRequest.HttpServerRequest): IncomingMessage =>
  NodeHttpServerRequest.toIncomingMessage(request) as IncomingMessage

/** Makes a source of ids for requests, `req_…`. In the order of their bytes, they are in the order of arrival. */
export const makeRequestIds = () => {
  let sequence = 0
  return {
    /** Gives the id of the request that arrives now. */
    next: (): string => {
      sequence = nextSequence(sequence, Date.now())
      return idOf(PREFIXES.request, sequence)
    }
  }
}

/** All requests that can be read, whichever part of the service answers them, have their ids from this one sequence. */
export class RequestIds extends Context.Service<RequestIds, ReturnType<typeof makeRequestIds>>()(
  "till/http/RequestIds"
) {
  static readonly layer = Layer.sync(RequestIds, makeRequestIds)
}

/** Begins the exchange of a request that has just arrived, and has this id. */
export const begin = (request: HttpServerRequest.HttpServerRequest, id: string): Exchange => {
  const { method, url } = request
  const source = sourceOf(request)
  const mark = url.indexOf("?")
  return {
    request,
    source,
    id,
    method,
    path: mark === -1 ? url : url.slice(0, mark),
    query: mark === -1 ? "" : url.slice(mark + 1),
    idempotencyKey: method === "POST" ? singleIdempotencyKey(source) : undefined,
    apiVersion: API_VERSION_NEWEST,
    older: undefined,
    route: undefined
  }
}

/** Takes an answer of the newest version back to that of the exchange. */
export const inItsVersion = <A extends Answer>({ older, route }: Exchange, answer: A): A =>
  older === undefined ? answer : older.answer(route, answer)

/** Makes the response, with the headers that every one has. */
export const respond = (
  { apiVersion, id, idempotencyKey }: Exchange,
  { body, headers, status }: Answer
): HttpServerResponse.HttpServerResponse => {
  const options = { status, contentType: "application/json" }
  // Node sends headers in the encoding of a body that is a string: a key that is not ASCII would come back as another.
  const response =
    idempotencyKey === undefined || isAscii(idempotencyKey)
      ? HttpServerResponse.text(body, options)
      : HttpServerResponse.uint8Array(Buffer.from(body), options)
  // Among the options, all headers would be copied twice. These belong to this response, which nobody else has seen.
  const own = response.headers as Record<string, string>
  own["cache-control"] = "no-store"
  own["x-api-version"] = apiVersion
  own["x-request-id"] = id
  if (idempotencyKey !== undefined) own["idempotency-key"] = idempotencyKey
  if (headers !== undefined) Object.assign(own, headers)
  return response
}

// oxlint-disable-next-line no-control-regex
const isAscii = (text: string): boolean => !/[^\x00-\x7f]/.test(text)

interface FailureOptions {
  readonly docsUrl: string
  /** The reason of an interruption, unless the client went away. */
  readonly interruption: string
  /** Decides which of the requests that find the engine unavailable are logged. */
  readonly outages: LogThrottle
}

/** Makes the response to a failure, and logs what is not the client's doing. Interrupts if the client went away. */
export const respondFailed = (
  exchange: Exchange,
  cause: Cause.Cause<Failure>,
  { docsUrl, interruption, outages }: FailureOptions
): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  const wasInterrupted = Cause.hasInterruptsOnly(cause)
  if (wasInterrupted && exchange.source.socket.destroyed) return Effect.interrupt
  // An interruption may come along with a failure; a defect says more than either.
  const [reason, ...others] = cause.reasons.filter(({ _tag }) => _tag !== "Interrupt")
  const failure = wasInterrupted
    ? new Unavailable({ reason: interruption })
    : reason?._tag === "Fail" && others.length === 0
      ? reason.error
      : undefined
  const error = failure === undefined ? internalError : wireErrorOf(failure)
  const response = respond(exchange, inItsVersion(exchange, { ...error, body: envelope(error, docsUrl) }))
  if (error.status < 500) return Effect.succeed(response)
  const unlogged = failure instanceof Unavailable ? outages.take() : 0
  if (unlogged === undefined) return Effect.succeed(response)
  // The path holds ids at most; the query may hold a client secret, and the body card data.
  const annotations = {
    request_id: exchange.id,
    code: error.code,
    ...(failure instanceof Unavailable && { reason: failure.reason }),
    ...(unlogged > 0 && { unlogged_before: unlogged })
  }
  return Effect.logError(
    `${exchange.method} ${shownPath(exchange.path)} failed`,
    ...(failure === undefined ? [cause] : [])
  ).pipe(Effect.annotateLogs(annotations), Effect.as(response))
}

/** Says of failures that come in floods, as they do while the database is away, when one of them is to be logged. */
export class LogThrottle {
  readonly #pauseMillis: number
  #nextAt = -Infinity
  #untold = 0

  constructor(pauseMillis: number) {
    this.#pauseMillis = pauseMillis
  }

  /** Counts those that were not told of since the last that was; undefined if this one is not to be told of either. */
  take(now: number = performance.now()): number | undefined {
    if (now < this.#nextAt) {
      this.#untold++
      return undefined
    }
    const untold = this.#untold
    this.#untold = 0
    this.#nextAt = now + this.#pauseMillis
    return untold
  }
}
