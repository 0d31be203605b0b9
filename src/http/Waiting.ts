/**
 * Requests that wait for news (semantics requests.wait). A read runs again whenever a record has changed objects of its
 * kind, until it returns news or its time is over.
 *
 * A waiting request makes no query and holds no place among the running commands. The number of waiting requests is
 * limited, for each account and in all. When the service stops, every one of them gets its last read as its answer;
 * when the account moves to another process, the read fails, and the request is forwarded.
 */
import { Context, Deferred, Effect, Exit, Latch, Layer, Option, type Scope } from "effect"
import { Unavailable } from "../engine/Accounts.ts"
import type { AccountId } from "../engine/log/Document.ts"
import { Placement } from "../engine/process/Placement.ts"
import { CommitFeed } from "../engine/views/CommitFeed.ts"

/** Waiting requests of this process, and of one account: the commands of a team. */
const WAITING_MAX = 1000
export const ACCOUNT_WAITING_MAX = 50
/** Window in which changes are collected into one read, in milliseconds. */
const TOGETHER_MILLIS = 50
/** Interval of checks whether this process still serves the account, in milliseconds. */
const CHECK_MILLIS = 1000

export interface Wait<A, E, R> {
  readonly account: AccountId
  /** The kind of documents, or `event`, whose changes may be news. */
  readonly kind: string
  readonly seconds: number
  readonly read: Effect.Effect<A, E, R>
  readonly isNews: (result: A) => boolean
}

export interface WaitingShape {
  readonly until: <A, E, R>(wait: Wait<A, E, R>) => Effect.Effect<A, E | Unavailable, R>
  /** Fails when the service stops. */
  readonly untilStop: Effect.Effect<never, Unavailable>
}

/** Without a provided service, requests do not wait. */
export const Waiting: Context.Reference<WaitingShape> = Context.Reference("till/http/Waiting", {
  defaultValue: (): WaitingShape => ({ until: ({ read }) => read, untilStop: Effect.never })
})

/** Reads at once without a number of seconds; otherwise waits that long for news. */
export const readWaiting = <A, E, R>(
  seconds: number | undefined,
  wait: Omit<Wait<A, E, R>, "seconds">
): Effect.Effect<A, E | Unavailable, R> =>
  seconds === undefined ? wait.read : Effect.flatMap(Waiting, ({ until }) => until({ ...wait, seconds }))

/** True for a request that may wait for news, by the text of its query. */
export const mayWait = (query: string): boolean => /(?:^|&)wait=/u.test(query)

class Waiters {
  readonly #accounts = new Map<() => void, AccountId>()
  readonly stopped = Deferred.makeUnsafe<never, Unavailable>()
  isStopping = false

  /** Counts a waiting request until the scope closes. */
  register(account: AccountId, wakeUp: () => void): Effect.Effect<void, Unavailable, Scope.Scope> {
    return Effect.suspend(() => {
      const own = [...this.#accounts.values()].filter((other) => other === account).length
      if (own >= ACCOUNT_WAITING_MAX || this.#accounts.size >= WAITING_MAX) {
        return Effect.fail(new Unavailable({ reason: "Too many requests wait for news." }))
      }
      return Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => this.#accounts.set(wakeUp, account)),
          () => Effect.sync(() => this.#accounts.delete(wakeUp))
        )
      )
    })
  }

  stop(): void {
    this.isStopping = true
    Deferred.doneUnsafe(this.stopped, Exit.fail(new Unavailable({ reason: "Till stops." })))
    for (const wakeUp of this.#accounts.keys()) wakeUp()
  }
}

/** All waiting requests of this process. */
class AllWaiters extends Context.Service<AllWaiters, Waiters>()("till/http/Waiters") {}

const make = Effect.gen(function* () {
  const feed = yield* CommitFeed
  const { isHere } = yield* Placement
  const waiters = yield* AllWaiters

  const until = Effect.fnUntraced(function* <A, E, R>({ account, isNews, kind, read, seconds }: Wait<A, E, R>) {
    const endsAt = performance.now() + seconds * 1000
    const news = Latch.makeUnsafe(false)
    const wakeUp = () => void news.openUnsafe()
    yield* waiters.register(account, wakeUp)
    // A record without changed kinds may have emptied the account.
    yield* feed.watch(account, (changed) => (changed.size === 0 || changed.has(kind)) && wakeUp())
    /** Waits for news, the end of the time, or the account's move. */
    const change = Effect.gen(function* () {
      for (let left = endsAt - performance.now(); left > 0 && isHere(account); left = endsAt - performance.now()) {
        const woken = yield* Effect.timeoutOption(news.await, Math.min(left, CHECK_MILLIS))
        if (Option.isSome(woken)) return yield* Effect.sleep(waiters.isStopping ? 0 : TOGETHER_MILLIS)
      }
    })
    for (;;) {
      news.closeUnsafe()
      const isLast = waiters.isStopping || performance.now() >= endsAt
      const result = yield* read
      if (isLast || isNews(result)) return result
      yield* change
    }
  }, Effect.scoped)
  return { until, untilStop: Deferred.await(waiters.stopped) } satisfies WaitingShape
})

const waiters = Layer.sync(AllWaiters, () => new Waiters())

export const layer: Layer.Layer<never, never, CommitFeed | Placement> = Layer.effect(Waiting, make).pipe(
  Layer.provide(waiters)
)

/** Ends all waits with this layer. It must close before the server, which waits for running requests. */
export const ending: Layer.Layer<never> = Layer.effectDiscard(
  Effect.flatMap(AllWaiters, (all) => Effect.addFinalizer(() => Effect.sync(() => all.stop())))
).pipe(Layer.provide(waiters))
