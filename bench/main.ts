/**
 * `npm run bench`: Till against its baselines, on this machine. See README.md for the question and the method.
 *
 * Ends with a non-zero status if any answer was wrong or any record is missing; a goal that is not reached is reported
 * and is no failure, because it depends on the machine.
 */
import { randomInt } from "node:crypto"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { BenchFailure } from "./BenchFailure.ts"
import * as Chart from "./Chart.ts"
import { STARTS_MAX, STARTS_MIN } from "./compare/Bootstrap.ts"
import type { ComparisonPace } from "./compare/Comparison.ts"
import * as Comparison from "./compare/Comparison.ts"
import * as ComparisonReport from "./compare/ComparisonReport.ts"
import * as Versions from "./compare/Versions.ts"
import type { ContenderName, Server } from "./Contender.ts"
import { contenders, start } from "./Contender.ts"
import * as Database from "./Database.ts"
import { judge } from "./Goals.ts"
import * as Guardian from "./Guardian.ts"
import * as Load from "./load/Load.ts"
import * as Machine from "./Machine.ts"
import type { OverloadPace } from "./overload/OverloadBench.ts"
import * as OverloadBench from "./overload/OverloadBench.ts"
import * as OverloadChart from "./overload/OverloadChart.ts"
import * as OverloadGoals from "./overload/OverloadGoals.ts"
import type { OverloadResults } from "./overload/OverloadResults.ts"
import * as OverloadReport from "./overload/OverloadReport.ts"
import * as Report from "./Report.ts"
import type { Results, ScenarioResult } from "./Results.ts"
import { scenarios } from "./scenarios/index.ts"
import type { Scenario } from "./scenarios/Scenario.ts"
import * as Seed from "./Seed.ts"
import type { Pace } from "./Suite.ts"
import * as Suite from "./Suite.ts"
import type { WebhookPace } from "./webhooks/WebhookBench.ts"
import * as WebhookBench from "./webhooks/WebhookBench.ts"
import * as WebhookGoals from "./webhooks/WebhookGoals.ts"
import * as WebhookReport from "./webhooks/WebhookReport.ts"
import type { WebhookResults } from "./webhooks/WebhookResults.ts"

const RESULTS = join(import.meta.dirname, "results")

/** The default keeps a run under three minutes. */
const PACE: Pace = { firstWarmUpSeconds: 7, warmUpSeconds: 0.9, secondsPerRound: 0.9, rounds: 3 }
const PACE_FULL: Pace = { firstWarmUpSeconds: 10, warmUpSeconds: 4, secondsPerRound: 6, rounds: 5 }

const SECONDS_MAX = 3600

/** About a minute and a half per scenario. Starts tell more than rounds do: each has its own luck with the compiler. */
const COMPARISON_PACE: ComparisonPace = {
  firstWarmUpSeconds: 6,
  warmUpSeconds: 2,
  secondsPerRound: 0.9,
  rounds: 4,
  starts: 6
}
const COMPARISON_PACE_FULL: ComparisonPace = { ...COMPARISON_PACE, secondsPerRound: 2, rounds: 5, starts: 12 }
/** What is compared unless `--only` says otherwise. */
const COMPARED = ["retrieve", "list", "create", "create-and-confirm", "checkout", "checkout-confirm", "refund"]

const OVERLOAD = "overload"
/** About three minutes. */
const OVERLOAD_PACE: OverloadPace = {
  warmUpSeconds: 7,
  secondsPerQuiet: 1,
  secondsPerPeak: 2,
  secondsPerStep: 4,
  watchedSeconds: 2.5
}
const OVERLOAD_PACE_FULL: OverloadPace = {
  warmUpSeconds: 10,
  secondsPerQuiet: 3,
  secondsPerPeak: 5,
  secondsPerStep: 15,
  watchedSeconds: 5
}

const WEBHOOKS = "webhooks"
const RETRIES = { deliveries: 10_000, createsPerSecond: 200, watchedSeconds: 6 }
/** A minute and a half; with ten endpoints, most of it is waiting for their deliveries. */
const WEBHOOK_PACE: WebhookPace = {
  warmUpSeconds: 5,
  secondsPerMeasure: 4,
  secondsPerFanOutRound: 0.8,
  fanOutRounds: 3,
  retries: RETRIES
}
const WEBHOOK_PACE_FULL: WebhookPace = {
  warmUpSeconds: 10,
  secondsPerMeasure: 15,
  secondsPerFanOutRound: 2,
  fanOutRounds: 5,
  retries: { ...RETRIES, watchedSeconds: 15 }
}

