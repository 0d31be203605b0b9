/**
 * The whole service in virtual time: several merchants carry out random programs over the API at once, while the
 * storage fails and hangs and the process is killed at any point, again and again. A client repeats its request under
 * its key until it has an answer, as the contract invites it to, and some ask twice anyway. The judge of every step,
 * its answer, its events and all that can be seen of it are the state tables of test/models; besides, a repetition gets
 * the first answer, byte for byte.
 *
 * `TILL_SIM_SEEDS=10000 npm test -- test/sim` for more of them. A failure prints the token that replays it alone:
 * `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { StorageFailure } from "../../src/engine/Journal.ts"
import * as PaymentsFormats from "../../src/payments/Formats.ts"
import * as Harness from "../engine/Harness.ts"
import type { Faults } from "../engine/storage/Faults.ts"
import * as CheckoutSessions from "../models/CheckoutSessions.ts"
import * as PaymentIntents from "../models/PaymentIntents.ts"
import * as PaymentMethods from "../models/PaymentMethods.ts"
import { follow } from "../models/Program.ts"
import * as Refunds from "../models/Refunds.ts"
import type { Reply, Wire } from "../models/Wire.ts"
import { post } from "../models/Wire.ts"
import { Random, Seed } from "../support/Random.ts"
import type { Answer, Process, Request } from "./Process.ts"
import { start } from "./Process.ts"

const SEEDS = Number(process.env["TILL_SIM_SEEDS"] ?? 300)
/** A client tries again after so long, by the clock of the test. */
const AGAIN_MILLIS = 20
/** Whoever has no answer by then never gets one. */
const ATTEMPTS_MAX = 2000

/** How often each fault strikes, and after how many visits to the storage each life of the process ends. */
const Plan = Schema.Struct({
  seed: Seed,
  failures: Schema.Literals([0, 0.02, 0.1]),
  hangs: Schema.Literals([0, 0.01]),
  lives: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 80 }))).check(Schema.isMaxLength(4))
})
type Plan = typeof Plan.Type

/** A service that is started again whenever it was killed, until its plan is over. */
class Simulation {
  readonly random: Random
  readonly #plan: Plan
  readonly #storage: Harness.Storage
  readonly #time: { readonly now: number }
  readonly #sleep: (millis: number) => Promise<void>
  #process: Promise<Process>
  #visits = 0
  #life = 0
  #keys = 0
  #isOver = false
  kills = 0
  repetitions = 0

  constructor(
    plan: Plan,
    storage: Harness.Storage,
    time: { readonly now: number },
    run: (effect: Effect.Effect<Process>) => Promise<Process>,
    sleep: (millis: number) => Promise<void>
  ) {
    this.random = new Random(plan.seed)
    this.#plan = plan
    this.#storage = storage
    this.#time = time
    this.#sleep = sleep
    this.#run = run
    this.#process = this.#start()
  }

  readonly #run: (effect: Effect.Effect<Process>) => Promise<Process>

  /** From now on nothing fails. */
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
      // Nothing comes back for a while.
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

