/**
 * The commands of requests, each of which runs once per idempotency key (semantics idempotency.*), whether the request
 * came over the API or with a page's form: `claim` the key, decode, `carryOut` the command.
 *
 * The answer is part of the command's record. So one function, `rendered`, writes it inside of the account's actor,
 * where the command ends: it has to be sealed into the record before the record is. It is pure.
 *
 * The journal may not hold secrets. An answer with a secret is sealed before the journal gets it, and opened on its way
 * to the client. A sealed answer is a JSON string; every other answer is an object, so that the two differ.
 */
import { Effect, Exit, Layer, Redacted, Result } from "effect"
import { ApiVersions, type ApiVersionsShape, type OlderVersion } from "../domain/ApiVersions.ts"
import { type CardDeclined, ProcessorUnavailable } from "../domain/Errors.ts"
import {
  Accounts,
  type Claim,
  type CommandResult,
  type IdempotencyKeyInUse,
  type IdempotencyKeyReuse,
  type Replay,
  type Unavailable,
  whenClaimed
} from "../engine/Accounts.ts"
import { type AccountId, encode } from "../engine/log/Document.ts"
import { isAnswer, isAwaiting, type RequestIdentity } from "../engine/log/Record.ts"
import { type Span, Traces } from "../engine/process/Traces.ts"
import { parseJson } from "../json/JsonParse.ts"
import { INSTALLATION } from "../payments/shared/AccountIds.ts"
import { AnswerWriter } from "../payments/shared/AnswerWriter.ts"
import { Begun } from "../payments/lifecycles/Operations.ts"
import { PaymentsConfig, type PaymentsConfigShape } from "../payments/shared/PaymentsConfig.ts"
import { tokenize } from "../payments/lifecycles/PaymentMethods.ts"
import { Processors } from "../payments/processing/Processor.ts"
import { open, seal } from "../payments/shared/Sealing.ts"
import { docsUrlOf, HttpConfig } from "../server/HttpConfig.ts"
import { answerOf, type Failure, wireErrorOf } from "./ErrorTable.ts"
import { makeRemember } from "./forward/Calls.ts"
import { Forwarder } from "./forward/Forwarder.ts"
import { type Answered, type CommandServices, withCommandServices } from "./handlers/Handler.ts"
import { Revealed } from "./OneTimeSecrets.ts"
import type { Tokenize } from "./Payload.ts"
import { type Answer, inItsVersion } from "./RequestContext.ts"
import { isOver, refused } from "./RequestFibers.ts"
import { fingerprint } from "./RequestFingerprint.ts"
import { traceCommand } from "./RequestTraces.ts"

/** A request that changes something. */
export interface CommandRequest {
  /** `req_…` */
  readonly id: string
  readonly account: AccountId
  /** Null for a request that runs as often as it comes (semantics idempotency.required). */
  readonly idempotencyKey: string | null
  /** API version of the first answer. */
  readonly apiVersion: string
  readonly method: string
  readonly path: string
  /** The request's JSON, not validated. A repetition has the same method, path and body. */
  readonly body: unknown
  /** True if the command changes merchants or keys, which lie in the installation's account. */
  readonly installationWide?: boolean
  /** Conversions of the request's API version; undefined for the newest. */
  readonly older?: OlderVersion | undefined
  readonly route?: string | undefined
  /** The request's span; undefined unless requests are traced. */
  readonly trace?: Span | undefined
}

/**
 * Succeeds with an object, a decline that is kept, or an operation that has begun; fails with a refusal that leaves
 * nothing behind.
 */
export type Command = Effect.Effect<Answered<object>, Failure, CommandServices>

/** A command's answer, as its client gets it, with the one that its record keeps. */
type FirstAnswer = Answer & CommandResult

export type Done = FirstAnswer | Replay

/** A request's place among the running ones, which it leaves while it waits for a processor. */
export interface Pause {
  readonly leave: () => void
  /** Takes a place again. */
  readonly enter: () => Effect.Effect<void, Unavailable>
}

const noPause: Pause = { leave: () => {}, enter: () => Effect.void }

/** A command whose token the processor has to describe first. */
class Unprepared<E> {
  readonly command: Effect.Effect<Command, E>

  constructor(command: Effect.Effect<Command, E>) {
    this.command = command
  }
}

