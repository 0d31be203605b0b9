/**
 * `npm run bench`: Till against its baselines, on this machine. See README.md for the question and the method.
 *
 * Ends with a non-zero status if any answer was wrong or any record is missing; a goal that is not reached is reported
 * and is no failure, because it depends on the machine.
 */
import { join, resolve } from "node:path"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { BenchFailure } from "./BenchFailure.ts"
import { STARTS_MAX, STARTS_MIN } from "./compare/Bootstrap.ts"
import type { ContenderName } from "./Contender.ts"
import * as Guardian from "./Guardian.ts"
import { pacesOf } from "./Paces.ts"
import * as Parts from "./Parts.ts"
import * as ResultFiles from "./ResultFiles.ts"
import { scenarios } from "./scenarios/index.ts"

const SECONDS_MAX = 3600

/** Names of `--only` that are no scenarios; the open loop is among them. */
const OPEN_LOOP = "open-loop"
const WEBHOOKS = "webhooks"
const OVERLOAD = "overload"
const LIVE = "live"
const CLUSTER = "cluster"
const GROWTH = "growth"
const DASHBOARD = "dashboard"
const START = "start"
/** The least number of objects for the reads. */
const GROWTH_OBJECTS_MIN = 20_000
/** The least number of payments for full pages. */
const DASHBOARD_OBJECTS_MIN = 50_000
const GROWTH_ACCOUNTS_MAX = 10_000

/** Measures with options for Till's Node; with `--profile`, they write a CPU profile, whose place is printed. */
const profiled = Effect.fnUntraced(function* <A, E, R>(
  wanted: boolean,
  measure: (nodeOptions: ReadonlyArray<string>) => Effect.Effect<A, E, R>
) {
  if (!wanted) return yield* measure([])
  const name = `till-${Date.now()}.cpuprofile`
  const measured = yield* measure(["--cpu-prof", `--cpu-prof-dir=${ResultFiles.FOLDER}`, `--cpu-prof-name=${name}`])
  yield* Console.log(`\nProfile: ${join(ResultFiles.FOLDER, name)}`)
  return measured
})

/** Returns the number of PaymentIntents in a scenario's account. */
const objectsOf = (name: string, wanted: Option.Option<number>): number => {
  const usual = scenarios.find((scenario) => scenario.name === name)?.objects
  return usual === undefined ? 0 : Option.getOrElse(wanted, () => usual)
}

interface Asked {
  readonly accounts: Option.Option<number>
  readonly data: Option.Option<string>
  readonly baselines: boolean
  readonly full: boolean
  readonly objects: Option.Option<number>
  readonly only: Option.Option<string>
  readonly profile: boolean
  readonly seconds: Option.Option<number>
}

/** Runs the chosen parts. A part that fails does not keep the others from running. */
const measure = Effect.fnUntraced(function* ({
  accounts,
  baselines,
  data,
  full,
  objects,
  only,
  profile,
  seconds
}: Asked) {
  const paces = pacesOf(full, Option.getOrUndefined(seconds))
  const isUsual = Option.isNone(seconds) && !profile
  const isWanted = (part: string) => Option.isNone(only) || only.value === part
  const isOfApi = !Option.exists(only, (name) =>
    [WEBHOOKS, OVERLOAD, LIVE, CLUSTER, GROWTH, DASHBOARD, START].includes(name)
  )
  if (!isOfApi && baselines) return yield* new BenchFailure({ problem: "There are no baselines of this part." })
  const parts: Array<Effect.Effect<void, BenchFailure>> = []
  if (isOfApi) {
    const options = {
      pace: paces.api,
      scenarios: Option.match(only, {
        onNone: () => scenarios.filter(({ objects }) => objects === undefined),
        onSome: (name) => scenarios.filter((scenario) => scenario.name === name)
      }),
      pacedPace: isWanted(OPEN_LOOP) ? paces.paced : null,
      objects: Option.match(only, { onNone: () => 0, onSome: (name) => objectsOf(name, objects) }),
      takesPart: (contender: ContenderName) => (contender === "till" ? !baselines : !profile)
    }
    const isComplete = isUsual && Option.isNone(only) && !baselines
    parts.push(profiled(profile, (nodeOptions) => Parts.api({ ...options, nodeOptions }, isComplete)))
  }
  if (isWanted(WEBHOOKS) && !baselines) {
    parts.push(profiled(profile, (nodeOptions) => Parts.webhooks(paces.webhooks, nodeOptions, isUsual)))
  }
  if (isWanted(OVERLOAD) && !baselines && !profile) parts.push(Parts.overload(paces.overload, isUsual))
  if (isWanted(LIVE) && !baselines) {
    parts.push(profiled(profile, (nodeOptions) => Parts.live(paces.live, nodeOptions, isUsual)))
  }
  const isLong = (part: string) => Option.contains(only, part) || (full && Option.isNone(only))
  if (isLong(CLUSTER) && !baselines && !profile) parts.push(Parts.cluster(paces.cluster, isUsual))
  if (isLong(GROWTH) && !baselines && !profile) {
    if (Option.exists(objects, (wanted) => wanted < GROWTH_OBJECTS_MIN)) {
      return yield* new BenchFailure({ problem: `--objects must be at least ${GROWTH_OBJECTS_MIN} for growth.` })
    }
    const pace = {
      ...paces.growth,
      ...Option.match(objects, { onNone: () => ({}), onSome: (objects) => ({ objects }) }),
      ...Option.match(accounts, { onNone: () => ({}), onSome: (accounts) => ({ accounts }) })
    }
    const folder = Option.getOrUndefined(Option.map(data, (folder) => resolve(folder)))
    parts.push(Parts.growth(pace, folder, isUsual && Option.isNone(objects) && Option.isNone(accounts)))
  }
  if (isLong(DASHBOARD) && !baselines && !profile) {
    if (Option.exists(objects, (wanted) => wanted < DASHBOARD_OBJECTS_MIN)) {
      return yield* new BenchFailure({ problem: `--objects must be at least ${DASHBOARD_OBJECTS_MIN} for dashboard.` })
    }
    const pace = {
      ...paces.dashboard,
      ...Option.match(objects, { onNone: () => ({}), onSome: (payments) => ({ payments }) })
    }
    parts.push(Parts.dashboard(pace, isUsual && Option.isNone(objects)))
  }
  if (isLong(START) && !baselines && !profile) parts.push(Parts.start(paces.start, isUsual))
  const problems: Array<string> = []
  for (const part of parts) {
    yield* Effect.catchTag(part, "BenchFailure", ({ problem }) => Effect.sync(() => void problems.push(problem)))
  }
  if (problems.length > 0) return yield* new BenchFailure({ problem: problems.join("\n") })
})

