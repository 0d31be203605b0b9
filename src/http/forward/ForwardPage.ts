/**
 * Forwards a page's request to the process that serves its account. The page's handler discovers that the account is
 * elsewhere by failing with `Unavailable`; the whole request is then forwarded unchanged.
 */
import type { IncomingMessage } from "node:http"
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Unavailable } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { responseOf, sourceOf, traceNotedFor } from "../RequestContext.ts"
import { withTraceparent } from "../../engine/process/Traces.ts"
import { clientAddressOf } from "../../server/ClientAddress.ts"
import { HttpConfig } from "../../server/HttpConfig.ts"
import type { RequestTooLarge } from "../../server/HttpErrors.ts"
import { RequestBodies } from "../../server/RequestBody.ts"
import { type Course, Forwarder, headersFor, HERE, newCourse, type Outgoing, type Sink } from "./Forwarder.ts"
import { elsewhereHeaders, envelopeOf } from "./Listener.ts"

/** Bodies that were read, kept while their requests are answered. */
const bodies = new WeakMap<IncomingMessage, Buffer>()

/** Reads the body of a page's request. May be called repeatedly. */
export const readBodyOf = (
  request: HttpServerRequest.HttpServerRequest,
  bytesMax?: number
): Effect.Effect<Buffer, RequestTooLarge | Unavailable, RequestBodies> =>
  Effect.suspend(() => {
    const source = sourceOf(request)
    const read = bodies.get(source)
    if (read !== undefined) return Effect.succeed(read)
    return Effect.tap(
      RequestBodies.use(({ readBody }) => readBody(source, responseOf(request), bytesMax)),
      (body) => Effect.sync(() => bodies.set(source, body))
    )
  })

/** Returns the sender's address, also behind trusted proxies and where another process has forwarded the request. */
export const senderOf = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<string, never, HttpConfig> =>
  Effect.map(HttpConfig, ({ trustedProxies }) => {
    const source = sourceOf(request)
    const remoteAddress = envelopeOf(source)?.remoteAddress ?? source.socket.remoteAddress
    return clientAddressOf(trustedProxies)({ headers: source.headers, remoteAddress })
  })

const nothing = Buffer.alloc(0)

/** Number of forwards of one request. */
const MOVES_MAX = 4

/** Forwards a request to the process that owns its account, if the handler fails because the account is elsewhere. */
export const following = <E, R>(
  request: HttpServerRequest.HttpServerRequest,
  answer: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  millisMax: number,
  moves: number = MOVES_MAX,
  course = newCourse()
): Effect.Effect<HttpServerResponse.HttpServerResponse, E | Unavailable | RequestTooLarge, R | RequestBodies> =>
  Effect.catch(answer, (failure) => {
    const account = failure instanceof Unavailable && failure.isElsewhere ? failure.account : undefined
    if (account === undefined || moves === 0) return Effect.fail(failure)
    const again = following(request, answer, millisMax, moves - 1, course)
    return forwardPage(request, account, millisMax, course, again)
  })

/** Forwards the page's request to the account's process; runs `again` if the account has moved here. */
const forwardPage = <E, R>(
  request: HttpServerRequest.HttpServerRequest,
  account: AccountId,
  millisMax: number,
  course: Course,
  again: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, E | Unavailable | RequestTooLarge, R | RequestBodies> =>
  Effect.gen(function* () {
    const forwarder = yield* Forwarder
    const source = sourceOf(request)
    if (envelopeOf(source) !== undefined) {
      const isHere = yield* forwarder.arrives(account)
      if (!isHere) forwarded.add(source)
      return isHere ? yield* again : HttpServerResponse.empty({ status: 421, headers: elsewhereHeaders(account) })
    }
    const method = source.method!
    const outgoing: Outgoing = {
      account,
      kind: "request",
      method,
      url: source.url!,
      rawHeaders: withTraceparent(source.rawHeaders, traceNotedFor(source)),
      remoteAddress: source.socket.remoteAddress,
      body: method === "POST" ? yield* readBodyOf(request) : nothing,
      // A repeated form has no further effect, because of its token.
      mayRepeat: method !== "DELETE",
      millisMax,
      course,
      onLong: (head) => sinkOf(request, head)
    }
    const reply = yield* forwarder.forward(outgoing)
    if (reply === HERE) return yield* again
    forwarded.add(source)
    return yield* write(request, reply)
  })

/** Requests whose answers another process made. */
const forwarded = new WeakSet<IncomingMessage>()

/** True if another process has answered the request, or will. */
export const wasForwarded = (source: IncomingMessage): boolean => forwarded.has(source)

/** Writes an answer unchanged. Effect's HTTP would drop some of its headers. */
const write = (
  request: HttpServerRequest.HttpServerRequest,
  reply: { readonly status: number; readonly headers: object; readonly body: Buffer }
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.callback((resume) => {
    const response = responseOf(request)
    const done = () => resume(Effect.succeed(HttpServerResponse.empty({ status: reply.status })))
    // A long answer was already written by the sink.
    if (response.writableFinished || response.destroyed) return done()
    response.once("finish", done)
    response.once("close", done)
    if (response.headersSent) return
    response.writeHead(reply.status, headersFor(reply as Parameters<typeof headersFor>[0]))
    response.end(reply.body)
  })

const sinkOf = (
  request: HttpServerRequest.HttpServerRequest,
  head: Parameters<NonNullable<Outgoing["onLong"]>>[0]
): Sink => {
  const response = responseOf(request)
  response.writeHead(head.status, headersFor(head))
  response.flushHeaders()
  return {
    write: (chunk, resume) => {
      const hasRoom = response.write(chunk)
      if (!hasRoom) response.once("drain", resume)
      return hasRoom
    },
    end: () => void response.end(),
    fail: () => void response.destroy()
  }
}
