/** From documents to the records that have written them. `Engine.prop` and `Crash.sim` check that none is missing. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Effect, Exit } from "effect"
import { runOnce } from "../../../src/engine/Accounts.ts"
import { recordId, Views, type ViewsShape } from "../../../src/engine/views/Views.ts"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import { TestClock } from "effect/testing"
import { Random, Seed } from "../../support/Random.ts"
import * as Harness from "../Harness.ts"
import * as Toy from "../Toy.ts"

const ACCOUNT = "mer_1:test"

/** A counter that was incremented in records 2 to 4; record 5 created another one. */
const counted = Effect.gen(function* () {
  yield* Harness.startClock
  const storage = yield* Harness.storageInMemory
  const engine = yield* Harness.startEngine(storage)
  yield* Effect.addFinalizer(() => engine.stop)
  const { id } = yield* engine.accounts.run(ACCOUNT, Toy.create("a", "plain"))
  const increment = Effect.flatMap(Toy.counterIn("a"), (counter) => Toy.add(counter!.value, 1))
  for (let i = 0; i < 3; i++) yield* engine.accounts.run(ACCOUNT, increment)
  yield* engine.accounts.run(ACCOUNT, Toy.create("b", "plain"))
  yield* engine.projector.drained
  return { engine, storage, id }
})

const countsOf = ({ accounts }: Harness.RunningEngine, account: string, id: string) =>
  Effect.map(accounts.history(account, { ids: [id], limit: 10 }), ({ entries }) =>
    entries.flatMap(({ documents }) =>
      documents.map((document) => !document.deleted && (document.value as Toy.Counter).count)
    )
  )

/** The same history with a view that names other records. */
const historyWith = Effect.fnUntraced(function* (
  storage: Harness.Storage,
  id: string,
  versions: ReadonlyArray<number>
) {
  const revisions: ViewsShape["revisions"] = () =>
    Effect.succeed(versions.map((version) => ({ id: recordId(version), documents: [id] })))
  const views = { ...Harness.viewsOf(storage), revisions }
  const engine = yield* Harness.startEngine(Context.add(storage, Views, views))
  const exit = yield* Effect.exit(countsOf(engine, ACCOUNT, id))
  yield* engine.stop
  return exit
})

describe("history", () => {
  it.effect("has a document's state after each record, also before the views have it", () =>
    Effect.gen(function* () {
      const { engine, id } = yield* counted
      assert.deepStrictEqual(yield* countsOf(engine, ACCOUNT, id), [3, 2, 1, 0])
      const increment = Effect.flatMap(Toy.counterIn("a"), (counter) => Toy.add(counter!.value, 5))
      yield* engine.accounts.run(ACCOUNT, increment)
      assert.deepStrictEqual(yield* countsOf(engine, ACCOUNT, id), [8, 3, 2, 1, 0])
    })
  )

  it.effect("has no document of another account, and none from before a wipe", () =>
    Effect.gen(function* () {
      const { engine, id } = yield* counted
      assert.deepStrictEqual(yield* countsOf(engine, "mer_2:test", id), [])
      yield* engine.accounts.run(
        ACCOUNT,
        Effect.map(Transaction, (transaction) => transaction.wipe())
      )
      assert.deepStrictEqual(yield* countsOf(engine, ACCOUNT, id), [])
    })
  )

  it.effect.prop(
    "finds the record of a request among any number of later ones, with clocks that differ",
    { seed: Seed },
    Effect.fnUntraced(function* ({ seed }) {
      const random = new Random(seed)
      yield* Harness.startClock
      const { accounts, ...engine } = yield* Harness.startEngine(yield* Harness.storageInMemory)
      yield* Effect.addFinalizer(() => engine.stop)
      const counters = new Map<string, string>()
      for (const slot of ["a", "b"] as const)
        counters.set(slot, (yield* accounts.run(ACCOUNT, Toy.create(slot, "plain"))).id)
      const requests: Array<{ readonly request: string; readonly slot: string; readonly at: number; millis: number }> =
        []
      // Sometimes far more records than one read has, sometimes a single one.
      const pauses = random.pick([[0], [0, 1, 100], [1000, 90_000], [0, 400_000]])
      for (let i = 0; i < 160; i++) {
        const [slot, at, millis] = [random.pick(["a", "b"] as const), yield* Harness.now, random.pick([0, 3, 20_000])]
        yield* TestClock.adjust(random.below(millis + 1))
        const request = { ...Toy.request(`key ${i}`), id: `req_${i}` }
        yield* runOnce(accounts, ACCOUNT, request, () => Toy.command({ op: "increment", slot, by: 1 }))
        requests.push({ request: request.id, slot, at: at + random.integer(-30_000, 30_000), millis })
        yield* TestClock.adjust(random.pick(pauses))
        if (random.chance(0.1))
          yield* accounts.run(
            ACCOUNT,
            Effect.map(Transaction, (it) => it.advanceClock(86_400_000))
          )
      }
      for (const { slot, ...query } of requests) {
        const found = yield* accounts.recordOf(ACCOUNT, { ...query, ids: [counters.get(slot)!, "missing"] })
        assert.strictEqual(found?.request?.id, query.request)
        const ids = [counters.get(slot === "a" ? "b" : "a")!]
        assert.isUndefined(
          yield* accounts.recordOf(ACCOUNT, { ...query, ids }),
          "the request has not written the other document"
        )
      }
      const never = { request: "req_0", ids: [...counters.values()], at: 0, millis: 0 }
      assert.isUndefined(yield* accounts.recordOf(ACCOUNT, never))
      assert.isUndefined(yield* accounts.recordOf("mer_2:test", never))
    }),
    { arbitrary: { runs: 10 } }
  )

  it.effect("is refused, with the name of the record, if the record is gone or lacks the document", () =>
    Effect.gen(function* () {
      const { id, storage } = yield* counted
      assert.deepStrictEqual(yield* historyWith(storage, id, [4, 1]), Exit.succeed([3, 0]))
      for (const [version, problem] of [
        [6, "is missing, but the views have it"],
        [5, `does not hold ${id}, but the views point there`]
      ] as const) {
        const exit = yield* historyWith(storage, id, [version, 4])
        const message = Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
        assert.include(message, `Record ${version} of account ${ACCOUNT} ${problem}`)
      }
    })
  )
})
