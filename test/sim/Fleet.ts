/** Several simulated runners on one storage, the faults that strike them, and the way of a request to one of them. */
import { Clock, Effect, Schema } from "effect"
import { partitionOf } from "../../src/engine/process/Placement.ts"
import type { Storage } from "../engine/Harness.ts"
import type { Random } from "../support/Random.ts"
import { Stranger } from "./Network.ts"
import { Postgres } from "./Postgres.ts"
import type { Answer, Request } from "./Process.ts"
import { Runner, type World } from "./Runner.ts"

export const RUNNERS = 3
/** The time for recovery between faults, in milliseconds. */
export const RECOVERY_MILLIS = 10_000

/** Faults in sequence, with time to recover between them. */
export const RunnerFaults = Schema.Array(
  Schema.Struct({
    what: Schema.Literals([
      "kill",
      "kill two",
      "kill, and a stranger takes its address",
      "freeze",
      "cut off from Postgres",
      "cut off from the others",
      "leave",
      "join"
    ]),
    /** The delay and the duration of the fault, in milliseconds. */
    after: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4000 })),
    lasts: Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 15_000 }))
  })
).check(Schema.isMinLength(1), Schema.isMaxLength(3))
export type RunnerFaults = typeof RunnerFaults.Type

/** Applies the faults of a plan in sequence. */
export class Chaos {
  readonly strikes: Array<RunnerFaults[number]["what"]> = []
  readonly #world: World
  readonly #start: Effect.Effect<Runner>

  constructor(world: World, start: Effect.Effect<Runner>) {
    this.#world = world
    this.#start = start
  }

  readonly follow = (faults: RunnerFaults): Effect.Effect<void> =>
    Effect.forEach(
      faults,
      ({ after, lasts, what }) =>
        Effect.sleep(after).pipe(
          Effect.andThen(Effect.suspend(() => this.#strike(what, lasts))),
          Effect.andThen(Effect.sleep(RECOVERY_MILLIS))
        ),
      { discard: true }
    )

  readonly #strike = Effect.fnUntraced({ self: this }, function* (what: RunnerFaults[number]["what"], lasts: number) {
    const { postgres, random, runners, strangers } = this.#world
    const left = [...runners]
    const victim = () => left.splice(random.below(left.length), 1)[0]!
    this.strikes.push(what)
    switch (what) {
      case "kill":
      case "kill two": {
        for (let dead = 0; dead < (what === "kill" ? 1 : 2); dead++) victim().kill(random.chance(0.5))
        yield* Effect.sleep(lasts)
        while (runners.size < RUNNERS) yield* this.#start
        return
      }
      case "kill, and a stranger takes its address": {
        // Prefers a runner that requests are forwarded to.
        const served = [...runners].filter(({ name }) => [...postgres.places.values()].includes(name))
        const dead = served.length > 0 ? random.pick(served) : victim()
        dead.kill(random.chance(0.5))
        strangers.set(dead.name, new Stranger(random))
        yield* Effect.sleep(lasts)
        return yield* Effect.asVoid(this.#start)
      }
      case "freeze": {
        const frozen = victim()
        frozen.freeze()
        yield* Effect.sleep(lasts)
        return frozen.thaw()
      }
      case "cut off from Postgres":
      case "cut off from the others": {
        const cut = victim()
        cut.cutOff(what === "cut off from Postgres" ? "Postgres" : "the others")
        yield* Effect.sleep(lasts)
        return cut.reconnect()
      }
      case "leave": {
        yield* victim().leave
        yield* Effect.sleep(lasts)
        return yield* Effect.asVoid(this.#start)
      }
      case "join":
        return yield* Effect.asVoid(this.#start)
    }
  })
}

export interface FleetOptions extends Partial<Pick<World, "mistake" | "processors" | "visit">> {
  readonly storage: Storage
  /** The accounts to share; their partitions are the only ones. */
  readonly accounts: ReadonlyArray<string>
  readonly random: Random
  /** The wall clock of a runner, in milliseconds. */
  readonly wallNow: (runner: string) => number
}

export interface Fleet {
  readonly world: World
  readonly chaos: Chaos
  /** Starts one more runner. */
  readonly another: Effect.Effect<Runner>
  /** Ends all faults. */
  readonly recover: () => void
}

/** Starts the runners. */
export const startFleet = Effect.fnUntraced(function* ({
  accounts,
  mistake,
  processors,
  random,
  storage,
  visit,
  wallNow
}: FleetOptions): Effect.fn.Return<Fleet> {
  const clock = yield* Clock.Clock
  const now = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  const runners = new Set<Runner>()
  const postgres = new Postgres([...new Set(accounts.map(partitionOf))], now, (name) =>
    [...runners].some((runner) => runner.name === name && runner.isReached)
  )
  const world: World = {
    storage,
    postgres,
    random,
    now,
    wallNow,
    fork: Effect.runForkWith(yield* Effect.context<never>()),
    runners,
    strangers: new Map(),
    mistake,
    processors,
    visit
  }
  let started = 0
  const another = Effect.suspend(() => Runner.start(world, `http://runner-${++started}`))
  for (let count = 0; count < RUNNERS; count++) yield* another
  const recover = () => {
    for (const runner of runners) {
      runner.thaw()
      runner.reconnect()
    }
  }
  return { world, chaos: new Chaos(world, another), another, recover }
})

/** Clients that send each request to any runner, and try another one after a runner that did not respond. */
export class Senders {
  readonly #world: World
  readonly #sleep: (millis: number) => Promise<void>
  /** The runner that last failed to respond to each client. */
  readonly #silent = new Map<string, Runner>()

  constructor(world: World, sleep: (millis: number) => Promise<void>) {
    this.#world = world
    this.#sleep = sleep
  }

  /** Sends a request once; no answer after this time counts as none. Returns the runner's name, too. */
  async send(
    request: Request,
    millisMax: number
  ): Promise<{ readonly at: string; readonly answer: Answer | undefined }> {
    const { random, runners } = this.#world
    const others = [...runners].filter((runner) => runner !== this.#silent.get(request.key))
    const asked = random.pick(others.length > 0 ? others : [...runners])
    const answer = await Promise.race([asked.request(request), this.#sleep(millisMax).then(() => undefined)])
    if (answer === undefined) this.#silent.set(request.key, asked)
    else this.#silent.delete(request.key)
    return { at: asked.name, answer }
  }
}
