/**
 * The way of every request under /v1, from its first header to its response: `answer` takes the steps of semantics
 * requests.order in their order, and the first step that refuses gives the one error of the response.
 *
 * The contract defines an endpoint's input, the handlers its effect. Everything common to all endpoints is here.
 */
import { Cause, Effect, Exit, Fiber, Result } from "effect"
import { ApiVersions, type OlderVersion, type RequestError } from "../domain/ApiVersions.ts"
import type { ParameterInvalid, ParameterMissing } from "../domain/Errors.ts"
import { textOfHeader } from "../domain/HeaderText.ts"
import { Accounts, type Outcome, Unavailable, whenClaimed } from "../engine/Accounts.ts"
import type { AccountId } from "../engine/log/Document.ts"
import { RequestLog, type RequestLogShape } from "../engine/RequestLog.ts"
import { noteRequest } from "../engine/process/Watchdog.ts"
import { Writing } from "../engine/process/Writing.ts"
import { INSTALLATION } from "../payments/AccountIds.ts"
import { requestKey } from "../payments/IdempotencyKeys.ts"
import { PaymentsConfig } from "../payments/PaymentsConfig.ts"
import { Admission, AdmissionTime, laneAt } from "./Admission.ts"
import type { Caller } from "./Authentication.ts"
import * as Authentication from "./Authentication.ts"
import type { Command, CommandRequest } from "./IdempotentCommand.ts"
import * as IdempotentCommand from "./IdempotentCommand.ts"
import type { CommandEndpoint, Endpoint, QueryEndpoint, RunCommand } from "./Endpoints.ts"
import * as CrossOrigin from "./CrossOrigin.ts"
import { envelope, type Failure, wireErrorOf } from "./ErrorTable.ts"
import {
  type Answer,
  answerFailed,
  begin,
  headersOf,
  inItsVersion,
  LogThrottle,
  type Received,
  type RequestContext,
  RequestIds
} from "./RequestContext.ts"
import { clientAddressOf, type ClientAddressOf } from "../server/ClientAddress.ts"
import { Forwarder, HERE, newCourse } from "./forward/Forwarder.ts"
import type { ForwardedIncoming } from "./forward/Listener.ts"
import { elsewhereOf, forwardApi } from "./forward/ForwardApi.ts"
import { withQueryServices } from "./handlers/Handler.ts"
import { HttpConfig } from "../server/HttpConfig.ts"
import {
  type InvalidHttp,
  type InvalidJson,
  RequestTooLarge,
  type RouteNotFound,
  type UnsupportedMediaType
} from "../server/HttpErrors.ts"
import type { BodyLimits, Incoming } from "../server/Incoming.ts"
import { parseBody, type Parsed } from "./JsonBody.ts"
import { LOGGED_BODY_BYTES_MAX, loggedOf } from "./RequestLogEntry.ts"
import { withoutCardData } from "./Payload.ts"
import { permit, permitBody, shownTo } from "./Permission.ts"
import * as RateLimits from "./RateLimits.ts"
import { BODY_BYTES_MAX, PUBLISHABLE_BODY_BYTES_MAX } from "../server/RequestBody.ts"
import { apiVersionOf, idempotencyKeyOf } from "./RequestHeaders.ts"
import { REQUEST_MILLIS_MAX, RequestTimeouts, Wait } from "./RequestTimeouts.ts"
import { type Matched, RouteTable } from "./RouteTable.ts"

/** Pause between two log lines about requests that found the engine unavailable, in milliseconds. */
const OUTAGE_LOG_MILLIS = 1000
/** How often a request follows its account to another process, at most. */
const MOVES_MAX = 8

/** Logs no request: while the storage refuses writes, one log line tells so for all of them. */
const NEVER = { take: () => undefined }

const ELSEWHERE = "elsewhere"

const isForwarded = (incoming: Incoming): incoming is ForwardedIncoming => "elsewhere" in incoming

