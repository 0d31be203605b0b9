/** Open pages reload one at a time (semantics dashboard.live). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { ReloadQueue } from "../../../src/dashboard/frame/ReloadQueue.ts"

/** Starts a queue for a process with this event-loop utilisation. */
const start = Effect.fnUntraced(function* (shareNow: () => number) {
  const turns = new ReloadQueue()
  yield* turns.start(shareNow)
  return turns
})

/** Queues this many pages; returns the order of their reloads. */
const queue = (turns: ReloadQueue, count: number) => {
  const seen: Array<number> = []
  const pages = Array.from({ length: count }, (_, i) => () => void seen.push(i))
  for (const page of [...pages, ...pages]) turns.enqueue("a", page)
  return { seen, pages }
}

describe("the reload queue", () => {
  it.effect("reloads a single page immediately, and many in order, each once", () =>
    Effect.gen(function* () {
      const { seen } = queue(yield* start(() => 0.1), 5)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(seen, [0])
      yield* TestClock.adjust(45)
      assert.deepStrictEqual(seen, [0, 1, 2])
      yield* TestClock.adjust(10_000)
      assert.deepStrictEqual(seen, [0, 1, 2, 3, 4])
    })
  )

  it.effect("pauses also before a page that comes right after the last one", () =>
    Effect.gen(function* () {
      const turns = yield* start(() => 0.1)
      const { seen } = queue(turns, 1)
      yield* TestClock.adjust(15)
      turns.enqueue("a", () => void seen.push(1))
      yield* TestClock.adjust(4)
      assert.deepStrictEqual(seen, [0])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(seen, [0, 1])
    })
  )

  it.effect("slows down while the process is busy, and only then", () =>
    Effect.gen(function* () {
      let share = 1
      const { seen } = queue(yield* start(() => share), 30)
      yield* TestClock.adjust(1010)
      assert.lengthOf(seen, 3)
      share = 0
      yield* TestClock.adjust(1000)
      assert.lengthOf(seen, 30)
    })
  )

  it.effect("alternates between accounts", () =>
    Effect.gen(function* () {
      const turns = yield* start(() => 0)
      const { seen } = queue(turns, 100)
      turns.enqueue("b", () => void seen.push(-1))
      turns.enqueue("b", () => void seen.push(-2))
      yield* TestClock.adjust(110)
      assert.deepStrictEqual(seen.slice(0, 5), [0, -1, 1, -2, 2])
      yield* TestClock.adjust(10_000)
      assert.lengthOf(seen, 102)
    })
  )

  it.effect("skips closed pages", () =>
    Effect.gen(function* () {
      const turns = yield* start(() => 0)
      const { pages, seen } = queue(turns, 4)
      turns.remove("a", pages[1]!)
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(seen, [0, 2, 3])
      turns.enqueue("a", pages[1]!)
      yield* TestClock.adjust(25)
      assert.deepStrictEqual(seen, [0, 2, 3, 1])
    })
  )
})
