/** Open pages reload one at a time (semantics dashboard.live). */
import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { ReloadQueue } from "../../../src/dashboard/frame/ReloadQueue.ts"

describe("the reload queue", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }))
  afterEach(() => void vi.useRealTimers())

  /** Queues this many pages; returns the order of their reloads after each pause. */
  const told = (turns: ReloadQueue, count: number) => {
    const seen: Array<number> = []
    const pages = Array.from({ length: count }, (_, i) => () => void seen.push(i))
    for (const page of [...pages, ...pages]) turns.enqueue("a", page)
    return { seen, pages }
  }

  it("reloads a single page immediately, and many in order, each once", () => {
    const { seen } = told(new ReloadQueue(() => 0.1), 5)
    vi.advanceTimersByTime(1)
    assert.deepStrictEqual(seen, [0])
    vi.advanceTimersByTime(45)
    assert.deepStrictEqual(seen, [0, 1, 2])
    vi.advanceTimersByTime(10_000)
    assert.deepStrictEqual(seen, [0, 1, 2, 3, 4])
  })

  it("slows down while the process is busy, and only then", () => {
    let share = 1
    const { seen } = told(new ReloadQueue(() => share), 30)
    vi.advanceTimersByTime(1010)
    assert.lengthOf(seen, 3)
    share = 0
    vi.advanceTimersByTime(1000)
    assert.lengthOf(seen, 30)
  })

  it("alternates between accounts", () => {
    const turns = new ReloadQueue(() => 0)
    const { seen } = told(turns, 100)
    turns.enqueue("b", () => void seen.push(-1))
    turns.enqueue("b", () => void seen.push(-2))
    vi.advanceTimersByTime(110)
    assert.deepStrictEqual(seen.slice(0, 5), [0, -1, 1, -2, 2])
    vi.advanceTimersByTime(10_000)
    assert.lengthOf(seen, 102)
  })

  it("skips closed pages", () => {
    const turns = new ReloadQueue(() => 0)
    const { pages, seen } = told(turns, 4)
    turns.remove("a", pages[1]!)
    vi.advanceTimersByTime(1000)
    assert.deepStrictEqual(seen, [0, 2, 3])
    turns.enqueue("a", pages[1]!)
    vi.advanceTimersByTime(25)
    assert.deepStrictEqual(seen, [0, 2, 3, 1])
  })
})
