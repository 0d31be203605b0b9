/**
 * The API's scenarios. Each server runs with a Postgres of its own; the scenarios run one after the other. A scenario
 * that fails is reported, and the next one runs.
 */
import { Console, Effect } from "effect"
import type { BenchFailure } from "./BenchFailure.ts"
import { type Contender, type ContenderName, contenders, start } from "./Contender.ts"
import * as Database from "./Database.ts"
import * as Emulate from "./Emulate.ts"
import * as Load from "./load/Load.ts"
import * as PacedLoad from "./load/PacedLoad.ts"
import * as Machine from "./Machine.ts"
import * as Paced from "./paced/Paced.ts"
import { rows, TITLE } from "./paced/PacedReport.ts"
import * as Report from "./Report.ts"
import type { PacedResult, Results, ScenarioResult } from "./Results.ts"
import type { Scenario } from "./scenarios/Scenario.ts"
import * as Seed from "./Seed.ts"
import type { Pace, Running } from "./Suite.ts"
import * as Suite from "./Suite.ts"
import * as Table from "./Table.ts"
import { verify } from "./Verification.ts"

export interface ApiOptions {
  readonly pace: Pace
  readonly scenarios: ReadonlyArray<Scenario>
  /** Pace of the open loop; null leaves the loop out. */
  readonly pacedPace: Paced.PacedPace | null
  readonly takesPart: (contender: ContenderName) => boolean
  /** PaymentIntents in the last account before the run. */
  readonly objects: number
  /** Options of the Node that runs Till. */
  readonly nodeOptions: ReadonlyArray<string>
}

/** The servers that the open loop measures. */
const PACED: ReadonlyArray<ContenderName> = ["till", "transactionPerRequest"]

const startTill = Effect.fnUntraced(function* ({ nodeOptions, objects }: ApiOptions) {
  const database = yield* Database.make
  const databaseUrl = yield* database.create("till")
  const apiKeys = yield* Seed.make(databaseUrl, { objects })
  const server = yield* start(contenders.till, { databaseUrl, nodeOptions })
  return { server, database, apiKeys, verify: Effect.asVoid(verify(server.installation)) } satisfies Running as Running
})

const startBaseline = Effect.fnUntraced(function* (contender: Contender) {
  if (contender.name === "emulate") yield* Emulate.installed
  const database = contender.countQuery === null ? Database.none : yield* Database.make
  const databaseUrl = yield* database.create(contender.name)
  const server = yield* start(contender, { databaseUrl, nodeOptions: [] })
  const apiKeys = contender.name === "emulate" ? Emulate.apiKeys : ["none"]
  return { server, database, apiKeys, verify: Effect.void } satisfies Running as Running
})

const startAll = Effect.fnUntraced(function* (options: ApiOptions) {
  const wanted = options.scenarios.flatMap(({ subjects }) => subjects.map(({ contender }) => contender))
  const paced = options.pacedPace === null ? [] : PACED
  const running = new Map<ContenderName, Running>()
  const leftOut: Array<string> = []
  const leaveOut = ({ problem }: BenchFailure) =>
    Effect.andThen(
      Console.error(`Left out: ${problem}`),
      Effect.sync(() => void leftOut.push(problem))
    )
  for (const name of new Set([...wanted, ...paced].filter(options.takesPart))) {
    const started = name === "till" ? startTill(options) : startBaseline(contenders[name])
    // npm may be unable to fetch the fake.
    const one = yield* name === "emulate" ? Effect.catchTag(started, "BenchFailure", leaveOut) : started
    if (one !== undefined) running.set(name, one)
  }
  return { running, leftOut }
})

/** Measures the chosen scenarios and prints each result when it is complete. */
export const run = Effect.fnUntraced(function* (options: ApiOptions) {
  const failures: Array<string> = []
  const fail = ({ problem }: BenchFailure) =>
    Effect.andThen(
      Console.error(`\nFAILED  ${problem}`),
      Effect.sync(() => void failures.push(problem))
    )
  const { leftOut, running } = yield* startAll(options)
  const [version = "none"] = [...running.values()].flatMap(({ database }) => database.version || [])
  const machine = Machine.describe(version)
  yield* Console.log(Machine.sentence(machine))
  const setting = { load: yield* Load.make, running, pace: options.pace, warm: new Set<Running["server"]>() }
  const measured: Array<ScenarioResult> = []
  for (const scenario of options.scenarios) {
    if (!scenario.subjects.some(({ contender }) => running.has(contender))) continue
    const one = Effect.gen(function* () {
      const result = yield* Suite.run(scenario, setting)
      measured.push(result)
      yield* Console.log(`\n${Report.scenarioText(result)}`)
    })
    yield* Effect.catchTag(one, "BenchFailure", fail)
  }
  const paced: Array<PacedResult> = []
  const { pacedPace } = options
  if (pacedPace !== null) {
    const load = yield* PacedLoad.make
    const one = Effect.gen(function* () {
      paced.push(
        ...(yield* Paced.measure(
          PACED.flatMap((name) => running.get(name) ?? []),
          load,
          pacedPace
        ))
      )
      yield* Console.log(`\n${[TITLE, ...Table.textLines(rows(paced))].join("\n  ")}`)
    })
    yield* Effect.catchTag(one, "BenchFailure", fail)
  }
  return {
    at: new Date().toISOString(),
    machine,
    secondsPerRound: options.pace.secondsPerRound,
    scenarios: measured,
    paced,
    leftOut,
    failures
  } satisfies Results as Results
}, Effect.scoped)
