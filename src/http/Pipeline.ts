/**
 * The way of every request under /v1, from its first header to its response: `begin` admits it or forwards it to
 * another process, `answer` takes the steps of semantics requests.order in their order, and `end` writes the response.
 * The first step that refuses gives the one error of the response.
 *
 * The contract defines an endpoint's input, the handlers its effect. Everything common to all endpoints is here.
 */
import { Cause, Effect, Exit, Result } from "effect"
import { ApiVersions, type OlderVersion, type RequestError } from "../domain/ApiVersions.ts"
import type { ParameterInvalid, ParameterMissing } from "../domain/Errors.ts"
import { Accounts, Unavailable } from "../engine/Accounts.ts"
import type { AccountId } from "../engine/log/Document.ts"
import { RequestLog } from "../engine/RequestLog.ts"
import { noteRequest } from "../engine/process/Watchdog.ts"
import { type Span, Traces, type TraceStore } from "../engine/process/Traces.ts"
import { INSTALLATION } from "../payments/shared/AccountIds.ts"
import { requestKey } from "../payments/shared/IdempotencyKeys.ts"
import { PaymentsConfig } from "../payments/shared/PaymentsConfig.ts"
import { AnsweredRequests, type Report } from "./AnsweredRequests.ts"
import { Admission, type Entry, laneAt, type Place } from "./Admission.ts"
import type { Caller } from "./Authentication.ts"
import * as Authentication from "./Authentication.ts"
import type { Command, CommandRequest, Done } from "./IdempotentCommand.ts"
import * as IdempotentCommand from "./IdempotentCommand.ts"
import {
  type CommandEndpoint,
  type Endpoint,
  installationWideOf,
  type QueryEndpoint,
  type RunCommand
} from "./Endpoints.ts"
import * as CrossOrigin from "./CrossOrigin.ts"
import { answerOf, type Failure, wireErrorOf } from "./ErrorTable.ts"
import {
  type Answer,
  type AnsweredRequest,
  answerFailed,
  headersAtOnce,
  headersOf,
  inItsVersion,
  parentSpanOf,
  receive,
  type Received,
  RequestIds
} from "./RequestContext.ts"
import { clientAddressOf, type ClientAddressOf } from "../server/ClientAddress.ts"
import { Forwarder, HERE } from "./forward/Forwarder.ts"
import type { ForwardedIncoming } from "./forward/Listener.ts"
import { type BodyPolicy, elsewhereOf, forwardApi } from "./forward/ForwardApi.ts"
import { withQueryServices } from "./handlers/Handler.ts"
import { HttpConfig } from "../server/HttpConfig.ts"
import type { InvalidHttp, RequestTooLarge, RouteNotFound } from "../server/HttpErrors.ts"
import type { Incoming } from "../server/Incoming.ts"
import { parseBody, type Parsed } from "./JsonBody.ts"
import { endTrace } from "./RequestTraces.ts"
import { LOGGED_BODY_BYTES_MAX, makeNote } from "./RequestLogEntry.ts"
import { withoutCardData } from "./Payload.ts"
import { permit, permitBody, shownTo } from "./Permission.ts"
import type { Standing } from "./RateLimits.ts"
import * as RateLimits from "./RateLimits.ts"
import { limitsOf, readBody } from "./ReceivedBody.ts"
import { andThen, isOver, makeWaiting, refused } from "./RequestFibers.ts"
import { apiVersionOf, idempotencyKeyOf } from "./RequestHeaders.ts"
import { type Matched, RouteTable } from "./RouteTable.ts"
import { mayWait, Waiting } from "./Waiting.ts"

/** How often a request follows its account to another process, at most. */
const MOVES_MAX = 8

/** Begins the span of a request. */
const beginTrace = (traces: TraceStore, routes: Steps["routes"], incoming: Incoming): Span => {
  const { arrivedAt, headers, method, url } = incoming
  const found = routes.find(method, url.split("?", 1)[0]!)
  const name = Exit.isSuccess(found) ? `${method} ${found.value.endpoint.template}` : method
  return traces.beginRequest(name, arrivedAt, parentSpanOf(headers["traceparent"]))
}

const isForwarded = (incoming: Incoming): incoming is ForwardedIncoming => "elsewhere" in incoming

/**
 * A request and the findings of its steps so far. A step returns its finding, and the functions of this file, which
 * take the steps in their order, keep those that every response shows, also that of an error, and the request log.
 */
