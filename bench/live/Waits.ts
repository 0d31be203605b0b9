/** The measures in which payments wait: for a slow gateway, through a kill of Till, and for a gateway that is gone. */
import { Effect, Exit, Fiber } from "effect"
import { BenchFailure } from "../BenchFailure.ts"
import type { StartedServer } from "../Contender.ts"
import { nowMicros } from "../load/MonotonicClock.ts"
import { latencyOf } from "../load/Percentiles.ts"
import * as ProcessTime from "../ProcessTime.ts"
import { createIntent, INTENTS, intentBody } from "../scenarios/Scenario.ts"
import * as Suite from "../Suite.ts"
import { answersUntil, distributionOf, requestsPerSecondOf } from "../webhooks/Figures.ts"
import type { Beside, Killed, Outage, Waiting } from "./LiveResults.ts"
import { atOnce, hasOperation, type LiveSetting, payments } from "./Payments.ts"

const WAITING = 500
const WAIT_MILLIS = 15_000
const OPEN = 200
const READ_CONNECTIONS = 4
const CREATE_CONNECTIONS = 64
const WARM_UP_SECONDS = 3
const REFUSALS_PER_SECOND = 50
const REFUSAL_SECONDS = 4
/** Time in which Till notices that the gateway is gone. */
const NOTICED_MILLIS = 1000
const RESOLVED_MILLIS_MAX = 120_000
const LOOK_MILLIS = 50

/** Waits until the merchant has no operation with this status. */
const none = Effect.fnUntraced(function* (setting: LiveSetting, status: string) {
  const end = performance.now() + RESOLVED_MILLIS_MAX
  while (yield* hasOperation(setting, status)) {
    if (performance.now() > end) {
      const problem = `There are operations that are still ${status} after ${RESOLVED_MILLIS_MAX} ms.`
      return yield* new BenchFailure({ problem })
    }
    yield* Effect.sleep(LOOK_MILLIS)
  }
})

/** Measures the reads of the account, and then the creates of another merchant. */
const beside = Effect.fnUntraced(function* (setting: LiveSetting, payment: string, seconds: number) {
  const { apiKey, nextRun, otherKey, others, reads, till } = setting
  const read = yield* reads.run({
    port: till.port,
    connections: READ_CONNECTIONS,
    seconds,
    requests: { method: "GET", paths: [`${INTENTS}/${payment}`], apiKeys: [apiKey], body: null },
    expect: `"id":"${payment}"`
  })
  const created = yield* others.run({
    port: till.port,
    connections: CREATE_CONNECTIONS,
    seconds,
    ratePerSecond: null,
    path: INTENTS,
    apiKey: otherKey,
    body: JSON.stringify(intentBody),
    run: nextRun()
  })
  return { reads: latencyOf([read.latencies]), createsPerSecond: requestsPerSecondOf(created) } satisfies Beside
})

export const wait = Effect.fnUntraced(function* (setting: LiveSetting, seconds: number) {
  const { database, gateway, load, till } = setting
  const payment = yield* createIntent({ port: till.port, apiKeys: [setting.apiKey] })
  const others = beside(setting, payment, seconds)
  const before = yield* others
  yield* Suite.settled(till, database)
  yield* gateway.answer({ kind: "after", millis: WAIT_MILLIS })
  const bytesBefore = ProcessTime.residentBytesOf(till.pid)
  const confirming = yield* Effect.forkChild(load.run(payments(setting, atOnce(WAITING))))
  yield* gateway.holds(WAITING)
  const bytes = ProcessTime.residentBytesOf(till.pid)
  const during = yield* others
  const { held } = yield* gateway.ledger
  if (held < WAITING) return yield* new BenchFailure({ problem: "The payments did not wait until the end." })
  yield* Fiber.join(confirming)
  yield* gateway.answer({ kind: "after", millis: 0 })
  yield* Suite.settled(till, database)
  return {
    confirms: WAITING,
    waitMillis: WAIT_MILLIS,
    quiet: [before, yield* others],
    beside: during,
    ...(bytes !== undefined && bytesBefore !== undefined && { grownBytes: Math.max(0, bytes - bytesBefore) })
  } satisfies Waiting as Waiting
})