/** Makes the steps that need services. */
const makeSteps = Effect.fnUntraced(function* (
  endpoints: ReadonlyArray<Endpoint>,
  limits: RateLimits.RateLimits | undefined
) {
  const { accountBefore, authenticate } = yield* Authentication.make
  const forwarder = yield* Forwarder
  const admission = yield* Effect.acquireRelease(
    Effect.map(AdmissionTime, (time) => new Admission(time)),
    (admission) => Effect.sync(() => admission.close())
  )
  const routes = new RouteTable(endpoints)
  const versions = yield* ApiVersions
  const callerOf = ({ incoming }: Received) => authenticate(incoming.headers.authorization)
  const isInstallationWide = installationWideOf(endpoints)
  const accountOf = ({ account }: Caller, path: string) => (isInstallationWide(path) ? INSTALLATION : account)
  /** Another process counts and answers the requests of the accounts that it serves. */
  const callerHere = (received: Received) =>
    andThen(callerOf(received), (caller): Exit.Exit<Caller, Unavailable> => {
      const account = accountOf(caller, received.path)
      return forwarder.isHere(account) ? Exit.succeed(caller) : Exit.fail(Unavailable.elsewhere(account))
    })
  return {
    accountBefore,
    admission,
    forwarder,
    callerOf,
    authenticate:
      limits === undefined ? callerHere : (received: Received) => limits.authenticated(received, callerHere(received)),
    /**
     * Returns the account of a request that another process serves, if `before` names it and the key is in memory;
     * undefined otherwise.
     */
    elsewhere: (received: Received, before: AccountId | undefined): AccountId | undefined => {
      if (before === undefined || forwarder.isHere(isInstallationWide(received.path) ? INSTALLATION : before)) {
        return undefined
      }
      const caller = callerOf(received)
      return isOver(caller) && Exit.isSuccess(caller) ? accountOf(caller.value, received.path) : undefined
    },
    /** Limits of a body that is forwarded to another process; undefined while its caller is unknown. */
    limitsOf: (received: Received): BodyLimits | undefined => {
      const caller = callerOf(received)
      return isOver(caller) && Exit.isSuccess(caller) ? limitsOf(caller.value) : undefined
    },
    limit: limits === undefined ? () => Exit.void : limits.admit,
    versions,
    /** Sets the API version of the response. */
    answerIn: (exchange: RequestContext, version: string) => {
      exchange.apiVersion = version
      exchange.older = versions.older(version)
    },
    find: ({ method, path }: RequestContext) => routes.find(method, path),
    ...(yield* IdempotentCommand.make),
    withQueryServices: withQueryServices(yield* PaymentsConfig, yield* Accounts)
  }
})
type Steps = Effect.Success<ReturnType<typeof makeSteps>>

/** Returns a function that tells by a path whether its requests concern the installation's account. */
const installationWideOf = (endpoints: ReadonlyArray<Endpoint>): ((path: string) => boolean) => {
  const wide = endpoints.filter(({ installationWide }) => installationWide)
  const bases = [...new Set(wide.map(({ path }) => path.split("/:", 1)[0]!))]
  return (path) =>
    bases.some((base) => path.startsWith(base) && (path.length === base.length || path[base.length] === "/"))
}

/** A request with its endpoint and its caller. */
interface Call<E> extends Matched<E> {
  readonly exchange: Received
  readonly caller: Caller
  /** Conversions of the request's API version; undefined for the newest. */
  readonly older: OlderVersion | undefined
}

/**
 * Continues with an effect's value; immediately, if the effect is an `Exit`. Nearly every step is one, so most requests
 * reach their command, or their answer, without a fiber.
 */
const andThen = <A, E, B, E2>(
  effect: Effect.Effect<A, E>,
  next: (value: A) => Effect.Effect<B, E2>
): Effect.Effect<B, E | E2> => {
  if (!isOver(effect)) return Effect.flatMap(effect, next)
  return Exit.isSuccess(effect) ? next(effect.value) : refused(effect)
}

const isOver = <A, E>(effect: Effect.Effect<A, E>): effect is Exit.Exit<A, E> => Exit.isExit(effect)

