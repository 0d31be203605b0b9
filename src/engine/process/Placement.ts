/**
 * Which accounts this process serves. Every account lies in one of 64 partitions, and of several processes on one
 * database each partition has one owner at a time, or none while it moves.
 *
 * The engine asks `isHere` before it uses an account. Whoever does work for accounts that nobody asked for (timers,
 * webhooks, scrubbing) takes that of the partitions `held`, and attends their coming and going. Who owns what is
 * decided outside: it calls `gain`, `release`, `confirm` and `placed`.
 *
 * A process that was frozen does not know what it has lost meanwhile. So what it owns counts for as long as that was
 * confirmed lately, by the monotonic clock, and nothing has told it since that it may be another's.
 */
import { Context, Effect, Exit, Layer, Option } from "effect"
import type { Scope } from "effect"
import { hash } from "node:crypto"

/** Number of an account's partition, from 0. */
export type Partition = number

export const PARTITIONS = 64
/** What this process owns counts for so long after it was confirmed, in milliseconds. */
export const CONFIRMED_MILLIS = 4000
/** Whoever asks where an account is waits so long for a partition that moves, in milliseconds. */
const LOCATE_MILLIS_MAX = 10_000
/** Partitions of accounts that are remembered: hashing costs a microsecond. */
const KNOWN_MAX = 100_000

const known = new Map<string, Partition>()

/**
 * The partition of an account: the lowest six bits of the first byte of its name's SHA-256. In SQL it is
 * `get_byte(sha256(convert_to(account, 'UTF8')), 0) & 63`. It is never to change: owners of two opinions would both
 * serve an account.
 */
export const partitionOf = (account: string): Partition => {
  let partition = known.get(account)
  if (partition === undefined) {
    partition = Number.parseInt(hash("sha256", account).slice(0, 2), 16) % PARTITIONS
    if (known.size >= KNOWN_MAX) known.clear()
    known.set(account, partition)
  }
  return partition
}

/** Somebody who works for partitions while they are here. */
export interface Attendant {
  /** The partition is this process', and is served once all attendants are ready for it. */
  readonly gained?: (partition: Partition) => Effect.Effect<void>
  /** It is served and held: also when that is confirmed again, after a time in which it was not. */
  readonly served?: (partition: Partition) => void
  /**
   * It is held no more, and will be given up. Ends when the work that nobody asked for is over. Requests are still
   * served here meanwhile, and what came of the work can be written. Called last to first.
   */
  readonly leaving?: (partition: Partition) => Effect.Effect<void>
  /** Nothing of it begins here any more; ends when what has begun is over. Last to first, after all have left. */
  readonly releasing?: (partition: Partition) => Effect.Effect<void>
  /** For a while nothing confirmed what this process owns: others may have served any of it, and have changed it. */
  readonly lapsed?: () => void
  /** Another process has written to this account, of which this one may have a replica. */
  readonly heard?: (account: string) => void
  /** This process has written to this account, of which others may have a replica: they are to hear of it. */
  readonly wrote?: (account: string) => void
}

/** Where an account is served: here, or at the address of another process' listener for its like. */
export type Place = "here" | { readonly url: string }

export interface PlacementShape {
  /** Tells whether this process serves the account now, and may answer from memory. */
  readonly isHere: (account: string) => boolean
  /**
   * Tells whether nobody else can serve the account now: also while its partition comes or goes. What has begun here
   * may end here.
   */
  readonly isOwned: (account: string) => boolean
  /**
   * The partitions whose work this process begins, and none of them as long as it is not confirmed that they are its
   * own. Null where it has all of them, always.
   */
  readonly held: () => ReadonlyArray<Partition> | null
  /** Has an attendant called, until the scope closes. */
  readonly attend: (attendant: Attendant) => Effect.Effect<void, never, Scope.Scope>
  /**
   * Where the account is served: an `Exit` if that is known now. Waits while its partition moves; undefined if that
   * takes too long.
   */
  readonly locate: (account: string) => Effect.Effect<Place | undefined>
  /** Whoever was asked at that address has not got the account: the place is not believed until `placed` says more. */
  readonly notAt: (account: string, url: string) => void
  /** A record of the account, of which others have replicas, is durable. */
  readonly wrote: (account: string) => void

  /** Takes a partition over: ends when it is served here. */
  readonly gain: (partition: Partition) => Effect.Effect<void>
  /** Gives a partition up: ends when nothing of it is under way here any more. */
  readonly release: (partition: Partition) => Effect.Effect<void>
  /**
   * What this process owns was confirmed at that time of `performance.now()`: when the question was sent, not when it
   * was answered.
   */
  readonly confirm: (at: number) => void
  /** What this process owns may be another's from now on: what was confirmed before counts no more. */
  readonly doubt: () => void
  /** A partition's owner has said that it is to be found there, or, with null, that it gives it up. */
  readonly placed: (partition: Partition, url: string | null) => void
  /** Another process has written to an account of which this one may have a replica. */
  readonly heard: (account: string) => void
}

export class Placement extends Context.Service<Placement, PlacementShape>()("till/engine/Placement") {
  /** One process serves everything. */
  static readonly layerSole: Layer.Layer<Placement> = Layer.sync(Placement, () => makeSole())
  /** This process serves what it gains. */
  static readonly layerShared: Layer.Layer<Placement> = Layer.sync(Placement, () => new Shared(() => performance.now()))
  /** The same by another clock, in milliseconds, which never goes back: for tests. */
  static readonly layerSharedBy = (now: () => number): Layer.Layer<Placement> =>
    Layer.sync(Placement, () => new Shared(now))
}