export const make = Effect.gen(function* () {
  const accounts = yield* Accounts
  const config = yield* PaymentsConfig
  const processors = yield* Processors
  const { docsUrl } = yield* HttpConfig
  const remember = makeRemember(accounts, yield* Forwarder)
  const fingerprintKey = Redacted.value(config.fingerprintKey)
  const traces = yield* Traces
  const provide = withCommandServices(config, processors)

  /**
   * A key means one request wherever a merchant uses it (semantics idempotency.reuse), so the merchant's account
   * remembers the keys of requests that ran in the installation's account. It learns of a key after the request has
   * run: a crash in between forgets the key for other requests, never the effect of this one.
   */
  const rememberDone = (
    { account, idempotencyKey }: CommandRequest,
    identity: RequestIdentity,
    done: Done
  ): Effect.Effect<void> => {
    const kept = done.replayOf === null ? done.kept : done
    if (idempotencyKey === null || done.status !== 200 || kept === null || !isAnswer(kept)) return Effect.void
    const { body, status } = kept
    const original = { ...identity, id: done.replayOf ?? identity.id, idempotencyKey }
    return Effect.ignore(remember(account, original, { status, body }))
  }

  /**
   * Claims the key in the installation's account, which all merchants share, under a name with the merchant's account.
   */
  const claimInstallationWide = (request: CommandRequest, identity: RequestIdentity) => {
    const { account, idempotencyKey } = request
    if (idempotencyKey === null) return accounts.claim(INSTALLATION, identity)
    const shared = { ...identity, idempotencyKey: `${account}/${idempotencyKey}` }
    const claimed = Effect.andThen(remember(account, identity, null), accounts.claim(INSTALLATION, shared))
    return Effect.tap(claimed, (claimed) =>
      claimed.replayOf === null ? Effect.void : rememberDone(request, identity, claimed)
    )
  }

  const identityOf = ({ apiVersion, body, id, idempotencyKey, method, path }: CommandRequest): RequestIdentity => {
    const print = idempotencyKey === null ? null : fingerprint(method, path, body, fingerprintKey)
    return { id, idempotencyKey, fingerprint: print, apiVersion }
  }

  const engine: Engine = {
    claim: (request, identity, onAwaits) =>
      request.installationWide === true
        ? claimInstallationWide(request, identity)
        : accounts.claim(request.account, identity, onAwaits),
    carryOut: (claim, request, command) => {
      const run = accounts.carryOut(claim, provide(rendered(command, { request, config, docsUrl })))
      const done =
        traces === undefined || request.trace === undefined ? run : traceCommand(traces, request.trace, request.id, run)
      return request.installationWide === true
        ? Effect.tap(done, (done) => rememberDone(request, claim.request, done))
        : done
    },
    awaited: (request, identity) =>
      Effect.map(
        accounts.awaited(request.account, identity),
        (replay) => replay ?? refusedAs(new ProcessorUnavailable({}), { request, config, docsUrl })
      )
  }

  return {
    /** Runs a request's command once per key, see `runOnce`. */
    runOnce: <E>(request: CommandRequest, prepare: Prepare<E>, pause: Pause = noPause) =>
      runOnce(engine, { request, identity: identityOf(request), prepare, pause }),

    /** Returns the answer to a request: its command's or operation's, or that of the request which it repeats. */
    answerOf: ({ account, id }: Pick<CommandRequest, "account" | "id">, done: Done): Answer => {
      if (done.replayOf === null) return done
      const answer = { status: done.status, body: openAnswer(config, account, done.body) }
      if (done.replayOf === id) return answer
      return { ...answer, headers: { "idempotent-replayed": "true", "original-request": done.replayOf } }
    },

    /** Gives card data, or a token, to the account's processor. */
    tokenize:
      (account: AccountId): Tokenize =>
      (data, at) =>
        tokenize({ config, processors, account }, data, at)
  }
})

/** The engine's part of `runOnce`. */
interface Engine {
  /** Claims the key of a request, or returns the answer that it has. */
  readonly claim: (
    request: CommandRequest,
    identity: RequestIdentity,
    onAwaits: () => void
  ) => Effect.Effect<Claim | Replay, EngineFailure>
  /** Runs the command of a claimed request. */
  readonly carryOut: (claim: Claim, request: CommandRequest, command: Command) => Effect.Effect<Done, EngineFailure>
  /** Waits for the answer to a request whose command has begun an operation. */
  readonly awaited: (request: CommandRequest, identity: RequestIdentity) => Effect.Effect<Done, EngineFailure>
}

type EngineFailure = Unavailable | IdempotencyKeyInUse | IdempotencyKeyReuse

/** Makes a request's command. No `Exit` if a processor has to be asked first: the key is not claimed during that. */
type Prepare<E> = () => Effect.Effect<Command, E>

interface Once<E> {
  readonly request: CommandRequest
  readonly identity: RequestIdentity
  readonly prepare: Prepare<E>
  readonly pause: Pause
}

/**
 * Runs a request's command, unless its key has an answer (see `Accounts.claim`), and waits for the outcome of the
 * operation that it begins. From the claim on, the command runs to its end even if the client goes away.
 */
