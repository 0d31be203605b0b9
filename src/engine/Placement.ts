/**
 * Which accounts this process serves. Every account lies in one of 64 partitions, and of several processes on one
 * database each partition has one owner at a time, or none while it moves.
 *
 * The engine asks `isHere` before it uses an account. Whoever does work for accounts that nobody asked for (timers,
 * webhooks, scrubbing) takes that of the partitions `held`, and attends their coming and going. Who owns what is decided
 * outside: it calls `gain`, `release`, `confirm` and `placed`.
 *
 * A process that was frozen does not know what it has lost meanwhile. So what it owns counts for as long as that was
 * confirmed lately, by the monotonic clock.
 */
import { Context, Effect, Layer } from "effect"
import type { Scope } from "effect"
import { hash } from "node:crypto"
import type { AccountId } from "./Document.ts"

/** Number of an account's partition, from 0. */
export type Partition = number

export const PARTITIONS = 64
/** What this process owns counts for so long after it was confirmed, in milliseconds. */
export const CONFIRMED_MILLIS = 4000
/** Whoever asks where an account is waits so long for a partition that moves, in milliseconds. */
const LOCATE_MILLIS_MAX = 10_000
/** Partitions of accounts that are remembered: hashing costs a microsecond. */
const KNOWN_MAX = 100_000

const known = new Map<AccountId, Partition>()

/**
 * The partition of an account: the first six bits of the SHA-256 of its name, lowest of the first byte. SQL has the same
 * as `get_byte(sha256(convert_to(account, 'UTF8')), 0) & 63`. It is never to change: owners of two opinions would both
 * serve an account.
 */
export const partitionOf = (account: AccountId): Partition => {
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
  /** Nothing of it begins here any more; ends when what has begun is over. Called last to first. */
  readonly releasing?: (partition: Partition) => Effect.Effect<void>
}

/** Where an account is served: here, or at the address of another process' listener for its like. */
export type Place = "here" | { readonly url: string }

export interface PlacementShape {
  /** Tells whether this process serves the account now, and may answer from memory. */
  readonly isHere: (account: AccountId) => boolean
  /** The partitions of this process; null where it has all of them, always. */
  readonly held: () => ReadonlyArray<Partition> | null
  /** Has an attendant called, until the scope closes. */
  readonly attend: (attendant: Attendant) => Effect.Effect<void, never, Scope.Scope>
  /** Where the account is served. Waits while its partition moves; undefined if that takes too long. */
  readonly locate: (account: AccountId) => Effect.Effect<Place | undefined>
  /** Whoever was asked at that address has not got the account: the place is not believed until `placed` says more. */
  readonly notAt: (account: AccountId, url: string) => void

  /** Takes a partition over: ends when it is served here. */
  readonly gain: (partition: Partition) => Effect.Effect<void>
  /** Gives a partition up: ends when nothing of it is under way here any more. */
  readonly release: (partition: Partition) => Effect.Effect<void>
  /** What this process owns was confirmed at that time of `performance.now()`. */
  readonly confirm: (at: number) => void
  /** A partition's owner has said that it is to be found there, or, with null, that it gives it up. */
  readonly placed: (partition: Partition, url: string | null) => void
}

export class Placement extends Context.Service<Placement, PlacementShape>()("till/engine/Placement") {
  /** One process serves everything. */
  static readonly layerSole: Layer.Layer<Placement> = Layer.sync(Placement, () => makeSole())
  /** This process serves what it gains. */
  static readonly layerShared: Layer.Layer<Placement> = Layer.sync(Placement, () => makeShared())
}

const makeSole = (): PlacementShape => ({
  isHere: () => true,
  held: () => null,
  attend: () => Effect.void,
  locate: () => Effect.succeed("here"),
  notAt: () => undefined,
  gain: () => Effect.void,
  release: () => Effect.void,
  confirm: () => undefined,
  placed: () => undefined
})

const makeShared = (): PlacementShape => {
  const served = new Set<Partition>()
  const owned = new Set<Partition>()
  const places = new Map<Partition, string>()
  const attendants = new Set<Attendant>()
  const waiters = new Set<() => void>()
  let confirmedAt = Number.NEGATIVE_INFINITY

  const isConfirmed = (): boolean => performance.now() - confirmedAt < CONFIRMED_MILLIS
  const news = (): void => {
    for (const waiter of waiters) waiter()
  }
  const placeOf = (partition: Partition): Place | undefined => {
    if (served.has(partition)) return isConfirmed() ? "here" : undefined
    const url = places.get(partition)
    return url === undefined || owned.has(partition) ? undefined : { url }
  }

  return {
    isHere: (account) => served.has(partitionOf(account)) && isConfirmed(),
    held: () => [...served],
    attend: (attendant) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => attendants.add(attendant)),
          () => Effect.sync(() => attendants.delete(attendant))
        )
      ),
    locate: (account) => {
      const partition = partitionOf(account)
      return Effect.suspend(() => {
        const place = placeOf(partition)
        if (place !== undefined) return Effect.succeed(place)
        const moved = Effect.callback<Place>((resume) => {
          const look = () => {
            const place = placeOf(partition)
            if (place !== undefined) resume(Effect.succeed(place))
          }
          waiters.add(look)
          return Effect.sync(() => waiters.delete(look))
        })
        return Effect.map(Effect.timeoutOption(moved, LOCATE_MILLIS_MAX), (place) =>
          place._tag === "Some" ? place.value : undefined
        )
      })
    },
    notAt: (account, url) => {
      const partition = partitionOf(account)
      if (places.get(partition) === url) places.delete(partition)
    },
    gain: (partition) =>
      Effect.gen(function* () {
        owned.add(partition)
        for (const { gained } of attendants) if (gained !== undefined) yield* gained(partition)
        served.add(partition)
        news()
      }),
    release: (partition) =>
      Effect.gen(function* () {
        served.delete(partition)
        for (const { releasing } of [...attendants].toReversed()) {
          if (releasing !== undefined) yield* releasing(partition)
        }
        owned.delete(partition)
        places.delete(partition)
        news()
      }),
    confirm: (at) => {
      confirmedAt = Math.max(confirmedAt, at)
      news()
    },
    placed: (partition, url) => {
      if (url === null) places.delete(partition)
      else places.set(partition, url)
      news()
    }
  }
}
