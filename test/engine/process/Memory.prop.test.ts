/**
 * Shares of the memory: no owner gets less than an equal share, and all together get the capacity.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { makeShares } from "../../../src/engine/process/Memory.ts"
import { Random, Seed } from "../../support/Random.ts"

const CAPACITY = 1000

const shared = (sizes: Record<string, number>) => {
  const owners = new Map(Object.entries(sizes).map(([name, entries]) => [name, { entries }]))
  const share = makeShares(CAPACITY, owners, ({ entries }) => entries)
  return { owners, share, shareOf: (name: string) => share(owners.get(name)!) }
}

describe("shares of the memory", () => {
  it("give a busy owner everything that quiet ones leave", () => {
    const quiet = Object.fromEntries(Array.from({ length: 99 }, (_, i) => [`quiet${i}`, 1]))
    const { owners, shareOf } = shared({ busy: 500, ...quiet })
    assert.strictEqual(shareOf("busy"), CAPACITY - 99)
    assert.strictEqual(shareOf("quiet7"), CAPACITY - 598)
    owners.get("busy")!.entries = 900
    assert.strictEqual(shareOf("busy"), CAPACITY - 99)
    assert.strictEqual(shareOf("quiet7"), CAPACITY / 100)
  })

  it("are equal if every owner wants everything", () => {
    assert.strictEqual(shared({ one: 1000, two: 1000, three: 1000, four: 1000 }).shareOf("three"), 250)
  })

  it("are everything for a single owner, and nothing of nothing", () => {
    assert.strictEqual(shared({ one: 10_000 }).shareOf("one"), CAPACITY)
    const owner = { entries: 5 }
    assert.strictEqual(makeShares(0, new Map([["one", owner]]), ({ entries }) => entries)(owner), 0)
  })

  it("are free again when an owner has ended", () => {
    const { owners, shareOf } = shared({ one: 900, two: 10 })
    assert.strictEqual(shareOf("two"), 500)
    owners.delete("one")
    assert.strictEqual(shareOf("two"), CAPACITY)
  })

  it("do not exceed the capacity for an owner that has ended itself", () => {
    const { owners, share } = shared({ one: 10 })
    const one = owners.get("one")!
    owners.clear()
    assert.strictEqual(share(one), CAPACITY)
  })

  it("weigh about two owners for each call", () => {
    let weighings = 0
    const owners = new Map(Array.from({ length: 100 }, (_, i) => [`owner${i}`, {}]))
    const share = makeShares(CAPACITY, owners, () => {
      weighings++
      return 1
    })
    for (let round = 0; round < 10; round++) for (const owner of owners.values()) share(owner)
    assert.isAtMost(weighings, 2 * 10 * 100 + 100)
  })

  it.prop(
    "keep all owners within the capacity after each has been used",
    { seed: Seed, count: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 40 })) },
    ({ count, seed }) => {
      const random = new Random(seed)
      const { owners, share } = shared(
        Object.fromEntries(Array.from({ length: count }, (_, i) => [`owner${i}`, random.below(2 * CAPACITY)]))
      )
      // An owner frees the excess over its share, as caches do, and uses some of the rest.
      const use = (owner: { entries: number }, more: number) => {
        owner.entries += more
        const allowed = share(owner)
        assert.isAtLeast(allowed, CAPACITY / count)
        owner.entries = Math.min(owner.entries, allowed)
        share(owner)
      }
      for (let i = 0; i < 5 * count; i++) use(random.pick([...owners.values()]), random.below(100))
      for (const owner of owners.values()) use(owner, 0)
      const total = [...owners.values()].reduce((sum, { entries }) => sum + entries, 0)
      // Equal shares are rounded up.
      assert.isAtMost(total, CAPACITY + count)
    }
  )
})