const runOnce = <E>(
  engine: Engine,
  { identity, pause, prepare, request }: Once<E>
): Effect.Effect<Done, EngineFailure | E> => {
  const claimed = <A, E>(work: (claim: Claim) => Effect.Effect<A, E>) =>
    whenClaimed(engine.claim(request, identity, pause.leave), work)
  const finish = (done: Done | Unprepared<E>): Effect.Effect<Done, EngineFailure | E> => {
    if (done instanceof Unprepared) {
      pause.leave()
      const ready = Effect.tap(done.command, pause.enter)
      const run = (command: Command) => claimed((claim) => engine.carryOut(claim, request, command))
      return Effect.flatMap(Effect.flatMap(ready, run), finish)
    }
    if (!isBegun(done)) return Exit.succeed(done)
    pause.leave()
    return engine.awaited(request, identity)
  }
  const first = claimed((claim): Effect.Effect<Done | Unprepared<E>, EngineFailure | E> => {
    const prepared = prepare()
    if (!isOver(prepared)) return Exit.succeed(new Unprepared(prepared))
    return Exit.isSuccess(prepared) ? engine.carryOut(claim, request, prepared.value) : refused(prepared)
  })
  return Effect.flatMap(first, finish)
}

interface Rendering {
  readonly request: Pick<CommandRequest, "account" | "older" | "route">
  readonly config: PaymentsConfigShape
  readonly docsUrl: string
}

/** Turns the end of a command into its answer, in the request's version. */
const rendered = <R>(
  command: Effect.Effect<Answered<object>, Failure, R>,
  rendering: Rendering & { readonly request: CommandRequest }
): Effect.Effect<FirstAnswer, FirstAnswer, R> =>
  Effect.mapBoth(command, {
    onSuccess: (answered) => {
      if (answered instanceof Begun) return begunAs(answered, rendering)
      const result = resultOf(answered)
      return Result.isFailure(result) ? refusedAs(result.failure, rendering) : successAs(result.success, rendering)
    },
    onFailure: (failure) => refusedAs(failure, rendering)
  })

const resultOf = <A extends object>(answered: Exclude<Answered<A>, Begun>): Result.Result<A, CardDeclined> =>
  Result.isResult(answered) ? answered : Result.succeed(answered)

/** Keeps the operation that the answer waits for. */
const begunAs = (begun: Begun, { request }: { readonly request: CommandRequest }): FirstAnswer => {
  if (request.idempotencyKey === null) throw new Error("A request without an idempotency key has begun an operation")
  begun.answerOn(request.route)
  return { status: 202, body: "", kept: { awaits: begun.operation }, replayOf: null }
}

/** Whether a command has begun an operation, which brings the answer. */
const isBegun = (done: Done): boolean => done.replayOf === null && done.kept !== null && isAwaiting(done.kept)

/** Writes the answers of operations like those of commands. */
export const answerWriter =
  (config: PaymentsConfigShape, { older }: ApiVersionsShape): AnswerWriter["Service"] =>
  ({ apiVersion, route }, outcome) => {
    const request = { account: "", older: older(apiVersion), route: route ?? undefined }
    const rendering = { request, config, docsUrl: docsUrlOf(config.publicUrl) }
    const { body, status } = Result.isFailure(outcome)
      ? refusedAs(outcome.failure, rendering)
      : successAs(outcome.success, rendering)
    return { status, body }
  }

export const layerAnswerWriter: Layer.Layer<AnswerWriter, never, ApiVersions | PaymentsConfig> = Layer.effect(
  AnswerWriter,
  Effect.map(Effect.all([PaymentsConfig, ApiVersions]), ([config, versions]) => answerWriter(config, versions))
)

const refusedAs = (failure: Failure, { docsUrl, request }: Rendering): FirstAnswer => {
  const error = wireErrorOf(failure)
  const { body, headers, status } = inItsVersion(request, answerOf(error, docsUrl))
  return { status, body, headers, kept: error.stored ? { status, body } : null, replayOf: null }
}

/** Answers with an object. The journal gets secrets sealed, or not at all if repetitions do not get them either. */
const successAs = (success: object, { config, request }: Rendering): FirstAnswer => {
  const isRevealed = success instanceof Revealed
  const text = isRevealed ? JSON.stringify(success.shown) : encode(success)
  const { body, status } = inItsVersion(request, { status: 200, body: text })
  if (!isRevealed) return { status, body, kept: { status, body }, replayOf: null }
  const kept =
    success.repetition === "object"
      ? inItsVersion(request, { status: 200, body: encode(success.value) })
      : { status, body: JSON.stringify(seal(sealingOf(config, request.account), body)) }
  return { status, body, kept, replayOf: null }
}

const openAnswer = (config: PaymentsConfigShape, account: AccountId, stored: string): string =>
  stored.startsWith('"') ? open(sealingOf(config, account), parseJson(stored) as string) : stored

const sealingOf = ({ keyring }: PaymentsConfigShape, account: AccountId) => ({
  keyring,
  purpose: `answer ${account}`
})
