/** Calls to listeners while a partition comes and goes, and the partition's state at each. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  CONFIRMED_MILLIS,
  type Partition,
  type PartitionListener,
  partitionOf,
  PARTITIONS,
  Placement
} from "../../../src/engine/process/Placement.ts"

const ACCOUNT = "mer_1:test"
const PARTITION = partitionOf(ACCOUNT)

/** Two listeners that note their calls, and at each whether the partition is served and held. */
const makeListened = Effect.gen(function* () {
  const placement = yield* Placement
  const calls: Array<string> = []
  const note = (what: string) => {
    const held = placement.held()!.includes(PARTITION)
    calls.push(`${what}${placement.isHere(ACCOUNT) ? ", here" : ""}${held ? ", held" : ""}`)
  }
  for (const name of ["first", "last"]) {
    const noting = (what: string) => () => Effect.sync(() => note(`${name} ${what}`))
    const listener: PartitionListener = {
      onAcquired: noting("acquired"),
      onServed: () => note(`${name} served`),
      onLeaving: noting("leaving"),
      onReleasing: noting("releasing")
    }
    yield* placement.listen(listener)
  }
  return { placement, takeCalls: () => calls.splice(0) }
})

describe("a partition", () => {
  it.effect("comes from the first listener to the last, and leaves from the last to the first", () =>
    Effect.gen(function* () {
      const { placement, takeCalls } = yield* makeListened
      placement.confirm(performance.now())
      yield* placement.acquire(PARTITION)
      assert.deepStrictEqual(takeCalls(), [
        "first acquired",
        "last acquired",
        "first served, here, held",
        "last served, here, held"
      ])
      yield* placement.release(PARTITION)
      assert.deepStrictEqual(takeCalls(), [
        "last leaving, here",
        "first leaving, here",
        "last releasing",
        "first releasing"
      ])
      assert.deepStrictEqual(placement.held(), [])
    }).pipe(Effect.scoped, Effect.provide(Placement.layerShared))
  )

  it.effect("is not here from a doubt of ownership until a later confirmation", () =>
    Effect.gen(function* () {
      const { placement } = yield* makeListened
      let lapses = 0
      yield* placement.listen({ onUnconfirmed: () => lapses++ })
      const before = performance.now()
      placement.confirm(before)
      yield* placement.acquire(PARTITION)
      assert.isTrue(placement.isHere(ACCOUNT))
      lapses = 0
      while (performance.now() === before);
      placement.unconfirm()
      assert.isFalse(placement.isHere(ACCOUNT) || placement.isOwned(ACCOUNT))
      placement.confirm(before)
      assert.isFalse(placement.isHere(ACCOUNT), "a query from before confirms nothing")
      placement.confirm(performance.now())
      assert.isTrue(placement.isHere(ACCOUNT) && placement.isOwned(ACCOUNT))
      assert.strictEqual(lapses, 1, "another process may have had the partition")
    }).pipe(Effect.scoped, Effect.provide(Placement.layerShared))
  )

  it.effect("is not held while unconfirmed, and listeners are called when it is confirmed again", () =>
    Effect.gen(function* () {
      const { placement, takeCalls } = yield* makeListened
      yield* placement.acquire(PARTITION)
      placement.confirm(performance.now() - CONFIRMED_MILLIS)
      assert.deepStrictEqual(takeCalls(), ["first acquired", "last acquired"])
      placement.confirm(performance.now())
      assert.deepStrictEqual(takeCalls(), ["first served, here, held", "last served, here, held"])
      placement.confirm(performance.now())
      assert.deepStrictEqual(takeCalls(), [])
    }).pipe(Effect.scoped, Effect.provide(Placement.layerShared))
  )

  it("of an account is the same in SQL", () => {
    // SELECT get_byte(sha256(convert_to(account, 'UTF8')), 0) & 63
    const known: ReadonlyArray<readonly [string, Partition]> = [
      ["mer_1:test", 59],
      ["mer_1:live", 2]
    ]
    for (const [account, partition] of known) assert.strictEqual(partitionOf(account), partition)
    assert.strictEqual(PARTITIONS, 64)
  })
})