/** Kills Till while the gateway holds its answers back. `restart` starts Till again on the same data. */
export const kill = Effect.fnUntraced(function* (
  setting: LiveSetting,
  restart: Effect.Effect<StartedServer, BenchFailure>
) {
  const { gateway, load, till } = setting
  yield* gateway.answer({ kind: "never" })
  const plan = payments(setting, atOnce(OPEN))
  const cutOff = yield* Effect.forkChild(Effect.exit(load.run(plan)))
  yield* gateway.holds(OPEN)
  yield* till.kill
  if (Exit.isSuccess(yield* Fiber.join(cutOff))) {
    return yield* new BenchFailure({ problem: "The payments were answered before the kill." })
  }
  yield* gateway.answer({ kind: "after", millis: 0 })
  const restarted = yield* restart
  const readyMicros = nowMicros()
  const after = { ...setting, till: restarted }
  yield* none(after, "open")
  const killed: Killed = {
    open: OPEN,
    readySeconds: restarted.readyMillis / 1000,
    resolvedSeconds: (nowMicros() - readyMicros) / 1_000_000
  }
  // The same keys again get the payments' answers.
  yield* load.run({ ...plan, port: restarted.port, connections: READ_CONNECTIONS })
  return [killed, restarted] as const
})

/** Lets the gateway keep silent until all payments are unresolved, go away, and return. */
export const outage = Effect.fnUntraced(function* (setting: LiveSetting, goneSeconds: number) {
  const { gateway, load } = setting
  // A process that has just started would refuse some of so many requests at once.
  yield* load.run(payments(setting, { connections: READ_CONNECTIONS, seconds: WARM_UP_SECONDS, ratePerSecond: null }))
  yield* gateway.answer({ kind: "never" })
  yield* load.run(payments(setting, atOnce(OPEN)))
  if (yield* hasOperation(setting, "open")) {
    return yield* new BenchFailure({ problem: "The payments were answered, and their operations are open." })
  }
  const goneMicros = nowMicros()
  yield* gateway.answer({ kind: "gone" })
  yield* Effect.sleep(NOTICED_MILLIS)
  const refused = yield* load.run({
    ...payments(setting, { connections: 16, seconds: REFUSAL_SECONDS, ratePerSecond: REFUSALS_PER_SECOND }),
    flood: { refusals: [500], drainSeconds: 10 }
  })
  if (refused.statuses.some((status) => status !== 500)) {
    return yield* new BenchFailure({ problem: "A payment was not refused although the gateway was gone." })
  }
  yield* Effect.sleep(Math.max(0, goneSeconds * 1000 - (nowMicros() - goneMicros) / 1000))
  if (!(yield* hasOperation(setting, "unresolved"))) {
    return yield* new BenchFailure({ problem: "No payment was unresolved when the gateway returned." })
  }
  yield* gateway.answer({ kind: "after", millis: 0 })
  const backMicros = nowMicros()
  const isResolved = Effect.map(hasOperation(setting, "unresolved"), (isUnresolved) => !isUnresolved)
  while (!(yield* isResolved)) {
    if (nowMicros() - backMicros > RESOLVED_MILLIS_MAX * 1000) {
      return yield* new BenchFailure({
        problem: `Operations are unresolved ${RESOLVED_MILLIS_MAX} ms after the return.`
      })
    }
    yield* Effect.sleep(LOOK_MILLIS)
  }
  return {
    unresolved: OPEN,
    goneSeconds: (backMicros - goneMicros) / 1_000_000,
    refusals: distributionOf(answersUntil(refused, Infinity)),
    resolvedSeconds: (nowMicros() - backMicros) / 1_000_000
  } satisfies Outage as Outage
})
