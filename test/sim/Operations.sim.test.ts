/**
 * Operations at a processor behind a network, in virtual time (semantics operations.*): merchants pay, capture, cancel
 * and refund over the API, payers authenticate or not, and thirty days after the last fault Till agrees with the
 * gateway's ledger (`LedgerChecks.ts` has all checks).
 *
 * The plans have, each at any point, by themselves and together:
 * - the process killed, and the storage failing, before and after each record, each projection and each call;
 * - requests that are not sent, lost, or arrive 1 s to 25 h late, and answers that are lost or take up to 40 s;
 * - 401, 409, 429, 503, 500 before and after the effect, also for all later calls of the operation; a proxy's page, no
 *   JSON, no state, the state of another operation, the answer to another request, another amount, currency or payment;
 * - messages that come before the answer, twice, in another order, or never;
 * - wall clocks that are two hours ahead or behind for a while, hours that pass, test clocks that are moved; a gateway
 *   that forgets its keys after a day, and one that releases holds by itself.
 *
 * `RunnersOperations.sim.test.ts` has the same with several runners. No plan restores a backup: the storage in memory
 * has none, and what a backup does not know is no matter of the dispatcher.
 *
 * `TILL_SIM_SEEDS=10000 npm run test:all -- test/sim/Operations.sim.test.ts` runs more plans. A failure prints the
 * command that replays it.
 */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Cause, Clock, Effect, Exit, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Placement } from "../../src/engine/process/Placement.ts"
import { StorageFailure } from "../../src/engine/log/Journal.ts"
import * as PaymentsFormats from "../../src/payments/Formats.ts"
import * as Harness from "../engine/Harness.ts"
import type { FaultPoint, Faults } from "../engine/storage/Faults.ts"
import type { Message, Mistake } from "../models/Operations.ts"
import { Random, Seed } from "../support/Random.ts"
import { isWhole } from "../support/Runs.ts"
import {
  flowing,
  GatewayPlan,
  GatewayWorld,
  Happened,
  HAPPENINGS,
  POINTS_OF_CALLS,
  thirtyDays
} from "./GatewayWorld.ts"
import { agreesWithLedger } from "./LedgerChecks.ts"
import { decideAtOnce } from "./Person.ts"
import { type Process, start } from "./Process.ts"
import { cards, Shop, type Till } from "./Shop.ts"
import { fakeTimers, seededIds } from "./VirtualTime.ts"

const SEEDS = Number(process.env["TILL_SIM_SEEDS"] ?? 800)
/** The longest step of the clock while everything waits, in milliseconds. */
const STEP_MILLIS_MAX = 500

const RECORDS = ["append.before", "append.after", "apply.before", "apply.after"] as const
const POINTS = [...RECORDS, "read", ...POINTS_OF_CALLS] as const
type Point = FaultPoint | (typeof POINTS_OF_CALLS)[number]

const Plan = Schema.Struct({
  seed: Seed,
  gateway: GatewayPlan,
  /** Probability of a failure of the storage. */
  failures: Schema.Literals([0, 0.03]),
  /** The ends of the lives of the process: at a visit of a point. */
  lives: Schema.Array(
    Schema.Struct({
      at: Schema.Literals(POINTS),
      visits: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 12 }))
    })
  ).check(Schema.isMaxLength(3))
})
type Plan = typeof Plan.Type

/** One life of the service after the other. */
class Simulation implements Till {
  readonly world: GatewayWorld
  readonly #plan: Plan
  readonly #storage: Harness.Storage
  readonly #account: string
  readonly #run: <A>(effect: Effect.Effect<A>) => Promise<A>
  #process: Promise<Process>
  #visits = 0
  #life = 0

  constructor(
    plan: Plan,
    storage: Harness.Storage,
    account: string,
    world: GatewayWorld,
    run: <A>(effect: Effect.Effect<A>) => Promise<A>
  ) {
    this.#plan = plan
    this.#storage = storage
    this.#account = account
    this.#run = run
    this.world = world
    world.deliver = this.deliver
    this.#process = this.#start()
  }

  get process(): Promise<Process> {
    return this.#process
  }