interface Progress {
  readonly request: Received
  /** How often the request has been forwarded or sent back because another process serves its account. */
  moves: number
  /** The place of an admitted request, until it is answered. */
  place: Place | undefined
  /** The authenticated caller; undefined until then. */
  caller: Caller | undefined
  /** The caller's count for the rate limit. */
  standing: Standing | undefined
  apiVersion: string
  /** Conversions of that version; undefined for the newest. */
  older: OlderVersion | undefined
  /** The endpoint's route, as version changes name it; undefined until the endpoint is found. */
  route: string | undefined
  /** The endpoint's path as reports show it: `/v1/payment_intents/{id}`; undefined until the endpoint is found. */
  template: string | undefined
  /** The body's JSON for the request log; undefined until the body is read, and for a body too long for the log. */
  body: unknown
}

/** Answers requests by the given endpoints, as long as the scope lives. */
export const make = Effect.fnUntraced(function* (endpoints: ReadonlyArray<Endpoint>) {
  const { docsUrl, rateLimit, trustedProxies } = yield* HttpConfig
  const requestIds = yield* RequestIds
  const addressOf = clientAddressOf(trustedProxies)
  const crossOrigin = CrossOrigin.make(endpoints)
  const steps = yield* makeSteps(endpoints, rateLimit === true ? yield* RateLimits.make(addressOf) : undefined)
  const begin = yield* makeWork(steps, crossOrigin, addressOf)

  const { report } = yield* AnsweredRequests
  const { traces } = steps

  const answerAtOnce = (incoming: Incoming, answer: Answer): void => {
    const id = requestIds.next()
    incoming.answer(answer.status, headersAtOnce(incoming, id, answer), answer.body)
    const { method, url } = incoming
    const millis = performance.now() - incoming.arrivedAt
    const path = url.split("?", 1)[0]!
    report({ id, method, path, route: undefined, status: answer.status, millis, account: undefined, isReplay: false })
  }

  const refusal = (failure: InvalidHttp | RouteNotFound): Answer => answerOf(wireErrorOf(failure), docsUrl)

  return {
    /** Answers a request under /v1. */
    answer: (incoming: Incoming): void => {
      const allowed = crossOrigin.preflight(incoming)
      if (allowed !== undefined) return answerAtOnce(incoming, { status: 204, body: "", headers: allowed })
      begin({
        request: receive(incoming, requestIds.next(), traces && beginTrace(traces, steps.routes, incoming)),
        moves: 0,
        place: undefined,
        caller: undefined,
        standing: undefined,
        // An error before the caller is known has the newest version.
        apiVersion: steps.versions.newest,
        older: undefined,
        route: undefined,
        template: undefined,
        body: undefined
      })
    },
    /** Refuses a request before it is routed. */
    refuse: (incoming: Incoming, failure: InvalidHttp): void => answerAtOnce(incoming, refusal(failure)),
    /** The answer to a request without a route. */
    refusal
  }
})

