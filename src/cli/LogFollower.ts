/**
 * Follows a log of requests by asking again and again. Ids are in the order in which requests arrived, but the log has
 * one only after it was answered: a request may so appear behind others that were shown already. Each look therefore
 * begins some seconds before the newest request, and leaves out what was shown.
 */
import { Clock, Effect, Stream } from "effect"

/** A request that was answered within this time is not missed. */
const SETTLED_MILLIS = 10_000
/** No look reads more of what was shown already; where so much happens, slow requests may be missed. */
const SEEN_MAX = 200

/** What is followed. */
export interface FollowedLog<A extends { readonly id: string }, E> {
  /** The newest request of all, whether it is one of those that are followed or not. */
  readonly newest: Effect.Effect<string | undefined, E>
  /** Those that have arrived after one, or all, in the order in which they arrived. */
  readonly after: (id: string | undefined) => Stream.Stream<A, E>
}

const later = (a: string | undefined, b: string | undefined): string | undefined =>
  a === undefined || (b !== undefined && b > a) ? b : a

export class LogFollower<A extends { readonly id: string }, E> {
  readonly #log: FollowedLog<A, E>
  /** The newest requests of all at the last looks, with when that was. */
  #heads: Array<{ readonly id: string; readonly at: number }> = []
  #seen: ReadonlySet<string> = new Set()
  #anchor: string | undefined

  constructor(log: FollowedLog<A, E>) {
    this.#log = log
  }

  /** Begins behind the newest request. `shown` are some that need not be shown again. */
  begin(newest: string | undefined, shown: ReadonlyArray<A>): void {
    this.#heads = []
    this.#anchor = newest
    this.#seen = new Set(shown.map(({ id }) => id))
  }

  /** Shows what is new. After a failure, the next look goes on where this one ended. */
  readonly look = <E2>(show: (request: A) => Effect.Effect<void, E2>): Effect.Effect<void, E | E2> => {
    const follow = (newest: string | undefined, now: number) => {
      const seen = new Set(this.#seen)
      this.#seen = seen
      const unseen = Stream.filter(this.#log.after(this.#anchor), ({ id }) => !seen.has(id))
      const shown = Stream.runForEach(unseen, (request) =>
        Effect.tap(show(request), () => Effect.sync(() => seen.add(request.id)))
      )
      return Effect.tap(shown, () => Effect.sync(() => this.#advance(newest, now)))
    }
    return Effect.gen({ self: this }, function* () {
      const newest = yield* this.#log.newest
      yield* follow(newest, yield* Clock.currentTimeMillis)
    })
  }

  #advance(newest: string | undefined, now: number): void {
    if (newest !== undefined) this.#heads.push({ id: newest, at: now })
    const isSettled = ({ at }: { readonly at: number }) => at <= now - SETTLED_MILLIS
    while (this.#heads.length > 1 && isSettled(this.#heads[1]!)) this.#heads.shift()
    const [oldest] = this.#heads
    const settled = oldest !== undefined && isSettled(oldest) ? oldest.id : undefined
    const seen = [...this.#seen].toSorted()
    const anchor = later(later(this.#anchor, settled), seen.at(-SEEN_MAX - 1))
    this.#anchor = anchor
    this.#seen = new Set(anchor === undefined ? seen : seen.filter((id) => id > anchor))
  }
}