/** The failure of a step as the failure of the request. */
const refused = <E>(step: Exit.Failure<unknown, E>): Exit.Exit<never, E> => step as Exit.Failure<never, E>

/** Answers a request. */
const answer = (steps: Steps, exchange: Received): Effect.Effect<Answer, Failure> =>
  // 2. Authentication. Nothing more is read of an unauthenticated request.
  andThen(steps.authenticate(exchange), (caller) => answerTo(steps, exchange, caller))

/** 3. to 7. Checks the request's head. A GET is decoded and answered after the sixth. */
const answerTo = (steps: Steps, exchange: Received, caller: Caller): Effect.Effect<Answer, Failure> => {
  exchange.caller = caller
  // 3. Version. A refusal has the merchant's version.
  steps.answerIn(exchange, caller.apiVersion)
  const version = apiVersionOf(exchange.incoming, caller.apiVersion, steps.versions.known)
  if (Exit.isFailure(version)) return refused(version)
  steps.answerIn(exchange, version.value)
  // 4. Rate limit, if the installation has one (semantics limits.rate).
  const admitted = steps.limit(exchange)
  if (Exit.isFailure(admitted)) return refused(admitted)
  // 5. Route and method.
  const found = steps.find(exchange)
  if (Exit.isFailure(found)) return refused(found)
  const { endpoint, params } = found.value
  exchange.route = endpoint.route
  // 6. Permission of the key.
  const permitted = permit(caller, endpoint, exchange.query)
  if (Exit.isFailure(permitted)) return refused(permitted)
  const { older } = exchange
  if (endpoint.kind === "query") return query(steps, { exchange, caller, older, endpoint, params })
  const call = { exchange, caller, older, endpoint, params }
  // 7. Idempotency key.
  const idempotencyKey = keyOf(call)
  if (Exit.isFailure(idempotencyKey)) return refused(idempotencyKey)
  // 8. Body: its size, its content type, its JSON.
  return andThen(receive(steps, call), (body) => carryOut(steps, call, idempotencyKey.value, body))
}

/** Returns whether 3. to 7. refuse a request, so that its body need not be read. */
const isRefusedBeforeBody = (steps: Steps, exchange: Received): boolean => {
  const caller = steps.callerOf(exchange)
  if (!isOver(caller) || Exit.isFailure(caller)) return false
  const { incoming, method, query } = exchange
  if (Exit.isFailure(apiVersionOf(incoming, caller.value.apiVersion, steps.versions.known))) return true
  const found = steps.find(exchange)
  if (Exit.isFailure(found) || Exit.isFailure(permit(caller.value, found.value.endpoint, query))) return true
  return method === "POST" && Exit.isFailure(idempotencyKeyOf(incoming))
}

/** 8. to 15. Runs a command after its body has arrived. */
const carryOut = (
  steps: Steps,
  call: Call<CommandEndpoint>,
  idempotencyKey: string | null,
  body: Parsed
): Effect.Effect<Answer, Failure> => {
  const { caller, endpoint, exchange } = call
  // 8. The client secret in the body, where the key needs one.
  const permitted = permitBody(caller, endpoint, body.value)
  if (Exit.isFailure(permitted)) return refused(permitted)
  const request = requestOf(call, idempotencyKey, body)
  const { run, settled } = endpoint
  const outcome =
    typeof run === "function"
      ? runOnce(steps, call, run, request, body)
      : Effect.flatMap(prepare(steps, call, run), (run) => runOnce(steps, call, run, request, body))
  return Effect.flatMap(outcome, (outcome) => {
    // The answer has the API version of the request whose command ran.
    const answer = Effect.sync(() => {
      steps.answerIn(exchange, outcome.apiVersion)
      return shownTo(caller, answerOf(outcome), exchange.older)
    })
    return settled !== undefined && outcome.status === 200
      ? Effect.andThen(settle(steps, call, settled), answer)
      : answer
  })
}

/**
 * 9. to 15. Runs a command unless its key has an answer. From the claim on, the command runs to its end even if the
 * client goes away.
 */
