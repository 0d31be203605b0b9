/**
 * Operations at a processor behind a network while several runners share the accounts, in virtual time (semantics
 * operations.*, runners.consistency): the gateway, its faults, the merchants and the checks of
 * `Operations.sim.test.ts`, and the faults of `Runners.sim.test.ts`. Runners are killed, before and after records and
 * calls too, frozen, cut off from Postgres or from each other, started and shut down. So partitions move with their
 * operations, and an owner that was frozen gets the answer to a call that its successor has made as well.
 *
 * The runners end half a minute after the last fault. One process serves the thirty days after that.
 *
 * `TILL_SIM_SEEDS=10000 npm run test:all -- test/sim/RunnersOperations.sim.test.ts` runs more plans.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as PaymentsFormats from "../../src/payments/Formats.ts"
import * as Harness from "../engine/Harness.ts"
import { isWhole } from "../support/Runs.ts"
import { type FleetPlan, fleetPlan, outlived, startGatewayFleet, underFaults } from "./GatewayFleet.ts"
import { FATES, Happened, MOVED, POINTS_OF_CALLS } from "./GatewayWorld.ts"
import { agreesWithLedger } from "./LedgerChecks.ts"
import { Shop } from "./Shop.ts"

const SEEDS = Number(process.env["TILL_SIM_SEEDS"] ?? 200)

const POINTS = ["append.before", "append.after", ...POINTS_OF_CALLS] as const
const STRIKES = ["kill", "kill two", "freeze", "cut off from Postgres", "cut off from the others", "leave", "join"]

const happened = new Happened()
const met = { runs: 0, repetitions: 0, unanswered: 0 }

const simulate = Effect.fnUntraced(function* (plan: FleetPlan) {
  const storage = yield* Harness.storageInMemory
  const started = yield* startGatewayFleet(plan, storage, happened)
  const { account, key, methods, now, till, world } = started
  const shop = new Shop(world, till, key, methods, now)
  yield* underFaults(started, plan.faults, () =>
    Promise.all(Array.from({ length: plan.gateway.payments }, () => shop.pay()))
  )
  yield* Effect.promise(() => world.busy(shop.repeatAll()))
  const last = yield* outlived(started)
  yield* agreesWithLedger(last, account, world)
  yield* Effect.promise(() => world.busy(shop.repeatAll()))
  yield* last.stop
  yield* Harness.verified(storage, PaymentsFormats.KINDS)
  met.runs++
  met.repetitions += shop.repetitions
  met.unanswered += shop.unanswered
}, Effect.scoped)

describe("operations at a processor behind a network, of several runners, simulated", () => {
  it.effect.prop(
    "agree with the processor's ledger in the end, while runners are killed, frozen, cut off, started and shut down",
    { plan: fleetPlan(POINTS) },
    ({ plan }) => Effect.provide(simulate(plan), TestClock.layer()),
    { arbitrary: { runs: SEEDS, size: 20 }, timeout: 600_000 + SEEDS * 10_000 }
  )

  it("have experienced every fault", () => {
    console.log(`${met.runs} runs`, met, Object.fromEntries([...happened.counts].toSorted()))
    assert.isAbove(met.repetitions, 0)
    const kills = POINTS.map((point) => `kill at ${point}`)
    // The few plans of `npm test` need not have them all. The plans of one service have all faults of calls.
    if (isWhole) assert.deepStrictEqual(happened.missing([...kills, ...STRIKES, ...FATES, MOVED]), [])
  })
})
