/**
 * The run. All servers stand side by side and idle, each with a Postgres of its own. Each scenario warms them up and
 * then loads them in turn, round by round, so that a slow minute of the machine affects all of them alike. A round ends
 * when server and Postgres are at rest and everything is written: work behind the answers counts for the server that
 * causes it, and never falls into another server's round.
 */
import { Console, Effect } from "effect"
import { BenchFailure } from "./BenchFailure.ts"
import type { ContenderName, Server } from "./Contender.ts"
import type { Database } from "./Database.ts"
import type { Load } from "./load/Load.ts"
import type { LoadPlan } from "./load/LoadPlan.ts"
import { latencyOf } from "./load/Percentiles.ts"
import * as ProcessTime from "./ProcessTime.ts"
import type { Round, ScenarioResult } from "./Results.ts"
import type { Refill, Scenario, Subject } from "./scenarios/Scenario.ts"
import { around, perRequest } from "./SpentTime.ts"

export interface Pace {
  /** Warm-up before a server's first scenario: a large program needs more time to be compiled than a small one. */
  readonly firstWarmUpSeconds: number
  /** Warm-up before each later scenario. */
  readonly warmUpSeconds: number
  readonly secondsPerRound: number
  readonly rounds: number
}

/** A server of the run, with its own database, accounts and checks. */
export interface Running {
  readonly server: Server
  readonly database: Database
  /** Secret keys, one per account. */
  readonly apiKeys: ReadonlyArray<string>
  /** Fails unless all data of the server is intact. */
  readonly verify: Effect.Effect<void, BenchFailure>
}

export interface Setting {
  readonly load: Load
  readonly running: ReadonlyMap<ContenderName, Running>
  readonly pace: Pace
  /** Servers with at least one load so far; the suite adds to the set. */
  readonly warm: Set<Server>
}

/** A server and its load. */
export interface Loadable {
  readonly server: Server
  /** The load without its duration, which differs from round to round. */
  readonly plan: Omit<LoadPlan, "seconds">
  readonly refill: Refill | undefined
}

interface Prepared extends Loadable {
  readonly subject: Subject
  readonly running: Running
  readonly rounds: Array<Round>
  /** Latencies by round. */
  readonly latencies: Array<Float64Array>
}

/** Runs a scenario; subjects without a server in the run are left out. */
export const run = Effect.fnUntraced(function* (scenario: Scenario, setting: Setting) {
  const { load, pace, warm } = setting
  const prepared = yield* prepare(scenario, setting)
  const before = yield* countRecords(prepared)
  const acknowledged = new Map<ContenderName, number>()

  const measure = Effect.fnUntraced(
    function* (one: Prepared, seconds: number) {
      const measured = yield* measureRound({ ...one, database: one.running.database, load }, seconds)
      const { contender } = one.subject
      acknowledged.set(contender, (acknowledged.get(contender) ?? 0) + measured.records)
      return measured
    },
    (effect, { subject }) =>
      Effect.mapError(
        effect,
        ({ problem }) => new BenchFailure({ problem: `${scenario.name}, ${subject.title}: ${problem}` })
      )
  )

  for (const one of prepared) {
    yield* one.running.database.checkpoint
    yield* measure(one, warm.has(one.server) ? pace.warmUpSeconds : pace.firstWarmUpSeconds)
    warm.add(one.server)
  }
  for (let round = 0; round < pace.rounds + (scenario.moreRounds ?? 0); round++) {
    for (const one of prepared) {
      const { latencies, round } = yield* measure(one, pace.secondsPerRound)
      one.rounds.push(round)
      one.latencies.push(latencies)
    }
  }
  if (scenario.writes) {
    yield* requireRecords(scenario, yield* countRecords(prepared), before, acknowledged)
    const inScenario = ({ problem }: BenchFailure) => new BenchFailure({ problem: `${scenario.name}: ${problem}` })
    yield* Effect.forEach(new Set(prepared.map(({ running }) => running)), ({ verify }) =>
      Effect.mapError(verify, inScenario)
    )
  }
  return {
    name: scenario.name,
    title: scenario.title,
    connections: scenario.connections,
    subjects: prepared.map(({ latencies, rounds, subject: { contender, title } }) => ({
      title,
      contender,
      latency: latencyOf(latencies),
      rounds
    }))
  } satisfies ScenarioResult as ScenarioResult
})

