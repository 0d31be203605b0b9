/**
 * The way of every request under /v1, from its first header to its response: `answer` takes the steps of semantics T14
 * in their order, and the first step that refuses gives the one error of the response.
 *
 * The contract says what an endpoint takes, the handlers what it does; all that holds for every endpoint is here.
 */
import { Effect, Exit, Result } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { OlderVersion, RequestError } from "../domain/ApiVersions.ts"
import { ApiVersions } from "../domain/ApiVersions.ts"
import type { ParameterInvalid, ParameterMissing } from "../domain/Errors.ts"
import type { Unavailable } from "../engine/Accounts.ts"
import { Accounts } from "../engine/Accounts.ts"
import { requestKey } from "../payments/IdempotencyKeys.ts"
import { PaymentsConfig } from "../payments/PaymentsConfig.ts"
import type { Caller } from "./Authentication.ts"
import * as Authentication from "./Authentication.ts"
import type { Carried, Command } from "./CarryOutOnce.ts"
import * as CarryOutOnce from "./CarryOutOnce.ts"
import type { CommandEndpoint, Endpoint, QueryEndpoint, RunCommand } from "./Endpoints.ts"
import { envelope, wireErrorOf } from "./ErrorTable.ts"
import type { Answer, Exchange } from "./Exchange.ts"
import { begin, inItsVersion, LogThrottle, RequestIds, respond, respondFailed } from "./Exchange.ts"
import { withQueryServices } from "./handlers/Handler.ts"
import { HttpConfig } from "./HttpConfig.ts"
import type { InvalidHttp, InvalidJson, RequestTooLarge, UnsupportedMediaType } from "./HttpErrors.ts"
import { RouteNotFound } from "./HttpErrors.ts"
import type { Parsed } from "./JsonBody.ts"
import { parseBody } from "./JsonBody.ts"
import { withoutCardData } from "./Payload.ts"
import { permit, permitBody, shownTo } from "./Permission.ts"
import * as RateLimits from "./RateLimits.ts"
import { RequestBodies } from "./RequestBody.ts"
import { apiVersionOf, idempotencyKeyOf } from "./RequestHeaders.ts"
import type { Wait } from "./RequestTimeouts.ts"
import { REQUEST_MILLIS_MAX, RequestTimeouts } from "./RequestTimeouts.ts"
import type { Matched } from "./RouteTable.ts"
import { RouteTable } from "./RouteTable.ts"

/** Of the requests that find the engine unavailable, one is logged in so many milliseconds. */
const OUTAGE_LOG_MILLIS = 1000

/** Makes the steps that need something of the service. */
const makeSteps = Effect.fnUntraced(function* (
  endpoints: ReadonlyArray<Endpoint>,
  limits: RateLimits.RateLimits | undefined
) {
  const authenticate = yield* Authentication.make
  const routes = new RouteTable(endpoints)
  const { readBody } = yield* RequestBodies
  const versions = yield* ApiVersions
  const callerOf = ({ source }: Exchange) => authenticate(source.headers.authorization)
  return {
    authenticate:
      limits === undefined ? callerOf : (exchange: Exchange) => limits.authenticated(exchange, callerOf(exchange)),
    limit: limits === undefined ? () => Exit.void : limits.admit,
    versions,
    /** Has the exchange be answered in a version. */
    answerIn: (exchange: Exchange, version: string) => {
      exchange.apiVersion = version
      exchange.older = versions.older(version)
    },
    find: ({ method, path }: Exchange) => routes.find(method, path),
    readBody,
    ...(yield* CarryOutOnce.make),
    withQueryServices: withQueryServices(yield* PaymentsConfig, yield* Accounts)
  }
})
type Steps = Effect.Success<ReturnType<typeof makeSteps>>

/** An endpoint that was found, and who wants to use it. */
interface Call<E> extends Matched<E> {
  readonly exchange: Exchange
  readonly wait: Wait
  readonly caller: Caller
  /** How the version is served that the request was written in, however often it is read. */
  readonly older: OlderVersion | undefined
}