/** Makes the function that works on a request from its arrival until it is answered. */
const makeWork = Effect.fnUntraced(function* (
  steps: Steps,
  crossOrigin: CrossOrigin.CrossOrigin,
  addressOf: ClientAddressOf
) {
  const { docsUrl } = yield* HttpConfig
  const context = yield* Effect.context<never>()
  const { report } = yield* AnsweredRequests
  const waitFor = yield* makeWaiting()
  const { untilStop } = yield* Waiting
  const respond = makeRespond(steps, crossOrigin, makeNote(yield* RequestLog), report)

  /** Begins a request as soon as there is room for it. A request for another process needs no room here. */
  const begin = (progress: Progress): void => {
    const { incoming } = progress.request
    const before = steps.accountBefore(progress.request.credential)
    // Callers that are not authenticated yet take turns by their address.
    const holder = before ?? laneAt(addressOf(incoming))
    incoming.countFor(holder)
    const elsewhere = steps.elsewhere(progress.request, before)
    if (elsewhere !== undefined && progress.moves++ < MOVES_MAX) return goElsewhere(progress, elsewhere)
    admit(steps, holder, progress, admitted)
  }

  const work = (progress: Progress): void => {
    const { request } = progress
    noteRequest(request.id)
    let answered: Effect.Effect<Answer, Failure>
    try {
      answered = answer(steps, progress)
    } catch (defect) {
      answered = Exit.die(defect)
    }
    if (isOver(answered)) end(progress, answered)
    else waitFor(request, answered, (exit, hasWaited) => end(progress, exit, hasWaited))
  }

  const end = (progress: Progress, exit: Exit.Exit<Answer, Failure>, hasWaited: boolean = false): void => {
    const { place, request } = progress
    if (place !== undefined) steps.admission.leave(place, hasWaited)
    progress.place = undefined
    if (Exit.isSuccess(exit)) return respond(progress, exit.value)
    const account = elsewhereOf(exit.cause)
    if (account !== undefined && progress.moves++ < MOVES_MAX) return goElsewhere(progress, account)
    if (Cause.hasInterruptsOnly(exit.cause) && request.incoming.isGone) return
    const interruption = request.wait.isOver ? "The storage does not answer in time." : "Till stops."
    const failed = answerFailed(request, exit.cause, { context, docsUrl, interruption })
    respond(progress, inItsVersion(progress, failed))
  }

  /** Forwards a request to the process that serves its account. A forwarded request goes back to its sender instead. */
  const goElsewhere = (progress: Progress, account: AccountId): void => {
    const { request } = progress
    const { incoming } = request
    if (isForwarded(incoming)) {
      return waitFor(request, steps.forwarder.arrives(account), (exit) =>
        Exit.isSuccess(exit) && exit.value ? begin(progress) : incoming.elsewhere(account)
      )
    }
    const forwarded = forwardApi(steps.forwarder, request, account, bodyPolicyOf(steps, request))
    // The other process does not notice that this one stops.
    const answered = mayWait(request.query) ? Effect.raceFirst(forwarded, untilStop) : forwarded
    waitFor(request, answered, (exit) => {
      if (Exit.isFailure(exit)) end(progress, refused(exit))
      else if (exit.value === HERE) begin(progress)
      else end(progress, Exit.succeed(exit.value))
    })
  }
  const admitted = { work, refuse: (progress: Progress) => end(progress, tooMany) }
  return begin
})

type Admitted = Readonly<Record<"refuse" | "work", (progress: Progress) => void>>

/** 1. Starts the work on a request now or later, or refuses the request. */
const admit = ({ admission }: Steps, account: string, progress: Progress, admitted: Admitted): void => {
  const { isWhole, method } = progress.request.incoming
  const isCommand = isWhole && (method === "POST" || method === "DELETE")
  admission.enter(account, isCommand, new Arrived(progress, admitted))
}

/** A request before its admission. An object literal with a getter would take several times the memory and time. */
class Arrived implements Entry {
  readonly since: number
  readonly #progress: Progress
  readonly #admitted: Admitted

  constructor(progress: Progress, admitted: Admitted) {
    // A request whose account moved here has waited for the move, not for its turn.
    this.since = progress.moves === 0 ? progress.request.incoming.arrivedAt : performance.now()
    this.#progress = progress
    this.#admitted = admitted
  }

  get isGone(): boolean {
    return this.#progress.request.incoming.isGone
  }

  start(place: Place | undefined): void {
    this.#progress.place = place
    this.#admitted.work(this.#progress)
  }

  refuse(): void {
    this.#admitted.refuse(this.#progress)
  }
}

/** Answers a request. Nothing more is read of an unauthenticated one. */
const answer = (steps: Steps, progress: Progress): Effect.Effect<Answer, Failure> => {
  const { limits } = steps
  const { request } = progress
  // 2. Authentication, which counts for the rate limit if the installation has one (semantics limits.rate).
  const authenticated = steps.authenticate(request)
  if (limits === undefined) return andThen(authenticated, (caller) => answerTo(steps, progress, caller))
  return Effect.matchEffect(authenticated, {
    onSuccess: (caller) => {
      progress.standing = limits.countCaller(request, caller)
      return answerTo(steps, progress, caller)
    },
    onFailure: (failure) => {
      progress.standing = limits.countFailure(request, failure)
      return Effect.andThen(RateLimits.admit(progress.standing), Exit.fail(failure))
    }
  })
}