/**
 * Runs one load, from the preparation of its objects to the rest afterwards. `records` counts the records that it left.
 */
export const measureRound = Effect.fnUntraced(function* (
  { database, load, plan, refill, server }: Loadable & Pick<Setting, "load"> & Pick<Running, "database">,
  seconds: number
) {
  const paths = refill === undefined ? undefined : yield* refill(seconds)
  if (paths !== undefined) yield* settled(server, database)
  const requests = { ...plan.requests, paths: paths ?? plan.requests.paths }
  const { spent, value } = yield* around(
    { server, database, workers: [load] },
    Effect.tap(load.run({ ...plan, requests, seconds }), settled(server, database))
  )
  const { latencies, ...result } = value
  const round: Round = { ...result, ...latencyOf([latencies]), ...perRequest(result.acknowledged, spent) }
  return { round, latencies, records: (paths?.length ?? 0) + value.acknowledged }
})

/** Creates the objects that a subject's requests need. */
export const prepareSubject = Effect.fnUntraced(function* (
  scenario: Scenario,
  subject: Subject,
  server: Server,
  apiKeys: ReadonlyArray<string>
) {
  const target = { port: server.port, apiKeys }
  const requests = yield* subject.requests(target)
  const { connections, expect } = scenario
  const plan = { port: server.port, connections, requests, expect }
  const refill = subject.refill === undefined ? undefined : yield* subject.refill(target)
  return { server, plan, refill } satisfies Loadable as Loadable
})

const prepare = (scenario: Scenario, setting: Setting) =>
  Effect.forEach(
    scenario.subjects.filter(({ contender }) => setting.running.has(contender)),
    (subject) => {
      const running = setting.running.get(subject.contender)!
      return Effect.map(prepareSubject(scenario, subject, running.server, running.apiKeys), (loadable): Prepared => ({
        ...loadable,
        subject,
        running,
        rounds: [],
        latencies: []
      }))
    }
  )

const REST_MILLIS = 100
const REST_MILLIS_MAX = 5000
/** CPU time within `REST_MILLIS` that counts as rest. */
const REST_MICROS_MAX = 10_000

/** Waits for rest and runs a checkpoint, which would otherwise fall into another server's round. */
export const settled = (servers: Server | ReadonlyArray<Server>, database: Database) =>
  Effect.andThen(rest(servers, database), database.checkpoint)

/** Waits until the servers and Postgres use no CPU time; gives up after `REST_MILLIS_MAX`. */
export const rest = Effect.fnUntraced(function* (servers: Server | ReadonlyArray<Server>, database: Database) {
  const all = "pid" in servers ? [servers] : servers
  const spent = () => all.reduce((sum, { pid }) => sum + (ProcessTime.ofProcess(pid) ?? 0), database.cpuMicros() ?? 0)
  const deadline = performance.now() + REST_MILLIS_MAX
  for (let before = spent(); performance.now() < deadline;) {
    yield* Effect.sleep(REST_MILLIS)
    const now = spent()
    if (now - before <= REST_MICROS_MAX) return
    before = now
  }
  yield* Console.warn(`${all[0]!.contender.title} does not get to rest.`)
})

const countRecords = Effect.fnUntraced(function* (prepared: ReadonlyArray<Prepared>) {
  const counts = new Map<ContenderName, number>()
  for (const { database, server } of new Set(prepared.map(({ running }) => running))) {
    const { contender } = server
    if (contender.countQuery === null) continue
    counts.set(contender.name, yield* database.count(contender.name, contender.countQuery))
  }
  return counts
})

/** Requires one record per acknowledged request and no other: none was lost, none was carried out twice. */
const requireRecords = Effect.fnUntraced(function* (
  scenario: Scenario,
  after: ReadonlyMap<ContenderName, number>,
  before: ReadonlyMap<ContenderName, number>,
  acknowledged: ReadonlyMap<ContenderName, number>
) {
  for (const [name, count] of after) {
    const records = count - before.get(name)!
    if (records === acknowledged.get(name)) continue
    const requests = acknowledged.get(name)
    const problem = `${scenario.name}: ${name} acknowledged ${requests} requests and holds ${records} records`
    return yield* new BenchFailure({ problem })
  }
})