  readonly send: Till["send"] = async (request) => (await this.#process).request(request)

  readonly look: Till["look"] = async (operation) => {
    const { look } = await this.#process
    await this.world.looked(look(this.#account, operation, "look"))
  }

  readonly decide: Till["decide"] = async (payment) => {
    const { accounts } = await this.#process
    await this.world.looked(decideAtOnce(accounts, this.#account, payment, this.world))
  }

  readonly stepClock = (): void => this.world.stepClock("process")

  readonly deliver = async ({ body, headers }: Message, operation: string): Promise<boolean> => {
    const { gateway } = this.world
    const notice = gateway.remote.verify(headers, body, this.world.wallNow("process"))
    if (notice === null) return false
    assert.deepInclude(notice, { kind: "operation", operation })
    const { look } = await this.#process
    return (await this.world.looked(look(this.#account, operation, "webhook"))) === true
  }

  #start(): Promise<Process> {
    const processors = (alive: Effect.Effect<void>) =>
      this.world.processorsOf(alive, (point) => this.#visit(point), "process")
    const among = { placement: Placement.layerSole, gate: Effect.void, processors }
    return this.#run(start(this.#storage, () => this.world.wallNow("process"), this.#faults, among))
  }

  readonly #faults: Faults = (point) =>
    Effect.gen({ self: this }, function* () {
      if (point !== "read") this.world.activity++
      if (this.world.isOver) return
      yield* this.world.random.jitter(3)
      yield* this.#visit(point)
      if (!this.world.random.chance(this.#plan.failures)) return
      this.world.happened.note(`failure at ${point}`)
      return yield* new StorageFailure({ cause: new Error(`${point} failed`) })
    })

  /** Ends a life at its point. */
  #visit(point: Point): Effect.Effect<void> {
    const life = this.#plan.lives[this.#life]
    if (this.world.isOver || life?.at !== point || ++this.#visits !== life.visits) return Effect.void
    this.world.happened.note(`kill at ${point}`)
    return Effect.promise(async () => {
      this.#visits = 0
      this.#life++
      const dead = await this.#process
      dead.kill()
      this.#process = this.#start()
    })
  }
}

const happened = new Happened()
const met = { runs: 0, repetitions: 0, unanswered: 0 }

const simulate = Effect.fnUntraced(function* (plan: Plan, mistake?: Mistake) {
  yield* Harness.startClock
  yield* fakeTimers
  yield* seededIds(plan.seed)
  const storage = yield* Harness.storageInMemory
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<never>()
  const run = <A>(effect: Effect.Effect<A>): Promise<A> => Effect.runPromiseWith(context)(effect)
  const now = () => clock.currentTimeMillisUnsafe()
  const random = new Random(plan.seed)
  const world = new GatewayWorld({ plan: plan.gateway, random, happened, clock: now, run, mistake })
  yield* Effect.forkScoped(flowing(world, STEP_MILLIS_MAX))
  const quiet = yield* start(storage, now, () => Effect.void)
  const { merchantId, secretTest } = yield* quiet.merchant
  const account = `${merchantId}:test`
  const methods = yield* Effect.orDie(quiet.accounts.run(account, cards))
  yield* quiet.stop

  const simulation = new Simulation(plan, storage, account, world, run)
  const shop = new Shop(world, simulation, secretTest, methods, now)
  const paying = Array.from({ length: plan.gateway.payments }, () => shop.pay())
  yield* Effect.promise(() => world.busy(Promise.all(paying)))
  world.end()
  const last = yield* Effect.promise(() => simulation.process)
  yield* Effect.promise(() => world.busy(shop.repeatAll()))
  yield* thirtyDays(world)
  yield* agreesWithLedger(last, account, world)
  yield* Effect.promise(() => world.busy(shop.repeatAll()))
  yield* last.stop
  yield* Harness.verified(storage, PaymentsFormats.KINDS)
  met.runs++
  met.repetitions += shop.repetitions
  met.unanswered += shop.unanswered
}, Effect.scoped)

describe("operations at a processor behind a network, simulated", () => {
  it.effect.prop(
    "agree with the processor's ledger in the end, under all faults and kills",
    { plan: Plan },
    ({ plan }) => Effect.provide(simulate(plan), TestClock.layer()),
    { arbitrary: { runs: SEEDS, size: 20 }, timeout: 600_000 + SEEDS * 3000 }
  )

  it("have experienced every fault", () => {
    console.log(`${met.runs} runs`, met, Object.fromEntries([...happened.counts].toSorted()))
    assert.isAbove(met.repetitions, 0)
    const faults = POINTS.map((point) => `kill at ${point}`)
    const failures = [...RECORDS, "read"].map((point) => `failure at ${point}`)
    // The few plans of `npm test` need not have them all.
    if (isWhole) assert.deepStrictEqual(happened.missing([...HAPPENINGS, ...faults, ...failures]), [])
  })
})

const CONTROL_RUNS_MAX = 100
const CONTROL_SEED = 3
const MISTAKES: ReadonlyArray<Mistake> = ["sends each call with a new key", "takes an error for a refusal"]

describe("a simulated service that breaks a rule", () => {
  for (const mistake of MISTAKES) {
    it.effect.runIf(isWhole)(
      `is detected: it ${mistake}`,
      () =>
        Effect.gen(function* () {
          const plans = yield* Effect.orDie(
            Arbitrary.sampleEffect(Arbitrary.schema(Plan), { count: CONTROL_RUNS_MAX, size: 20, seed: CONTROL_SEED })
          )
          for (const [runs, plan] of plans.entries()) {
            const exit = yield* Effect.exit(Effect.provide(simulate(plan, mistake), TestClock.layer()))
            if (Exit.isSuccess(exit)) continue
            const text = Cause.pretty(exit.cause)
            assert.match(text, /AssertionError/)
            return console.log(`${mistake}: detected in run ${runs + 1}: ${text.slice(0, 200)}`)
          }
          assert.fail(`${CONTROL_RUNS_MAX} runs have not shown that a service ${mistake}`)
        }),
      600_000
    )
  }
})
