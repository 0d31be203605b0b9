/**
 * Which accounts this process serves. Every account lies in one of 64 partitions. If several processes share a
 * database, each partition has one owner at a time, or none while it moves.
 *
 * The engine checks `isHere` before it uses an account. Background work (timers, webhooks, scrubbing) runs for the
 * partitions `held`, and listens to their coming and going. Ownership is decided outside, by the caller of `acquire`,
 * `release`, `confirm` and `setPlace`.
 *
 * A process that was frozen may have lost partitions without notice. So its ownership counts only for a short time
 * after each confirmation, by the monotonic clock, and ends at once when there is reason to doubt it.
 */
import { Context, Effect, Exit, Layer, Option, type Scope } from "effect"
import { hash } from "node:crypto"
import { Condition } from "./Condition.ts"
import * as Metrics from "./Metrics.ts"

export type Partition = number

export const PARTITIONS = 64
/** How long a confirmation of ownership is valid, in milliseconds. */
export const CONFIRMED_MILLIS = 4000
/** How long `locate` waits for a partition that moves, in milliseconds. */
const LOCATE_MILLIS_MAX = 10_000
/** Accounts whose partition is cached: hashing costs a microsecond. */
const KNOWN_MAX = 100_000

const known = new Map<string, Partition>()

/**
 * The partition of an account: the lowest six bits of the first byte of its name's SHA-256. It must never change: two
 * processes with different mappings would both serve an account.
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

/** Hooks for the moves of partitions. `onLeaving` and `onReleasing` run from the last listener to the first. */
export interface PartitionListener {
  /** This process owns the partition; it serves it after all listeners have finished. */
  readonly onAcquired?: (partition: Partition) => Effect.Effect<void>
  /** The partition is served and held. Also called when that is confirmed again after an unconfirmed time. */
  readonly onServed?: (partition: Partition) => void
  /** The partition will be given up: ends its background work. Requests and their writes go on. */
  readonly onLeaving?: (partition: Partition) => Effect.Effect<void>
  /** Stops new work on the partition, and returns when running work has finished. Called after all `onLeaving`. */
  readonly onReleasing?: (partition: Partition) => Effect.Effect<void>
  /** Ownership was unconfirmed for a while: other processes may have changed any account of this one. */
  readonly onUnconfirmed?: () => void
  /** Another process has written to this account, of which this one may have a replica. */
  readonly onChanged?: (account: string) => void
  /** This process has written to this account, of which others may have a replica: they must be notified. */
  readonly onWritten?: (account: string) => void
}

/** Where an account is served: here, or at the URL of another process' internal listener. */
export type Place = "here" | { readonly url: string }

export interface PlacementShape {
  /** Whether this process serves the account now, and may answer from memory. */
  readonly isHere: (account: string) => boolean
  /** Whether no other process can serve the account now: work that has begun here may finish. */
  readonly isOwned: (account: string) => boolean
  /** Partitions of which this process may begin background work; null if it has all, always. */
  readonly held: () => ReadonlyArray<Partition> | null
  /** Adds a listener until the scope closes. */
  readonly listen: (listener: PartitionListener) => Effect.Effect<void, never, Scope.Scope>
  /** Returns the account's place. Waits while its partition moves; undefined if that takes too long. */
  readonly locate: (account: string) => Effect.Effect<Place | undefined>
  /** Notes that the process at this URL does not serve the account: its place is unknown until `setPlace` sets it. */
  readonly forgetPlace: (account: string, url: string) => void
  /** Notes that a record of an account with replicas elsewhere is durable. */
  readonly noteWritten: (account: string) => void

  readonly acquire: (partition: Partition) => Effect.Effect<void>
  /** Gives a partition up; returns when no work on it is running here. */
  readonly release: (partition: Partition) => Effect.Effect<void>
  /** Confirms ownership as of a time of `performance.now()`: when the query was sent, not when it was answered. */
  readonly confirm: (at: number) => void
  /** Ends all confirmations: other processes may own the partitions of this one from now on. */
  readonly unconfirm: () => void
  /** Sets the URL at which a partition's owner serves it; null while the owner gives it up. */
  readonly setPlace: (partition: Partition, url: string | null) => void
  /** Notes that another process has written to an account of which this one may have a replica. */
  readonly noteChanged: (account: string) => void
}

export class Placement extends Context.Service<Placement, PlacementShape>()("till/engine/Placement") {
  /** For a process that serves all partitions. */
  static readonly layerSole: Layer.Layer<Placement> = Layer.sync(Placement, () => makeSole())
  /** For one of several processes: it serves the partitions that it acquires. */
  static readonly layerShared: Layer.Layer<Placement> = Placement.layerSharedBy(() => performance.now())
  /** `layerShared` with another monotonic clock, in milliseconds: for tests. */
  static layerSharedBy(now: () => number): Layer.Layer<Placement> {
    return Layer.effect(
      Placement,
      Effect.gen(function* () {
        const countMoves = yield* Metrics.counters(MOVES, [["acquired"], ["released"]])
        const shared = new Shared(now, (direction) => countMoves([direction]))
        yield* Metrics.observeGauge(HELD, () => shared.held().length)
        return shared
      })
    )
  }
}