  /** Asks until there is an answer, under one key. */
  async ask(request: Omit<Request, "idempotencyKey">): Promise<Reply> {
    const idempotencyKey = request.method === "POST" ? `key-${this.#keys++}` : undefined
    const asked = { ...request, idempotencyKey }
    const isDoubled = idempotencyKey !== undefined && this.random.chance(0.2)
    const [answer, other] = await Promise.all([this.#askUntil(asked), isDoubled ? this.#askUntil(asked) : undefined])
    for (const again of [other, this.random.chance(0.1) ? await this.#askUntil(asked) : undefined]) {
      if (again === undefined || idempotencyKey === undefined || !isKept(answer)) continue
      this.repetitions++
      assert.deepStrictEqual(
        { status: again.status, text: again.text },
        { status: answer.status, text: answer.text },
        `${request.method} ${request.url} was answered otherwise the second time`
      )
    }
    return { status: answer.status, body: JSON.parse(answer.text) }
  }

  async #askUntil(request: Request): Promise<Answer> {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const process = await this.#process
      const answer = await process.request(request)
      if (answer !== undefined && answer.status !== 503 && answer.status !== 409) {
        // It has no key, for deleting twice is deleting once (I3): an attempt before may have done it.
        if (request.method === "DELETE" && answer.status === 404 && attempt > 0) return { ...answer, status: 200 }
        assert.notInclude(answer.text, `"code":"internal_error"`, `${request.method} ${request.url}`)
        return answer
      }
      if (answer?.status === 503) assert.strictEqual(answer.headers["retry-after"], "1")
      await this.#sleep(AGAIN_MILLIS)
    }
    throw new Error(`${request.method} ${request.url} got no answer`)
  }
}

/** What belongs to a key, and is given again (I9); other refusals are decided anew. */
const isKept = ({ status, text }: Answer): boolean =>
  status === 200 || status === 402 || /"code":"(?:\w+_unexpected_state|amount_too_large)"/.test(text)

/** A program's whole seconds: others would move the clock of all merchants. */
const inSeconds = <Step extends object, P extends { readonly steps: ReadonlyArray<Step> }>(program: P): P => ({
  ...program,
  steps: program.steps.filter((step) => !("millis" in step) || Number(step.millis) % 1000 === 0)
})

const wireOf = (simulation: Simulation, time: { readonly now: number }, key: string): Wire => {
  let ahead = 0
  const wire: Wire = {
    now: () => time.now + ahead,
    request: (method, url, body) => simulation.ask({ method, url, key, body }),
    wait: async (millis) => {
      await post(wire, "/v1/test_helpers/clock/advance", { seconds: millis / 1000 })
      ahead += millis
    }
  }
  return wire
}

const met = { kills: 0, repetitions: 0, runs: 0 }

describe("the service, simulated", () => {
  it.effect.prop(
    "does what the state tables say, once, whatever fails and whenever it is killed",
    {
      plan: Plan,
      paymentIntents: PaymentIntents.program,
      checkoutSessions: CheckoutSessions.program,
      paymentMethods: PaymentMethods.program,
      refunds: Refunds.program
    },
    Effect.fnUntraced(function* ({ checkoutSessions, paymentIntents, paymentMethods, plan, refunds }) {
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
      const simulation = new Simulation(plan, storage, time, run, (millis) => run(Effect.sleep(millis)))
      const wires = keys.map((key) => wireOf(simulation, time, key))
      const [first, second, third, fourth] = wires as [Wire, Wire, Wire, Wire]
      const merchants = [
        Effect.flatMap(
          Effect.promise(() => PaymentIntents.over(first)),
          (driver) => follow(PaymentIntents.table, driver, inSeconds(paymentIntents))
        ),
        Effect.flatMap(
          Effect.promise(() => CheckoutSessions.over(second)),
          (driver) => follow(CheckoutSessions.table, driver, inSeconds(checkoutSessions))
        ),
        Effect.flatMap(
          Effect.promise(() => PaymentMethods.over(third)),
          (driver) => follow(PaymentMethods.table, driver, inSeconds(paymentMethods))
        ),
        Effect.suspend(() => follow(Refunds.table, Refunds.over(fourth), inSeconds(refunds)))
      ]
      yield* Effect.all(merchants, { concurrency: "unbounded", discard: true })
      simulation.end()
      const last = yield* Effect.promise(() => simulation.process)
      yield* last.stop
      yield* Harness.verified(storage, PaymentsFormats.KINDS)
      met.kills += simulation.kills
      met.repetitions += simulation.repetitions
      met.runs++
    }),
    { arbitrary: { runs: SEEDS, size: 6 }, timeout: SEEDS * 1000 }
  )

  it("has really met what it is about", () => {
    console.log(`${met.runs} runs, ${met.kills} kills, ${met.repetitions} repetitions`)
    assert.isAbove(met.kills, 0)
    assert.isAbove(met.repetitions, 0)
  })
})
