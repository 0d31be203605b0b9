/**
 * Every request under /v1, from its first header to its response: the checks of semantics T14 in their order, one
 * error per response, the first that is found.
 *
 * The contract says what an endpoint takes, the handlers what it does; all that holds for every endpoint is here.
 */
import type { IncomingMessage } from "node:http"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Cause, Clock, Context, Effect, Exit, Redacted } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import { API_VERSION_DEFAULT } from "../domain/ApiVersion.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import { SecretKeyRequired, TestModeOnly } from "../domain/Errors.ts"
import type { Response } from "../engine/Accounts.ts"
import { Accounts } from "../engine/Accounts.ts"
import { encode } from "../engine/Document.ts"
import { idOf, nextSequence } from "../engine/Identifiers.ts"
import { PaymentsConfig } from "../payments/PaymentsConfig.ts"
import { Processor } from "../payments/Processor.ts"
import type { Caller } from "./Authentication.ts"
import * as Authentication from "./Authentication.ts"
import type { CommandEndpoint, Endpoint, QueryEndpoint } from "./Endpoints.ts"
import type { Failure, WireError } from "./ErrorTable.ts"
import { envelope, internalError, isFailure, wireErrorOf } from "./ErrorTable.ts"
import { fingerprint } from "./Fingerprint.ts"
import { HttpConfig } from "./HttpConfig.ts"
import { RouteNotFound } from "./HttpErrors.ts"
import { parseBody } from "./JsonBody.ts"
import { hasClientSecret, projectBody } from "./Publishable.ts"
import { readBody } from "./RequestBody.ts"
import { apiVersionOf, idempotencyKeyOf, singleIdempotencyKey } from "./RequestHeaders.ts"
import type { Answer } from "./Responses.ts"
import { respond } from "./Responses.ts"
import { RouteTable } from "./RouteTable.ts"

/** What is known of a request so far; an error response shows what was found until then. */
interface Exchange {
  readonly request: HttpServerRequest.HttpServerRequest
  readonly source: IncomingMessage
  readonly id: string
  readonly method: string
  readonly path: string
  readonly query: string
  /** To echo; undefined if there is none, or none that is valid. */
  readonly idempotencyKey: string | undefined
  apiVersion: string
}