/** Answers a request. A GET leaves after the sixth step, because it only has to be decoded and looked up. */
const answer = Effect.fnUntraced(function* (steps: Steps, exchange: Exchange, wait: Wait) {
  // 2. Authentication. Nothing more is read of a request that nobody vouches for.
  const caller = yield* steps.authenticate(exchange)
  // 3. Version. A refusal is given in the merchant's own.
  steps.answerIn(exchange, caller.apiVersion)
  steps.answerIn(exchange, yield* apiVersionOf(exchange.source, caller.apiVersion, steps.versions.known))
  // 4. Rate limit, where the installation has one (R2).
  yield* steps.limit(exchange)
  // 5. Route and method.
  const { endpoint, params } = yield* steps.find(exchange)
  exchange.route = endpoint.route
  // 6. Permission of the key.
  yield* permit(caller, endpoint, exchange.query)
  const { older } = exchange
  if (endpoint.kind === "query") return yield* query(steps, { exchange, wait, caller, older, endpoint, params })
  const call = { exchange, wait, caller, older, endpoint, params }
  // 7. Idempotency key.
  const idempotencyKey = yield* keyOf(call)
  // 8. Body: its size, its content type, its JSON; and the client secret in it, where the key needs one.
  const body = yield* receive(steps, call)
  yield* permitBody(caller, endpoint, body.value)
  // 9. Replay, if the key has an answer. Otherwise 10. decode, 11. to 13. run, 14. and 15. commit with the answer.
  const run = typeof endpoint.run === "function" ? endpoint.run : yield* prepare(steps, call, endpoint.run)
  const once = requestOf(call, idempotencyKey, body)
  const carried = yield* steps.carryOutOnce(once, () => decodeAndRun(steps, call, run, body))
  if (endpoint.settled !== undefined && carried.status === 200) yield* settle(steps, call, endpoint.settled)
  // The answer, in the version of the request that was carried out.
  steps.answerIn(exchange, carried.apiVersion)
  return shownTo(caller, answered(carried), exchange.older)
})

/** 10. to 12. of a GET: decodes its query, and looks up what it asks for. */
const query = Effect.fnUntraced(function* (steps: Steps, call: Call<QueryEndpoint>) {
  const { caller, endpoint, exchange, params } = call
  const { query } = yield* inNewestVersion(call, undefined)
  const decoded = yield* endpoint.decodeQuery(query)
  const run = endpoint.run({ params, query: decoded, caller, path: exchange.path })
  const found = inItsVersion(exchange, { status: 200, body: yield* steps.withQueryServices(run) })
  return shownTo(caller, found, exchange.older)
})

/**
 * Makes the request of an exchange one of the newest version, in which it is decoded (semantics 9.22). What a change
 * refuses is told in the words of the version before that change.
 */
const inNewestVersion = (
  { exchange, older }: Call<Endpoint>,
  body: unknown
): Exit.Exit<{ readonly query: string; readonly body: unknown }, RequestError> => {
  const { query, route } = exchange
  if (older === undefined) return Exit.succeed({ query, body })
  const request = older.request(route!, query, body)
  if (Result.isSuccess(request)) return Exit.succeed(request.success)
  exchange.older = request.failure.older
  return Exit.fail(request.failure.error)
}

/** 7. Gives the key as the account knows it. A DELETE has none, because deleting twice is deleting once (I3). */
const keyOf = ({
  caller,
  exchange: { method, source }
}: Call<CommandEndpoint>): Exit.Exit<string | null, ParameterMissing | ParameterInvalid> =>
  method === "POST" ? Exit.map(idempotencyKeyOf(source), (key) => requestKey(caller.keyType, key)) : noKey

const noKey = Exit.succeed(null)

/** 8. Receives the body. Meanwhile the service waits for the client, and not the other way round. */
const receive = (
  { readBody }: Steps,
  { exchange: { method, request, source }, wait }: Call<CommandEndpoint>
): Effect.Effect<Parsed, RequestTooLarge | Unavailable | UnsupportedMediaType | InvalidJson> => {
  if (method !== "POST") return noBody
  wait.pause()
  return Effect.flatMap(readBody(request), (body) => {
    wait.resume()
    return parseBody(body, source.headers["content-type"])
  })
}

const noBody = Exit.succeed<Parsed>({ value: {}, escapes: false })

/** Reads what a command needs that no transaction can get at. */
const prepare = (
  { withQueryServices }: Steps,
  { caller, params }: Call<CommandEndpoint>,
  { prepare }: Exclude<CommandEndpoint["run"], RunCommand>
): Effect.Effect<RunCommand, Unavailable> => withQueryServices(prepare({ params, caller }))

