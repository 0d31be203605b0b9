/**
 * Idempotency: a request's command runs at most once per key (semantics idempotency.*).
 *
 * A request first claims its key. Then the key either has an answer, which the request gets, or belongs to the request
 * until the claim is released; requests with the same key wait. The claim's command runs in the account's actor, and
 * its answer is part of its record, so "done" and "answered" are one fact. A request whose answer was not kept releases
 * the key, and the next one runs.
 *
 * A command may begin an operation instead of answering. Then its key awaits the operation: a later command, of the
 * operation's outcome, answers the request or releases the key (`Transaction.answer`). The claim ends with the first
 * command, so requests wait for an operation without a claim.
 */
import { Clock, Deferred, Effect, Exit, Schema, type Scope } from "effect"
import type { Actor, Closed, KeyState, Turned } from "./Actor.ts"
import type { Actors, Unavailable } from "./Actors.ts"
import * as Batcher from "../process/Batcher.ts"
import type { AccountId, Millis } from "../log/Document.ts"
import { Journal, type StorageFailure } from "../log/Journal.ts"
import { RETENTION_MILLIS, RunningTime } from "./RunningTime.ts"
import type { KeyRow } from "../views/Projection.ts"
import {
  type Awaiting,
  isAnswer,
  isAwaiting,
  missingRecord,
  missingItem,
  readRow,
  type RequestIdentity,
  type StoredAnswer
} from "../log/Record.ts"
import type { Transaction } from "./Transaction.ts"
import { type Address, Views } from "../views/Views.ts"
import type { MailboxFull } from "../process/BoundedQueue.ts"

const NOT_USED = Effect.succeed(undefined)

/**
 * How long a repetition waits for the first request, and any request for an operation, at most (semantics
 * idempotency.in_use).
 */
const WAIT_MILLIS = 25_000

/** The same idempotency key is still being worked on by another request (semantics idempotency.in_use). */
export class IdempotencyKeyInUse extends Schema.TaggedError<IdempotencyKeyInUse>()("IdempotencyKeyInUse", {}) {}

/** The idempotency key was used for another request (semantics idempotency.reuse). */
export class IdempotencyKeyReuse extends Schema.TaggedError<IdempotencyKeyReuse>()("IdempotencyKeyReuse", {}) {}

/** The result of a command, in any form. */
export interface CommandResult {
  /**
   * The answer that the command's record keeps, which repetitions of the request get (semantics idempotency.stored,
   * idempotency.released); null keeps none. A success always keeps one, or awaits the operation that it has begun.
   */
  readonly kept: StoredAnswer | Awaiting | null
  /** Null distinguishes a result from a replay. */
  readonly replayOf: null
}

/** Results on both channels: a success is committed, a failure leaves no change (only its answer, if kept). */
export type AnsweringCommand<A extends CommandResult = CommandResult> = Effect.Effect<A, A, Transaction>

/** A key that has no answer and belongs to one request until `release`. */
export interface Claim {
  readonly account: AccountId
  readonly request: RequestIdentity
  /** The actor that had no answer for the key. Another one has to look again. Null for a request without a key. */
  readonly checkedBy: Actor | null
  readonly replayOf: null
  readonly release: Effect.Effect<void>
}

/** The answer that a key has. */
export interface Replay extends StoredAnswer {
  /** API version of the request whose command ran. */
  readonly apiVersion: string
  /** Id of the request whose command ran. */
  readonly replayOf: string
}

export interface Idempotency {
  /**
   * Claims a request's idempotency key, or returns the answer that the key has. A request that has the same key and
   * still runs is waited for (semantics idempotency.in_use), and so, after a call of `onAwaits`, is the operation that
   * the key awaits. Until the claim is released, every other request with the key waits: `whenClaimed` releases it in
   * any case.
   */
  readonly claim: (
    account: AccountId,
    request: RequestIdentity,
    onAwaits?: () => void
  ) => Effect.Effect<Claim | Replay, Unavailable | IdempotencyKeyInUse | IdempotencyKeyReuse>