/** For a trial: everything takes about as long as one measure, and fewer retries wait. */
const ofSeconds = (seconds: number): Partial<WebhookPace> => ({
  warmUpSeconds: seconds,
  secondsPerMeasure: seconds,
  secondsPerFanOutRound: seconds / 5,
  fanOutRounds: 1,
  retries: { ...RETRIES, deliveries: Math.ceil(RETRIES.deliveries * Math.min(1, seconds / 4)), watchedSeconds: seconds }
})

/** For a trial: warm-ups are shortened with the rounds. */
const ofRounds = (pace: ComparisonPace, secondsPerRound: number): ComparisonPace => ({
  ...pace,
  secondsPerRound,
  warmUpSeconds: Math.min(pace.warmUpSeconds, 2 * secondsPerRound),
  firstWarmUpSeconds: Math.min(pace.firstWarmUpSeconds, 6 * secondsPerRound)
})

interface Options {
  readonly pace: Pace
  readonly scenarios: ReadonlyArray<Scenario>
  readonly takesPart: (contender: ContenderName) => boolean
  /** What the last account holds from the start. */
  readonly objects: number
  /** Of Till's Node. */
  readonly nodeOptions: ReadonlyArray<string>
}

/**
 * Measures with options for Till's Node; with those that leave a CPU profile, if one is wanted, and says where it is.
 */
const profiled = Effect.fnUntraced(function* <A, E, R>(
  wanted: boolean,
  measure: (nodeOptions: ReadonlyArray<string>) => Effect.Effect<A, E, R>
) {
  if (!wanted) return yield* measure([])
  const name = `till-${Date.now()}.cpuprofile`
  const measured = yield* measure(["--cpu-prof", `--cpu-prof-dir=${RESULTS}`, `--cpu-prof-name=${name}`])
  yield* Console.log(`\nProfile: ${join(RESULTS, name)}`)
  return measured
})

const startServers = Effect.fnUntraced(function* (options: Options, database: Database.Database) {
  const wanted = options.scenarios.flatMap(({ subjects }) => subjects.map(({ contender }) => contender))
  const servers = new Map<ContenderName, Server>()
  let apiKeys: ReadonlyArray<string> = ["none"]
  for (const name of new Set(wanted.filter(options.takesPart))) {
    const contender = contenders[name]
    const url = contender.countQuery === null ? "" : yield* database.create(name)
    if (name === "till") apiKeys = yield* Seed.make(url, options.objects)
    const nodeOptions = name === "till" ? options.nodeOptions : []
    servers.set(name, yield* start(contender, { databaseUrl: url, nodeOptions }))
  }
  return { servers, apiKeys }
})

const run = Effect.fnUntraced(function* (options: Options) {
  const database = yield* Database.make
  const machine = Machine.describe(database.version)
  yield* Console.log(Machine.sentence(machine))
  const load = yield* Load.make
  const { apiKeys, servers } = yield* startServers(options, database)
  const measured: Array<ScenarioResult> = []
  const setting = { database, load, servers, apiKeys, pace: options.pace, warm: new Set<Server>() }
  for (const scenario of options.scenarios) {
    if (!scenario.subjects.some(({ contender }) => servers.has(contender))) continue
    const result = yield* Suite.run(scenario, setting)
    measured.push(result)
    yield* Console.log(`\n${Report.scenarioText(result)}`)
  }
  return {
    at: new Date().toISOString(),
    machine,
    secondsPerRound: options.pace.secondsPerRound,
    scenarios: measured
  } satisfies Results as Results
}, Effect.scoped)

const report = Effect.fnUntraced(function* (results: Results, complete: boolean) {
  const verdicts = judge(results)
  yield* Console.log(["", ...verdicts.map(Report.verdictText)].join("\n"))
  if (!complete) return yield* Console.log("\nA part of the bench: the report files stay as they are.")
  mkdirSync(RESULTS, { recursive: true })
  const write = (name: string, text: string) => writeFileSync(join(RESULTS, name), text)
  write("latest.json", `${JSON.stringify({ ...results, goals: verdicts }, null, 2)}\n`)
  write("throughput.svg", Chart.svg(results))
  write("table.md", `${Machine.sentence(results.machine)}\n\n${Report.markdown(results)}\n`)
  yield* Console.log(`\nWritten to ${RESULTS}: latest.json, throughput.svg, table.md`)
})

