/**
 * Erasures of customers' data in virtual time (semantics erasure.*), while several runners share the accounts: two
 * customers pay, one of them is erased at any time, also while it goes on sending requests, and runners are killed at
 * any record, projection and replacement of records, frozen, cut off, started and shut down. Afterwards
 * - the erasure has come to its end, and verification finds the journal whole;
 * - nothing of the person is in the journal, the views, the lists, the events and the answers to repeated requests;
 * - all of the other customer's data is there.
 *
 * The log of requests is no part of the simulation: `Erasures.pg.test.ts` has it, and backups.
 *
 * `TILL_SIM_SEEDS=10000 npm run test:all -- test/sim/Erasures.sim.test.ts` runs more plans.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import type { Customer } from "../../src/domain/Customer.ts"
import { ErasureKey } from "../../src/engine/log/Erased.ts"
import { textOf } from "../../src/engine/log/Record.ts"
import { parseJson } from "../../src/json/JsonParse.ts"
import * as PaymentsFormats from "../../src/payments/Formats.ts"
import * as Harness from "../engine/Harness.ts"
import * as ErasuresMemory from "../engine/storage/ErasuresMemory.ts"
import * as JournalMemory from "../engine/storage/JournalMemory.ts"
import * as ViewsMemory from "../engine/storage/ViewsMemory.ts"
import { isWhole } from "../support/Runs.ts"
import { Buyer } from "./Buyer.ts"
import { fleetPlan, outlived, startGatewayFleet, underFaults } from "./GatewayFleet.ts"
import { Happened, pass } from "./GatewayWorld.ts"
import { ERASURE_KEY } from "./Process.ts"

const SEEDS = Number(process.env["TILL_SIM_SEEDS"] ?? 40)

const POINTS = ["append.before", "append.after", "apply.before", "erase.before", "erase.after"] as const
const LISTS = ["customers", "payment_intents", "charges", "refunds", "operations", "events"]
const TABLES = ["documents", "revisions", "events", "timers", "keys", "subscriptions", "deliveries", "tallies"] as const

const Plan = Schema.Struct({
  fleet: fleetPlan(POINTS),
  /** Steps of the customer before its erasure, and beside it. */
  before: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 8 })),
  beside: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 6 })),
  /** Whether it is erased a second time. */
  again: Schema.Boolean
})
type Plan = typeof Plan.Type

const storageWithErasures = Effect.suspend(() =>
  Harness.buildAlone(
    ErasuresMemory.layerMemory.pipe(
      Layer.provideMerge(ViewsMemory.layerMemory),
      Layer.provideMerge(JournalMemory.layerMemory)
    ),
    Scope.makeUnsafe()
  )
)

/** All texts of the storage. */
const stored = Effect.fnUntraced(function* (storage: Harness.Storage, account: string) {
  const rows = yield* Effect.orDie(Harness.journalOf(storage).read(account, 0, 1_000_000))
  const views = yield* Effect.forEach(TABLES, (table) =>
    Effect.orDie(Harness.viewsOf(storage).scan(account, table, "", 1_000_000))
  )
  return [...rows.map(({ bytes }) => textOf(bytes)), JSON.stringify(views)].join("\n")
})

const assertNone = (text: string, { texts }: Buyer, where: string): void => {
  const left = texts.filter((one) => text.includes(one))
  assert.deepStrictEqual(left, [], `texts of an erased customer in ${where}`)
}

const happened = new Happened()
const met = { runs: 0 }

const simulate = Effect.fnUntraced(function* ({ again, before, beside, fleet }: Plan) {
  const storage = yield* storageWithErasures
  const calm = { ...fleet, gateway: { ...fleet.gateway, wrong: false, clocks: false } }
  const started = yield* startGatewayFleet(calm, storage, happened)
  const { account, world } = started
  const [erased, other] = [new Buyer("Ada", started), new Buyer("Bob", started)]
  yield* underFaults(started, fleet.faults, async () => {
    await Promise.all([erased.create(), other.create()])
    await Promise.all([erased.live(before), other.live(before)])
    await Promise.all([erased.erase(3), erased.live(beside), other.live(beside)])
  })
  const asked = async () => {
    await erased.endPayments()
    const isErased = await erased.erase(200)
    if (isErased && again) assert.isTrue(await erased.erase(200))
    return isErased
  }
  const isErased = yield* Effect.promise(asked)
  const last = yield* outlived(started)
  // An operation whose next look is an hour away stands against the erasure.
  if (!isErased) return yield* last.stop
  // The erasure looks at payments in progress every five minutes.
  for (let time = 0; time < 3; time++) yield* pass(world, 301_000)
  const { text } = yield* Effect.promise(() =>
    other.repeat({
      method: "GET",
      url: `/v1/customers/${erased.id}`,
      key: started.key,
      idempotencyKey: undefined,
      body: undefined
    })
  )
  assert.strictEqual((parseJson(text) as Customer).erasure, "completed", text)
  assertNone(yield* stored(storage, account), erased, "the storage")
  for (const list of LISTS) assertNone(yield* Effect.promise(() => other.read(`/v1/${list}`)), erased, list)
  for (const request of erased.kept) {
    assertNone((yield* Effect.promise(() => erased.repeat(request))).text, erased, `the answer to ${request.url}`)
  }
  const kept = yield* stored(storage, account)
  for (const request of other.kept) {
    const answer = yield* Effect.promise(() => other.repeat(request))
    if (answer.status !== 200) continue
    const texts = other.texts.filter((one) => JSON.stringify(request.body).includes(one))
    assert.deepStrictEqual(
      texts.filter((one) => !kept.includes(one) || !answer.text.includes(one)),
      [],
      "texts of another customer are gone"
    )
  }
  yield* last.stop
  yield* Effect.provideService(Harness.verified(storage, PaymentsFormats.KINDS), ErasureKey, ERASURE_KEY)
  met.runs++
}, Effect.scoped)

describe("erasures of several runners, simulated", () => {
  it.effect.prop(
    "come to their end and leave nothing of the person, while runners are killed, frozen, cut off and shut down",
    { plan: Plan },
    ({ plan }) => Effect.provide(simulate(plan), TestClock.layer()),
    { arbitrary: { runs: SEEDS, size: 20 }, timeout: 600_000 + SEEDS * 10_000 }
  )

  it("have experienced every fault", () => {
    assert.isAbove(met.runs, 0)
    console.log(`${met.runs} runs`, Object.fromEntries([...happened.counts].toSorted()))
    const count = (...all: ReadonlyArray<string>) => all.reduce((sum, one) => sum + (happened.counts.get(one) ?? 0), 0)
    // The few plans of `npm test` need not have them all.
    if (!isWhole) return
    assert.isAbove(count("kill at erase.before", "kill at erase.after"), 0)
    assert.isAbove(count("kill at append.before", "kill at append.after", "kill at apply.before"), 0)
    assert.isAbove(count("freeze", "leave", "cut off from Postgres"), 0)
  })
})