const HELD = {
  name: "till_partitions_held",
  description: "Partitions that this process serves, if several processes share a database."
}
const MOVES = {
  name: "till_partition_moves_total",
  description: "Partitions that this process has acquired and released.",
  labels: ["direction"]
}

const makeSole = (): PlacementShape => ({
  isHere: () => true,
  isOwned: () => true,
  held: () => null,
  listen: () => Effect.void,
  locate: () => Exit.succeed("here"),
  forgetPlace: () => undefined,
  noteWritten: () => undefined,
  acquire: () => Effect.void,
  release: () => Effect.void,
  confirm: () => undefined,
  unconfirm: () => undefined,
  setPlace: () => undefined,
  noteChanged: () => undefined
})

class Shared implements PlacementShape {
  readonly #served = new Set<Partition>()
  readonly #leaving = new Set<Partition>()
  readonly #owned = new Set<Partition>()
  readonly #places = new Map<Partition, string>()
  readonly #listeners = new Set<PartitionListener>()
  readonly #moved = new Condition()
  readonly #now: () => number
  #confirmedAt = Number.NEGATIVE_INFINITY
  #unconfirmedAt = Number.NEGATIVE_INFINITY

  readonly #countMove: (direction: "acquired" | "released") => void

  constructor(now: () => number, countMove: (direction: "acquired" | "released") => void) {
    this.#now = now
    this.#countMove = countMove
  }

  readonly isHere = (account: string): boolean => this.#served.has(partitionOf(account)) && this.#isConfirmed

  readonly isOwned = (account: string): boolean => this.#owned.has(partitionOf(account)) && this.#isConfirmed

  readonly held = (): ReadonlyArray<Partition> =>
    this.#isConfirmed ? [...this.#served].filter((partition) => !this.#leaving.has(partition)) : []

  readonly listen = (listener: PartitionListener): Effect.Effect<void, never, Scope.Scope> =>
    Effect.asVoid(
      Effect.acquireRelease(
        Effect.sync(() => this.#listeners.add(listener)),
        () => Effect.sync(() => this.#listeners.delete(listener))
      )
    )

  readonly locate = (account: string): Effect.Effect<Place | undefined> => {
    const partition = partitionOf(account)
    const now = this.#placeOf(partition)
    if (now !== undefined) return Exit.succeed(now)
    const place = this.#moved.waitFor(() => this.#placeOf(partition))
    return Effect.map(Effect.timeoutOption(place, LOCATE_MILLIS_MAX), Option.getOrUndefined)
  }

  readonly forgetPlace = (account: string, url: string): void => {
    const partition = partitionOf(account)
    if (this.#places.get(partition) === url) this.#places.delete(partition)
  }

  readonly noteWritten = (account: string): void => {
    for (const { onWritten } of this.#listeners) onWritten?.(account)
  }

  readonly noteChanged = (account: string): void => {
    for (const { onChanged } of this.#listeners) onChanged?.(account)
  }

  readonly acquire = (partition: Partition): Effect.Effect<void> =>
    Effect.gen({ self: this }, function* () {
      this.#owned.add(partition)
      for (const { onAcquired } of this.#listeners) if (onAcquired !== undefined) yield* onAcquired(partition)
      this.#served.add(partition)
      this.#countMove("acquired")
      if (this.#isConfirmed) this.#callServed([partition])
      this.#moved.signal()
    })

  readonly release = (partition: Partition): Effect.Effect<void> =>
    Effect.gen({ self: this }, function* () {
      const lastToFirst = [...this.#listeners].toReversed()
      this.#leaving.add(partition)
      for (const { onLeaving } of lastToFirst) if (onLeaving !== undefined) yield* onLeaving(partition)
      this.#served.delete(partition)
      this.#leaving.delete(partition)
      for (const { onReleasing } of lastToFirst) if (onReleasing !== undefined) yield* onReleasing(partition)
      this.#owned.delete(partition)
      this.#places.delete(partition)
      this.#countMove("released")
      this.#moved.signal()
    })

  readonly confirm = (at: number): void => {
    if (at < this.#unconfirmedAt) return
    const wasConfirmed = this.#isConfirmed
    // Before ownership counts again: accounts in memory are from before the unconfirmed time.
    if (at - this.#confirmedAt >= CONFIRMED_MILLIS) for (const { onUnconfirmed } of this.#listeners) onUnconfirmed?.()
    this.#confirmedAt = Math.max(this.#confirmedAt, at)
    if (!wasConfirmed) this.#callServed(this.held())
    this.#moved.signal()
  }

  readonly unconfirm = (): void => {
    this.#unconfirmedAt = this.#now()
    this.#confirmedAt = Number.NEGATIVE_INFINITY
  }

  readonly setPlace = (partition: Partition, url: string | null): void => {
    if (url === null) this.#places.delete(partition)
    else this.#places.set(partition, url)
    this.#moved.signal()
  }

  get #isConfirmed(): boolean {
    return this.#now() - this.#confirmedAt < CONFIRMED_MILLIS
  }

  #placeOf(partition: Partition): Place | undefined {
    if (this.#served.has(partition)) return this.#isConfirmed ? "here" : undefined
    const url = this.#places.get(partition)
    return url === undefined || this.#owned.has(partition) ? undefined : { url }
  }

  #callServed(partitions: ReadonlyArray<Partition>): void {
    for (const { onServed } of this.#listeners) for (const partition of partitions) onServed?.(partition)
  }
}