/** 3. to 6. Checks the head of a caller's request. */
const answerTo = (steps: Steps, progress: Progress, caller: Caller): Effect.Effect<Answer, Failure> => {
  const { request, standing } = progress
  progress.caller = caller
  // 3. Version. A refusal has the merchant's version.
  setVersion(steps, progress, caller.apiVersion)
  const version = apiVersionOf(request.incoming, caller.apiVersion, steps.versions.known)
  if (Exit.isFailure(version)) return refused(version)
  setVersion(steps, progress, version.value)
  // 4. Rate limit.
  const counted = RateLimits.admit(standing)
  if (Exit.isFailure(counted)) return refused(counted)
  // 5. Route and method.
  const found = steps.routes.find(request.method, request.path)
  if (Exit.isFailure(found)) return refused(found)
  const { endpoint, params } = found.value
  progress.route = endpoint.route
  progress.template = endpoint.template
  // 6. Permission of the key.
  const permitted = permit(caller, endpoint, request.query)
  if (Exit.isFailure(permitted)) return refused(permitted)
  return endpoint.kind === "query"
    ? answerQuery(steps, progress, { caller, endpoint, params })
    : answerCommand(steps, progress, { caller, endpoint, params })
}

/** A request whose endpoint may be called. */
interface Call<E> extends Matched<E> {
  readonly caller: Caller
}

/** Sets the API version of the response. */
const setVersion = ({ versions }: Steps, progress: Progress, version: string): void => {
  progress.apiVersion = version
  progress.older = versions.older(version)
}

/**
 * Refuses a request that could not be converted to the newest version, in which it is decoded (semantics
 * versions.refusals). The error is in the words of the version before the conversion that refused.
 */
const refuseConversion = (
  progress: Progress,
  { error, older }: { readonly error: RequestError; readonly older: OlderVersion }
): Exit.Exit<never, RequestError> => {
  progress.older = older
  return Exit.fail(error)
}

/** 10. to 12. of a GET: decodes its query and runs it. */
const answerQuery = (
  steps: Steps,
  progress: Progress,
  { caller, endpoint, params }: Call<QueryEndpoint>
): Effect.Effect<Answer, Failure> => {
  const { path, query } = progress.request
  const converted = progress.older?.request(endpoint.route, query, undefined)
  if (converted && Result.isFailure(converted)) return refuseConversion(progress, converted.failure)
  const decoded = endpoint.decodeQuery(converted?.success.query ?? query)
  if (Exit.isFailure(decoded)) return refused(decoded)
  const run = endpoint.run({ params, query: decoded.value, caller, path })
  return Effect.map(steps.withQueryServices(run), (body) =>
    shownTo(caller, inItsVersion(progress, { status: 200, body }), progress.older)
  )
}

/** 7. and 8. of a command, and then the rest. */
const answerCommand = (
  steps: Steps,
  progress: Progress,
  call: Call<CommandEndpoint>
): Effect.Effect<Answer, Failure> => {
  const { caller, endpoint } = call
  const { request } = progress
  // 7. Idempotency key.
  const key = keyOf(request, caller)
  if (Exit.isFailure(key)) return refused(key)
  // 8. Body: its size, its content type, its JSON, and the client secret in it, where the key needs one.
  return andThen(receiveBody(steps, progress, caller), (bytes) => {
    noteRequest(request.id)
    const body = parseBody(bytes, request.incoming.headers["content-type"])
    if (Exit.isFailure(body)) return refused(body)
    if (request.method === "POST" && bytes.length <= LOGGED_BODY_BYTES_MAX) progress.body = body.value.value
    const permitted = permitBody(caller, endpoint, body.value.value)
    if (Exit.isFailure(permitted)) return refused(permitted)
    return carryOut(steps, progress, call, key.value, body.value)
  })
}

/** 9. to 15. Runs a command unless its key has an answer, and returns the answer. */
const carryOut = (
  steps: Steps,
  progress: Progress,
  call: Call<CommandEndpoint>,
  idempotencyKey: string | null,
  body: Parsed
): Effect.Effect<Answer, Failure> => {
  const { caller, endpoint, params } = call
  const { run, settled } = endpoint
  const request = requestOf(progress, call, idempotencyKey, body)
  const pause = {
    leave: () => leavePlace(steps, progress),
    enter: () => admitLate(steps, progress, caller.account)
  }
  // 9. to 15. Replay, if the key has an answer; else decode, run in the account's actor, and commit with the answer.
  const runOnce = (run: RunCommand) => steps.runOnce(request, () => decode(steps, progress, call, run, body), pause)
  // Data that the command needs and no transaction can reach is read before.
  const done =
    typeof run === "function"
      ? runOnce(run)
      : Effect.flatMap(steps.withQueryServices(run.prepare({ params, caller })), runOnce)
  // The command is durable, so the wait for its consequences has no time limit and cannot fail.
  const settledToo =
    settled === undefined
      ? done
      : Effect.tap(done, ({ status }) => {
          if (status !== 200) return Effect.void
          progress.request.wait.resume()
          return Effect.ignore(steps.withQueryServices(settled(caller)))
        })
  return Effect.map(settledToo, (done) => answerDone(steps, progress, call, done))
}

