/**
 * One of several processes of the simulated service. It acquires and releases partitions as `effect/cluster` does. It
 * can be killed, frozen, cut off from Postgres or from the others, or shut down. A frozen runner continues later with
 * its clock advanced; nothing gets in or out during the freeze.
 */
import { Effect, Fiber, Latch } from "effect"
import { type Partition, Placement, type PlacementShape } from "../../src/engine/process/Placement.ts"
import type { ForwardedIncoming } from "../../src/http/forward/Listener.ts"
import type { ProcessorsShape } from "../../src/payments/processing/Processor.ts"
import type { Storage } from "../engine/Harness.ts"
import type { FaultPoint, Faults } from "../engine/storage/Faults.ts"
import type { Random } from "../support/Random.ts"
import type { Postgres, Session } from "./Postgres.ts"
import { type Answer, type Process, type Request, start } from "./Process.ts"
import { linksOf, type Stranger } from "./Network.ts"

const REFRESH_MILLIS = 1000
/** The longest one-way delay to Postgres, in milliseconds. */
const HOP_MILLIS_MAX = 150
/** The timeout after which a runner replaces a silent session, and all locks that it may hold, by a new one. */
const PATIENCE_MILLIS = 2000

/** The shared environment of all runners. */
export interface World {
  readonly storage: Storage
  readonly postgres: Postgres
  readonly random: Random
  /** The monotonic clock, in milliseconds. */
  readonly now: () => number
  /** The wall clock of a runner, in milliseconds. */
  readonly wallNow: (runner: string) => number
  readonly fork: <A>(effect: Effect.Effect<A>) => Fiber.Fiber<A>
  readonly runners: Set<Runner>
  /** The strangers at the addresses of dead runners, by address. */
  readonly strangers: Map<string, Stranger>
  readonly mistake: Mistake | undefined
  /** The processors of a runner; the simulator by default. */
  readonly processors?: ((runner: string, alive: Effect.Effect<void>) => ProcessorsShape) | undefined
  /** Runs at each point of a runner, which may be killed there. */
  readonly visit?: ((runner: string, point: FaultPoint) => Effect.Effect<void>) | undefined
}

/** A rule that is broken on purpose, to test that the checks detect it. */
export type Mistake =
  | "serves unconfirmed"
  | "lets others in before it has drained"
  | "forwards a DELETE twice"
  | "requires no proof"

export class Runner {
  readonly name: string
  readonly process: Process
  readonly #world: World
  readonly #placement: PlacementShape
  readonly #standing: Latch.Latch
  readonly #way: Latch.Latch
  readonly #held = new Map<Partition, Fiber.Fiber<void>>()
  readonly #releasing = new Set<Partition>()
  /** Partitions whose locks are being released, without running work. */
  readonly #drained = new Set<Partition>()
  #session: Session | undefined
  isDead = false
  readonly #network = Latch.makeUnsafe(true)
  readonly #dying = Latch.makeUnsafe(false)
  #isLeaving = false
  #isOver = false

