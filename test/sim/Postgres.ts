/**
 * The Postgres functions by which runners share partitions, in memory: the members, the holder of each partition's
 * lock, and the place of each partition. It has the guarantees of `effect/cluster`: a lock has at most one holder, a
 * silent session loses its locks, and all runners eventually receive the same assignment. A runner that the others
 * cannot reach is assigned nothing.
 */
import { hash } from "node:crypto"
import type { Partition } from "../../src/engine/process/Placement.ts"

/** The silence after which a session ends, in milliseconds. */
const SESSION_MILLIS_MAX = 6000
/** The silence after which a runner counts as dead, in milliseconds. */
const SILENT_MILLIS_MAX = 3500

export interface Session {
  readonly runner: string
  readonly locks: Set<Partition>
  lastSeenAt: number
  isOver: boolean
}

export interface Assignment {
  readonly held: ReadonlySet<Partition>
  readonly assigned: ReadonlySet<Partition>
}

export class Postgres {
  readonly places = new Map<Partition, string>()
  readonly partitions: ReadonlyArray<Partition>
  readonly #now: () => number
  readonly #sessions = new Set<Session>()
  readonly #members = new Map<string, number>()

  readonly #isReached: (runner: string) => boolean

  constructor(partitions: ReadonlyArray<Partition>, now: () => number, isReached: (runner: string) => boolean) {
    this.partitions = partitions
    this.#now = now
    this.#isReached = isReached
  }

  connect(runner: string): Session {
    const session = { runner, locks: new Set<Partition>(), lastSeenAt: this.#now(), isOver: false }
    this.#sessions.add(session)
    return session
  }

  /** Refreshes a runner's membership and returns its locks and its assignment; undefined if the session has ended. */
  refresh(session: Session): Assignment | undefined {
    this.#touch(session)
    if (session.isOver) return undefined
    this.#members.set(session.runner, this.#now())
    return { held: new Set(session.locks), assigned: this.#assignedTo(session.runner) }
  }

  /** Locks the partitions without another holder; returns those that the session holds. */
  lock(session: Session, partitions: ReadonlyArray<Partition>): ReadonlyArray<Partition> {
    this.#touch(session)
    if (session.isOver) return []
    const others = [...this.#sessions].filter((other) => other !== session)
    const free = partitions.filter((partition) => !others.some(({ locks }) => locks.has(partition)))
    for (const partition of free) session.locks.add(partition)
    return free
  }

  unlock(session: Session, partition: Partition): void {
    this.#touch(session)
    session.locks.delete(partition)
  }

  /** Removes a runner from the assignment. */
  leave(runner: string): void {
    this.#members.delete(runner)
  }

  end(session: Session): void {
    session.isOver = true
    session.locks.clear()
    this.#sessions.delete(session)
  }

  /** Records a sign of life, after ending every session that was silent for too long. */
  #touch(session: Session): void {
    const now = this.#now()
    for (const other of this.#sessions) if (now - other.lastSeenAt > SESSION_MILLIS_MAX) this.end(other)
    session.lastSeenAt = now
  }

  /** Returns the partitions of a runner: each belongs to the runner with the highest hash of name and number. */
  #assignedTo(runner: string): ReadonlySet<Partition> {
    const now = this.#now()
    const members = [...this.#members].flatMap(([name, at]) =>
      now - at > SILENT_MILLIS_MAX || !this.#isReached(name) ? [] : [name]
    )
    if (!members.includes(runner)) return new Set()
    const rank = (name: string, partition: Partition) => hash("sha256", `${partition} ${name}`)
    const isOwn = (partition: Partition) =>
      members.every((name) => name === runner || rank(name, partition) < rank(runner, partition))
    return new Set(this.partitions.filter(isOwn))
  }
}
