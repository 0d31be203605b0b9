/**
 * Idempotency: a request's command is carried out at most once per key (semantics §1.3).
 *
 * The response is part of the command's record, so "done" and "answered" are one fact. A repetition that arrives while
 * the first is executing waits for it. Where the first's response was not kept, the second executes.
 */
import { Clock, Deferred, Effect, Exit, Schema } from "effect"
import type { Scope } from "effect"
import type { Actor, Closed, KeyState } from "./Actor.ts"
import type { Unavailable, UseActor } from "./Actors.ts"
import * as Batcher from "../process/Batcher.ts"
import type { AccountId, Millis } from "../log/Document.ts"
import type { StorageFailure } from "../log/Journal.ts"
import { Journal } from "../log/Journal.ts"
import { RETENTION_MILLIS } from "./KeyFilter.ts"
import { RunningTime } from "./RunningTime.ts"
import type { KeyRow } from "../views/Projection.ts"
import type { RequestIdentity, StoredResponse } from "../log/Record.ts"
import { lost, notHeld, readRow } from "../log/Record.ts"
import type { Transaction } from "./Transaction.ts"
import type { Address } from "../views/Views.ts"
import { Views } from "../views/Views.ts"
import type { MailboxFull } from "../process/BoundedQueue.ts"

const NOT_USED = Effect.succeed(undefined)

/** A repetition waits for the first request for so long at most (semantics I8). */
const WAIT_MILLIS = 25_000

/** The same idempotency key is still being worked on by another request (semantics I8). */
export class IdempotencyKeyInUse extends Schema.TaggedError<IdempotencyKeyInUse>()("IdempotencyKeyInUse", {}) {}

/** The idempotency key was used for another request (semantics I7). */
export class IdempotencyKeyReuse extends Schema.TaggedError<IdempotencyKeyReuse>()("IdempotencyKeyReuse", {}) {}

/** A command answers with this. */
export interface Response {
  readonly status: number
  /** JSON text, as the record keeps it. Where it equals a document the command wrote, the journal holds it once. */
  readonly body: string
  /** The first answer shows this in the place of `body`. No record holds it, and no repetition gets it. */
  readonly shown?: string
  /** Says whether a repetition of the request gets this response again (semantics I9, I10). Successes always do. */
  readonly stored: boolean
  /** The first answer has these beside it. No record holds them, and no repetition gets them. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface Reply {
  readonly status: number
  /** As the record keeps it. */
  readonly body: string
  /** What to show in the place of `body`; never in a replay. */
  readonly shown?: string
  /** As the command answered; never in a replay. */
  readonly headers?: Readonly<Record<string, string>>
  readonly apiVersion: string
  /** Id of the request that was really carried out, if this is a replay of its response. */
  readonly replayOf: string | null
}

/**
 * Makes the command, once no earlier answer is found: a repetition costs no decoding, and is not refused for what a
 * newer version of Till would refuse in it. What it does is done before the command waits for its turn.
 */
export type MakeCommand = () => Effect.Effect<Response, Response, Transaction>

export interface Idempotency {
  readonly execute: (
    account: AccountId,
    request: RequestIdentity,
    makeCommand: MakeCommand,
    use: UseActor
  ) => Effect.Effect<Reply, Unavailable | IdempotencyKeyInUse | IdempotencyKeyReuse>
}

