/**
 * A request as it was received, and its response. Every response has the same headers (semantics responses.headers),
 * and every failure becomes a response (semantics errors.table, errors.internal).
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Cause, Context, Effect, Layer } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { API_VERSION_NEWEST } from "../domain/ApiVersion.ts"
import type { OlderVersion } from "../domain/ApiVersions.ts"
import { withoutCardNumbers } from "../domain/Cards.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import { Unavailable } from "../engine/Accounts.ts"
import { idOf, nextSequence } from "../engine/log/Identifiers.ts"
import { noteRequest } from "../engine/process/Watchdog.ts"
import { type Course, newCourse } from "./forward/SignedRequest.ts"
import type { Incoming } from "../server/Incoming.ts"
import { NodeHead } from "../server/NodeIncoming.ts"
import { answerOf, type Failure, internalError, wireErrorOf } from "./ErrorTable.ts"
import { singleIdempotencyKey } from "./RequestHeaders.ts"
import { Wait } from "./RequestTimeouts.ts"

/** A request of the API, as it was received. */
export interface Received {
  /** `req_…` */
  readonly id: string
  readonly method: string
  /** As it was sent, not decoded. */
  readonly path: string
  /** Without the question mark; empty if there is none. */
  readonly query: string
  /** The idempotency key, echoed byte by byte; undefined if there is none, or none that is valid. */
  readonly idempotencyKey: string | undefined
  readonly incoming: Incoming
  readonly wait: Wait
  /** The request's attempts at other processes. */
  readonly course: Course
}

export interface Answer {
  readonly status: number
  /** JSON text. */
  readonly body: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** True if another process made the answer, with all headers. */
  readonly isComplete?: boolean
}

/** Returns Node's request: Effect's own would copy all headers. */
export const sourceOf = (request: HttpServerRequest.HttpServerRequest): IncomingMessage =>
  NodeHttpServerRequest.toIncomingMessage(request) as IncomingMessage

/** Returns Node's response to a request. */
export const responseOf = (request: HttpServerRequest.HttpServerRequest): ServerResponse =>
  NodeHttpServerRequest.toServerResponse(request) as ServerResponse

/** Makes a source of request ids, `req_…`, which sort by bytes in the order of arrival. */
export const makeRequestIds = () => {
  let sequence = 0
  return {
    /** Returns the id of the request that arrives now. */
    next: (): string => {
      sequence = nextSequence(sequence, Date.now())
      const id = idOf(PREFIXES.request, sequence)
      noteRequest(id)
      return id
    }
  }
}

/** The one sequence of request ids, for every part of the service that answers requests. */
export class RequestIds extends Context.Service<RequestIds, ReturnType<typeof makeRequestIds>>()(
  "till/http/RequestIds"
) {
  static readonly layer = Layer.sync(RequestIds, makeRequestIds)
}

/** Receives a request that has just arrived. */
export const receive = (incoming: Incoming, id: string): Received => {
  const { method, url } = incoming
  const mark = url.indexOf("?")
  return {
    id,
    method,
    path: mark === -1 ? url : url.slice(0, mark),
    query: mark === -1 ? "" : url.slice(mark + 1),
    idempotencyKey: echoedKeyOf(incoming),
    incoming,
    wait: new Wait(),
    course: newCourse()
  }
}

const echoedKeyOf = (head: Pick<Incoming, "method" | "headers" | "isRepeated">): string | undefined =>
  head.method === "POST" ? singleIdempotencyKey(head) : undefined

/** Converts an answer of the newest version to the request's version. */
export const inItsVersion = <A extends Answer>(
  { older, route }: { readonly older?: OlderVersion | undefined; readonly route?: string | undefined },
  answer: A
): A => (older === undefined ? answer : older.answer(route, answer))

/** Returns the headers of every response and those of the answer. */
export const headersOf = (
  { id, idempotencyKey }: Pick<Received, "id" | "idempotencyKey">,
  apiVersion: string,
  { headers }: Answer
): Record<string, string> => {
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

/** Returns the headers of a response that no step of the API precedes. */
export const headersAtOnce = (
  head: Parameters<typeof echoedKeyOf>[0],
  id: string,
  answer: Answer
): Record<string, string> => headersOf({ id, idempotencyKey: echoedKeyOf(head) }, API_VERSION_NEWEST, answer)

/** Answers a request outside of the API that arrived over Effect's HTTP server. */
export const respond = (
  request: HttpServerRequest.HttpServerRequest,
  id: string,
  answer: Answer
): HttpServerResponse.HttpServerResponse => {
  const response = HttpServerResponse.uint8Array(Buffer.from(answer.body), {
    status: answer.status,
    contentType: "application/json"
  })
  return HttpServerResponse.setHeaders(response, headersAtOnce(new NodeHead(sourceOf(request)), id, answer))
}

interface FailureOptions {
  readonly docsUrl: string
  /** The reason to give for an interruption. */
  readonly interruption: string
  /** Selects which requests that find the engine unavailable are logged. */
  readonly outages: Pick<LogThrottle, "take">
}

/** The answer to a failure, in the newest version, and its log line. */
export interface Failed {
  readonly answer: Answer
  /** Undefined for a client's error, and for failures that the throttle holds back. */
  readonly log: Effect.Effect<void> | undefined
}

/** Answers a failure. */
export const answerFailed = (
  { id, method, path }: Pick<Received, "id" | "method" | "path">,
  cause: Cause.Cause<Failure>,
  { docsUrl, interruption, outages }: FailureOptions
): Failed => {
  // A cause may hold an interruption beside a failure; a defect explains more than either.
  const [reason, ...others] = cause.reasons.filter(({ _tag }) => _tag !== "Interrupt")
  const failure = Cause.hasInterruptsOnly(cause)
    ? new Unavailable({ reason: interruption })
    : reason?._tag === "Fail" && others.length === 0
      ? reason.error
      : undefined
  const error = failure === undefined ? internalError : wireErrorOf(failure)
  const answer = answerOf(error, docsUrl)
  if (error.status < 500) return { answer, log: undefined }
  const unlogged = failure instanceof Unavailable ? outages.take() : 0
  if (unlogged === undefined) return { answer, log: undefined }
  // The path holds at most ids; the query may hold a client secret, and the body card data.
  const annotations = {
    request_id: id,
    code: error.code,
    ...(failure instanceof Unavailable && { reason: failure.reason }),
    ...(unlogged > 0 && { unlogged_before: unlogged })
  }
  const log = Effect.logError(
    `${method} ${withoutCardNumbers(path)} failed`,
    ...(failure === undefined ? [cause] : [])
  ).pipe(Effect.annotateLogs(annotations))
  return { answer, log }
}

/** Throttles log lines about failures that come in floods, as they do while the database is away. */
export class LogThrottle {
  readonly #pauseMillis: number
  #nextAt = -Infinity
  #unlogged = 0

  constructor(pauseMillis: number) {
    this.#pauseMillis = pauseMillis
  }

  /** Returns the number of unlogged failures since the last logged one; undefined if this one is not logged either. */
  take(now: number = performance.now()): number | undefined {
    if (now < this.#nextAt) {
      this.#unlogged++
      return undefined
    }
    const unlogged = this.#unlogged
    this.#unlogged = 0
    this.#nextAt = now + this.#pauseMillis
    return unlogged
  }
}
