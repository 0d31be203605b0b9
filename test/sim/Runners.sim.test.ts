/**
 * Several processes of the whole service in virtual time, on one journal (semantics runners.consistency): runners share
 * the accounts, are killed, frozen, cut off from Postgres, started and shut down. Merchants run random programs over
 * the API concurrently, send each request to any runner, and repeat it at another one with its key until it has a
 * response. The state tables of test/models check every step: its response, its events and its visible state at any
 * runner. So no acknowledged change is lost, no operation or timer takes effect twice, and no merchant waits longer
 * than ten seconds.
 *
 * A stranger at the address of a killed runner receives no part of a request, and its responses are rejected. The
 * network is in memory, and the proof of the installation's key is a keyed hash of a nonce per connection. So the model
 * omits the proof by TLS, the bytes of connections, other connections to the stranger (heartbeats, calls), connections
 * that the stranger opens or intercepts, and replays: test/http/forward/RunnerTls.test.ts covers these over sockets.
 * test/cluster/LockTakeover.pg.test.ts covers the takeover from a runner whose address a stranger has.
 *
 * `TILL_SIM_SEEDS=10000 npm run test:all -- test/sim` runs more plans. A failure prints the command that replays it.
 */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Cause, Clock, Effect, Exit, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import * as PaymentsFormats from "../../src/payments/Formats.ts"
import * as Harness from "../engine/Harness.ts"
import type { Wire } from "../models/Wire.ts"
import { Random, Seed } from "../support/Random.ts"
import { isWhole } from "../support/Runs.ts"
import { Clients, wireOf } from "./Clients.ts"
import { RunnerFaults, Senders, startFleet } from "./Fleet.ts"
import { carryOut, programs, type Programs } from "./Merchants.ts"
import { FORGED } from "./Network.ts"
import { start } from "./Process.ts"
import type { Mistake } from "./Runner.ts"
import { advance, fakeTimers, seededIds } from "./VirtualTime.ts"

const SEEDS = Number(process.env["TILL_SIM_SEEDS"] ?? 200)

const Plan = Schema.Struct({ seed: Seed, faults: RunnerFaults })
type Plan = typeof Plan.Type

/** The timeout after which a client tries another runner, in milliseconds. */
const ANSWER_MILLIS_MAX = 2000
/** The longest pause between two requests, in milliseconds. */
const THINK_MILLIS_MAX = 700
/**
 * Every partition is served again within ten seconds (semantics runners.failover). In the model it takes less: the
 * session of a frozen runner ends after 6 s, the next round of another runner follows within 1.6 s and gets the lock
 * 0.3 s later, and all runners are notified within another 0.3 s. A merchant may then have just sent a request to a
 * runner that forwarded it to the frozen one, and may try the frozen one next.
 */
const WAIT_MILLIS_MAX = 10_000 + 2 * ANSWER_MILLIS_MAX
/** The clock's step per turn of the event loop, in milliseconds. */
const STEP_MILLIS = 10

/** Advances the clock continuously within the scope. */
const flowingTime = Effect.andThen(
  fakeTimers,
  Effect.forkScoped(Effect.forever(Effect.andThen(advance(STEP_MILLIS), Effect.yieldNow)))
)

/** Runs one plan with its own clock, unaffected by earlier runs. */
const simulate = (...run: Parameters<typeof carryOutPlan>) =>
  Effect.suspend(() => Effect.andThen(Harness.startClock, carryOutPlan(...run))).pipe(
    Effect.scoped,
    Effect.provide(TestClock.layer())
  )

/** Runs a plan; returns the counts of the relevant events, and all requests with their responses. */
const carryOutPlan = Effect.fnUntraced(function* (plan: Plan, programs: Programs, mistake?: Mistake) {
  yield* flowingTime
  yield* seededIds(plan.seed)
  const storage = yield* Harness.storageInMemory
  const clock = yield* Clock.Clock
  const time = { now: Harness.START }
  const random = new Random(plan.seed)
  const context = yield* Effect.context<never>()
  const now = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  const wallNow = () => time.now
  const quiet = yield* start(storage, wallNow, () => Effect.void)
  const merchants = yield* Effect.forEach([1, 2, 3, 4], () => quiet.merchant)
  yield* quiet.stop
  const accounts = [INSTALLATION, ...merchants.map(({ merchantId }) => `${merchantId}:test`)]
  const { chaos, recover, world } = yield* startFleet({ storage, accounts, random, wallNow, mistake })
  const { runners, strangers } = world
  const trace: Array<string> = []
  const sleep = (millis: number) => Effect.runPromiseWith(context)(Effect.sleep(millis))
  const senders = new Senders(world, sleep)
  const clients = new Clients({
    random,
    now,
    sleep,
    send: async (request) => {
      const { answer, at } = await senders.send(request, ANSWER_MILLIS_MAX)
      trace.push(`${now()}: ${request.method} ${request.url} at ${at}: ${answer?.status} ${answer?.text}`)
      assert.notStrictEqual(answer?.text, FORGED, "a stranger's response was accepted")
      return answer
    }
  })
  const wires = merchants.map(({ secretTest }) => {
    const wire = wireOf(clients, time, secretTest)
    const request: Wire["request"] = async (...asked) => {
      await sleep(random.below(THINK_MILLIS_MAX))
      return wire.request(...asked)
    }
    return { ...wire, request }
  }) as unknown as [Wire, Wire, Wire, Wire]
  const faults = yield* Effect.forkChild(chaos.follow(plan.faults))
  yield* carryOut(programs, wires)
  yield* Fiber.interrupt(faults)
  recover()
  for (const runner of runners) yield* runner.leave
  yield* Harness.verified(storage, PaymentsFormats.KINDS)
  assert.isAtMost(clients.longestWait, WAIT_MILLIS_MAX, "a merchant waited too long")
  let hellos = 0
  for (const stranger of strangers.values()) {
    assert.deepStrictEqual(stranger.learned, [], "a stranger received a request")
    hellos += stranger.hellos
  }
  const { longestWait, repetitions } = clients
  return { strikes: chaos.strikes.length, repetitions, longestWait, hellos, trace }
})

