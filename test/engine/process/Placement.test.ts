/** What attendants are told of a partition that comes and goes, and what this process does for it meanwhile. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Attendant, Partition } from "../../../src/engine/process/Placement.ts"
import { CONFIRMED_MILLIS, partitionOf, PARTITIONS, Placement } from "../../../src/engine/process/Placement.ts"

const ACCOUNT = "mer_1:test"
const PARTITION = partitionOf(ACCOUNT)

/** Two attendants, and what they are told, with whether requests of the partition are served and it is held. */
const attended = Effect.gen(function* () {
  const placement = yield* Placement
  const told: Array<string> = []
  const note = (what: string) => {
    const held = placement.held()!.includes(PARTITION)
    told.push(`${what}${placement.isHere(ACCOUNT) ? ", here" : ""}${held ? ", held" : ""}`)
  }
  for (const name of ["first", "last"]) {
    const telling = (what: string) => () => Effect.sync(() => note(`${name} ${what}`))
    const attendant: Attendant = {
      gained: telling("gained"),
      served: () => note(`${name} served`),
      leaving: telling("leaving"),
      releasing: telling("releasing")
    }
    yield* placement.attend(attendant)
  }
  return { placement, taken: () => told.splice(0) }
})

describe("a partition", () => {
  it.effect("comes from the first attendant to the last, and leaves the other way", () =>
    Effect.gen(function* () {
      const { placement, taken } = yield* attended
      placement.confirm(performance.now())
      yield* placement.gain(PARTITION)
      assert.deepStrictEqual(taken(), [
        "first gained",
        "last gained",
        "first served, here, held",
        "last served, here, held"
      ])
      yield* placement.release(PARTITION)
      assert.deepStrictEqual(taken(), [
        "last leaving, here",
        "first leaving, here",
        "last releasing",
        "first releasing"
      ])
      assert.deepStrictEqual(placement.held(), [])
    }).pipe(Effect.scoped, Effect.provide(Placement.layerShared))
  )

  it.effect("is not here from when it is in doubt until something later confirms it", () =>
    Effect.gen(function* () {
      const { placement } = yield* attended
      let lapses = 0
      yield* placement.attend({ lapsed: () => lapses++ })
      const before = performance.now()
      placement.confirm(before)
      yield* placement.gain(PARTITION)
      assert.isTrue(placement.isHere(ACCOUNT))
      lapses = 0
      while (performance.now() === before);
      placement.doubt()
      assert.isFalse(placement.isHere(ACCOUNT) || placement.isOwned(ACCOUNT))
      placement.confirm(before)
      assert.isFalse(placement.isHere(ACCOUNT), "what was asked before says nothing")
      placement.confirm(performance.now())
      assert.isTrue(placement.isHere(ACCOUNT) && placement.isOwned(ACCOUNT))
      assert.strictEqual(lapses, 1, "another may have had it")
    }).pipe(Effect.scoped, Effect.provide(Placement.layerShared))
  )

  it.effect("is not held while it is in doubt, and attendants are told when it is confirmed again", () =>
    Effect.gen(function* () {
      const { placement, taken } = yield* attended
      yield* placement.gain(PARTITION)
      placement.confirm(performance.now() - CONFIRMED_MILLIS)
      assert.deepStrictEqual(taken(), ["first gained", "last gained"])
      placement.confirm(performance.now())
      assert.deepStrictEqual(taken(), ["first served, here, held", "last served, here, held"])
      placement.confirm(performance.now())
      assert.deepStrictEqual(taken(), [])
    }).pipe(Effect.scoped, Effect.provide(Placement.layerShared))
  )

  it("of an account is the one that it is in SQL", () => {
    // SELECT get_byte(sha256(convert_to(account, 'UTF8')), 0) & 63
    const known: ReadonlyArray<readonly [string, Partition]> = [
      ["mer_1:test", 59],
      ["mer_1:live", 2]
    ]
    for (const [account, partition] of known) assert.strictEqual(partitionOf(account), partition)
    assert.strictEqual(PARTITIONS, 64)
  })
})
