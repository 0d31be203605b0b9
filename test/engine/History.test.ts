/** From documents to the records that have written them. That none is missing, `Engine.prop` and `Crash.sim` see. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Effect, Exit } from "effect"
import type { ViewsShape } from "../../src/engine/Views.ts"
import { recordId, Views } from "../../src/engine/Views.ts"
import { Transaction } from "../../src/engine/Transaction.ts"
import * as Harness from "./Harness.ts"
import * as Toy from "./Toy.ts"

const ACCOUNT = "mer_1:test"

/** A counter that was counted up in records 2 to 4; another one was made in record 5. */
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

/** The same history where the view names other records. */
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
  it.effect("has what each record left of a document, also before the views have it", () =>
    Effect.gen(function* () {
      const { engine, id } = yield* counted
      assert.deepStrictEqual(yield* countsOf(engine, ACCOUNT, id), [3, 2, 1, 0])
      const increment = Effect.flatMap(Toy.counterIn("a"), (counter) => Toy.add(counter!.value, 5))
      yield* engine.accounts.run(ACCOUNT, increment)
      assert.deepStrictEqual(yield* countsOf(engine, ACCOUNT, id), [8, 3, 2, 1, 0])
    })
  )

  it.effect("has nothing of another account, and nothing that was forgotten with a wipe", () =>
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

  it.effect("is refused, with the name of the record, if that is gone or holds none of the document", () =>
    Effect.gen(function* () {
      const { id, storage } = yield* counted
      assert.deepStrictEqual(yield* historyWith(storage, id, [4, 1]), Exit.succeed([3, 0]))
      for (const [version, problem] of [
        [6, "is missing, but the views have it"],
        [5, `does not hold ${id}, but the views point there`]
      ] as const) {
        const exit = yield* historyWith(storage, id, [version, 4])
        const told = Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
        assert.include(told, `Record ${version} of account ${ACCOUNT} ${problem}`)
      }
    })
  )
})