/** Compares this checkout with a git reference; only prints. */
const compare = Effect.fnUntraced(function* (
  reference: string,
  only: Option.Option<string>,
  pace: ComparisonPace,
  runFolder: string
) {
  const wanted = Option.match(only, { onNone: () => COMPARED, onSome: (name) => [name] })
  const compared = scenarios.filter(({ name }) => wanted.includes(name))
  if (compared.length === 0 || compared.some((scenario) => Comparison.subjectOf(scenario) === undefined)) {
    return yield* new BenchFailure({ problem: `Versions cannot be compared by ${wanted.join()}.` })
  }
  // Now, because the checkout may go on while it is being measured.
  const machine = Machine.describe("")
  const versions = yield* Versions.lay(reference, runFolder)
  yield* Console.log(`This checkout against ${versions.other.title}: ${pace.starts} starts of both.`)
  const load = yield* Load.make
  const measured = yield* Comparison.measure(compared, versions, load, pace)
  const seed = randomInt(2 ** 31)
  for (const one of measured.compared) {
    yield* Console.log(`\n${ComparisonReport.scenarioText(one, versions.other.title, seed)}`)
  }
  yield* Console.log(`\n${ComparisonReport.caution(compared.length)}`)
  yield* Console.log(`${Machine.sentence({ ...machine, postgres: measured.postgres })}; seed ${seed}`)
}, Effect.scoped)

const reportWebhooks = Effect.fnUntraced(function* (results: WebhookResults, complete: boolean) {
  const verdicts = WebhookGoals.judge(results)
  yield* Console.log(["", WebhookReport.text(results), "", ...verdicts.map(Report.verdictText)].join("\n"))
  if (!complete) return yield* Console.log("\nNot the usual run: the report files stay as they are.")
  mkdirSync(RESULTS, { recursive: true })
  const write = (name: string, text: string) => writeFileSync(join(RESULTS, name), text)
  write("webhooks.json", `${JSON.stringify({ ...results, goals: verdicts }, null, 2)}\n`)
  write("webhooks.md", `${Machine.sentence(results.machine)}\n\n${WebhookReport.markdown(results)}\n`)
  yield* Console.log(`\nWritten to ${RESULTS}: webhooks.json, webhooks.md`)
})

const reportOverload = Effect.fnUntraced(function* (results: OverloadResults, complete: boolean) {
  const verdicts = OverloadGoals.judge(results)
  yield* Console.log(["", `  ${OverloadReport.text(results)}`, "", ...verdicts.map(Report.verdictText)].join("\n"))
  if (!complete) return yield* Console.log("\nNot the usual run: the report files stay as they are.")
  mkdirSync(RESULTS, { recursive: true })
  const write = (name: string, text: string) => writeFileSync(join(RESULTS, name), text)
  write("overload.json", `${JSON.stringify({ ...results, goals: verdicts }, null, 2)}\n`)
  write("overload.md", `${Machine.sentence(results.machine)}\n\n${OverloadReport.markdown(results)}\n`)
  write("overload.svg", OverloadChart.svg(results))
  yield* Console.log(`\nWritten to ${RESULTS}: overload.json, overload.md, overload.svg`)
})

