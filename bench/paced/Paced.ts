/**
 * Creates in an open loop at a share of the server's maximum: latency for clients that do not wait for one another.
 * Each round first measures the maximum in a closed loop and then offers the share of it, so a slow minute of the
 * machine lowers the offer, too.
 */
import { Effect } from "effect"
import { BenchFailure } from "../BenchFailure.ts"
import type { PacedLoad } from "../load/PacedLoad.ts"
import type { PacedLoadPlan, PacedLoadRecord } from "../load/PacedLoadPlan.ts"
import { tailLatencyOf } from "../load/Percentiles.ts"
import type { PacedResult, PacedRound } from "../Results.ts"
import { INTENTS, intentBody } from "../scenarios/Scenario.ts"
import type { Running } from "../Suite.ts"
import * as Suite from "../Suite.ts"
import { answersUntil, requestsPerSecondOf } from "../webhooks/Figures.ts"

export interface PacedPace {
  readonly warmUpSeconds: number
  readonly secondsPerMaximum: number
  readonly secondsPerRound: number
  readonly rounds: number
}

export const SHARE = 0.7
const CONNECTIONS = 64
/** An open loop may have more requests under way than a closed one has; this many is as good as no limit. */
const CONNECTIONS_OPEN = 256

const roundOf = (maximumPerSecond: number, record: PacedLoadRecord): PacedRound => ({
  maximumPerSecond,
  offeredPerSecond: SHARE * maximumPerSecond,
  requests: record.sentMicros.length,
  ...tailLatencyOf(Float64Array.from(answersUntil(record, Infinity), (micros) => micros / 1000))
})

/** Fails unless each acknowledged create has left its record. */
const measureOne = Effect.fnUntraced(function* (
  { apiKeys, database, server, verify }: Running,
  load: PacedLoad,
  pace: PacedPace
) {
  const { contender } = server
  const count = database.count(contender.name, contender.countQuery ?? "SELECT 0")
  const before = yield* count
  let loads = 0
  let acknowledged = 0
  const creates = Effect.fnUntraced(function* (
    pacing: Pick<PacedLoadPlan, "connections" | "seconds" | "ratePerSecond">
  ) {
    const target = { port: server.port, path: INTENTS, apiKey: apiKeys[0]!, body: JSON.stringify(intentBody) }
    const record = yield* load.run({ ...target, ...pacing, run: `paced${loads++}` })
    acknowledged += record.sentMicros.length
    yield* Suite.settled(server, database)
    return record
  })
  const maximum = (seconds: number) =>
    Effect.map(creates({ connections: CONNECTIONS, seconds, ratePerSecond: null }), requestsPerSecondOf)
  yield* maximum(pace.warmUpSeconds)
  const rounds: Array<PacedRound> = []
  for (let round = 0; round < pace.rounds; round++) {
    const perSecond = yield* maximum(pace.secondsPerMaximum)
    const open = { connections: CONNECTIONS_OPEN, seconds: pace.secondsPerRound, ratePerSecond: SHARE * perSecond }
    rounds.push(roundOf(perSecond, yield* creates(open)))
  }
  const stored = (yield* count) - before
  if (stored !== acknowledged) {
    return yield* new BenchFailure({
      problem: `${acknowledged} requests were acknowledged, ${stored} records are there`
    })
  }
  yield* verify
  return { title: contender.title, contender: contender.name, rounds } satisfies PacedResult as PacedResult
})

/** Measures one server after the other. */
export const measure = (running: ReadonlyArray<Running>, load: PacedLoad, pace: PacedPace) =>
  Effect.forEach(running, (one) =>
    Effect.mapError(
      measureOne(one, load, pace),
      ({ problem }) => new BenchFailure({ problem: `open loop, ${one.server.contender.title}: ${problem}` })
    )
  )
