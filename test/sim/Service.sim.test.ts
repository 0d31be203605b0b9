/**
 * The whole service in virtual time: several merchants run random programs over the API concurrently, while the storage
 * fails and hangs and the process is killed repeatedly at any point. A client repeats a request with its key until it
 * has a response, as the contract suggests, and some send it twice anyway. The state tables of test/models check every
 * step: its response, its events and its visible state. A repetition must get the first response, byte for byte.
 *
 * `TILL_SIM_SEEDS=10000 npm run test:all -- test/sim` runs more plans. A failure prints the command that replays it.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { StorageFailure } from "../../src/engine/log/Journal.ts"
import * as PaymentsFormats from "../../src/payments/Formats.ts"
import * as Harness from "../engine/Harness.ts"
import type { Faults } from "../engine/storage/Faults.ts"
import type { Wire } from "../models/Wire.ts"
import { Random, Seed } from "../support/Random.ts"
import { Clients, wireOf } from "./Clients.ts"
import { carryOut, programs } from "./Merchants.ts"
import { type Process, start } from "./Process.ts"

const SEEDS = Number(process.env["TILL_SIM_SEEDS"] ?? 300)

/** The probability of each fault, and the number of storage operations after which each life of the process ends. */
const Plan = Schema.Struct({
  seed: Seed,
  failures: Schema.Literals([0, 0.02, 0.1]),
  hangs: Schema.Literals([0, 0.01]),
  lives: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 80 }))).check(Schema.isMaxLength(4))
})
type Plan = typeof Plan.Type

/** A service that restarts after each kill, until its plan ends. */
class Simulation {
  readonly random: Random
  readonly #plan: Plan
  readonly #storage: Harness.Storage
  readonly #time: { readonly now: number }
  #process: Promise<Process>
  #visits = 0
  #life = 0
  #isOver = false
  kills = 0

  constructor(
    plan: Plan,
    storage: Harness.Storage,
    time: { readonly now: number },
    run: (effect: Effect.Effect<Process>) => Promise<Process>
  ) {
    this.random = new Random(plan.seed)
    this.#plan = plan
    this.#storage = storage
    this.#time = time
    this.#run = run
    this.#process = this.#start()
  }

  readonly #run: (effect: Effect.Effect<Process>) => Promise<Process>

  /** Ends all faults. */
  end(): void {
    this.#isOver = true
  }

  get process(): Promise<Process> {
    return this.#process
  }

  #start(): Promise<Process> {
    return this.#run(start(this.#storage, () => this.#time.now, this.#faults))
  }

  readonly #faults: Faults = (point) =>
    Effect.gen({ self: this }, function* () {
      if (this.#isOver) return
      const { failures, hangs, lives } = this.#plan
      yield* this.random.jitter(3)
      if (++this.#visits === lives[this.#life]) yield* Effect.promise(() => this.#restart())
      if (this.random.chance(failures)) return yield* new StorageFailure({ cause: new Error(`${point} failed`) })
      // The storage hangs for a while.
      if (this.random.chance(hangs)) yield* Effect.sleep(500)
    })

  async #restart(): Promise<void> {
    this.#visits = 0
    this.#life++
    this.kills++
    const dead = await this.#process
    dead.kill()
    this.#process = this.#start()
  }
}

const met = { kills: 0, repetitions: 0, runs: 0 }

describe("the service, simulated", () => {
  it.effect.prop(
    "behaves as in the state tables, exactly once, under all failures and kills",
    { plan: Plan, ...programs },
    Effect.fnUntraced(function* ({ plan, ...programs }) {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const storage = yield* Harness.storageInMemory
      const time = { now: Harness.START }
      const context = yield* Effect.context<never>()
      const run = <A>(effect: Effect.Effect<A>): Promise<A> => Effect.runPromiseWith(context)(effect)
      const quiet = yield* start(
        storage,
        () => time.now,
        () => Effect.void
      )
      const keys = yield* Effect.forEach([1, 2, 3, 4], () => Effect.map(quiet.merchant, ({ secretTest }) => secretTest))
      yield* quiet.stop
      const simulation = new Simulation(plan, storage, time, run)
      const clients = new Clients({
        random: simulation.random,
        send: async (request) => (await simulation.process).request(request),
        sleep: (millis) => run(Effect.sleep(millis))
      })
      const wires = keys.map((key) => wireOf(clients, time, key)) as [Wire, Wire, Wire, Wire]
      yield* carryOut(programs, wires)
      simulation.end()
      const last = yield* Effect.promise(() => simulation.process)
      yield* last.stop
      yield* Harness.verified(storage, PaymentsFormats.KINDS)
      met.kills += simulation.kills
      met.repetitions += clients.repetitions
      met.runs++
    }),
    { arbitrary: { runs: SEEDS, size: 6 }, timeout: 600_000 + SEEDS * 1000 }
  )

  it("has experienced every relevant event", () => {
    console.log(`${met.runs} runs, ${met.kills} kills, ${met.repetitions} repetitions`)
    assert.isAbove(met.kills, 0)
    assert.isAbove(met.repetitions, 0)
  })
})