  private constructor(world: World, name: string, process: Process, latches: readonly [Latch.Latch, Latch.Latch]) {
    this.#world = world
    this.name = name
    this.process = process
    this.#placement = process.placement
    ;[this.#standing, this.#way] = latches
  }

  static readonly start = Effect.fnUntraced(function* (world: World, name: string) {
    const [standing, way] = [Latch.makeUnsafe(true), Latch.makeUnsafe(true)] as const
    // The storage is Postgres too, so it has the same delays.
    const faults: Faults = (point) =>
      world.random
        .jitter(2)
        .pipe(
          Effect.andThen(world.visit === undefined ? Effect.void : Effect.suspend(() => world.visit!(name, point))),
          Effect.andThen(way.await)
        )
    const placement = Placement.layerSharedBy(world.mistake === "serves unconfirmed" ? () => 0 : world.now)
    let itself: Runner | undefined
    const links = linksOf(world, () => itself!)
    const { processors } = world
    const process = yield* start(world.storage, () => world.wallNow(name), faults, {
      placement,
      gate: standing.await,
      forwarding: { url: name, links },
      ...(processors !== undefined && { processors: (alive: Effect.Effect<void>) => processors(name, alive) })
    })
    const runner = (itself = new Runner(world, name, process, [standing, way]))
    world.runners.add(runner)
    world.fork(Effect.scoped(Effect.andThen(runner.#attend, runner.#drive)))
    return runner
  })

  /** Open unless the runner is frozen. */
  get gate(): Effect.Effect<void> {
    return this.#standing.await
  }

  /** Open unless the runner is cut off from the others. */
  get open(): Effect.Effect<void> {
    return this.#network.await
  }

  get isReached(): boolean {
    return this.#network.isOpen()
  }

  /** Ends when the runner is killed. */
  get killed(): Effect.Effect<void> {
    return this.#dying.await
  }

  /** Receives a request forwarded by another runner. */
  receive(incoming: ForwardedIncoming): void {
    if (!this.isDead) this.process.receive(incoming)
  }

  request(request: Request): Promise<Answer | undefined> {
    return this.process.request(request)
  }

  /** Freezes the runner, which cannot notice it. */
  freeze(): void {
    this.#standing.closeUnsafe()
  }

  thaw(): void {
    this.#standing.openUnsafe()
  }

  cutOff(from: "Postgres" | "the others"): void {
    if (from === "Postgres") this.#way.closeUnsafe()
    else this.#network.closeUnsafe()
  }

  reconnect(): void {
    this.#way.openUnsafe()
    this.#network.openUnsafe()
  }

  /** Kills the runner; `sessionsEnd` also ends its sessions immediately. */
  kill(sessionsEnd: boolean): void {
    this.isDead = true
    this.#end()
    this.process.kill()
    this.#dying.openUnsafe()
    if (sessionsEnd) this.#endSession()
  }

  /** Hands over all partitions, and ends. */
  readonly leave: Effect.Effect<void> = Effect.suspend(() => {
    this.#isLeaving = true
    return Effect.gen({ self: this }, function* () {
      while (this.#held.size > 0) yield* Effect.sleep(50)
      this.#end()
      yield* this.process.stop
      this.#endSession()
    })
  })

  #endSession(): void {
    if (this.#session !== undefined) this.#world.postgres.end(this.#session)
  }

  #end(): void {
    this.#isOver = true
    this.#world.runners.delete(this)
  }

  /** The delay of a message to Postgres or back. */
  readonly #hop = Effect.suspend(() => Effect.sleep(this.#world.random.below(HOP_MILLIS_MAX))).pipe(
    Effect.andThen(Effect.suspend(() => this.#way.await)),
    Effect.andThen(Effect.suspend(() => this.#standing.await))
  )

  #ask<A>(question: () => A): Effect.Effect<A> {
    return Effect.andThen(
      this.#hop,
      Effect.tap(Effect.sync(question), () => this.#hop)
    )
  }

  /** Notifies the other runners of writes, for their replicas. */
  readonly #attend = Effect.suspend(() =>
    this.#placement.listen({
      onWritten: (account) => {
        for (const other of this.#world.runners)
          if (other !== this) other.hear(({ noteChanged }) => noteChanged(account))
      }
    })
  )

  readonly #drive: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    while (!this.#isOver) {
      const round = yield* Effect.timeoutOption(this.#round, PATIENCE_MILLIS)
      yield* this.#standing.await
      if (round._tag === "None") this.#giveSessionUp()
      yield* Effect.sleep(REFRESH_MILLIS)
      yield* this.#standing.await
    }
  })

  /** Replaces the session. Its locks may be lost, which the runner cannot detect, so it no longer trusts them. */
  #giveSessionUp(): void {
    const { fork, postgres } = this.#world
    const given = this.#session
    if (given === undefined) return
    this.#session = undefined
    this.#placement.unconfirm()
    fork(this.#ask(() => postgres.end(given)))
  }

  readonly #round = Effect.gen({ self: this }, function* () {
    const { now, postgres } = this.#world
    const session = (this.#session ??= yield* this.#ask(() => postgres.connect(this.name)))
    const at = now()
    const told = yield* this.#ask(() => {
      const told = postgres.refresh(session)
      if (this.#isLeaving) postgres.leave(this.name)
      return told
    })
    if (this.#isOver) return
    if (told === undefined) return this.#giveSessionUp()
    const { assigned, held } = told
    const own = [...this.#held.keys()]
    const lost = own.filter((partition) => !held.has(partition) && !this.#drained.has(partition))
    if (lost.length === 0) this.#placement.confirm(at)
    const isWanted = (partition: Partition) => !this.#isLeaving && assigned.has(partition)
    for (const partition of own) {
      if (lost.includes(partition) || !isWanted(partition)) this.#giveUp(partition, session)
    }
    const missing = [...assigned].filter((partition) => isWanted(partition) && !this.#held.has(partition))
    const locked = missing.length === 0 ? [] : yield* this.#ask(() => postgres.lock(session, missing))
    for (const partition of locked) this.#take(partition, session)
    for (const partition of postgres.partitions) {
      this.#placement.setPlace(partition, postgres.places.get(partition) ?? null)
    }
  })

  #take(partition: Partition, session: Session): void {
    const taking = Effect.andThen(
      this.#placement.acquire(partition),
      this.#ask(() => {
        if (session.locks.has(partition)) this.#place(partition, this.name)
      })
    )
    this.#held.set(partition, this.#world.fork(taking))
  }

  #giveUp(partition: Partition, session: Session): void {
    if (this.#releasing.has(partition)) return
    this.#releasing.add(partition)
    const { mistake, postgres } = this.#world
    const unlock = this.#ask(() => {
      if (postgres.places.get(partition) === this.name) this.#place(partition, null)
      postgres.unlock(session, partition)
    })
    const drain = this.#placement.release(partition)
    const releasing = Effect.gen({ self: this }, function* () {
      yield* Fiber.await(this.#held.get(partition)!)
      if (mistake === "lets others in before it has drained") {
        yield* unlock
        yield* Effect.sleep(3 * REFRESH_MILLIS)
      }
      yield* drain
      this.#drained.add(partition)
      yield* unlock
      for (const set of [this.#held, this.#releasing, this.#drained]) set.delete(partition)
    })
    this.#world.fork(releasing)
  }

  /** Writes the place of a partition to Postgres and notifies all runners. */
  #place(partition: Partition, name: string | null): void {
    const { postgres, runners } = this.#world
    if (name === null) postgres.places.delete(partition)
    else postgres.places.set(partition, name)
    for (const other of runners) other.hear(({ setPlace }) => setPlace(partition, name))
  }

  /** Receives a notification through Postgres, with a delay. */
  hear(tell: (placement: PlacementShape) => void): void {
    this.#world.fork(
      Effect.andThen(
        this.#hop,
        Effect.sync(() => void (this.#isOver || tell(this.#placement)))
      )
    )
  }
}