/** Gives a request's place, and its connection to another process, back before a wait for a processor. */
const leavePlace = ({ admission }: Steps, progress: Progress): void => {
  const { incoming } = progress.request
  if (isForwarded(incoming)) incoming.later()
  if (progress.place !== undefined) admission.leave(progress.place, false)
  progress.place = undefined
}

const answerDone = (steps: Steps, progress: Progress, { caller }: Call<CommandEndpoint>, done: Done): Answer => {
  // A replay has the API version of the request whose command ran.
  if (done.replayOf !== null) setVersion(steps, progress, done.apiVersion)
  const answer = steps.answerOf({ account: caller.account, id: progress.request.id }, done)
  return shownTo(caller, answer, progress.older)
}

/**
 * 7. Returns the idempotency key within its account. A DELETE has none: deleting twice is deleting once (semantics
 * idempotency.required).
 */
const keyOf = (
  { incoming, method }: Received,
  { keyType }: Caller
): Exit.Exit<string | null, ParameterMissing | ParameterInvalid> =>
  method === "POST" ? Exit.map(idempotencyKeyOf(incoming), (key) => requestKey(keyType, key)) : noKey

const noKey = Exit.succeed(null)

/** 8. Receives the body. The request's time limit rests until the body has arrived. */
const receiveBody = (
  steps: Steps,
  progress: Progress,
  caller: Caller
): Effect.Effect<Buffer, RequestTooLarge | Unavailable> => {
  const { incoming, method, wait } = progress.request
  if (method !== "POST") return noBody
  // A request whose body is still to come has no place yet; `isWhole` changes while the body is read.
  const { isWhole } = incoming
  wait.pause()
  const read = readBody(incoming, caller)
  if (isWhole) {
    wait.resume()
    return read
  }
  return Effect.tap(read, () => {
    wait.resume()
    return admitLate(steps, progress, caller.account)
  })
}

const noBody = Exit.succeed(Buffer.alloc(0))

/**
 * Admits a command whose body or token's description arrived late: its place counts from then on, because clients and
 * processors may be slow.
 */
const admitLate = ({ admission }: Steps, progress: Progress, account: AccountId): Effect.Effect<void, Unavailable> =>
  Effect.callback((resume) => {
    const { incoming } = progress.request
    let isOver = false
    admission.enter(account, true, {
      since: performance.now(),
      get isGone() {
        return isOver || incoming.isGone
      },
      start: (place) => {
        progress.place = place
        resume(Exit.void)
      },
      refuse: () => resume(tooMany)
    })
    return Effect.sync(() => {
      isOver = true
    })
  })

const tooMany = Exit.fail(new Unavailable({ reason: "Too many requests wait." }))

/** Decides about the body of a forwarded request, which need not be read if 3. to 7. refuse the request. */
const bodyPolicyOf = ({ knownCaller, routes, versions }: Steps, request: Received): BodyPolicy => ({
  isRefused: () => {
    const caller = knownCaller(request)
    if (caller === undefined) return false
    const { incoming, method, path, query } = request
    if (Exit.isFailure(apiVersionOf(incoming, caller.apiVersion, versions.known))) return true
    const found = routes.find(method, path)
    if (Exit.isFailure(found) || Exit.isFailure(permit(caller, found.value.endpoint, query))) return true
    return method === "POST" && Exit.isFailure(idempotencyKeyOf(incoming))
  },
  limits: () => {
    const caller = knownCaller(request)
    return caller && limitsOf(caller)
  }
})

/** 9. Returns the request that an idempotency key stands for. */
const requestOf = (
  { apiVersion, older, request: { id, method, path, trace }, route }: Progress,
  { caller: { account }, endpoint: { installationWide } }: Call<CommandEndpoint>,
  idempotencyKey: string | null,
  { value: body }: Parsed
): CommandRequest => ({
  id,
  account,
  idempotencyKey,
  apiVersion,
  method,
  path,
  body,
  installationWide,
  older,
  route,
  trace
})