  /**
   * Runs the command of a claimed request and waits until its record is durable. If the account has moved or started
   * anew since the claim, the key is looked up again, and a replay may be returned.
   */
  readonly carryOut: <A extends CommandResult>(
    claim: Claim,
    command: AnsweringCommand<A>
  ) => Effect.Effect<A | Replay, Unavailable | IdempotencyKeyReuse>

  /**
   * Waits for the answer to a request that has begun an operation; undefined if its key was released. The first request
   * finds its own id in the replay.
   */
  readonly awaited: (
    account: AccountId,
    request: RequestIdentity
  ) => Effect.Effect<Replay | undefined, Unavailable | IdempotencyKeyInUse | IdempotencyKeyReuse>
}

/** Looks up the answers to keys: in memory, or in the log where a row of the views says so. */
const makeLookup = Effect.gen(function* () {
  const journal = yield* Journal
  const views = yield* Views
  const runningTime = yield* RunningTime
  const lookUp = yield* Batcher.make((addresses: ReadonlyArray<Address>) => views.keys(addresses))

  /** The row holds the version of the record, and the record everything else. */
  const stateOf = Effect.fnUntraced(function* ({
    account,
    key,
    version
  }: KeyRow): Effect.fn.Return<KeyState, StorageFailure> {
    const [row] = yield* journal.at([{ account, version }])
    if (row === undefined) throw missingRecord(account, version)
    const { at, ran = at, request, response } = readRow(row)
    if (request?.idempotencyKey !== key || response === null) throw missingItem(account, version, "the answer to a key")
    return { version, at: ran, request, response }
  })

  /** Finds the state of a key that may have been used, within its retention. */
  const find = (
    actor: Actor,
    key: string,
    now: Millis
  ): Effect.Effect<KeyState | undefined, StorageFailure | MailboxFull> => {
    const row = actor.reading(lookUp({ account: actor.account, id: key }))
    const state = actor.keys.load(
      key,
      actor.remembered(Effect.flatMap(row, (row) => (row === undefined ? NOT_USED : actor.reading(stateOf(row)))))
    )
    return Effect.map(state, (state) => (state && now - state.at < RETENTION_MILLIS ? state : undefined))
  }

  /** Another command may have answered a request, and its record may not be durable yet. */
  const durably = (actor: Actor, state: UsedKey): Effect.Effect<UsedKey, Closed> =>
    state.version <= actor.durable ? Effect.succeed(state) : Effect.as(actor.whenDurable(state.version), state)

  const isUnused = (actor: Actor, key: string): boolean => !actor.usedKeys.mayHave(key, runningTime.now())

  return {
    isUnused,

    /** Returns the answer that a request's key has or awaits; undefined if the key is free. */
    answerOf: (
      actor: Actor,
      { fingerprint, idempotencyKey }: RequestIdentity
    ): Effect.Effect<UsedKey | undefined, IdempotencyKeyReuse | Closed | StorageFailure | MailboxFull> => {
      if (idempotencyKey === null || isUnused(actor, idempotencyKey)) return NOT_USED
      return Effect.flatMap(
        find(actor, idempotencyKey, runningTime.now()),
        (state): Effect.Effect<UsedKey | undefined, IdempotencyKeyReuse | Closed> => {
          if (state === undefined || !isUsed(state)) return NOT_USED
          return state.request.fingerprint === fingerprint
            ? durably(actor, state)
            : Effect.fail(new IdempotencyKeyReuse())
        }
      )
    }
  }
})

/** The state of a key that was not released. */
type UsedKey = KeyState & { readonly response: StoredAnswer | Awaiting }

const isUsed = (state: KeyState): state is UsedKey => isAnswer(state.response) || isAwaiting(state.response)

type Claims = (
  account: AccountId,
  request: RequestIdentity,
  onAwaits?: () => void,
  deadline?: Millis
) => Effect.Effect<Claim | Replay, Unavailable | IdempotencyKeyInUse | IdempotencyKeyReuse>