const runOnce = (
  steps: Steps,
  call: Call<CommandEndpoint>,
  run: RunCommand,
  request: CommandRequest,
  body: Parsed
): Effect.Effect<Outcome, Failure> =>
  // 9. Replay, if the key has an answer.
  whenClaimed(steps.claim(request), (claimed): Effect.Effect<Outcome, Failure> => {
    // 10. Decode.
    const command = decode(steps, call, run, body)
    // 11. to 15. Run in the account's actor, and commit with the answer.
    return Exit.isSuccess(command) ? steps.carryOut(claimed, command.value) : refused(command)
  })

/** 10. to 12. of a GET: decodes its query and runs it. */
const query = (steps: Steps, call: Call<QueryEndpoint>): Effect.Effect<Answer, Failure> => {
  const { caller, endpoint, exchange, params } = call
  const request = inNewestVersion(call, undefined)
  if (Exit.isFailure(request)) return refused(request)
  const decoded = endpoint.decodeQuery(request.value.query)
  if (Exit.isFailure(decoded)) return refused(decoded)
  const run = endpoint.run({ params, query: decoded.value, caller, path: exchange.path })
  return Effect.map(steps.withQueryServices(run), (body) =>
    shownTo(caller, inItsVersion(exchange, { status: 200, body }), exchange.older)
  )
}

/**
 * Converts a request to the newest version, in which it is decoded (semantics versions.refusals). A conversion that
 * refuses gives its error in the words of the version before it.
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

/**
 * 7. Returns the idempotency key within its account. A DELETE has none: deleting twice is deleting once (semantics
 * idempotency.required).
 */
const keyOf = ({
  caller,
  exchange: { incoming, method }
}: Call<CommandEndpoint>): Exit.Exit<string | null, ParameterMissing | ParameterInvalid> =>
  method === "POST" ? Exit.map(idempotencyKeyOf(incoming), (key) => requestKey(caller.keyType, key)) : noKey

const noKey = Exit.succeed(null)

/** 8. Receives the body. The request's time limit rests until the body has arrived. */
const receive = (
  steps: Steps,
  { caller, exchange }: Call<CommandEndpoint>
): Effect.Effect<Parsed, RequestTooLarge | Unavailable | UnsupportedMediaType | InvalidJson> => {
  const { incoming, method, wait } = exchange
  if (method !== "POST") return noBody
  // A request whose body is still to come has no place yet; `isWhole` changes while the body is read.
  const { isWhole } = incoming
  wait.pause()
  return andThen(bodyOf(incoming, caller), (body) => {
    wait.resume()
    const parsed = () => {
      noteRequest(exchange.id)
      const read = parseBody(body, incoming.headers["content-type"])
      if (Exit.isSuccess(read) && body.length <= LOGGED_BODY_BYTES_MAX) exchange.body = read.value.value
      return read
    }
    return isWhole ? parsed() : Effect.andThen(admitted(steps, exchange, caller), Effect.suspend(parsed))
  })
}

/** Returns the largest body of a caller, and the name under which its bodies share memory. */
const limitsOf = ({ account, keyType }: Caller): BodyLimits => ({
  holder: `${account} ${keyType}`,
  bytesMax: keyType === "publishable" ? PUBLISHABLE_BODY_BYTES_MAX : BODY_BYTES_MAX
})

/** Reads a body. If it arrived whole, or at another process, only its length is checked. */
const bodyOf = (incoming: Incoming, caller: Caller): Effect.Effect<Buffer, RequestTooLarge | Unavailable> => {
  const limits = limitsOf(caller)
  const read = incoming.readBody(limits)
  if (isOver(read) && Exit.isSuccess(read) && read.value.length <= limits.bytesMax) return read
  const tooLarge = new RequestTooLarge({ isOfPublishableKey: caller.keyType === "publishable" })
  return Effect.matchEffect(read, {
    onSuccess: (body) => (body.length > limits.bytesMax ? Exit.fail(tooLarge) : Exit.succeed(body)),
    onFailure: (failure) => Exit.fail(failure instanceof RequestTooLarge ? tooLarge : failure)
  })
}