/**
 * 10. Decodes a request and gives its card data to the processor for a token. Returns the command to run: in an `Exit`,
 * unless the processor has to be asked about a token.
 */
const decode = (
  { tokenize }: Steps,
  progress: Progress,
  { caller, endpoint, params }: Call<CommandEndpoint>,
  run: RunCommand,
  body: Parsed
): Effect.Effect<Command, Failure> => {
  const { escapes, value } = body
  const { query } = progress.request
  const converted = progress.older?.request(endpoint.route, query, value)
  if (converted && Result.isFailure(converted)) return refuseConversion(progress, converted.failure)
  const decodedQuery = endpoint.decodeQuery(converted?.success.query ?? query)
  if (Exit.isFailure(decodedQuery)) return refused(decodedQuery)
  const decoded = endpoint.decodePayload(converted ? { escapes, value: converted.success.body } : body)
  if (Exit.isFailure(decoded)) return refused(decoded)
  const tokenized = withoutCardData(decoded.value, tokenize(caller.account))
  return andThen(tokenized, (payload) => Exit.succeed(run({ params, payload, caller })))
}

/** Makes the function that writes answers, reports them, and logs those whose account is known. */
const makeRespond =
  ({ limits }: Steps, crossOrigin: CrossOrigin.CrossOrigin, note: ReturnType<typeof makeNote>, report: Report) =>
  (progress: Progress, answer: Answer): void => {
    const { request, standing } = progress
    const { incoming } = request
    if (request.trace !== undefined) endTrace(request.trace, answeredOf(progress, answer), answer.isComplete === true)
    if (answer.isComplete === true) return incoming.answer(answer.status, answer.headers!, answer.body)
    const headers = headersOf(request, progress.apiVersion, answer)
    Object.assign(headers, limits?.headersOf(request, standing), crossOrigin.headersOf(incoming))
    incoming.answer(answer.status, headers, answer.body)
    note(request, progress, answer)
    report(answeredOf(progress, answer))
  }

const answeredOf = ({ caller, request, template }: Progress, { headers, status }: Answer): AnsweredRequest => ({
  id: request.id,
  method: request.method,
  path: request.path,
  route: template,
  status,
  millis: performance.now() - request.incoming.arrivedAt,
  account: caller?.account,
  isReplay: headers?.["original-request"] !== undefined
})

/** Makes the steps that need services. */
const makeSteps = Effect.fnUntraced(function* (
  endpoints: ReadonlyArray<Endpoint>,
  limits: RateLimits.RateLimits | undefined
) {
  const { accountBefore, authenticate } = yield* Authentication.make
  const forwarder = yield* Forwarder
  const admission = yield* Effect.acquireRelease(Admission.make, (admission) => Effect.sync(() => admission.close()))
  const isInstallationWide = installationWideOf(endpoints)
  const callerOf = ({ credential, incoming }: Received) => authenticate(incoming.headers.authorization, credential)
  /** Returns the caller if its key is in memory. */
  const knownCaller = (request: Received): Caller | undefined => {
    const caller = callerOf(request)
    return isOver(caller) && Exit.isSuccess(caller) ? caller.value : undefined
  }
  const accountOf = (account: AccountId, { path }: Received) => (isInstallationWide(path) ? INSTALLATION : account)
  return {
    accountBefore,
    admission,
    forwarder,
    limits,
    routes: new RouteTable(endpoints),
    versions: yield* ApiVersions,
    traces: yield* Traces,
    knownCaller,
    /** Another process counts and answers the requests of the accounts that it serves. */
    authenticate: (request: Received) =>
      andThen(callerOf(request), (caller): Exit.Exit<Caller, Unavailable> => {
        const account = accountOf(caller.account, request)
        return forwarder.isHere(account) ? Exit.succeed(caller) : Exit.fail(Unavailable.elsewhere(account))
      }),
    /**
     * Returns the account of a request that another process serves, if `before` names it and the key is in memory;
     * undefined otherwise.
     */
    elsewhere: (request: Received, before: AccountId | undefined): AccountId | undefined => {
      if (before === undefined || forwarder.isHere(accountOf(before, request))) return undefined
      const caller = knownCaller(request)
      return caller && accountOf(caller.account, request)
    },
    ...(yield* IdempotentCommand.make),
    withQueryServices: withQueryServices(yield* PaymentsConfig, yield* Accounts)
  }
})
type Steps = Effect.Success<ReturnType<typeof makeSteps>>
