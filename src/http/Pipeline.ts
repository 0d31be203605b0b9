/**
 * Every request under /v1, from its first header to its response: the checks of semantics T14 in their order, one
 * error per response, the first that is found.
 *
 * The contract says what an endpoint takes, the handlers what it does; all that holds for every endpoint is here.
 */
import { Context, Effect, Exit, Redacted, Result } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import { SecretKeyRequired, TestModeOnly } from "../domain/Errors.ts"
import type { PaymentMethodData } from "../domain/PaymentMethod.ts"
import type { Response } from "../engine/Accounts.ts"
import { Accounts } from "../engine/Accounts.ts"
import type { AccountId } from "../engine/Document.ts"
import { requestKey } from "../payments/IdempotencyKeys.ts"
import { PaymentsConfig } from "../payments/PaymentsConfig.ts"
import { Processor } from "../payments/Processor.ts"
import { tokenize } from "../payments/Tokenization.ts"
import type { Caller } from "./Authentication.ts"
import * as Authentication from "./Authentication.ts"
import { withoutCardData } from "./CardData.ts"
import type { CommandEndpoint, Endpoint, QueryEndpoint, RunCommand } from "./Endpoints.ts"
import type { Failure } from "./ErrorTable.ts"
import { envelope, refusal, wireErrorOf } from "./ErrorTable.ts"
import type { Answer, Exchange } from "./Exchange.ts"
import { begin, respond, respondFailed } from "./Exchange.ts"
import { fingerprint } from "./Fingerprint.ts"
import { outcomeOf, shownOnce } from "./Handlers.ts"
import { HttpConfig } from "./HttpConfig.ts"
import type { InvalidHttp } from "./HttpErrors.ts"
import { RouteNotFound } from "./HttpErrors.ts"
import * as InstallationWide from "./InstallationWide.ts"
import type { Parsed } from "./JsonBody.ts"
import { parseBody } from "./JsonBody.ts"
import { LogThrottle } from "./LogThrottle.ts"
import { hasClientSecret, projectBody } from "./Publishable.ts"
import * as RateLimits from "./RateLimits.ts"
import { readBody } from "./RequestBody.ts"
import { apiVersionOf, idempotencyKeyOf } from "./RequestHeaders.ts"
import type { Wait } from "./RequestTimeouts.ts"
import { REQUEST_MILLIS_MAX, RequestTimeouts } from "./RequestTimeouts.ts"
import type { Matched } from "./RouteTable.ts"
import { RouteTable } from "./RouteTable.ts"
import { openAnswer, storedAnswer } from "./SealedAnswers.ts"

/** Pause between two requests that are logged because the engine was not available. */
const OUTAGE_LOG_MILLIS = 1000

/** An endpoint that was found, and who wants to use it. */
interface Call<E> extends Matched<E> {
  readonly exchange: Exchange
  readonly wait: Wait
  readonly caller: Caller
}

/** What all requests share. */
const makeSurroundings = Effect.fnUntraced(function* (
  endpoints: ReadonlyArray<Endpoint>,
  limits: RateLimits.RateLimits | undefined
) {
  const accounts = yield* Accounts
  const paymentsConfig = yield* PaymentsConfig
  const processor = yield* Processor
  // Services are added to what is there, at once: merging contexts would copy all of a request's services, and providing
  // one after the other takes twice the steps.
  const withConfigAnd =
    <I, S>(key: Context.Key<I, S>, service: S) =>
    <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.updateContext(
        effect,
        (context: Context.Context<Exclude<R, PaymentsConfig | I>>) =>
          Context.add(Context.add(context, PaymentsConfig, paymentsConfig), key, service) as Context.Context<R>
      )
  return {
    accounts,
    ...admission(yield* Authentication.make, new RouteTable(endpoints), limits),
    docsUrl: (yield* HttpConfig).docsUrl,
    paymentsConfig,
    fingerprintKey: Redacted.value(paymentsConfig.fingerprintKey),
    withCommandServices: withConfigAnd(Processor, processor),
    withQueryServices: withConfigAnd(Accounts, accounts),
    tokenize: (account: AccountId, data: PaymentMethodData) =>
      tokenize({ config: paymentsConfig, processors: processor, account }, data)
  }
})
type Surroundings = Effect.Success<ReturnType<typeof makeSurroundings>>