const makeSole = (): PlacementShape => ({
  isHere: () => true,
  isOwned: () => true,
  held: () => null,
  attend: () => Effect.void,
  locate: () => Exit.succeed("here"),
  notAt: () => undefined,
  wrote: () => undefined,
  gain: () => Effect.void,
  release: () => Effect.void,
  confirm: () => undefined,
  doubt: () => undefined,
  placed: () => undefined,
  heard: () => undefined
})

class Shared implements PlacementShape {
  readonly #served = new Set<Partition>()
  readonly #leaving = new Set<Partition>()
  readonly #owned = new Set<Partition>()
  readonly #places = new Map<Partition, string>()
  readonly #attendants = new Set<Attendant>()
  readonly #waiters = new Set<() => void>()
  readonly #now: () => number
  #confirmedAt = Number.NEGATIVE_INFINITY
  #doubtedAt = Number.NEGATIVE_INFINITY

  constructor(now: () => number) {
    this.#now = now
  }

  readonly isHere = (account: string): boolean => this.#served.has(partitionOf(account)) && this.#isConfirmed

  readonly isOwned = (account: string): boolean => this.#owned.has(partitionOf(account)) && this.#isConfirmed

  readonly held = (): ReadonlyArray<Partition> =>
    this.#isConfirmed ? [...this.#served].filter((partition) => !this.#leaving.has(partition)) : []

  readonly attend = (attendant: Attendant): Effect.Effect<void, never, Scope.Scope> =>
    Effect.asVoid(
      Effect.acquireRelease(
        Effect.sync(() => this.#attendants.add(attendant)),
        () => Effect.sync(() => this.#attendants.delete(attendant))
      )
    )

  readonly locate = (account: string): Effect.Effect<Place | undefined> => {
    const partition = partitionOf(account)
    const now = this.#placeOf(partition)
    if (now !== undefined) return Exit.succeed(now)
    const known = Effect.callback<Place>((resume) => {
      const look = () => {
        const place = this.#placeOf(partition)
        if (place === undefined) return
        this.#waiters.delete(look)
        resume(Effect.succeed(place))
      }
      this.#waiters.add(look)
      look()
      return Effect.sync(() => this.#waiters.delete(look))
    })
    return Effect.map(Effect.timeoutOption(known, LOCATE_MILLIS_MAX), Option.getOrUndefined)
  }

  readonly notAt = (account: string, url: string): void => {
    const partition = partitionOf(account)
    if (this.#places.get(partition) === url) this.#places.delete(partition)
  }

  readonly wrote = (account: string): void => {
    for (const { wrote } of this.#attendants) wrote?.(account)
  }

  readonly heard = (account: string): void => {
    for (const { heard } of this.#attendants) heard?.(account)
  }

  readonly gain = (partition: Partition): Effect.Effect<void> =>
    Effect.gen({ self: this }, function* () {
      this.#owned.add(partition)
      for (const { gained } of this.#attendants) if (gained !== undefined) yield* gained(partition)
      this.#served.add(partition)
      if (this.#isConfirmed) this.#tellServed([partition])
      this.#tell()
    })

  readonly release = (partition: Partition): Effect.Effect<void> =>
    Effect.gen({ self: this }, function* () {
      const lastToFirst = [...this.#attendants].toReversed()
      this.#leaving.add(partition)
      for (const { leaving } of lastToFirst) if (leaving !== undefined) yield* leaving(partition)
      this.#served.delete(partition)
      this.#leaving.delete(partition)
      for (const { releasing } of lastToFirst) if (releasing !== undefined) yield* releasing(partition)
      this.#owned.delete(partition)
      this.#places.delete(partition)
      this.#tell()
    })

  readonly confirm = (at: number): void => {
    if (at < this.#doubtedAt) return
    const wasConfirmed = this.#isConfirmed
    // Before it counts again: what is in memory is of before.
    if (at - this.#confirmedAt >= CONFIRMED_MILLIS) for (const { lapsed } of this.#attendants) lapsed?.()
    this.#confirmedAt = Math.max(this.#confirmedAt, at)
    if (!wasConfirmed) this.#tellServed(this.held())
    this.#tell()
  }

  readonly doubt = (): void => {
    this.#doubtedAt = this.#now()
    this.#confirmedAt = Number.NEGATIVE_INFINITY
  }

  readonly placed = (partition: Partition, url: string | null): void => {
    if (url === null) this.#places.delete(partition)
    else this.#places.set(partition, url)
    this.#tell()
  }

  get #isConfirmed(): boolean {
    return this.#now() - this.#confirmedAt < CONFIRMED_MILLIS
  }

  #placeOf(partition: Partition): Place | undefined {
    if (this.#served.has(partition)) return this.#isConfirmed ? "here" : undefined
    const url = this.#places.get(partition)
    return url === undefined || this.#owned.has(partition) ? undefined : { url }
  }

  #tellServed(partitions: ReadonlyArray<Partition>): void {
    for (const { served } of this.#attendants) for (const partition of partitions) served?.(partition)
  }

  #tell(): void {
    for (const waiter of this.#waiters) waiter()
  }
}
