/**
 * A request as it was received, and its response. Every response has the same headers (semantics responses.headers),
 * and every failure becomes a response (semantics errors.table, errors.internal).
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Cause, Context, Effect, Layer, Option, type Tracer } from "effect"
import { Headers, HttpServerRequest, HttpServerResponse, HttpTraceContext } from "effect/http"
import { API_VERSION_NEWEST } from "../domain/ApiVersion.ts"
import type { OlderVersion } from "../domain/ApiVersions.ts"
import { withoutCardNumbers } from "../domain/Cards.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import { Unavailable } from "../engine/Accounts.ts"
import { idOf, nextSequence } from "../engine/log/Identifiers.ts"
import type { AccountId } from "../engine/log/Document.ts"
import { logOf } from "../engine/process/Log.ts"
import type { Span } from "../engine/process/Traces.ts"
import { noteRequest } from "../engine/process/Watchdog.ts"
import { type Course, newCourse } from "./forward/SignedRequest.ts"
import type { Incoming } from "../server/Incoming.ts"
import { NodeHead } from "../server/NodeIncoming.ts"
import { credentialOf } from "./Authentication.ts"
import { answerOf, type Failure, internalError, wireErrorOf } from "./ErrorTable.ts"
import { singleIdempotencyKey } from "./RequestHeaders.ts"
import { Wait } from "./RequestTimeouts.ts"

const log = logOf("http")

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
  /** The hash of the `Authorization` header, under which its caller is cached. */
  readonly credential: string
  readonly incoming: Incoming
  readonly wait: Wait
  /** The request's attempts at other processes. */
  readonly course: Course
  /** The request's span; undefined unless requests are traced. */
  readonly trace: Span | undefined
}

export interface Answer {
  readonly status: number
  /** JSON text. */
  readonly body: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** True if another process made the answer, with all headers. */
  readonly isComplete?: boolean
}

/** A request that was answered, as the access log and metrics report it. */
export interface AnsweredRequest {
  /** `req_…`; undefined for a page. */
  readonly id: string | undefined
  readonly method: string
  /** As it was sent, without the query. */
  readonly path: string
  /** `/v1/payment_intents/{id}`; undefined if no route matches. */
  readonly route: string | undefined
  readonly status: number
  /** Time from the arrival to the answer; to its start for a stream. */
  readonly millis: number
  /** Undefined if the account is not known. */
  readonly account: AccountId | undefined
  /** True if the answer repeats that of an earlier request with the same idempotency key. */
  readonly isReplay: boolean
}

/** Returns Node's request: Effect's own would copy all headers. */
export const sourceOf = (request: HttpServerRequest.HttpServerRequest): IncomingMessage =>
  NodeHttpServerRequest.toIncomingMessage(request) as IncomingMessage

/** Returns Node's response to a request. */
export const responseOf = (request: HttpServerRequest.HttpServerRequest): ServerResponse =>
  NodeHttpServerRequest.toServerResponse(request) as ServerResponse

/** The accounts of requests for pages. */
const accounts = new WeakMap<IncomingMessage, AccountId>()

/** Notes the account of the page that is being requested. */
export const noteAccount = (account: AccountId): Effect.Effect<void> =>
  Effect.withFiber(({ context }) => {
    const request = Context.getOrUndefined(context, HttpServerRequest.HttpServerRequest)
    if (request !== undefined) accounts.set(sourceOf(request), account)
    return Effect.void
  })

/** Returns the account of a page's request; undefined if it is not known. */
export const accountNotedFor = (source: IncomingMessage): AccountId | undefined => accounts.get(source)

/** The spans of requests for pages. */
const traces = new WeakMap<IncomingMessage, Span>()

export const noteTrace = (source: IncomingMessage, trace: Span): void => void traces.set(source, trace)

/** Returns the span of a page's request; undefined unless requests are traced. */
export const traceNotedFor = (source: IncomingMessage): Span | undefined => traces.get(source)

/** The span of the page that is being requested; undefined unless requests are traced. */
export const traceOfPage: Effect.Effect<Span | undefined> = Effect.withFiber(({ context }) => {
  const request = Context.getOrUndefined(context, HttpServerRequest.HttpServerRequest)
  return Effect.succeed(request && traceNotedFor(sourceOf(request)))
})

/** Returns the sender's span; undefined if the header is missing or malformed. */
export const parentSpanOf = (header: string | ReadonlyArray<string> | undefined): Tracer.AnySpan | undefined =>
  typeof header === "string"
    ? Option.getOrUndefined(HttpTraceContext.w3c(Headers.fromRecordUnsafe({ traceparent: header })))
    : undefined

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
export const receive = (incoming: Incoming, id: string, trace?: Span): Received => {
  const { method, url } = incoming
  const mark = url.indexOf("?")
  return {
    id,
    method,
    path: mark === -1 ? url : url.slice(0, mark),
    query: mark === -1 ? "" : url.slice(mark + 1),
    idempotencyKey: echoedKeyOf(incoming),
    credential: credentialOf(incoming.headers.authorization),
    incoming,
    wait: new Wait(),
    course: newCourse(),
    trace
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
  /** Services of the log. */
  readonly context: Context.Context<never>
}

/** Returns the answer to a failure, in the newest version. Logs the failure unless it is the client's error. */
export const answerFailed = (
  { id, method, path }: Pick<Received, "id" | "method" | "path">,
  cause: Cause.Cause<Failure>,
  { context, docsUrl, interruption }: FailureOptions
): Answer => {
  // A cause may hold an interruption beside a failure; a defect explains more than either.
  const [reason, ...others] = cause.reasons.filter(({ _tag }) => _tag !== "Interrupt")
  const failure = Cause.hasInterruptsOnly(cause)
    ? new Unavailable({ reason: interruption })
    : reason?._tag === "Fail" && others.length === 0
      ? reason.error
      : undefined
  const error = failure === undefined ? internalError : wireErrorOf(failure)
  const answer = answerOf(error, docsUrl)
  if (error.status < 500) return answer
  const isOutage = failure instanceof Unavailable
  // While the storage refuses writes, one line reports it for all requests.
  const repetition = { cause: isOutage ? "unavailable" : String(Cause.squash(cause)), isOfWrite: isOutage }
  log.errorIn(context, repetition, () => ({
    // The path holds at most ids; the query may hold a client secret, and the body card data.
    text: `${method} ${withoutCardNumbers(path)} failed`,
    detail: failure === undefined ? cause : undefined,
    annotations: { request_id: id, code: error.code, ...(isOutage && { reason: failure.reason }) }
  }))
  return answer
}