/** A fault after the partitions are served and before most of the merchants' programs. */
const SQUAT: RunnerFaults[number] = { what: "kill, and a stranger takes its address", after: 1200, lasts: 8000 }
const SQUAT_SEEDS = Math.ceil(SEEDS / 8)

const met = { runs: 0, strikes: 0, repetitions: 0, longestWait: 0, hellos: 0 }

describe("several runners, simulated", () => {
  it.effect.prop(
    "behave as in the state tables, exactly once, while runners are killed, frozen, cut off, started and shut down",
    { plan: Plan, ...programs },
    Effect.fnUntraced(function* ({ plan, ...programs }) {
      const { hellos, longestWait, repetitions, strikes } = yield* simulate(plan, programs)
      met.runs++
      met.strikes += strikes
      met.repetitions += repetitions
      met.hellos += hellos
      met.longestWait = Math.max(met.longestWait, longestWait)
    }),
    { arbitrary: { runs: SEEDS, size: 6 }, timeout: 600_000 + SEEDS * 10_000 }
  )

  it.effect.prop(
    "reject a stranger at the address of a killed one, and send it nothing",
    { seed: Seed, ...programs },
    Effect.fnUntraced(function* ({ seed, ...programs }) {
      const { hellos } = yield* simulate({ seed, faults: [SQUAT, SQUAT] }, programs)
      met.hellos += hellos
    }),
    { arbitrary: { runs: SQUAT_SEEDS, size: 16 }, timeout: 600_000 + SQUAT_SEEDS * 10_000 }
  )

  it.effect.prop(
    "behave the same when a plan is repeated",
    { plan: Plan, ...programs },
    Effect.fnUntraced(function* ({ plan, ...programs }) {
      const first = yield* simulate(plan, programs)
      const again = yield* simulate(plan, programs)
      assert.deepStrictEqual(again.trace, first.trace)
    }),
    { arbitrary: { runs: 5, size: 6 } }
  )

  it("have experienced every relevant event", () => {
    const { hellos, longestWait, repetitions, runs, strikes } = met
    console.log(
      `${runs} runs, ${strikes} faults, ${repetitions} repetitions, ${hellos} connections to strangers, ` +
        `nobody waited for more than ${longestWait} ms`
    )
    assert.isAbove(strikes, 0)
    assert.isAbove(repetitions, 0)
    assert.isAbove(hellos, 0)
  })
})

const CONTROL_RUNS_MAX = 150
const CONTROL_SEED = 3

/** Rules that are broken on purpose, each with the faults that reveal it. */
const CONTROLS: ReadonlyArray<readonly [Mistake, RunnerFaults]> = [
  [
    "serves unconfirmed",
    [
      { what: "freeze", after: 500, lasts: 14_000 },
      { what: "freeze", after: 0, lasts: 14_000 }
    ]
  ],
  ["lets others in before it has drained", [{ what: "leave", after: 1000, lasts: 0 }]],
  ["forwards a DELETE twice", []],
  ["requires no proof", [SQUAT]]
]

// Up to `CONTROL_RUNS_MAX` runs each, with their own seed: too many for `npm test`.
describe("a simulated runner that breaks a rule", () => {
  for (const [mistake, faults] of CONTROLS) {
    it.effect.runIf(isWhole)(
      `is detected: it ${mistake}`,
      () =>
        Effect.gen(function* () {
          const samples = yield* Effect.orDie(
            Arbitrary.sampleEffect(Arbitrary.schema(Schema.Struct({ seed: Seed, ...programs })), {
              count: CONTROL_RUNS_MAX,
              size: 16,
              seed: CONTROL_SEED
            })
          )
          for (const [runs, { seed, ...programs }] of samples.entries()) {
            const exit = yield* Effect.exit(simulate({ seed, faults }, programs, mistake))
            const text = Exit.isSuccess(exit) ? "served by nobody" : Cause.pretty(exit.cause)
            if (text.includes("served by nobody")) continue
            assert.match(text, /AssertionError/)
            return console.log(`${mistake}: detected in run ${runs + 1}: ${text.slice(0, 200)}`)
          }
          assert.fail(`${CONTROL_RUNS_MAX} runs have not shown that a runner ${mistake}`)
        }),
      600_000
    )
  }
})
