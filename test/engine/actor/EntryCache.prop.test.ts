/**
 * An actor's cache: bounded except for pinned entries; loads are shared, and a write that overtakes a load wins.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, References, Schema } from "effect"
import { EntryCache } from "../../../src/engine/actor/EntryCache.ts"
import { Random, Seed } from "../../support/Random.ts"

interface Entry {
  readonly version: number
  /** Weight of the entry; 1 by default. */
  readonly weight?: number
}

/** A cache with bounds that a test can change. */
const cacheOf = <E = never>(capacity: number = 10) => {
  const bounds = { capacity, projected: 0 }
  const cache = new EntryCache<Entry, E>({
    weightOf: ({ weight = 1 }) => weight,
    capacity: () => bounds.capacity,
    projected: () => bounds.projected
  })
  return { bounds, cache }
}

describe("the cache of entries", () => {
  it.effect("shares a load among all simultaneous reads", () =>
    Effect.gen(function* () {
      const { cache } = cacheOf()
      const gate = yield* Deferred.make<void>()
      let fetches = 0
      const fetch = Effect.andThen(
        Deferred.await(gate),
        Effect.sync(() => ({ version: ++fetches }))
      )
      const readers = yield* Effect.forEach(Array.from({ length: 10 }), () => Effect.forkChild(cache.load("a", fetch)))
      yield* Effect.yieldNow
      yield* Deferred.succeed(gate, undefined)
      for (const reader of readers) assert.deepStrictEqual(yield* Fiber.join(reader), { version: 1 })
      assert.strictEqual(fetches, 1)
    })
  )

  it.effect("lets a write during a load win, even if it was evicted before the load ended", () =>
    Effect.gen(function* () {
      for (const evicted of [false, true]) {
        const { bounds, cache } = cacheOf()
        const stored = { version: 1 }
        const gate = yield* Deferred.make<void>()
        let first = true
        const fetch = Effect.suspend(() => {
          const row = { ...stored }
          if (!first) return Effect.succeed(row)
          first = false
          return Effect.as(Deferred.await(gate), row)
        })
        const reader = yield* Effect.forkChild(cache.load("a", fetch))
        yield* Effect.yieldNow
        cache.set("a", { version: 2 })
        stored.version = 2
        if (evicted) {
          Object.assign(bounds, { capacity: 0, projected: 2 })
          cache.trim()
          cache.trim()
        }
        assert.strictEqual(cache.weight, evicted ? 0 : 1)
        yield* Deferred.succeed(gate, undefined)
        assert.deepStrictEqual(yield* Fiber.join(reader), { version: 2 })
        assert.deepStrictEqual(yield* cache.load("a", fetch), { version: 2 })
      }
    })
  )

  it.effect("repeats a load that was running when the cache was cleared", () =>
    Effect.gen(function* () {
      const { cache } = cacheOf()
      const gate = yield* Deferred.make<void>()
      let fetches = 0
      const fetch = Effect.suspend(() => {
        const row = { version: ++fetches }
        return fetches === 1 ? Effect.as(Deferred.await(gate), row) : Effect.succeed(row)
      })
      const reader = yield* Effect.forkChild(cache.load("a", fetch))
      yield* Effect.yieldNow
      cache.clear()
      yield* Deferred.succeed(gate, undefined)
      assert.deepStrictEqual(yield* Fiber.join(reader), { version: 2 })
      assert.deepStrictEqual(cache.get("a"), { version: 2 })
    })
  )

  it.effect("forgets a load that failed", () =>
    Effect.gen(function* () {
      const { cache } = cacheOf<string>()
      assert.strictEqual(yield* Effect.flip(cache.load("a", Effect.fail("down"))), "down")
      assert.deepStrictEqual(yield* cache.load("a", Effect.succeed({ version: 1 })), { version: 1 })
    })
  )

  it.effect.prop(
    "leaves no load behind whose reader was interrupted at any time",
    {
      steps: Schema.Literals([2, 3, 4, 5]),
      moment: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 30 })),
      fetching: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 }))
    },
    Effect.fnUntraced(function* ({ fetching, moment, steps }) {
      const { cache } = cacheOf()
      const fetch = Effect.as(Effect.repeat(Effect.yieldNow, { times: fetching }), { version: 1 })
      const load = Effect.suspend(() => cache.load("a", fetch))
      const reader = yield* Effect.forkChild(Effect.provideService(load, References.MaxOpsBeforeYield, steps))
      for (let i = 0; i < moment; i++) yield* Effect.yieldNow
      yield* Fiber.interrupt(reader)
      const next = yield* Effect.forkChild(load)
      for (let i = 0; i < 50; i++) yield* Effect.yieldNow
      assert.isDefined(next.pollUnsafe(), "the entry can never be loaded again")
    }),
    { arbitrary: { runs: 200 } }
  )

  it("weighs the newest state of each entry, in each generation that has it", () => {
    const { bounds, cache } = cacheOf(6)
    bounds.projected = 1
    const set = (id: string, weight: number) => cache.set(id, { version: 1, weight })
    const steps: ReadonlyArray<readonly [step: () => unknown, weight: number]> = [
      [() => set("a", 5), 5],
      [() => set("a", 3), 3],
      [() => set("b", 4), 3 + 4],
      [() => cache.trim(), 7],
      [() => cache.get("b"), 7 + 4],
      [() => set("b", 3), 7 + 3],
      [() => cache.trim(), 3],
      [() => cache.clear(), 0]
    ]
    for (const [index, [step, weight]] of steps.entries()) {
      step()
      assert.strictEqual(cache.weight, weight, `step ${index}`)
    }
  })

  it.prop(
    "keeps entries that were used recently or are not projected, and few others",
    { seed: Seed, capacity: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 20 })) },
    ({ capacity, seed }) => {
      const random = new Random(seed)
      const { bounds, cache } = cacheOf(capacity)
      const versions = new Map<string, number>()
      const used = new Set<string>()
      let version = 0
      for (let i = 0; i < 300; i++) {
        const id = `e${random.below(60)}`
        if (random.chance(0.5)) {
          cache.set(id, { version: ++version, weight: random.below(4) })
          versions.set(id, version)
          used.add(id)
        } else {
          const known = cache.get(id)
          if (known !== undefined) {
            assert.strictEqual(known.version, versions.get(id), "not the newest")
            used.add(id)
          }
        }
        if (!random.chance(0.2)) continue
        bounds.projected += random.below(version - bounds.projected + 1)
        cache.trim()
        const pinned = [...versions].filter(([, of]) => of > bounds.projected).map(([id]) => id)
        const kept = [...used, ...pinned]
        used.clear()
        // Reading counts as use, so only at times.
        for (const id of random.chance(0.2) ? kept : []) {
          assert.isDefined(cache.get(id), id)
          used.add(id)
        }
      }
      // After everything is projected and no longer used, the cache keeps no more than its capacity.
      bounds.projected = version
      for (let i = 0; i < 2 * capacity + 2; i++) {
        cache.set(`new${i}`, { version: 0 })
        cache.trim()
      }
      assert.isAtMost(cache.weight, Math.max(capacity, 1) + 1)
    }
  )
})