const bench = Command.make(
  "bench",
  {
    full: Flag.Boolean("full").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Longer rounds and more of them, and webhooks: about 20 minutes")
    ),
    only: Flag.Literals("only", [...scenarios.map(({ name }) => name), WEBHOOKS, OVERLOAD]).pipe(
      Flag.optional,
      Flag.withDescription("One scenario, or webhooks: what the default leaves out")
    ),
    baselines: Flag.Boolean("baselines").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Without Till: what is this machine worth?")
    ),
    profile: Flag.Boolean("profile").pipe(
      Flag.withDefault(false),
      Flag.withDescription(
        "Without baselines: leave a CPU profile of Till in bench/results; its figures are lower for it"
      )
    ),
    seconds: Flag.Finite("seconds").pipe(
      Flag.filter(
        (seconds) => seconds > 0 && seconds <= SECONDS_MAX,
        (seconds) => `--seconds must be more than 0 and at most ${SECONDS_MAX}, not ${seconds}`
      ),
      Flag.optional,
      Flag.withDescription("Length of a round")
    ),
    objects: Flag.Int("objects").pipe(
      Flag.filter(
        (objects) => objects > 0,
        (objects) => `--objects must be more than 0, not ${objects}`
      ),
      Flag.optional,
      Flag.withDescription("With --only list-created or search: PaymentIntents in the account, instead of a million")
    ),
    compare: Flag.String("compare").pipe(
      Flag.optional,
      Flag.withDescription("Without baselines: this checkout against another commit, branch or tag")
    ),
    starts: Flag.Int("starts").pipe(
      Flag.filter(
        (starts) => starts >= STARTS_MIN && starts <= STARTS_MAX,
        (starts) => `--starts must be from ${STARTS_MIN} to ${STARTS_MAX}, not ${starts}`
      ),
      Flag.optional,
      Flag.withDescription("With --compare: how often both versions are started")
    )
  },
  Effect.fnUntraced(function* ({ baselines, compare: reference, full, objects, only, profile, seconds, starts }) {
    if (baselines && profile) return yield* new BenchFailure({ problem: "A profile is of Till, not of baselines." })
    if (Option.isSome(reference) && (baselines || profile)) {
      return yield* new BenchFailure({ problem: "--compare takes neither --baselines nor --profile." })
    }
    if (Option.isSome(starts) && Option.isNone(reference)) {
      return yield* new BenchFailure({ problem: "--starts belongs to --compare." })
    }
    const runFolder = yield* Guardian.make
    if (Option.isSome(reference)) {
      const usual = full ? COMPARISON_PACE_FULL : COMPARISON_PACE
      const shortened = Option.match(seconds, { onNone: () => usual, onSome: (length) => ofRounds(usual, length) })
      const pace = { ...shortened, starts: Option.getOrElse(starts, () => usual.starts) }
      return yield* compare(reference.value, only, pace, runFolder)
    }
    if (Option.contains(only, OVERLOAD)) {
      const usual = full ? OVERLOAD_PACE_FULL : OVERLOAD_PACE
      const length = Option.getOrElse(seconds, () => usual.secondsPerStep)
      return yield* reportOverload(
        yield* OverloadBench.run({ ...usual, secondsPerStep: length }),
        Option.isNone(seconds)
      )
    }
    const pace = full ? PACE_FULL : PACE
    const isUsual = Option.isNone(seconds) && !profile
    const onlyWebhooks = Option.contains(only, WEBHOOKS)
    if (onlyWebhooks && baselines) return yield* new BenchFailure({ problem: "Webhooks have no baselines." })
    if (!onlyWebhooks) {
      const options = {
        pace: { ...pace, secondsPerRound: Option.getOrElse(seconds, () => pace.secondsPerRound) },
        scenarios: Option.match(only, {
          onNone: () => scenarios.filter(({ objects }) => objects === undefined),
          onSome: (name) => scenarios.filter((scenario) => scenario.name === name)
        }),
        objects: Option.match(only, { onNone: () => 0, onSome: (name) => objectsOf(name, objects) }),
        takesPart: (contender: ContenderName) => (contender === "till" ? !baselines : !profile)
      }
      const results = yield* profiled(profile, (nodeOptions) => run({ ...options, nodeOptions }))
      if (results.scenarios.length === 0) return yield* new BenchFailure({ problem: "This scenario has no baselines." })
      yield* report(results, isUsual && Option.isNone(only) && !baselines)
    }
    if (!onlyWebhooks && (Option.isSome(only) || !full || baselines)) return
    const webhookPace = full ? WEBHOOK_PACE_FULL : WEBHOOK_PACE
    const shortened = { ...webhookPace, ...Option.match(seconds, { onNone: () => ({}), onSome: ofSeconds }) }
    yield* reportWebhooks(yield* profiled(profile, (options) => WebhookBench.run(shortened, options)), isUsual)
  }, Effect.scoped)
).pipe(Command.withDescription("Till's throughput and latency against its baselines"))

/** How many PaymentIntents a scenario's account holds, if it is to hold any. */
const objectsOf = (name: string, wanted: Option.Option<number>): number => {
  const usual = scenarios.find((scenario) => scenario.name === name)?.objects
  return usual === undefined ? 0 : Option.getOrElse(wanted, () => usual)
}

// A closed terminal ends the run, and with it all of its processes.
process.on("SIGHUP", () => process.kill(process.pid, "SIGINT"))

bench.pipe(
  Command.run({ version: "1" }),
  Effect.catchTag("BenchFailure", ({ problem }) =>
    Effect.andThen(
      Console.error(`No result. ${problem}`),
      Effect.sync(() => void (process.exitCode = 1))
    )
  ),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
