/**
 * The bench of several runners: creates in a hundred accounts, on one process without a cluster and on 1, 2 and 4
 * runners; and on two runners, one load that is sent to the owner of its accounts or to the other runner.
 */
import { Console, Effect } from "effect"
import { BenchFailure } from "../BenchFailure.ts"
import { contenders } from "../Contender.ts"
import * as Load from "../load/Load.ts"
import { latencyOf } from "../load/Percentiles.ts"
import * as Machine from "../Machine.ts"
import * as ProcessTime from "../ProcessTime.ts"
import { INTENTS, intentBody } from "../scenarios/Scenario.ts"
import type { Account } from "../Seed.ts"
import { around } from "../SpentTime.ts"
import * as Suite from "../Suite.ts"
import { verify } from "../Verification.ts"
import {
  type ClusterResults,
  type ClusterRound,
  type ClusterStart,
  type SubjectName,
  SUBJECTS
} from "./ClusterResults.ts"
import type { Ground } from "./Ground.ts"
import * as Grounds from "./Ground.ts"

export interface ClusterPace {
  /** Warm-up for each runner of an installation, because each compiles the program for itself. */
  readonly warmUpSeconds: number
  readonly secondsPerRound: number
  readonly rounds: number
  /** Starts of all processes on new databases. */
  readonly starts: number
}

const CONNECTIONS = 64
const LOG_BYTES = "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"

/** A load: its connections use these runners in turn, its requests these accounts. */
interface Subject {
  readonly ground: Ground
  readonly runners: ReadonlyArray<number>
  readonly accounts: ReadonlyArray<Account>
}

const subjectsOf = Effect.gen(function* () {
  const [sole, one, two, four] = [
    yield* Grounds.sole,
    yield* Grounds.cluster(1),
    yield* Grounds.cluster(2),
    yield* Grounds.cluster(4)
  ]
  const spread = (ground: Ground): Subject => ({
    ground,
    runners: ground.runners.map((_, i) => i),
    accounts: ground.accounts
  })
  const accounts = yield* Grounds.servedBy(two, 0)
  return {
    sole: spread(sole),
    one: spread(one),
    two: spread(two),
    four: spread(four),
    local: { ground: two, runners: [0], accounts },
    forwarded: { ground: two, runners: [1], accounts }
  } satisfies Record<SubjectName, Subject>
})

/** Returns the share of requests that arrive at a runner that does not serve their account. */
const forwardedShareOf = ({ accounts, ground, runners }: Subject) =>
  Effect.map(ground.owners, (ownerOf) => {
    const pairs = runners.flatMap((runner) => accounts.map(({ id }) => ownerOf(id) !== runner))
    return pairs.filter((isForwarded) => isForwarded).length / pairs.length
  })

const measure = Effect.fnUntraced(function* (subject: Subject, load: Load.Load, seconds: number) {
  const { accounts, ground, runners } = subject
  const { database } = ground
  const [port, ...otherPorts] = runners.map((i) => ground.runners[i]!.port)
  const logBytes = database.count(ground.databaseName, LOG_BYTES)
  const cpuNow = () => ground.runners.map(({ pid }) => ProcessTime.ofProcess(pid))
  const [server, ...others] = ground.runners
  const [shareBefore, logBefore, before] = [yield* forwardedShareOf(subject), yield* logBytes, cpuNow()]
  const creates = load.run({
    port: port!,
    otherPorts,
    connections: CONNECTIONS,
    seconds,
    requests: {
      method: "POST",
      paths: [INTENTS],
      apiKeys: accounts.map(({ apiKey }) => apiKey),
      body: JSON.stringify(intentBody)
    },
    expect: `"object":"payment_intent"`
  })
  const { spent, value } = yield* around(
    { server: server!, database, workers: [load, ...others] },
    Effect.tap(creates, Suite.settled(ground.runners, database))
  )
  const after = cpuNow()
  const { acknowledged, latencies, requestsPerSecond } = value
  const micros = after.flatMap((now, i) => (now === undefined ? [] : [(now - before[i]!) / acknowledged]))
  return {
    acknowledged,
    requestsPerSecond,
    ...latencyOf([latencies]),
    ...(micros.length > 0 && { runnerMicros: micros }),
    ...(spent.postgresMicros !== undefined && { postgresMicros: spent.postgresMicros / acknowledged }),
    ...(spent.othersShare !== undefined && { othersShare: spent.othersShare }),
    // The share lies between the two if a partition has moved during the round.
    forwardedShare: (shareBefore + (yield* forwardedShareOf(subject))) / 2,
    logBytes: ((yield* logBytes) - logBefore) / acknowledged
  } satisfies ClusterRound as ClusterRound
})

/** Requires one record per acknowledged create and no other, and intact data. */
const requireRecords = Effect.fnUntraced(function* ({ database, databaseName, runners }: Ground, acknowledged: number) {
  const records = yield* database.count(databaseName, contenders.till.countQuery!)
  if (records !== acknowledged) {
    const problem = `${runners.length} runners acknowledged ${acknowledged} creates and hold ${records} records.`
    return yield* new BenchFailure({ problem })
  }
  yield* verify(runners[0]!.installation)
})

/** Runs one start of all subjects; the first one changes from round to round. */
const startAll = Effect.fnUntraced(function* (load: Load.Load, pace: ClusterPace) {
  const subjects = yield* subjectsOf
  const acknowledged = new Map<Ground, number>()
  const run = Effect.fnUntraced(function* (name: SubjectName, seconds: number) {
    const subject = subjects[name]
    const round = yield* measure(subject, load, seconds)
    acknowledged.set(subject.ground, (acknowledged.get(subject.ground) ?? 0) + round.acknowledged)
    return round
  })
  for (const name of SUBJECTS) yield* run(name, pace.warmUpSeconds * subjects[name].ground.runners.length)
  const rounds = new Map<SubjectName, ReadonlyArray<ClusterRound>>(SUBJECTS.map((name) => [name, []]))
  for (let turn = 0; turn < pace.rounds; turn++) {
    for (const i of SUBJECTS.keys()) {
      const name = SUBJECTS[(i + turn) % SUBJECTS.length]!
      rounds.set(name, [...rounds.get(name)!, yield* run(name, pace.secondsPerRound)])
    }
  }
  for (const [ground, count] of acknowledged) yield* requireRecords(ground, count)
  return { start: Object.fromEntries(rounds) as ClusterStart, ground: subjects.sole.ground }
}, Effect.scoped)

export const run = Effect.fnUntraced(function* (pace: ClusterPace) {
  const load = yield* Load.make
  const starts: Array<ClusterStart> = []
  let described: Pick<ClusterResults, "machine" | "accounts"> | undefined
  for (let turn = 0; turn < pace.starts; turn++) {
    yield* Console.log(`  start ${turn + 1} of ${pace.starts} …`)
    const { ground, start } = yield* startAll(load, pace)
    described ??= { machine: Machine.describe(ground.database.version), accounts: ground.accounts.length }
    starts.push(start)
  }
  const results = { at: new Date().toISOString(), ...described!, connections: CONNECTIONS, starts }
  return results satisfies ClusterResults as ClusterResults
}, Effect.scoped)