/** 9. Puts together what its idempotency key stands for. */
const requestOf = (
  { caller: { account }, endpoint: { installationWide }, exchange }: Call<CommandEndpoint>,
  idempotencyKey: string | null,
  { value: body }: Parsed
): CarryOutOnce.OnceRequest => {
  const { apiVersion, id, method, path } = exchange
  const request = { id, account, idempotencyKey, apiVersion, method, path, body, installationWide }
  if (exchange.older === undefined) return request
  return { ...request, inItsVersion: (newest) => inItsVersion(exchange, newest) }
}

/** 10. to 13. Decodes, and tokenizes card data, before the command that it makes waits for the account's actor. */
const decodeAndRun = ({ tokenize }: Steps, call: Call<CommandEndpoint>, run: RunCommand, body: Parsed): Command => {
  const { caller, endpoint, params } = call
  const request = inNewestVersion(call, body.value)
  if (Exit.isFailure(request)) return request
  const query = endpoint.decodeQuery(request.value.query)
  if (Exit.isFailure(query)) return query
  const decoded = endpoint.decodePayload({ escapes: body.escapes, value: request.value.body })
  if (Exit.isFailure(decoded)) return decoded
  const payload = withoutCardData(decoded.value, (data) => tokenize(caller.account, data))
  return run({ params, payload, caller })
}

/**
 * Waits for what a command has led to. It is carried out, so nothing may let its answer fail any more: no time counts.
 */
const settle = (
  { withQueryServices }: Steps,
  { caller, wait }: Call<CommandEndpoint>,
  settled: NonNullable<CommandEndpoint["settled"]>
): Effect.Effect<void> => {
  wait.resume()
  return Effect.ignore(withQueryServices(settled(caller)))
}

const answered = ({ body, headers, replayOf, status }: Carried): Answer =>
  replayOf === null
    ? { status, body, ...(headers !== undefined && { headers }) }
    : { status, body, headers: { "idempotent-replayed": "true", "original-request": replayOf } }

/** Answers requests by the given endpoints. Never fails, except by interruption. */
export const make = Effect.fnUntraced(function* (endpoints: ReadonlyArray<Endpoint>) {
  const { docsUrl, rateLimit, requestMillisMax } = yield* HttpConfig
  const requestIds = yield* RequestIds
  const limits = rateLimit === true ? yield* RateLimits.make : undefined
  const show = limits === undefined ? asItIs : limits.show
  const steps = yield* makeSteps(endpoints, limits)
  const outages = new LogThrottle(OUTAGE_LOG_MILLIS)
  const timeouts = new RequestTimeouts(requestMillisMax ?? REQUEST_MILLIS_MAX)
  return {
    /** Answers a request under /v1. A client that goes away ends it, but no command that has begun. */
    answer: (request: HttpServerRequest.HttpServerRequest): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
      Effect.withFiber((fiber) => {
        const exchange = begin(request, requestIds.next())
        // What comes before the caller's version is known is of the newest.
        exchange.apiVersion = steps.versions.newest
        const wait = timeouts.begin(fiber)
        return Effect.matchCauseEffect(Effect.interruptible(answer(steps, exchange, wait)), {
          onSuccess: (answered) => {
            timeouts.end(wait)
            return Effect.succeed(show(exchange, respond(exchange, answered)))
          },
          onFailure: (cause) => {
            timeouts.end(wait)
            const interruption = wait.isOver ? "The storage does not answer in time." : "Till stops."
            const failed = respondFailed(exchange, cause, { docsUrl, outages, interruption })
            return Effect.map(failed, (response) => show(exchange, response))
          }
        })
      }),
    /** Refuses a request that nothing else of the service answers: it is not HTTP, or, left out, for nothing here. */
    refuse: (
      request: HttpServerRequest.HttpServerRequest,
      failure?: InvalidHttp
    ): HttpServerResponse.HttpServerResponse => {
      const exchange = begin(request, requestIds.next())
      const error = wireErrorOf(failure ?? new RouteNotFound({ method: exchange.method, path: exchange.path }))
      return respond(exchange, { ...error, body: envelope(error, docsUrl) })
    }
  }
})

const asItIs = (
  _exchange: Exchange,
  response: HttpServerResponse.HttpServerResponse
): HttpServerResponse.HttpServerResponse => response