/** Admits a command whose body arrived late: its place counts from the body on, because clients may be slow. */
const admitted = ({ admission }: Steps, exchange: Received, { account }: Caller): Effect.Effect<void, Unavailable> =>
  Effect.callback((resume) => {
    const { incoming } = exchange
    let isOver = false
    admission.enter(account, true, {
      since: performance.now(),
      get isGone() {
        return isOver || incoming.isGone
      },
      start: (place) => {
        exchange.place = place
        resume(Exit.void)
      },
      refuse: () => resume(tooMany)
    })
    return Effect.sync(() => {
      isOver = true
    })
  })

const tooMany = Exit.fail(new Unavailable({ reason: "Too many requests wait." }))

const noBody = Exit.succeed<Parsed>({ value: {}, escapes: false })

/** Reads data that a command needs and no transaction can reach. */
const prepare = (
  { withQueryServices }: Steps,
  { caller, params }: Call<CommandEndpoint>,
  { prepare }: Exclude<CommandEndpoint["run"], RunCommand>
): Effect.Effect<RunCommand, Unavailable> => withQueryServices(prepare({ params, caller }))

/** 9. Returns the request that an idempotency key stands for. */
const requestOf = (
  { caller: { account }, endpoint: { installationWide }, exchange }: Call<CommandEndpoint>,
  idempotencyKey: string | null,
  { value: body }: Parsed
): CommandRequest => {
  const { apiVersion, id, method, path } = exchange
  const request = { id, account, idempotencyKey, apiVersion, method, path, body, installationWide }
  if (exchange.older === undefined) return request
  return { ...request, inItsVersion: (newest) => inItsVersion(exchange, newest) }
}

/** 10. Decodes a request and gives its card data to the processor for a token. Returns the command to run. */
const decode = (
  { tokenize }: Steps,
  call: Call<CommandEndpoint>,
  run: RunCommand,
  body: Parsed
): Exit.Exit<Command, Failure> => {
  const { caller, endpoint, params } = call
  const request = inNewestVersion(call, body.value)
  if (Exit.isFailure(request)) return refused(request)
  const query = endpoint.decodeQuery(request.value.query)
  if (Exit.isFailure(query)) return refused(query)
  const decoded = endpoint.decodePayload({ escapes: body.escapes, value: request.value.body })
  if (Exit.isFailure(decoded)) return refused(decoded)
  const payload = withoutCardData(decoded.value, (data) => tokenize(caller.account, data))
  return Exit.succeed(run({ params, payload, caller }))
}

/** Waits for the consequences of a command. The command is durable, so the wait has no time limit and cannot fail. */
const settle = (
  { withQueryServices }: Steps,
  { caller, exchange: { wait } }: Call<CommandEndpoint>,
  settled: NonNullable<CommandEndpoint["settled"]>
): Effect.Effect<void> => {
  wait.resume()
  return Effect.ignore(withQueryServices(settled(caller)))
}

const answerOf = ({ body, headers, replayOf, status }: Outcome): Answer =>
  replayOf === null
    ? { status, body, ...(headers !== undefined && { headers }) }
    : { status, body, headers: { "idempotent-replayed": "true", "original-request": replayOf } }

/** Services that every answer passes through. */
interface Surroundings {
  readonly steps: Steps
  readonly limits: RateLimits.RateLimits | undefined
  readonly crossOrigin: CrossOrigin.CrossOrigin
  readonly addressOf: ClientAddressOf
}

/** Makes the function that runs the parts of a request that have to wait. */
const makeWaiting = Effect.fnUntraced(function* () {
  const { requestMillisMax } = yield* HttpConfig
  const timeouts = new RequestTimeouts(requestMillisMax ?? REQUEST_MILLIS_MAX)
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const scope = yield* Effect.scope

  /** Runs an effect in a fiber. A client that goes away interrupts it, but no command that has begun. */
  return <A>(
    { incoming, wait }: Received,
    work: Effect.Effect<A, Failure>,
    then: (exit: Exit.Exit<A, Failure>, hasWaited: boolean) => void
  ): void => {
    const fiber = runFork(work)
    const exit = fiber.pollUnsafe()
    if (exit !== undefined) return then(exit, false)
    timeouts.watch(wait, fiber)
    fiber.addObserver((exit) => {
      timeouts.end(wait)
      then(exit, true)
    })
    incoming.onGone(() => fiber.interruptUnsafe())
    Fiber.runIn(fiber, scope)
  }
})

