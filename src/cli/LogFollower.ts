/**
 * Follows the request log by polling. Ids are in the order in which requests arrived, but a request enters the log only
 * after it was answered, so it may appear behind others that were already shown. Each poll therefore begins some
 * seconds before the newest request, and skips requests that were shown.
 */
import { Clock, Effect, Stream } from "effect"

/** Requests that are answered within this time are never missed. */
const SETTLED_MILLIS = 10_000
/** The number of shown requests that a poll reads again; at higher rates, slow requests may be missed. */
const SEEN_MAX = 200

/** The log to follow. */
export interface FollowedLog<A extends { readonly id: string }, E> {
  /** Id of the newest request, also if it does not match the filters. */
  readonly newest: Effect.Effect<string | undefined, E>
  /** Lists matching requests that arrived after one, or all, in the order of their arrival. */
  readonly after: (id: string | undefined) => Stream.Stream<A, E>
}

const later = (a: string | undefined, b: string | undefined): string | undefined =>
  a === undefined || (b !== undefined && b > a) ? b : a

export class LogFollower<A extends { readonly id: string }, E> {
  readonly #log: FollowedLog<A, E>
  /** The newest requests at the last polls, with the times of those polls. */
  #heads: Array<{ readonly id: string; readonly at: number }> = []
  #seen: ReadonlySet<string> = new Set()
  #anchor: string | undefined

  constructor(log: FollowedLog<A, E>) {
    this.#log = log
  }

  /** Begins after the newest request. `shown` are requests that are not to be shown again. */
  begin(newest: string | undefined, shown: ReadonlyArray<A>): void {
    this.#heads = []
    this.#anchor = newest
    this.#seen = new Set(shown.map(({ id }) => id))
  }

  /** Shows new requests. After a failure, the next poll continues where this one ended. */
  readonly poll = <E2>(show: (request: A) => Effect.Effect<void, E2>): Effect.Effect<void, E | E2> => {
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
