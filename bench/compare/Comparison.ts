/**
 * Two versions of Till, measured side by side. Each start begins with two new Postgres clusters and two new processes,
 * so neither version pays for the other's checkpoints. Within a start the versions take turns round by round, and the
 * first one changes every time.
 */
import { Console, Effect } from "effect"
import { BenchFailure } from "../BenchFailure.ts"
import { type Server, start } from "../Contender.ts"
import * as Database from "../Database.ts"
import type { Load } from "../load/Load.ts"
import type { Round } from "../Results.ts"
import type { Scenario, Subject } from "../scenarios/Scenario.ts"
import type { Loadable, Pace } from "../Suite.ts"
import * as Suite from "../Suite.ts"
import type { Version } from "./Versions.ts"

export interface ComparisonPace extends Pace {
  readonly starts: number
}

export const SIDES = ["own", "other"] as const
export type Side = (typeof SIDES)[number]
export type OfBoth<A> = Readonly<Record<Side, A>>

/** Rounds of both versions that ran close in time. */
export type Pair = OfBoth<Round>

/** The measurements of a scenario: pairs of rounds, by start. */
export interface Compared {
  readonly scenario: Scenario
  readonly starts: ReadonlyArray<ReadonlyArray<Pair>>
}

/** Both versions read the key from the environment, so no code of one version writes the other's database. */
const API_KEY = "sk_test_bench000000000000000000000000000"
const API_KEYS = [API_KEY]

/** A running version on its own Postgres. */
interface Running {
  readonly title: string
  readonly server: Server
  readonly database: Database.Database
}

const DATABASE = "till"

const startVersion = Effect.fnUntraced(function* ({ command, contender, title }: Version) {
  const database = yield* Database.make
  const databaseUrl = yield* database.create(DATABASE)
  const variables = { TILL_SK_TEST: API_KEY }
  const server = yield* start(contender, { databaseUrl, nodeOptions: [], command, variables })
  return { title, server, database } satisfies Running as Running
})

/** Returns the order of the versions, which alternates from start to start and from round to round. */
const inTurn = (turn: number): ReadonlyArray<Side> => (turn % 2 === 0 ? SIDES : SIDES.toReversed())

/** Runs an effect for both versions, one after the other. */
const forBoth = <A, E, R>(turn: number, effect: (side: Side) => Effect.Effect<A, E, R>) =>
  Effect.map(
    Effect.forEach(inTurn(turn), (side) => Effect.map(effect(side), (value) => [side, value] as const)),
    (entries) => Object.fromEntries(entries) as OfBoth<A>
  )

/** Returns the scenario's load of Till, if it has one. */
export const subjectOf = ({ subjects }: Scenario): Subject | undefined =>
  subjects.filter(({ contender }) => contender === "till").length === 1
    ? subjects.find(({ contender }) => contender === "till")
    : undefined

const countOf = ({ database, server }: Running) => database.count(DATABASE, server.contender.countQuery ?? "SELECT 0")

const measureScenario = Effect.fnUntraced(function* (
  scenario: Scenario,
  subject: Subject,
  running: OfBoth<Running>,
  { isFirst, load, pace, turn }: { isFirst: boolean; load: Load; pace: Pace; turn: number }
) {
  const inScenario = (side: Side) =>
    Effect.mapError(
      ({ problem }: BenchFailure) =>
        new BenchFailure({ problem: `${scenario.name}, ${running[side].title}: ${problem}` })
    )
  const loadables: OfBoth<Loadable> = yield* forBoth(turn, (side) =>
    inScenario(side)(Suite.prepareSubject(scenario, subject, running[side].server, API_KEYS))
  )
  const before = yield* forBoth(turn, (side) => countOf(running[side]))
  const records = { own: 0, other: 0 }
  const measure = Effect.fnUntraced(function* (side: Side, seconds: number) {
    const loaded = { ...loadables[side], database: running[side].database, load }
    const measured = yield* inScenario(side)(Suite.measureRound(loaded, seconds))
    records[side] += measured.records
    return measured.round
  })
  yield* forBoth(turn, (side) => running[side].database.checkpoint)
  yield* forBoth(turn, (side) => measure(side, isFirst ? pace.firstWarmUpSeconds : pace.warmUpSeconds))
  const pairs: Array<Pair> = []
  for (let round = 0; round < pace.rounds; round++) {
    pairs.push(yield* forBoth(turn + round, (side) => measure(side, pace.secondsPerRound)))
  }
  if (!scenario.writes) return pairs
  yield* forBoth(turn, (side) =>
    Effect.gen(function* () {
      const stored = (yield* countOf(running[side])) - before[side]
      if (stored === records[side]) return
      const problem = `${records[side]} requests were acknowledged, and there are ${stored} records.`
      return yield* inScenario(side)(new BenchFailure({ problem }))
    })
  )
  return pairs
})

/** Runs one start of both versions with all scenarios. */
const measureStart = Effect.fnUntraced(function* (
  scenarios: ReadonlyArray<readonly [Scenario, Subject]>,
  versions: OfBoth<Version>,
  load: Load,
  pace: ComparisonPace,
  turn: number
) {
  const running = yield* forBoth(turn, (side) => startVersion(versions[side]))
  const measured: Array<ReadonlyArray<Pair>> = []
  for (const [scenario, subject] of scenarios) {
    const isFirst = measured.length === 0
    measured.push(yield* measureScenario(scenario, subject, running, { isFirst, load, pace, turn }))
  }
  return { measured, postgres: running.own.database.version }
}, Effect.scoped)

/** Measures scenarios that each have one load of Till. */
export const measure = Effect.fnUntraced(function* (
  scenarios: ReadonlyArray<Scenario>,
  versions: OfBoth<Version>,
  load: Load,
  pace: ComparisonPace
) {
  const loads = scenarios.flatMap((scenario) => {
    const subject = subjectOf(scenario)
    return subject === undefined ? [] : [[scenario, subject] as const]
  })
  const starts: Array<ReadonlyArray<ReadonlyArray<Pair>>> = []
  let postgres = ""
  for (let turn = 0; turn < pace.starts; turn++) {
    const began = performance.now()
    const start = yield* measureStart(loads, versions, load, pace, turn)
    postgres = start.postgres
    starts.push(start.measured)
    const seconds = Math.round((performance.now() - began) / 1000)
    yield* Console.log(`Start ${turn + 1} of ${pace.starts} took ${seconds} s.`)
  }
  const compared = loads.map(([scenario], i): Compared => ({ scenario, starts: starts.map((start) => start[i]!) }))
  return { compared, postgres }
})
