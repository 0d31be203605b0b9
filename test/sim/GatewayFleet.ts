/**
 * Several runners with a virtual gateway: the plan of their faults, their start, and the time after the last fault,
 * which the runners see for half a minute, and one process for thirty days.
 */
import { assert } from "@effect/vitest"
import { Clock, Effect, Fiber, Schema, type Scope } from "effect"
import { Placement } from "../../src/engine/process/Placement.ts"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import * as Harness from "../engine/Harness.ts"
import type { FaultPoint } from "../engine/storage/Faults.ts"
import type { Message, Token } from "../models/Operations.ts"
import { Random, Seed } from "../support/Random.ts"
import { type Fleet, RunnerFaults, Senders, startFleet } from "./Fleet.ts"
import { flowing, GatewayPlan, GatewayWorld, type Happened, POINTS_OF_CALLS, thirtyDays } from "./GatewayWorld.ts"
import { FORGED } from "./Network.ts"
import { decideAtOnce } from "./Person.ts"
import { type Process, start } from "./Process.ts"
import { cards, type Till } from "./Shop.ts"
import { fakeTimers, seededIds } from "./VirtualTime.ts"

/** The longest step of the clock while everything waits, in milliseconds. */
const STEP_MILLIS_MAX = 100
/** The time from the last fault to the end of the runners, in milliseconds. */
const RECOVERY_MILLIS = 30_000

type Point = FaultPoint | (typeof POINTS_OF_CALLS)[number]

/** The plan of a fleet whose runners may be killed at these points. */
export const fleetPlan = <P extends Point>(points: ReadonlyArray<P>) =>
  Schema.Struct({
    seed: Seed,
    gateway: GatewayPlan,
    faults: RunnerFaults,
    /** The visit of a point at which the runner that visits it is killed. */
    death: Schema.Struct({
      at: Schema.Literals(points),
      visits: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 12 }))
    })
  })
export type FleetPlan = ReturnType<typeof fleetPlan<Point>>["Type"]

/** The way to Till through its runners, and through the process after them. */
export class Runners implements Till {
  last: Process | undefined
  readonly #world: GatewayWorld
  readonly #fleet: Fleet
  readonly #account: string
  readonly #senders: Senders

  constructor(world: GatewayWorld, fleet: Fleet, account: string) {
    this.#world = world
    this.#fleet = fleet
    this.#account = account
    this.#senders = new Senders(fleet.world, world.sleep)
    world.deliver = this.deliver
  }

  readonly send: Till["send"] = async (request) => {
    if (this.last !== undefined) return this.last.request(request)
    const { answer } = await this.#senders.send(request, this.#world.random.pick([2000, 30_000]))
    assert.notStrictEqual(answer?.text, FORGED, "a stranger's response was accepted")
    return answer
  }

  readonly look: Till["look"] = (operation) => this.#ask(operation, "look")

  readonly stepClock = (): void => this.#world.stepClock(this.#world.random.pick([...this.#fleet.world.runners]).name)