/** Requests for the log are not logged: `till logs` repeats them all the time. */
const isAboutLog = (path: string): boolean => /^\/v1\/request_logs(?:\/|$)/.test(path)

/**
 * Makes the function that logs answered requests whose account is known. The process that answers a request logs it.
 */
const noteIn =
  ({ write }: RequestLogShape) =>
  (exchange: Received, answer: Answer): void => {
    const { apiVersion, body, caller, id, idempotencyKey, incoming, method, path, query } = exchange
    if (caller === undefined || isAboutLog(path)) return
    const millis = performance.now() - incoming.arrivedAt
    const at = Date.now()
    const kept = { id, method, path, query, apiVersion }
    write(caller.account, () => {
      const key = idempotencyKey === undefined ? undefined : textOfHeader(idempotencyKey)
      return loggedOf({ exchange: { ...kept, idempotencyKey: key }, caller, answer, body, at, millis })
    })
  }

/** Makes the function that writes answers. */
const makeRespond = Effect.fnUntraced(function* ({
  crossOrigin,
  limits
}: Pick<Surroundings, "crossOrigin" | "limits">) {
  const note = noteIn(yield* RequestLog)
  return (exchange: Received, answer: Answer): void => {
    const { incoming } = exchange
    if (answer.isComplete === true) return incoming.answer(answer.status, answer.headers!, answer.body)
    const headers = headersOf(exchange, answer)
    const readable = crossOrigin.headersOf(incoming)
    const shown =
      limits === undefined && readable === undefined
        ? headers
        : { ...headers, ...limits?.headersOf(exchange), ...readable }
    incoming.answer(answer.status, shown, answer.body)
    note(exchange, answer)
  }
})

/** Makes the function that works on a request from its arrival until it is answered. */
const makeWork = Effect.fnUntraced(function* ({ addressOf, crossOrigin, limits, steps }: Surroundings) {
  const { docsUrl } = yield* HttpConfig
  const outages = new LogThrottle(OUTAGE_LOG_MILLIS)
  const writing = yield* Writing
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const waitFor = yield* makeWaiting()
  const respond = yield* makeRespond({ crossOrigin, limits })

  const end = (exchange: Received, exit: Exit.Exit<Answer, Failure>, hasWaited: boolean = false): void => {
    if (exchange.place !== undefined) steps.admission.leave(exchange.place, hasWaited)
    exchange.place = undefined
    if (Exit.isSuccess(exit)) return respond(exchange, exit.value)
    const { incoming, wait } = exchange
    const account = elsewhereOf(exit.cause)
    if (account !== undefined && exchange.moves++ < MOVES_MAX) return goElsewhere(exchange, account)
    if (Cause.hasInterruptsOnly(exit.cause) && incoming.isGone) return
    const interruption = wait.isOver ? "The storage does not answer in time." : "Till stops."
    const unlogged = writing.refusal() === undefined ? outages : NEVER
    const failed = answerFailed(exchange, exit.cause, { docsUrl, outages: unlogged, interruption })
    if (failed.log !== undefined) runFork(failed.log)
    respond(exchange, failed.answer)
  }

  /** Forwards a request to the process that serves its account. A forwarded request goes back to its sender instead. */
  const goElsewhere = (exchange: Received, account: AccountId): void => {
    const { incoming } = exchange
    if (isForwarded(incoming)) {
      const arrived = Effect.map(steps.forwarder.arrives(account), (isHere) => (isHere ? HERE : ELSEWHERE))
      return waitFor(exchange, arrived, (exit) =>
        Exit.isSuccess(exit) && exit.value === HERE ? enter(exchange) : incoming.elsewhere(account)
      )
    }
    const answered = forwardApi(steps.forwarder, exchange, account, {
      isRefused: () => isRefusedBeforeBody(steps, exchange),
      limits: () => steps.limitsOf(exchange)
    })
    waitFor(exchange, answered, (exit) => {
      if (Exit.isFailure(exit)) end(exchange, refused(exit))
      else if (exit.value === HERE) enter(exchange)
      else end(exchange, Exit.succeed(exit.value))
    })
  }

  const work = (exchange: Received): void => {
    noteRequest(exchange.id)
    let answered: Effect.Effect<Answer, Failure>
    try {
      answered = answer(steps, exchange)
    } catch (defect) {
      answered = Exit.die(defect)
    }
    if (isOver(answered)) end(exchange, answered)
    else waitFor(exchange, answered, (exit, hasWaited) => end(exchange, exit, hasWaited))
  }

  /** Begins a request as soon as there is room for it. A request for another process needs no room here. */
  const enter = (exchange: Received): void => {
    const before = steps.accountBefore(exchange.incoming.headers.authorization)
    const elsewhere = steps.elsewhere(exchange, before)
    if (elsewhere !== undefined && exchange.moves++ < MOVES_MAX) return goElsewhere(exchange, elsewhere)
    // Callers that are not authenticated yet take turns by their address.
    admit(steps, before ?? laneAt(addressOf(exchange.incoming)), exchange, {
      work,
      refuse: (exchange) => end(exchange, tooMany)
    })
  }
  return { enter }
})

