import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { BenchFailure } from "../../bench/BenchFailure.ts"
import { type ContenderName, contenders, type Server } from "../../bench/Contender.ts"
import type { LoadPlan, LoadResult } from "../../bench/load/LoadPlan.ts"
import type { Scenario } from "../../bench/scenarios/Scenario.ts"
import * as Suite from "../../bench/Suite.ts"

const PORTS = { till: 1, groupCommit: 2 } as const
const ACKNOWLEDGED = 10

const scenario: Scenario = {
  name: "create",
  title: "Create",
  connections: 64,
  writes: true,
  expect: "",
  subjects: (["till", "groupCommit"] as const).map((contender) => ({
    title: contender,
    contender,
    requests: () => Effect.succeed({ method: "POST", paths: ["/"], apiKeys: ["k"], body: "{}" })
  }))
}

const result: LoadResult = {
  acknowledged: ACKNOWLEDGED,
  elapsedMillis: 1,
  requestsPerSecond: 1,
  latencies: Float64Array.of(1),
  generatorMicros: 1
}

/** Runs the scenario on servers that store `recordsPerLoad` records for every load of 10 requests. */
const run = (
  recordsPerLoad: number,
  onLoad: (plan: LoadPlan) => Effect.Effect<void, BenchFailure> = () => Effect.void,
  ofScenario: Scenario = scenario,
  verification: Effect.Effect<void, BenchFailure> = Effect.void
) => {
  const loads: Array<number> = []
  const steps: Array<string> = []
  const seconds: Array<number> = []
  const warm = new Set<Server>()
  const running = (name: keyof typeof PORTS): [ContenderName, Suite.Running] => [
    name,
    {
      server: { contender: contenders[name], pid: process.pid, port: PORTS[name] },
      database: {
        version: "18",
        create: () => Effect.die("not here"),
        rows: () => Effect.die("not here"),
        count: (counted) =>
          Effect.sync(() => {
            assert.strictEqual(counted, name)
            return 7 + recordsPerLoad * loads.filter((port) => port === PORTS[name]).length
          }),
        checkpoint: Effect.sync(() => steps.push(`checkpoint ${name}`)),
        cpuMicros: () => undefined
      },
      apiKeys: ["k"],
      verify: Effect.andThen(
        Effect.sync(() => steps.push(`verify ${name}`)),
        name === "till" ? verification : Effect.void
      )
    }
  ]
  const ran = Suite.run(ofScenario, {
    load: {
      pid: process.pid,
      run: (plan) =>
        Effect.sync(() => (loads.push(plan.port), steps.push(`load ${plan.port}`), seconds.push(plan.seconds))).pipe(
          Effect.andThen(onLoad(plan)),
          Effect.map(() => ({ ...result, latencies: Float64Array.of(loads.length) }))
        )
    },
    running: new Map([running("till"), running("groupCommit")]),
    pace: { firstWarmUpSeconds: 4, warmUpSeconds: 1, secondsPerRound: 2, rounds: 2 },
    warm
  })
  return { loads, steps, seconds, ran }
}

describe("Suite", () => {
  it.live("warms up, then takes turns", () =>
    Effect.gen(function* () {
      const { loads, ran, seconds } = run(ACKNOWLEDGED)
      const { subjects } = yield* ran
      assert.deepStrictEqual(seconds, [4, 4, 2, 2, 2, 2])
      assert.deepStrictEqual(loads, [1, 2, 1, 2, 1, 2])
      assert.deepStrictEqual(
        subjects.map(({ rounds }) => rounds.length),
        [2, 2]
      )
    })
  )

  it.live("writes what a load has left in its Postgres' memory before the next one begins", () =>
    Effect.gen(function* () {
      const { ran, steps } = run(ACKNOWLEDGED)
      yield* ran
      const turn = ["load 1", "checkpoint till", "load 2", "checkpoint groupCommit"]
      const warmUp = ["checkpoint till", "load 1", "checkpoint till", "checkpoint groupCommit", "load 2", turn[3]]
      assert.deepStrictEqual(steps, [...warmUp, ...turn, ...turn, "verify till", "verify groupCommit"])
    })
  )

  it.live("fails if what is left is not whole; what only reads leaves nothing to verify", () =>
    Effect.gen(function* () {
      const verification = Effect.fail(new BenchFailure({ problem: "till verify: Record 3 is missing" }))
      const written = run(ACKNOWLEDGED, undefined, scenario, verification)
      assert.strictEqual((yield* Effect.flip(written.ran)).problem, "create: till verify: Record 3 is missing")
      yield* run(0, undefined, { ...scenario, writes: false }, verification).ran
    })
  )

  it.live("takes more turns if the scenario requires more", () =>
    Effect.gen(function* () {
      const { loads, ran } = run(ACKNOWLEDGED, () => Effect.void, { ...scenario, moreRounds: 3 })
      const { subjects } = yield* ran
      assert.deepStrictEqual(loads, [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2])
      // The n-th load takes n ms here; the rounds count, and the warm-up does not.
      assert.deepStrictEqual(
        subjects.map(({ latency }) => latency),
        [
          { p50Millis: 7, p99Millis: 11, maxMillis: 11 },
          { p50Millis: 8, p99Millis: 12, maxMillis: 12 }
        ]
      )
      assert.deepStrictEqual(
        subjects.map(({ rounds }) => rounds.length),
        [5, 5]
      )
    })
  )

  it.live("fails if a record is missing, or there is one too many", () =>
    Effect.gen(function* () {
      const lost = yield* Effect.flip(run(ACKNOWLEDGED - 1).ran)
      assert.strictEqual(lost.problem, "create: till acknowledged 30 requests and holds 27 records")
      const doubled = yield* Effect.flip(run(ACKNOWLEDGED + 1).ran)
      assert.strictEqual(doubled.problem, "create: till acknowledged 30 requests and holds 33 records")
    })
  )

  it.live("lays anew what each round uses up, and counts the records of that", () =>
    Effect.gen(function* () {
      const asked: Array<ReadonlyArray<string>> = []
      let laid = 0
      const refill = (seconds: number) => Effect.sync(() => Array.from({ length: seconds }, () => `/${laid++}`))
      const subject = { ...scenario.subjects[0]!, refill: () => Effect.succeed(refill) }
      const onLoad = ({ requests }: LoadPlan) => Effect.sync(() => void asked.push(requests.paths))
      const { ran } = run(ACKNOWLEDGED, onLoad, { ...scenario, subjects: [subject] })
      // 4 + 2 + 2 seconds' worth of objects, which the database in this test does not hold.
      const { problem } = yield* Effect.flip(ran)
      assert.strictEqual(problem, "create: till acknowledged 38 requests and holds 30 records")
      assert.deepStrictEqual(asked, [
        ["/0", "/1", "/2", "/3"],
        ["/4", "/5"],
        ["/6", "/7"]
      ])
    })
  )

  it.live("names the scenario of a failed load", () =>
    Effect.gen(function* () {
      const failure = new BenchFailure({ problem: "503" })
      const { ran } = run(ACKNOWLEDGED, ({ port }) => (port === PORTS.groupCommit ? Effect.fail(failure) : Effect.void))
      assert.strictEqual((yield* Effect.flip(ran)).problem, "create, groupCommit: 503")
    })
  )
})
