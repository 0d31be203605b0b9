/**
 * Several processes of the whole service in virtual time, on one journal: runners that share the accounts, are killed,
 * stand still, are cut off from Postgres, come and go. Merchants carry out random programs over the API at once, each
 * request at any of the runners, and repeat it at another one under its key until it has an answer. The judge of every
 * step, its answer, its events and all that can be seen of it at any runner are the state tables of test/models. So
 * nothing that was acknowledged is unseen afterwards, nothing is done twice, no timer fires twice; and no merchant
 * waits for longer than ten seconds.
 *
 * A stranger at the address of a runner that was killed is sent nothing of a request, and no answer of it is believed.
 * The network is memory, and proof of the installation's key is a keyed hash of a number that is new with each
 * connection. So the model leaves out how TLS proves it, what the bytes of a connection say, other connections to the
 * stranger (signs of life, calls), those that it opens itself or stands between, and what it may send again:
 * test/http/forward/RunnerTls.test.ts has all of these over sockets. When a runner takes over from one whose address a
 * stranger has is test/cluster/LockTakeover.pg.test.ts's.
 *
 * `TILL_SIM_SEEDS=10000 npm run test:all -- test/sim` for more of them. A failure prints the command that
 * replays it alone.
 */
import { assert, describe, it, vi } from "@effect/vitest"
import { Arbitrary, Cause, Clock, Effect, Exit, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import crypto from "node:crypto"
import { syncBuiltinESMExports } from "node:module"
import { randomText } from "../../src/engine/log/Identifiers.ts"
import { partitionOf } from "../../src/engine/process/Placement.ts"
import { INSTALLATION } from "../../src/payments/AccountIds.ts"
import * as PaymentsFormats from "../../src/payments/Formats.ts"
import * as Harness from "../engine/Harness.ts"
import type { Wire } from "../models/Wire.ts"
import { Random, Seed } from "../support/Random.ts"
import { isWhole } from "../support/Runs.ts"
import { Clients, wireOf } from "./Clients.ts"
import type { Programs } from "./Merchants.ts"
import { carryOut, programs } from "./Merchants.ts"
import { Postgres } from "./Postgres.ts"
import { start } from "./Process.ts"
import type { Mistake, World } from "./Runner.ts"
import { Runner } from "./Runner.ts"
import { FORGED, Stranger } from "./Network.ts"

const SEEDS = Number(process.env["TILL_SIM_SEEDS"] ?? 200)
const RUNNERS = 3

const Plan = Schema.Struct({
  seed: Seed,
  /** One after the other, with time in between to get over it. */
  faults: Schema.Array(
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
      /** Until it comes, and until it is over, in milliseconds. */
      after: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4000 })),
      lasts: Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 15_000 }))
    })
  ).check(Schema.isMinLength(1), Schema.isMaxLength(3))
})
type Plan = typeof Plan.Type
type Faults = Plan["faults"]

/** A client waits so long for an answer before it asks another runner, in milliseconds. */
const ANSWER_MILLIS_MAX = 2000
/** Between two requests, at most. */
const THINK_MILLIS_MAX = 700
/**
 * Every partition is served again within ten seconds (9.48). In the model it takes less: the session of whoever stands
 * still ends after 6 s, the next round of another runner comes within 1.6 s and has the lock 0.3 s later, and everybody
 * hears of it within another 0.3 s. Just then a merchant may have asked a runner that has sent its request on to the
 * one that stands still, and may ask that one itself next.
 */
const WAIT_MILLIS_MAX = 10_000 + 2 * ANSWER_MILLIS_MAX
/** Time for everybody to get over a fault, before the next. */
const RECOVERY_MILLIS = 10_000
/** The clock goes on by so much at each turn of the event loop. */
const STEP_MILLIS = 10

/** Lets the clock go on by itself, for those too who ask the machine's, as long as the scope lives. */
const flowingTime = Effect.gen(function* () {
  const toFake = ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] as const
  yield* Effect.acquireRelease(
    Effect.sync(() => vi.useFakeTimers({ toFake: [...toFake], now: Harness.START })),
    () => Effect.sync(() => vi.useRealTimers())
  )
  const step = Effect.andThen(
    Effect.sync(() => vi.advanceTimersByTime(STEP_MILLIS)),
    TestClock.adjust(STEP_MILLIS)
  )
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(step, Effect.yieldNow)))
})

