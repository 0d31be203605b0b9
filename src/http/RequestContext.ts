/**
 * An exchange is one request and its response. Every response shows the same headers (semantics T19), and every failure
 * becomes a response (§3, T20).
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Cause, Context, Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpServerResponse } from "effect/http"
import { API_VERSION_NEWEST } from "../domain/ApiVersion.ts"
import type { OlderVersion } from "../domain/ApiVersions.ts"
import { withoutCardNumbers } from "../domain/Cards.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import { Unavailable } from "../engine/Accounts.ts"
import { idOf, nextSequence } from "../engine/log/Identifiers.ts"
import { noteRequest } from "../engine/process/Watchdog.ts"
import type { Caller } from "./Authentication.ts"
import type { Failure } from "./ErrorTable.ts"
import type { Place } from "./Admission.ts"
import type { Course } from "./forward/Course.ts"
import type { Incoming } from "../server/Incoming.ts"
import { NodeHead } from "../server/NodeIncoming.ts"
import { envelope, internalError, wireErrorOf } from "./ErrorTable.ts"
import { singleIdempotencyKey } from "./RequestHeaders.ts"
import type { Wait } from "./RequestTimeouts.ts"

/** Holds what is known of a request so far; an error response shows what was found until then. */
export interface RequestContext {
  /** `req_…` */
  readonly id: string
  readonly method: string
  /** As it was sent, not decoded. */
  readonly path: string
  /** Without the question mark; empty if there is none. */
  readonly query: string
  /** The response echoes it, byte by byte; undefined if there is none, or none that is valid. */
  readonly idempotencyKey: string | undefined
  apiVersion: string
  /** Says how that version is served; undefined for the newest. */
  older: OlderVersion | undefined
  /** The endpoint's, as versions name it, once it is found. */
  route: string | undefined
}

/** A request of the API while it is answered. */
export interface Received extends RequestContext {
  readonly incoming: Incoming
  readonly wait: Wait
  /** A command's, from when it was admitted until it is answered. */
  place: Place | undefined
  /** So often it has turned out that its account is served by another process than was thought. */
  moves: number
  /** What has become of it at other processes. */
  readonly course: Course
  /** Who has sent it, once that is known. */
  caller: Caller | undefined
  /** The JSON of its body, once that is read; undefined for one that the log of requests would not keep. */
  body: unknown
}

export interface Answer {
  readonly status: number
  /** JSON text. */
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
  /** True if another process has made it, with all of its headers. */
  readonly isComplete?: boolean
}

/** Gives the request as Node has it: Effect's own would copy all headers. */
export const sourceOf = (request: HttpServerRequest.HttpServerRequest): IncomingMessage =>
  NodeHttpServerRequest.toIncomingMessage(request) as IncomingMessage

/** Gives Node's response to a request. */
export const responseOf = (request: HttpServerRequest.HttpServerRequest): ServerResponse =>
  NodeHttpServerRequest.toServerResponse(request) as ServerResponse

/** Makes a source of ids for requests, `req_…`. In the order of their bytes, they are in the order of arrival. */
export const makeRequestIds = () => {
  let sequence = 0
  return {
    /** Gives the id of the request that arrives now. */
    next: (): string => {
      sequence = nextSequence(sequence, Date.now())
      const id = idOf(PREFIXES.request, sequence)
      noteRequest(id)
      return id
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
export const begin = (
  head: Pick<Incoming, "method" | "url" | "headers" | "isRepeated">,
  id: string
): RequestContext => {
  const { method, url } = head
  const mark = url.indexOf("?")
  return {
    id,
    method,
    path: mark === -1 ? url : url.slice(0, mark),
    query: mark === -1 ? "" : url.slice(mark + 1),
    idempotencyKey: method === "POST" ? singleIdempotencyKey(head) : undefined,
    apiVersion: API_VERSION_NEWEST,
    older: undefined,
    route: undefined
  }
}

/** Takes an answer of the newest version back to that of the exchange. */
export const inItsVersion = <A extends Answer>({ older, route }: RequestContext, answer: A): A =>
  older === undefined ? answer : older.answer(route, answer)

/** Gives the headers that every response has, and those of its answer. */
export const headersOf = (
  { apiVersion, id, idempotencyKey }: RequestContext,
  { headers }: Answer
): Readonly<Record<string, string>> => {
  const own: Record<string, string> = {
    "content-type": "application/json",
    "cache-control": "no-store",
    "x-api-version": apiVersion,
    "x-request-id": id
  }
  if (idempotencyKey !== undefined) own["idempotency-key"] = idempotencyKey
  if (headers !== undefined) Object.assign(own, headers)
  return own
}

/** Answers, outside of the API, a request that came over Effect's HTTP. */
export const respond = (
  request: HttpServerRequest.HttpServerRequest,
  id: string,
  answer: Answer
): HttpServerResponse.HttpServerResponse => {
  const exchange = begin(new NodeHead(sourceOf(request)), id)
  const response = HttpServerResponse.uint8Array(Buffer.from(answer.body), {
    status: answer.status,
    contentType: "application/json"
  })
  return HttpServerResponse.setHeaders(response, headersOf(exchange, answer))
}

interface FailureOptions {
  readonly docsUrl: string
  /** The reason of an interruption. */
  readonly interruption: string
  /** Decides which of the requests that find the engine unavailable are logged. */
  readonly outages: Pick<LogThrottle, "take">
}

/** The answer to a failure, and what is to be logged of it. */
export interface Failed {
  readonly answer: Answer
  /** Undefined for what is the client's doing, and for a part of what comes in floods. */
  readonly log: Effect.Effect<void> | undefined
}

/** Answers a failure. */
export const answerFailed = (
  exchange: RequestContext,
  cause: Cause.Cause<Failure>,
  { docsUrl, interruption, outages }: FailureOptions
): Failed => {
  // An interruption may come along with a failure; a defect says more than either.
  const [reason, ...others] = cause.reasons.filter(({ _tag }) => _tag !== "Interrupt")
  const failure = Cause.hasInterruptsOnly(cause)
    ? new Unavailable({ reason: interruption })
    : reason?._tag === "Fail" && others.length === 0
      ? reason.error
      : undefined
  const error = failure === undefined ? internalError : wireErrorOf(failure)
  const answer = inItsVersion(exchange, { ...error, body: envelope(error, docsUrl) })
  if (error.status < 500) return { answer, log: undefined }
  const unlogged = failure instanceof Unavailable ? outages.take() : 0
  if (unlogged === undefined) return { answer, log: undefined }
  // The path holds ids at most; the query may hold a client secret, and the body card data.
  const annotations = {
    request_id: exchange.id,
    code: error.code,
    ...(failure instanceof Unavailable && { reason: failure.reason }),
    ...(unlogged > 0 && { unlogged_before: unlogged })
  }
  const log = Effect.logError(
    `${exchange.method} ${withoutCardNumbers(exchange.path)} failed`,
    ...(failure === undefined ? [cause] : [])
  ).pipe(Effect.annotateLogs(annotations))
  return { answer, log }
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