export const make = Effect.fnUntraced(function* ({
  active,
  use
}: Pick<Actors, "active" | "use">): Effect.fn.Return<Idempotency, never, Journal | RunningTime | Scope.Scope | Views> {
  const { answerOf, isUnused } = yield* makeLookup
  const { hold, until } = makeHold(yield* Clock.Clock)

  /** Waits until the operation that a key awaits has an outcome, if it has none yet. */
  const outcomeOf = (
    actor: Actor,
    request: RequestIdentity
  ): Effect.Effect<Replay | undefined, Turned | IdempotencyKeyReuse> =>
    Effect.flatMap(answerOf(actor, request), (state) => {
      if (state === undefined || isAnswered(state)) return Effect.succeed(state && replayed(state))
      // Looked up anew: a wipe of the account may have come in between.
      return Effect.flatMap(actor.whenAnswered(request.idempotencyKey!), () => outcomeOf(actor, request))
    })

  const claim: Claims = (account, request, onAwaits, deadline) => {
    const { idempotencyKey } = request
    if (idempotencyKey === null) {
      return Effect.succeed({ account, request, checkedBy: null, replayOf: null, release: Effect.void })
    }
    const waiting = (end: Effect.Effect<void>) => use(account, (actor) => actor.reading(end))
    return Effect.flatMap(hold(`${account} ${idempotencyKey}`, waiting, deadline), (release) => {
      const claimedBy = (actor: Actor): Effect.Effect<Claim> =>
        Effect.succeed({ account, request, checkedBy: actor, replayOf: null, release })
      const known = active(account)
      // Nearly every key is new, and the filter in memory shows it.
      if (known !== undefined && isUnused(known, idempotencyKey)) return claimedBy(known)
      const found = use(account, (actor) =>
        Effect.flatMap(answerOf(actor, request), (state): Effect.Effect<Claim | Replay | undefined> => {
          if (state === undefined) return claimedBy(actor)
          return Effect.as(release, isAnswered(state) ? replayed(state) : undefined)
        })
      )
      return Effect.flatMap(
        Effect.onError(found, () => release),
        (found) =>
          found === undefined ? claimAfterOutcome(account, request, onAwaits, deadline) : Effect.succeed(found)
      )
    })
  }

  /** Claims a key whose operation has no outcome yet. If the operation releases it, one of the requests gets it. */
  const claimAfterOutcome: Claims = (account, request, onAwaits, deadline) => {
    onAwaits?.()
    const outcome = use(account, (actor) => outcomeOf(actor, request))
    return until(deadline, (latest) => Effect.as(outcome, latest)).pipe(
      Effect.flatMap((latest) => claim(account, request, onAwaits, latest))
    )
  }

  return {
    claim,

    awaited: (account, request) => until(undefined, () => use(account, (actor) => outcomeOf(actor, request))),

    carryOut: <A extends CommandResult>(
      { account, checkedBy, request }: Claim,
      program: AnsweringCommand<A>
    ): Effect.Effect<A | Replay, Unavailable | IdempotencyKeyReuse> => {
      const hasKey = request.idempotencyKey !== null
      const submit = (actor: Actor): Effect.Effect<A | Replay, Turned> =>
        Effect.callback<A, Turned>((resume) =>
          actor.take({ program, request, responseOf: hasKey ? answerToKeep : nothingToKeep }, (exit) =>
            resume(withoutRefusal(exit))
          )
        )
      // The account may have moved or started anew since the claim, so another actor may have the answer.
      const unlessAnswered = (actor: Actor) =>
        Effect.flatMap(outcomeOf(actor, request), (replay) =>
          replay === undefined ? submit(actor) : Effect.succeed(replay)
        )
      return use(account, (actor) => (actor === checkedBy ? submit(actor) : unlessAnswered(actor)), hasKey)
    }
  }
})

/**
 * Makes `hold`, which gives a name to one holder at a time and returns the function that releases it. While the name is
 * held, others wait in `waiting` for its end, up to a deadline. By default, that is `WAIT_MILLIS` from now.
 */