export const make: Effect.Effect<Idempotency, never, Journal | RunningTime | Scope.Scope | Views> = Effect.gen(
  function* () {
    const journal = yield* Journal
    const views = yield* Views
    const clock = yield* Clock.Clock
    const runningTime = yield* RunningTime
    const lookUp = yield* Batcher.make((addresses: ReadonlyArray<Address>) => views.keys(addresses))
    const exclusively = makeExclusively(clock)

    /** Finds what is known of a key that may have been used, if it is within its retention. */
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

    /** The row says where the record is; the record says all else. */
    const stateOf = Effect.fnUntraced(function* ({
      account,
      key,
      version
    }: KeyRow): Effect.fn.Return<KeyState, StorageFailure> {
      const [row] = yield* journal.at([{ account, version }])
      if (row === undefined) throw lost(account, version)
      const { at, ran = at, request, response } = readRow(row)
      if (request?.idempotencyKey !== key || response === null) throw notHeld(account, version, "the answer to a key")
      return { version, at: ran, request, response }
    })

    const once = (
      actor: Actor,
      request: RequestIdentity,
      makeCommand: MakeCommand
    ): Effect.Effect<Reply, IdempotencyKeyReuse | StorageFailure | Closed | MailboxFull> => {
      const { fingerprint, idempotencyKey } = request
      const responseOf = idempotencyKey === null ? () => null : responseToKeep
      const submit = () =>
        Effect.matchEffect(actor.submit({ program: Effect.mapError(makeCommand(), refused), request, responseOf }), {
          onSuccess: (response) => Effect.succeed(firstReply(request, response)),
          onFailure: (failure) =>
            failure instanceof Refused ? Effect.succeed(firstReply(request, failure.response)) : Effect.fail(failure)
        })
      const now = runningTime.now()
      if (idempotencyKey === null || !actor.usedKeys.mayHave(idempotencyKey, now)) return submit()
      return Effect.flatMap(find(actor, idempotencyKey, now), (state): ReturnType<typeof once> => {
        if (state === undefined) return submit()
        if (state.request.fingerprint !== fingerprint) return Effect.fail(new IdempotencyKeyReuse())
        return Effect.succeed(replayOf(state))
      })
    }

    return {
      execute: (account, request, makeCommand, use) => {
        // Once begun, the request is carried out, whether or not its client stays.
        const mayRepeat = request.idempotencyKey !== null
        const effect = use(account, (actor) => once(actor, request, makeCommand), mayRepeat)
        if (request.idempotencyKey === null) return Effect.uninterruptible(effect)
        const name = `${account} ${request.idempotencyKey}`
        return exclusively(name, effect, (end) => use(account, (actor) => actor.reading(end)))
      }
    }
  }
)

/**
 * Holds a name while an effect runs, to its end; whoever comes meanwhile waits for that, if `admit` lets them, and then
 * looks again.
 */
const makeExclusively = (clock: Clock.Clock) => {
  const executing = new Map<string, Deferred.Deferred<void>>()
  /** A clock that is set makes nobody wait for longer, or for less. */
  const now = (): Millis => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  const until = <F>(end: Effect.Effect<void, F>, deadline: Millis) =>
    Effect.timeoutOrElse(end, {
      duration: Math.max(deadline - now(), 0),
      orElse: () => Effect.fail(new IdempotencyKeyInUse())
    })
  const exclusively = <A, E, F>(
    name: string,
    effect: Effect.Effect<A, E>,
    admit: (end: Effect.Effect<void>) => Effect.Effect<void, F>,
    deadline?: Millis
  ): Effect.Effect<A, E | F | IdempotencyKeyInUse> =>
    // Nothing may come between taking the name and the promise to release it.
    Effect.uninterruptibleMask((restore): Effect.Effect<A, E | F | IdempotencyKeyInUse> => {
      const running = executing.get(name)
      if (running !== undefined) {
        const latest = deadline ?? now() + WAIT_MILLIS
        const end = until(admit(Deferred.await(running)), latest)
        return restore(Effect.andThen(end, exclusively(name, effect, admit, latest)))
      }
      const end = Deferred.makeUnsafe<void>()
      executing.set(name, end)
      return Effect.onExit(effect, () =>
        Effect.sync(() => {
          executing.delete(name)
          Deferred.doneUnsafe(end, Exit.void)
        })
      )
    })
  return exclusively
}

/** A command's answer that leaves no change. */
class Refused {
  readonly response: Response
  constructor(response: Response) {
    this.response = response
  }
}

const refused = (response: Response): Refused => new Refused(response)

const responseToKeep = (exit: Exit.Exit<Response, Refused>): StoredResponse | null => {
  if (Exit.isSuccess(exit)) return { status: exit.value.status, body: exit.value.body }
  const failure = exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error
  return failure?.response.stored ? { status: failure.response.status, body: failure.response.body } : null
}

const firstReply = ({ apiVersion }: RequestIdentity, { body, headers, shown, status }: Response): Reply => ({
  status,
  body,
  ...(shown !== undefined && { shown }),
  ...(headers !== undefined && { headers }),
  apiVersion,
  replayOf: null
})

const replayOf = ({ request, response }: KeyState): Reply => ({
  status: response.status,
  body: response.body,
  apiVersion: request.apiVersion,
  replayOf: request.id
})