/** How requests are let in. What is decided here once, whether there are limits, no request has to ask. */
const admission = (
  authenticate: Authentication.Authenticate,
  routes: RouteTable<Endpoint>,
  limits: RateLimits.RateLimits | undefined
) => {
  const caller = ({ source }: Exchange) => authenticate(source.headers.authorization)
  const find = ({ method, path }: Exchange) => routes.find(method, path)
  if (limits === undefined) return { authenticate: caller, find }
  return {
    authenticate: (exchange: Exchange) => limits.authenticated(exchange, caller(exchange)),
    find: (exchange: Exchange) => {
      const refusal = limits.refusal(exchange)
      return refusal === undefined ? find(exchange) : Exit.fail(refusal)
    }
  }
}

/** How they are answered: with where their senders stand, if there are limits. */
const answers = (limits: RateLimits.RateLimits | undefined) => {
  if (limits === undefined) return { respond, respondFailed }
  const { show } = limits
  const shown: typeof respond = (exchange, answered) => show(exchange, respond(exchange, answered))
  const shownFailed: typeof respondFailed = (exchange, cause, options) =>
    Effect.map(respondFailed(exchange, cause, options), (response) => show(exchange, response))
  return { respond: shown, respondFailed: shownFailed }
}

const answer = Effect.fnUntraced(function* (surroundings: Surroundings, exchange: Exchange, wait: Wait) {
  const { authenticate, find } = surroundings
  // 2. Authentication. What was not authenticated is not read any further.
  const caller = yield* authenticate(exchange)
  // 3. Version.
  exchange.apiVersion = caller.apiVersion
  exchange.apiVersion = yield* apiVersionOf(exchange.source, caller.apiVersion)
  // 4. Rate limits, where there are any (R2). 5. Route and method.
  const { endpoint, params } = yield* find(exchange)
  // 6. What the key may do.
  yield* permit(caller, endpoint, exchange.query)
  const answered = yield* endpoint.kind === "query"
    ? query(surroundings, { exchange, wait, caller, endpoint, params })
    : command(surroundings, { exchange, wait, caller, endpoint, params })
  return caller.keyType === "secret" ? answered : { ...answered, body: projectBody(answered.body) }
})

/** A publishable key needs the client secret as well; where that is in the body, it is looked for once that is read. */
const permit = (
  { keyType, livemode }: Caller,
  endpoint: Endpoint,
  queryText: string
): Exit.Exit<void, SecretKeyRequired | TestModeOnly> => {
  if (keyType === "publishable" && !endpoint.withoutClientSecret) {
    const isOpen = () => endpoint.kind === "command" || new URLSearchParams(queryText).has("client_secret")
    if (!(endpoint.publishableKey && isOpen())) return Exit.fail(new SecretKeyRequired())
  }
  return endpoint.testMode && livemode ? Exit.fail(new TestModeOnly()) : Exit.void
}

const query = Effect.fnUntraced(function* (
  { withQueryServices }: Surroundings,
  { caller, endpoint, exchange, params }: Call<QueryEndpoint>
) {
  // 10. Schema.
  const decoded = yield* endpoint.decodeQuery(exchange.query)
  // 11 and 12. Objects.
  const run = endpoint.run({ params, query: decoded, caller, path: exchange.path })
  const answered: Answer = { status: 200, body: yield* withQueryServices(run) }
  return answered
})

const command = Effect.fnUntraced(function* (surroundings: Surroundings, call: Call<CommandEndpoint>) {
  const { caller, endpoint, exchange, wait } = call
  const { method, path, request, source } = exchange
  const isPost = method === "POST"
  // 7. Idempotency key.
  const idempotencyKey = isPost ? requestKey(caller.keyType, yield* idempotencyKeyOf(source)) : null
  // 8. Size, content type, JSON.
  wait.pause()
  const body = isPost ? yield* parseBody(yield* readBody(request), source.headers["content-type"]) : NO_BODY
  wait.resume()
  const needsClientSecret = caller.keyType === "publishable" && !endpoint.withoutClientSecret
  if (needsClientSecret && !hasClientSecret(body.value)) return yield* new SecretKeyRequired()
  // 9. Idempotency: what follows happens once per key, and whoever repeats it gets what came of it then.
  const { accounts } = surroundings
  const identity = {
    id: exchange.id,
    idempotencyKey,
    fingerprint: isPost ? fingerprint(method, path, body.value, surroundings.fingerprintKey) : null,
    apiVersion: exchange.apiVersion
  }
  const once: Once = {}
  const handler =
    typeof endpoint.run === "function"
      ? endpoint.run
      : yield* surroundings.withQueryServices(endpoint.run.prepare({ params: call.params, caller }))
  const run = execution(surroundings, call, handler, body, once)
  const reply = yield* endpoint.installationWide
    ? InstallationWide.execute(accounts, caller.account, identity, run)
    : accounts.execute(caller.account, identity, run)
  if (endpoint.settled !== undefined && reply.status === 200) {
    // The command is carried out, so nothing may let its answer fail any more: what it took is not counted.
    wait.resume()
    yield* Effect.ignore(surroundings.withQueryServices(endpoint.settled(caller)))
  }
  exchange.apiVersion = reply.apiVersion
  const text = openAnswer(surroundings.paymentsConfig, caller.account, reply.body)
  const answered: Answer =
    reply.replayOf === null
      ? { ...reply, body: once.body ?? text }
      : { ...reply, body: text, headers: { "idempotent-replayed": "true", "original-request": reply.replayOf } }
  return answered
})