/** Answers requests for the given endpoints. Never fails, except by interruption. */
export const make = Effect.fnUntraced(function* (endpoints: ReadonlyArray<Endpoint>) {
  const accounts = yield* Accounts
  const authenticate = yield* Authentication.make
  const clock = yield* Clock.Clock
  const { docsUrl } = yield* HttpConfig
  const paymentsConfig = yield* PaymentsConfig
  const fingerprintKey = Redacted.value(paymentsConfig.fingerprintKey)
  const commandServices = Context.add(Context.make(PaymentsConfig, paymentsConfig), Processor, yield* Processor)
  const queryServices = Context.make(Accounts, accounts)
  const routes = new RouteTable(endpoints)
  let sequence = 0

  const refusal = (failure: Failure): Response => {
    const error = wireErrorOf(failure)
    return { status: error.status, body: envelope(error, docsUrl), stored: error.stored }
  }

  const answer = Effect.fnUntraced(function* (exchange: Exchange) {
    const { method, path, query, source } = exchange
    // 2. Authentication. What was not authenticated is not read any further.
    const caller = yield* authenticate(source.headers.authorization)
    // 3. Version.
    exchange.apiVersion = caller.apiVersion
    exchange.apiVersion = yield* apiVersionOf(source, caller.apiVersion)
    // 5. Route and method. (4, rate limits, are off in a self-hosted installation: R2.)
    const { endpoint, params } = yield* routes.find(method, path)
    // 6. What the key may do.
    yield* permit(caller, endpoint, query)
    const answered = yield* endpoint.kind === "query"
      ? ask(exchange, caller, endpoint, params)
      : command(exchange, caller, endpoint, params)
    return caller.keyType === "secret" ? answered : { ...answered, body: projectBody(answered.body) }
  })

  const ask = (exchange: Exchange, caller: Caller, endpoint: QueryEndpoint, params: Record<string, string>) =>
    Effect.gen(function* () {
      // 10. Schema.
      const query = yield* endpoint.decodeQuery(exchange.query)
      // 11 and 12. Objects.
      const input = { params, query, caller, path: exchange.path }
      const body = yield* Effect.provideContext(endpoint.run(input), queryServices)
      return { status: 200, body } as Answer
    })

  const command = Effect.fnUntraced(function* (
    exchange: Exchange,
    caller: Caller,
    endpoint: CommandEndpoint,
    params: Record<string, string>
  ) {
    const { method, path, source } = exchange
    const isPost = method === "POST"
    // 7. Idempotency key.
    const idempotencyKey = isPost ? yield* idempotencyKeyOf(source) : null
    // 8. Size, content type, JSON.
    const body = isPost ? yield* parseBody(yield* readBody(exchange.request), source.headers["content-type"]) : NO_BODY
    if (caller.keyType === "publishable" && !hasClientSecret(body.value)) return yield* new SecretKeyRequired()
    // 9. Idempotency: what follows happens once per key, and anything else is answered by what happened then.
    const request = {
      id: exchange.id,
      idempotencyKey,
      fingerprint: isPost ? fingerprint(method, path, body.value, fingerprintKey) : null,
      apiVersion: exchange.apiVersion
    }
    const reply = yield* accounts.execute(caller.account, request, execution(exchange, caller, endpoint, params, body))
    exchange.apiVersion = reply.apiVersion
    return reply.replayOf === null
      ? (reply as Answer)
      : { ...reply, headers: { "idempotent-replayed": "true", "original-request": reply.replayOf } }
  })

  /** 10 to 14. Decodes at once, so that the actor has nothing to do but what only it can do. */
  const execution = (
    exchange: Exchange,
    caller: Caller,
    endpoint: CommandEndpoint,
    params: Record<string, string>,
    body: Parameters<CommandEndpoint["decodePayload"]>[0]
  ) => {
    const query = endpoint.decodeQuery(exchange.query)
    if (Exit.isFailure(query)) return Effect.mapError(Effect.failCause(query.cause), refusal)
    const payload = endpoint.decodePayload(body)
    if (Exit.isFailure(payload)) return Effect.mapError(Effect.failCause(payload.cause), refusal)
    const run = Effect.mapBoth(endpoint.run({ params, payload: payload.value, caller }), {
      onSuccess: (result): Response =>
        isFailure(result) ? refusal(result) : { status: 200, body: encode(result), stored: true },
      onFailure: refusal
    })
    return Effect.provideContext(run, commandServices)
  }

  const failed = (
    exchange: Exchange,
    cause: Cause.Cause<Failure>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
    const error = errorOf(cause)
    if (error === undefined) return Effect.interrupt
    const response = respond(exchange, { ...error, body: envelope(error, docsUrl) })
    if (error.status < 500) return Effect.succeed(response)
    // The path holds ids at most; the query may hold a client secret, and the body card data.
    const log = Effect.logError(`${exchange.method} ${exchange.path} failed with ${error.code}`, cause)
    return Effect.as(Effect.annotateLogs(log, { request_id: exchange.id }), response)
  }

  const begin = (request: HttpServerRequest.HttpServerRequest): Exchange => {
    sequence = nextSequence(sequence, clock.currentTimeMillisUnsafe())
    return exchangeOf(request, idOf(PREFIXES.request, sequence))
  }

  return {
    /** Answers a request under /v1. A client that goes away ends it, but no command that has begun. */
    answer: (request: HttpServerRequest.HttpServerRequest): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
      const exchange = begin(request)
      return Effect.interruptible(
        Effect.matchCauseEffect(answer(exchange), {
          onSuccess: (answered) => Effect.succeed(respond(exchange, answered)),
          onFailure: (cause) => failed(exchange, cause)
        })
      )
    },
    /** Answers a request that nothing in the service knows. */
    notFound: (request: HttpServerRequest.HttpServerRequest): HttpServerResponse.HttpServerResponse => {
      const exchange = begin(request)
      const error = wireErrorOf(new RouteNotFound({ method: exchange.method, path: exchange.path }))
      return respond(exchange, { ...error, body: envelope(error, docsUrl) })
    }
  }
})

const NO_BODY = { value: {}, escapes: false }

const exchangeOf = (request: HttpServerRequest.HttpServerRequest, id: string): Exchange => {
  const { method, url } = request
  const source = NodeHttpServerRequest.toIncomingMessage(request) as IncomingMessage
  const mark = url.indexOf("?")
  return {
    request,
    source,
    id,
    method,
    path: mark === -1 ? url : url.slice(0, mark),
    query: mark === -1 ? "" : url.slice(mark + 1),
    idempotencyKey: method === "POST" ? singleIdempotencyKey(source) : undefined,
    apiVersion: API_VERSION_DEFAULT
  }
}

/** A publishable key needs the client secret as well; where that is in the body, it is looked for once that is read. */
const permit = (
  caller: Caller,
  endpoint: Endpoint,
  query: string
): Exit.Exit<void, SecretKeyRequired | TestModeOnly> => {
  if (caller.keyType === "publishable") {
    const secretInQuery = () => new URLSearchParams(query).has("client_secret")
    const open = endpoint.publishableKey && (endpoint.kind === "command" || secretInQuery())
    if (!open) return Exit.fail(new SecretKeyRequired())
  }
  return endpoint.testMode && caller.livemode ? Exit.fail(new TestModeOnly()) : Exit.void
}

/** The error to answer with; undefined if the client went away and there is nobody to answer. */
const errorOf = (cause: Cause.Cause<Failure>): WireError | undefined => {
  if (Cause.hasInterruptsOnly(cause)) return undefined
  const [reason, ...others] = cause.reasons
  return reason?._tag === "Fail" && others.length === 0 ? wireErrorOf(reason.error) : internalError
}