const makeHold = (clock: Clock.Clock) => {
  const held = new Map<string, Deferred.Deferred<void>>()
  /** The monotonic clock: setting the wall clock changes no wait. */
  const now = (): Millis => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  const hold = <E>(
    name: string,
    waiting: (end: Effect.Effect<void>) => Effect.Effect<void, E>,
    deadline?: Millis
  ): Effect.Effect<Effect.Effect<void>, E | IdempotencyKeyInUse> =>
    Effect.suspend(() => {
      const holder = held.get(name)
      if (holder === undefined) {
        const end = Deferred.makeUnsafe<void>()
        held.set(name, end)
        return Effect.succeed(
          Effect.sync(() => {
            if (held.get(name) === end) held.delete(name)
            Deferred.doneUnsafe(end, Exit.void)
          })
        )
      }
      const ended = until(deadline, (latest) => Effect.as(waiting(Deferred.await(holder)), latest))
      return Effect.flatMap(ended, (latest) => hold(name, waiting, latest))
    })
  /** Runs a wait up to the deadline; also within an uninterruptible region, a client that goes away ends it. */
  const until = <A, E>(
    deadline: Millis | undefined,
    wait: (latest: Millis) => Effect.Effect<A, E>
  ): Effect.Effect<A, E | IdempotencyKeyInUse> =>
    Effect.suspend(() => {
      const latest = deadline ?? now() + WAIT_MILLIS
      const ended = Effect.timeoutOrElse(wait(latest), {
        duration: Math.max(latest - now(), 0),
        orElse: () => Effect.fail(new IdempotencyKeyInUse())
      })
      return Effect.interruptible(ended)
    })
  return { hold, until }
}

/** Runs the work on a claim, and releases the claim however the work ends, also if its client goes away. */
export const whenClaimed = <A, E, E2>(
  claim: Effect.Effect<Claim | Replay, E>,
  work: (claimed: Claim) => Effect.Effect<A, E2>
): Effect.Effect<A | Replay, E | E2> =>
  Effect.uninterruptible(
    Effect.flatMap(claim, (claimed): Effect.Effect<A | Replay, E2> => {
      if (claimed.replayOf !== null) return Effect.succeed(claimed)
      const done = Effect.suspend(() => work(claimed))
      return Effect.onExit(done, () => claimed.release)
    })
  )

/** Claims a key and runs a command for it, unless the key has an answer. */
export const runOnce = <A extends CommandResult>(
  { carryOut, claim }: Idempotency,
  account: AccountId,
  request: RequestIdentity,
  makeCommand: () => AnsweringCommand<A>
): Effect.Effect<A | Replay, Unavailable | IdempotencyKeyInUse | IdempotencyKeyReuse> =>
  whenClaimed(claim(account, request), (claimed) => carryOut(claimed, makeCommand()))

const nothingToKeep = () => null

const answerToKeep = (exit: Exit.Exit<CommandResult, CommandResult>): StoredAnswer | Awaiting | null =>
  Exit.isSuccess(exit) ? exit.value.kept : (failureOf(exit)?.kept ?? null)

const failureOf = <E>({ cause }: Exit.Failure<unknown, E>): E | undefined =>
  cause.reasons.find((reason) => reason._tag === "Fail")?.error

/** Returns a result that leaves no change as a success. Failures of the actor stay failures. */
const withoutRefusal = <A extends CommandResult>(exit: Exit.Exit<A, A | Turned>): Exit.Exit<A, Turned> => {
  const failure = Exit.isSuccess(exit) ? undefined : failureOf(exit)
  return failure !== undefined && "kept" in failure ? Exit.succeed(failure) : (exit as Exit.Exit<A, Turned>)
}

type AnsweredKey = KeyState & { readonly response: StoredAnswer }

const isAnswered = (state: UsedKey): state is UsedKey & AnsweredKey => isAnswer(state.response)

const replayed = ({ request: { apiVersion, id }, response: { body, status } }: AnsweredKey): Replay => ({
  status,
  body,
  apiVersion,
  replayOf: id
})