/** Receives what the first answer, and no repetition of it, shows. */
interface Once {
  body?: string | undefined
}

const NO_BODY: Parsed = { value: {}, escapes: false }

/** 10 to 14. The schemas are decoded at once, so that the actor is left with what only an actor can do. */
const execution = (
  { withCommandServices, docsUrl, paymentsConfig, tokenize }: Surroundings,
  { caller, endpoint, exchange, params }: Call<CommandEndpoint>,
  handler: RunCommand,
  body: Parsed,
  once: Once
) => {
  const refuse = (failure: Failure): Response => {
    once.body = undefined
    return refusal(failure, docsUrl)
  }
  const decodedQuery = endpoint.decodeQuery(exchange.query)
  if (Exit.isFailure(decodedQuery)) return Effect.mapError(Effect.failCause(decodedQuery.cause), refuse)
  const decoded = endpoint.decodePayload(body)
  if (Exit.isFailure(decoded)) return Effect.mapError(Effect.failCause(decoded.cause), refuse)
  const payload = withoutCardData(decoded.value, (data) => tokenize(caller.account, data))
  const run = Effect.mapBoth(handler({ params, payload, caller }), {
    onSuccess: (answered): Response => {
      const result = outcomeOf(answered)
      if (Result.isFailure(result)) return refuse(result.failure)
      once.body = shownOnce(result.success)
      return { status: 200, body: storedAnswer(paymentsConfig, caller.account, result.success), stored: true }
    },
    onFailure: refuse
  })
  return withCommandServices(run)
}

/** Answers requests by the given endpoints. Never fails, except by interruption. */
export const make = Effect.fnUntraced(function* (endpoints: ReadonlyArray<Endpoint>) {
  const { rateLimit, requestMillisMax } = yield* HttpConfig
  const limits = rateLimit === true ? yield* RateLimits.make : undefined
  const surroundings = yield* makeSurroundings(endpoints, limits)
  const replies = answers(limits)
  const { docsUrl } = surroundings
  const outages = new LogThrottle(OUTAGE_LOG_MILLIS)
  const timeouts = new RequestTimeouts(requestMillisMax ?? REQUEST_MILLIS_MAX)
  return {
    /** Answers a request under /v1. A client that goes away ends it, but no command that has begun. */
    answer: (request: HttpServerRequest.HttpServerRequest): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
      Effect.withFiber((fiber) => {
        const exchange = begin(request)
        const wait = timeouts.begin(fiber)
        return Effect.matchCauseEffect(Effect.interruptible(answer(surroundings, exchange, wait)), {
          onSuccess: (answered) => {
            timeouts.end(wait)
            return Effect.succeed(replies.respond(exchange, answered))
          },
          onFailure: (cause) => {
            timeouts.end(wait)
            return replies.respondFailed(exchange, cause, {
              docsUrl,
              outages,
              interruption: wait.isOver ? "The storage does not answer in time." : "Till stops."
            })
          }
        })
      }),
    /** Refuses a request that nothing else of the service answers: it is not HTTP, or, left out, for nothing here. */
    refuse: (
      request: HttpServerRequest.HttpServerRequest,
      failure?: InvalidHttp
    ): HttpServerResponse.HttpServerResponse => {
      const exchange = begin(request)
      const error = wireErrorOf(failure ?? new RouteNotFound({ method: exchange.method, path: exchange.path }))
      return respond(exchange, { ...error, body: envelope(error, docsUrl) })
    }
  }
})
