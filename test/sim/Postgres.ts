/**
 * What runners ask of Postgres to share partitions, in memory: who runs, who holds the lock of each partition, and
 * where each is served. It keeps what `effect/cluster` promises of its own: a lock has one holder at most, a session
 * that says nothing for long loses its locks, and everybody is told what they should hold, sooner or later the same.
 * Who is not reached by the others is to hold nothing.
 */
import { hash } from "node:crypto"
import type { Partition } from "../../src/engine/process/Placement.ts"

/** A session that says nothing for so long is ended, in milliseconds. */
const SESSION_MILLIS_MAX = 6000
/** Whoever has said nothing for so long counts as gone. */
const SILENT_MILLIS_MAX = 3500

export interface Session {
  readonly runner: string
  readonly locks: Set<Partition>
  saidAt: number
  isOver: boolean
}

export interface Told {
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
    const session = { runner, locks: new Set<Partition>(), saidAt: this.#now(), isOver: false }
    this.#sessions.add(session)
    return session
  }

  /** Says that a runner is there, and gives what it holds and what it should hold. Undefined if the session is over. */
  refresh(session: Session): Told | undefined {
    this.#hear(session)
    if (session.isOver) return undefined
    this.#members.set(session.runner, this.#now())
    return { held: new Set(session.locks), assigned: this.#assignedTo(session.runner) }
  }

  /** Locks those of the partitions that no other session holds; gives those that the session holds now. */
  lock(session: Session, partitions: ReadonlyArray<Partition>): ReadonlyArray<Partition> {
    this.#hear(session)
    if (session.isOver) return []
    const others = [...this.#sessions].filter((other) => other !== session)
    const free = partitions.filter((partition) => !others.some(({ locks }) => locks.has(partition)))
    for (const partition of free) session.locks.add(partition)
    return free
  }

  unlock(session: Session, partition: Partition): void {
    this.#hear(session)
    session.locks.delete(partition)
  }

  /** A runner is to hold nothing any more. */
  leave(runner: string): void {
    this.#members.delete(runner)
  }

  end(session: Session): void {
    session.isOver = true
    session.locks.clear()
    this.#sessions.delete(session)
  }

  /** Who is silent for too long is heard no more: its session has ended meanwhile. */
  #hear(session: Session): void {
    const now = this.#now()
    for (const other of this.#sessions) if (now - other.saidAt > SESSION_MILLIS_MAX) this.end(other)
    session.saidAt = now
  }

  /** Each partition belongs to the runner whose name and its number have the highest hash. */
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