/** Begins the work on a request now or later, or refuses the request. */
const admit = (
  { admission }: Steps,
  account: string,
  exchange: Received,
  { refuse, work }: Readonly<Record<"refuse" | "work", (exchange: Received) => void>>
): void => {
  const { incoming, moves } = exchange
  const { arrivedAt, isWhole, method } = incoming
  admission.enter(account, isWhole && (method === "POST" || method === "DELETE"), {
    // A request whose account moved here has waited for the move, not for its turn.
    since: moves === 0 ? arrivedAt : performance.now(),
    get isGone() {
      return incoming.isGone
    },
    start: (place) => {
      exchange.place = place
      work(exchange)
    },
    refuse: () => refuse(exchange)
  })
}

/** Answers requests by the given endpoints, as long as the scope lives. */
export const make = Effect.fnUntraced(function* (endpoints: ReadonlyArray<Endpoint>) {
  const { docsUrl, rateLimit, trustedProxies } = yield* HttpConfig
  const requestIds = yield* RequestIds
  const addressOf = clientAddressOf(trustedProxies)
  const limits = rateLimit === true ? yield* RateLimits.make(addressOf) : undefined
  const crossOrigin = CrossOrigin.make(endpoints)
  const steps = yield* makeSteps(endpoints, limits)
  const { enter } = yield* makeWork({ steps, limits, crossOrigin, addressOf })

  const answerWith = (incoming: Incoming, answer: Answer): void =>
    incoming.answer(answer.status, headersOf(begin(incoming, requestIds.next()), answer), answer.body)

  const refusal = (failure: InvalidHttp | RouteNotFound): Answer => {
    const error = wireErrorOf(failure)
    return { ...error, body: envelope(error, docsUrl) }
  }

  return {
    /** Answers a request under /v1. */
    answer: (incoming: Incoming): void => {
      const allowed = crossOrigin.preflight(incoming)
      if (allowed !== undefined) return answerWith(incoming, { status: 204, body: "", headers: allowed })
      const exchange: Received = {
        ...begin(incoming, requestIds.next()),
        incoming,
        wait: new Wait(),
        place: undefined,
        moves: 0,
        course: newCourse(),
        caller: undefined,
        body: undefined
      }
      // An error before the caller is known has the newest version.
      exchange.apiVersion = steps.versions.newest
      enter(exchange)
    },
    /** Refuses a request before it is routed. */
    refuse: (incoming: Incoming, failure: InvalidHttp): void => answerWith(incoming, refusal(failure)),
    /** The answer to a request without a route. */
    refusal
  }
})