/** Has ids and keys follow from a seed as well: they decide which partition an account lies in, and who has that. */
const seededIds = (seed: number) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const random = new Random(seed)
      const fill = vi.spyOn(crypto, "randomFillSync").mockImplementation((bytes) => {
        const view = bytes as Uint8Array
        for (let i = 0; i < view.length; i++) view[i] = random.below(256)
        return bytes
      })
      syncBuiltinESMExports()
      // Some that were made before are left.
      while (fill.mock.calls.length === 0) randomText(1)
      return fill
    }),
    (fill) =>
      Effect.sync(() => {
        fill.mockRestore()
        syncBuiltinESMExports()
      })
  )

/** Lets the faults of a plan come, one after the other. */
class Chaos {
  strikes = 0
  readonly #world: World
  readonly #start: Effect.Effect<Runner>

  constructor(world: World, start: Effect.Effect<Runner>) {
    this.#world = world
    this.#start = start
  }

  readonly follow = (faults: Faults): Effect.Effect<void> =>
    Effect.forEach(
      faults,
      ({ after, lasts, what }) =>
        Effect.sleep(after).pipe(
          Effect.andThen(Effect.suspend(() => this.#strike(what, lasts))),
          Effect.andThen(Effect.sleep(RECOVERY_MILLIS))
        ),
      { discard: true }
    )

  readonly #strike = Effect.fnUntraced({ self: this }, function* (what: Faults[number]["what"], lasts: number) {
    const { postgres, random, runners, strangers } = this.#world
    const left = [...runners]
    const victim = () => left.splice(random.below(left.length), 1)[0]!
    this.strikes++
    switch (what) {
      case "kill":
      case "kill two": {
        for (let dead = 0; dead < (what === "kill" ? 1 : 2); dead++) victim().kill(random.chance(0.5))
        yield* Effect.sleep(lasts)
        while (runners.size < RUNNERS) yield* this.#start
        return
      }
      case "kill, and a stranger takes its address": {
        // One that requests are forwarded to, if there is any.
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

/** One run, in a time of its own: nothing that an earlier one has left goes on in it. */
const simulate = (...run: Parameters<typeof carryOutPlan>) =>
  Effect.suspend(() => Effect.andThen(Harness.startClock, carryOutPlan(...run))).pipe(
    Effect.scoped,
    Effect.provide(TestClock.layer())
  )

/** Answers with how often what it is about has happened, and with all that was asked and answered. */
const carryOutPlan = Effect.fnUntraced(function* (plan: Plan, programs: Programs, mistake?: Mistake) {
  yield* flowingTime
  yield* seededIds(plan.seed)
  const storage = yield* Harness.storageInMemory
  const clock = yield* Clock.Clock
  const time = { now: Harness.START }
  const random = new Random(plan.seed)
  const context = yield* Effect.context<never>()
  const fork = Effect.runForkWith(context)
  const now = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  const quiet = yield* start(
    storage,
    () => time.now,
    () => Effect.void
  )
  const merchants = yield* Effect.forEach([1, 2, 3, 4], () => quiet.merchant)
  yield* quiet.stop
  const partitions = [INSTALLATION, ...merchants.map(({ merchantId }) => `${merchantId}:test`)].map(partitionOf)
  const runners = new Set<Runner>()
  const postgres = new Postgres([...new Set(partitions)], now, (name) =>
    [...runners].some((runner) => runner.name === name && runner.isReached)
  )
  const strangers = new Map<string, Stranger>()
  const world: World = { storage, postgres, random, now, wallNow: () => time.now, fork, runners, strangers, mistake }
  const trace: Array<string> = []
  let started = 0
  const another = Effect.suspend(() => Runner.start(world, `http://runner-${++started}`))
  for (let count = 0; count < RUNNERS; count++) yield* another
  const sleep = (millis: number) => Effect.runPromiseWith(context)(Effect.sleep(millis))
  /** Whom each merchant asked last in vain: it asks somebody else next. */
  const silent = new Map<string, Runner>()
  const clients = new Clients({
    random,
    now,
    sleep,
    send: async (request) => {
      const others = [...runners].filter((runner) => runner !== silent.get(request.key))
      const asked = random.pick(others.length > 0 ? others : [...runners])
      const answer = await Promise.race([asked.request(request), sleep(ANSWER_MILLIS_MAX).then(() => undefined)])
      trace.push(`${now()}: ${request.method} ${request.url} at ${asked.name}: ${answer?.status} ${answer?.text}`)
      if (answer === undefined) silent.set(request.key, asked)
      else silent.delete(request.key)
      assert.notStrictEqual(answer?.text, FORGED, "a stranger was believed")
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
  const chaos = new Chaos(world, another)
  const faults = yield* Effect.forkChild(chaos.follow(plan.faults))
  yield* carryOut(programs, wires)
  yield* Fiber.interrupt(faults)
  for (const runner of runners) {
    runner.thaw()
    runner.reconnect()
  }
  for (const runner of runners) yield* runner.leave
  yield* Harness.verified(storage, PaymentsFormats.KINDS)
  assert.isAtMost(clients.longestWait, WAIT_MILLIS_MAX, "a merchant was served by nobody")
  let hellos = 0
  for (const stranger of strangers.values()) {
    assert.deepStrictEqual(stranger.learned, [], "a stranger was sent a request")
    hellos += stranger.hellos
  }
  const { longestWait, repetitions } = clients
  return { strikes: chaos.strikes, repetitions, longestWait, hellos, trace }
})

/** Partitions are served by then, and merchants have most of their programs before them. */
const SQUAT: Faults[number] = { what: "kill, and a stranger takes its address", after: 1200, lasts: 8000 }
const SQUAT_SEEDS = Math.ceil(SEEDS / 8)

const met = { runs: 0, strikes: 0, repetitions: 0, longestWait: 0, hellos: 0 }

describe("several runners, simulated", () => {
  it.effect.prop(
    "do what the state tables say, once, whoever dies, stands still, is cut off, comes and goes",
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
    "believe no stranger at the address of one that was killed, and send it nothing",
    { seed: Seed, ...programs },
    Effect.fnUntraced(function* ({ seed, ...programs }) {
      const { hellos } = yield* simulate({ seed, faults: [SQUAT, SQUAT] }, programs)
      met.hellos += hellos
    }),
    { arbitrary: { runs: SQUAT_SEEDS, size: 16 }, timeout: 600_000 + SQUAT_SEEDS * 10_000 }
  )

  it.effect.prop(
    "do the same in a plan that is carried out again",
    { plan: Plan, ...programs },
    Effect.fnUntraced(function* ({ plan, ...programs }) {
      const first = yield* simulate(plan, programs)
      const again = yield* simulate(plan, programs)
      assert.deepStrictEqual(again.trace, first.trace)
    }),
    { arbitrary: { runs: 5, size: 6 } }
  )

  it("have really met what it is about", () => {
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

/** Rules that are broken on purpose, each with the faults that have to show it. */
const CONTROLS: ReadonlyArray<readonly [Mistake, Faults]> = [
  [
    "serves unconfirmed",
    [
      { what: "freeze", after: 500, lasts: 14_000 },
      { what: "freeze", after: 0, lasts: 14_000 }
    ]
  ],
  ["lets others in before it has drained", [{ what: "leave", after: 1000, lasts: 0 }]],
  ["forwards a DELETE twice", []],
  ["asks for no proof", [SQUAT]]
]

// Up to a hundred runs each, from a seed of their own: more than `npm test` has time for.
describe("a simulated runner that breaks a rule", () => {
  for (const [mistake, faults] of CONTROLS) {
    it.effect.runIf(isWhole)(
      `is found out: it ${mistake}`,
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
            return console.log(`${mistake}: seen in run ${runs + 1}: ${text.slice(0, 200)}`)
          }
          assert.fail(`nobody has seen in ${CONTROL_RUNS_MAX} runs that a runner ${mistake}`)
        }),
      600_000
    )
  }
})