const bench = Command.make(
  "bench",
  {
    full: Flag.Boolean("full").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Longer rounds and more of them, cluster, and growth to 10 million objects: about two hours")
    ),
    only: Flag.Literals("only", [
      ...scenarios.map(({ name }) => name),
      OPEN_LOOP,
      WEBHOOKS,
      OVERLOAD,
      LIVE,
      CLUSTER,
      GROWTH,
      DASHBOARD,
      START
    ]).pipe(
      Flag.optional,
      Flag.withDescription(
        "One scenario or part; cluster, growth, dashboard, start, list-created and search only by name"
      )
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
      Flag.withDescription(
        "With --only growth, dashboard, list-created or search: PaymentIntents in the account, instead of millions"
      )
    ),
    accounts: Flag.Int("accounts").pipe(
      Flag.filter(
        (accounts) => accounts > 0 && accounts <= GROWTH_ACCOUNTS_MAX,
        (accounts) => `--accounts must be from 1 to ${GROWTH_ACCOUNTS_MAX}, not ${accounts}`
      ),
      Flag.optional,
      Flag.withDescription(
        "With --only growth: accounts that have the PaymentIntents, instead of 1, or 1000 with --full"
      )
    ),
    data: Flag.String("data").pipe(
      Flag.optional,
      Flag.withDescription("With --only growth: a folder in which the objects stay, so that an interrupted run goes on")
    ),
    budget: Flag.Boolean("budget").pipe(
      Flag.withDefault(false),
      Flag.withDescription("The costs of requests against bench/budget/budget.json: bytes, rows, statements, CPU time")
    ),
    keep: Flag.Boolean("keep").pipe(
      Flag.withDefault(false),
      Flag.withDescription("With --budget: make this run's figures the budget")
    ),
    compare: Flag.String("compare").pipe(
      Flag.optional,
      Flag.withDescription("Without baselines: this checkout against another commit, branch or tag")
    ),
    set: Flag.KeyValuePair("set").pipe(
      Flag.optional,
      Flag.withDescription("With --compare: variables of this checkout's Till alone, such as TILL_METRICS_PORT=9464")
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
  Effect.fnUntraced(function* ({ budget, compare: reference, keep, set: variables, starts, ...asked }) {
    const { baselines, full, only, profile, seconds } = asked
    if (baselines && profile) return yield* new BenchFailure({ problem: "A profile is of Till, not of baselines." })
    if (Option.isSome(reference) && (baselines || profile)) {
      return yield* new BenchFailure({ problem: "--compare takes neither --baselines nor --profile." })
    }
    if ((Option.isSome(starts) || Option.isSome(variables)) && Option.isNone(reference)) {
      return yield* new BenchFailure({ problem: "--starts and --set belong to --compare." })
    }
    const others = [baselines, profile, Option.isSome(only), Option.isSome(reference)]
    if (budget && others.includes(true)) {
      return yield* new BenchFailure({
        problem: "--budget takes neither --only, --baselines, --profile nor --compare."
      })
    }
    if (keep && !budget) return yield* new BenchFailure({ problem: "--keep belongs to --budget." })
    const runFolder = yield* Guardian.make
    if (budget) {
      const isComplete = Option.isNone(seconds)
      return yield* Parts.budget(pacesOf(full, Option.getOrUndefined(seconds)).api, { isComplete, isKept: keep })
    }
    if (Option.isNone(reference)) return yield* measure(asked)
    const usual = pacesOf(full, Option.getOrUndefined(seconds)).comparison
    const pace = { ...usual, starts: Option.getOrElse(starts, () => usual.starts) }
    const set = Option.getOrElse(variables, () => ({}))
    const isUsual = Option.isNone(seconds) && Option.isNone(starts) && Object.keys(set).length === 0
    return yield* Parts.comparison(reference.value, only, pace, { isUsual, runFolder, set })
  }, Effect.scoped)
).pipe(Command.withDescription("Till's throughput and latency against its baselines"))

// A closed terminal ends the run with all of its processes.
process.on("SIGHUP", () => process.kill(process.pid, "SIGINT"))

bench.pipe(
  Command.run({ version: "1" }),
  Effect.catchTag("BenchFailure", ({ problem }) =>
    Effect.andThen(
      Console.error(`\nNo result. ${problem}`),
      Effect.sync(() => void (process.exitCode = 1))
    )
  ),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
