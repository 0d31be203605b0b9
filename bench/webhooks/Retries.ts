/**
 * Thousands of retries that are due when Till starts: how long until all are delivered, and what creates notice of it.
 *
 * The endpoint refuses every first attempt. Then it stops answering, the test clock moves on by an hour, which makes
 * all second attempts due, and Till is killed; it starts again on the same database while the endpoint answers well.
 * Creates at a steady rate, in an account without endpoints, are held against those after a start with nothing due.
 */
import { Effect } from "effect"
import { BenchFailure } from "../BenchFailure.ts"
import type { StartedServer } from "../Contender.ts"
import type { Database } from "../Database.ts"
import { post } from "../scenarios/Scenario.ts"
import { answersUntil, distributionOf, failureIn, lastArrivalMicros } from "./Figures.ts"
import { nowMicros } from "../load/MonotonicClock.ts"
import type { PacedLoadRecord } from "../load/PacedLoadPlan.ts"
import { createsOf, type Shop, type WebhookSetting } from "./Shop.ts"
import * as Suite from "../Suite.ts"
import type { Retries } from "./WebhookResults.ts"

export interface RetriesPlan {
  readonly deliveries: number
  readonly createsPerSecond: number
  /** Creates are watched this long, and no longer. */
  readonly watchedSeconds: number
}

/** Longer than the second attempt has to wait, shorter than what the third one has to wait would come to. */
const ADVANCE_SECONDS = 3600
const KEPT_MILLIS_MAX = 60_000
const KEPT_PAUSE_MILLIS = 100
/** A shorter time holds too few creates to say anything about. */
const WATCHED_MICROS_MIN = 1_000_000

/** `restart` starts Till again on the same database, and `till` is the one that runs now. */
export const measure = Effect.fnUntraced(function* (
  setting: WebhookSetting & { readonly till: StartedServer },
  shops: { readonly subscribed: Shop; readonly other: Shop },
  restart: Effect.Effect<StartedServer, BenchFailure>,
  plan: RetriesPlan
) {
  const { database, nextRun, sink, till } = setting
  const run = nextRun()
  yield* failAll(setting, shops.subscribed, run, plan.deliveries)
  // Requests under way when Till is killed stay without an outcome: neither refused nor accepted.
  yield* sink.answer("nothing")
  const target = { port: till.port, apiKeys: [shops.subscribed.apiKey] }
  yield* post(target, "/v1/test_helpers/clock/advance", { seconds: ADVANCE_SECONDS })
  yield* till.kill
  yield* sink.answer("success")
  yield* sink.begin(run, 1)

  const startedMicros = nowMicros()
  const restarted = yield* restart
  const readyMicros = nowMicros()
  const watch = (server: StartedServer) => watchCreates({ ...setting, till: server }, shops.other, plan)
  const [creates] = yield* Effect.all([watch(restarted), sink.arrived(plan.deliveries)], { concurrency: 2 })
  yield* Suite.rest(restarted, database)
  const arrivals = yield* sink.take
  const failure = failureIn(plan.deliveries, arrivals, true)
  if (failure !== undefined) return yield* failure

  yield* restarted.kill
  const otherwise = yield* watch(yield* restart)
  const deliveredMicros = lastArrivalMicros(arrivals)
  const watchedMicros = Math.max(WATCHED_MICROS_MIN, deliveredMicros - firstOf(creates))
  const within = (record: PacedLoadRecord) => distributionOf(answersUntil(record, firstOf(record) + watchedMicros))
  return {
    deliveries: plan.deliveries,
    readySeconds: (readyMicros - startedMicros) / 1_000_000,
    deliveredSeconds: (deliveredMicros - startedMicros) / 1_000_000,
    repeated: arrivals.repeated,
    createsPerSecond: plan.createsPerSecond,
    createsMeanwhile: within(creates),
    createsOtherwise: within(otherwise)
  } satisfies Retries as Retries
})

const firstOf = ({ wantedMicros }: PacedLoadRecord): number => wantedMicros[0]!

const watchCreates = ({ load, nextRun, till }: WebhookSetting, shop: Shop, plan: RetriesPlan) => {
  const pacing = { connections: 64, seconds: plan.watchedSeconds, ratePerSecond: plan.createsPerSecond }
  return load.run(createsOf(till, shop, nextRun(), pacing))
}

/** Causes so many events, and waits until the failure of each first attempt is kept. */
const failAll = Effect.fnUntraced(function* (
  { database, load, sink, till }: WebhookSetting,
  shop: Shop,
  run: string,
  deliveries: number
) {
  yield* sink.answer("failure")
  yield* sink.begin(run, 1)
  const pacing = { connections: 64, seconds: 60, ratePerSecond: null, requestsMax: deliveries }
  yield* load.run(createsOf(till, shop, run, pacing))
  yield* sink.arrived(deliveries)
  const deadline = performance.now() + KEPT_MILLIS_MAX
  while ((yield* failuresKept(database, shop)) < deliveries) {
    if (performance.now() > deadline) {
      return yield* new BenchFailure({ problem: "Till does not store the outcomes of attempts." })
    }
    yield* Effect.sleep(KEPT_PAUSE_MILLIS)
  }
})

const failuresKept = (database: Database, { ids: [id] }: Shop) =>
  database.count(
    "till",
    `SELECT count(*) FROM deliveries
        WHERE destination = '${id}' AND state = 'pending' AND jsonb_array_length(attempts) > 0`
  )