  readonly deliver = async ({ body, headers }: Message, operation: string): Promise<boolean> => {
    const { gateway, random } = this.#world
    const receiver = this.last === undefined ? random.pick([...this.#fleet.world.runners]).name : "process"
    const notice = gateway.remote.verify(headers, body, this.#world.wallNow(receiver))
    if (notice === null) return false
    assert.deepInclude(notice, { kind: "operation", operation })
    return await this.#ask(operation, "webhook")
  }

  readonly decide: Till["decide"] = (payment) =>
    this.#inOwner(({ accounts }) => decideAtOnce(accounts, this.#account, payment, this.#world))

  #ask(operation: string, by: "look" | "webhook"): Promise<boolean> {
    return this.#inOwner(({ look }) => look(this.#account, operation, by))
  }

  /** Does something in the process that serves the account, as a forwarded message does. False if none can do it. */
  async #inOwner(use: (process: Process) => Effect.Effect<boolean, unknown>): Promise<boolean> {
    const processes = this.last === undefined ? [...this.#fleet.world.runners] : [this.last]
    for (const asked of processes) {
      const { gate, process } = "process" in asked ? asked : { gate: Effect.void, process: asked }
      const heard = await this.#world.looked(
        Effect.andThen(
          gate,
          Effect.suspend(() => use(process))
        )
      )
      if (heard !== undefined) return heard
    }
    return false
  }
}

export interface GatewayFleet {
  readonly world: GatewayWorld
  readonly fleet: Fleet
  readonly till: Runners
  readonly account: string
  readonly key: string
  readonly methods: ReadonlyMap<Token, string>
  /** The time of the test clock, in milliseconds. */
  readonly now: () => number
  readonly storage: Harness.Storage
}

/** Starts the runners of a plan, with a merchant and its time. */
export const startGatewayFleet = Effect.fnUntraced(function* (
  plan: FleetPlan,
  storage: Harness.Storage,
  happened: Happened
): Effect.fn.Return<GatewayFleet, never, Scope.Scope> {
  yield* Harness.startClock
  yield* fakeTimers
  yield* seededIds(plan.seed)
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<never>()
  const run = <A>(effect: Effect.Effect<A>): Promise<A> => Effect.runPromiseWith(context)(effect)
  const now = () => clock.currentTimeMillisUnsafe()
  const random = new Random(plan.seed)
  const world = new GatewayWorld({ plan: plan.gateway, random, happened, clock: now, run })
  yield* Effect.forkScoped(flowing(world, STEP_MILLIS_MAX))
  const quiet = yield* start(storage, now, () => Effect.void)
  const { merchantId, secretTest: key } = yield* quiet.merchant
  const account = `${merchantId}:test`
  const methods = yield* Effect.orDie(quiet.accounts.run(account, cards))
  yield* quiet.stop

  let visits = 0
  let fleet: Fleet | undefined
  const visit = (name: string, point: Point): Effect.Effect<void> => {
    if (point !== "read") world.activity++
    if (world.isOver || plan.death.at !== point || ++visits !== plan.death.visits) return Effect.void
    happened.note(`kill at ${point}`)
    return Effect.sync(() => {
      const { fork, runners } = fleet!.world
      for (const runner of runners) if (runner.name === name) runner.kill(random.chance(0.5))
      // The process manager starts another one at once.
      fork(fleet!.another)
    })
  }
  fleet = yield* startFleet({
    storage,
    accounts: [INSTALLATION, account],
    random,
    wallNow: (runner) => world.wallNow(runner),
    processors: (runner, alive) => world.processorsOf(alive, (point) => visit(runner, point), runner),
    visit
  })
  return { world, fleet, till: new Runners(world, fleet, account), account, key, methods, now, storage }
})

/** Runs an effect while the runners have the faults of a plan, and ends all faults. */
export const underFaults = Effect.fnUntraced(function* (
  { fleet, world }: GatewayFleet,
  faults: RunnerFaults,
  use: () => Promise<unknown>
) {
  const striking = yield* Effect.forkChild(fleet.chaos.follow(faults))
  yield* Effect.promise(() => world.busy(use()))
  yield* Fiber.interrupt(striking)
  world.end()
  fleet.recover()
  yield* Effect.sleep(RECOVERY_MILLIS)
  for (const what of fleet.chaos.strikes) world.happened.note(what)
})

/** Ends the runners, and starts the one process that lives for thirty days. */
export const outlived = Effect.fnUntraced(function* ({ fleet, storage, till, world }: GatewayFleet) {
  for (const runner of fleet.world.runners) yield* runner.leave
  const among = {
    placement: Placement.layerSole,
    gate: Effect.void,
    processors: (alive: Effect.Effect<void>) => world.processorsOf(alive, () => Effect.void, "process")
  }
  const last = (till.last = yield* start(
    storage,
    () => world.wallNow("process"),
    () => Effect.void,
    among
  ))
  yield* thirtyDays(world)
  return last
})
