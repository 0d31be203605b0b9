/** Open pages load themselves one after the other, however many there are (semantics 9.65). */
import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { ReloadQueue } from "../../../src/dashboard/frame/ReloadQueue.ts"

describe("turns", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }))
  afterEach(() => void vi.useRealTimers())

  /** So many pages ask at once; those that were told after each pause. */
  const told = (turns: ReloadQueue, count: number) => {
    const seen: Array<number> = []
    const pages = Array.from({ length: count }, (_, i) => () => void seen.push(i))
    for (const page of [...pages, ...pages]) turns.ask("a", page)
    return { seen, pages }
  }

  it("come at once to somebody alone, and in order to many, each once", () => {
    const { seen } = told(new ReloadQueue(() => 0.1), 5)
    vi.advanceTimersByTime(1)
    assert.deepStrictEqual(seen, [0])
    vi.advanceTimersByTime(45)
    assert.deepStrictEqual(seen, [0, 1, 2])
    vi.advanceTimersByTime(10_000)
    assert.deepStrictEqual(seen, [0, 1, 2, 3, 4])
  })

  it("are rare while the process is busy, and no longer than that", () => {
    let share = 1
    const { seen } = told(new ReloadQueue(() => share), 30)
    vi.advanceTimersByTime(1010)
    assert.lengthOf(seen, 3)
    share = 0
    vi.advanceTimersByTime(1000)
    assert.lengthOf(seen, 30)
  })

  it("go from account to account", () => {
    const turns = new ReloadQueue(() => 0)
    const { seen } = told(turns, 100)
    turns.ask("b", () => void seen.push(-1))
    turns.ask("b", () => void seen.push(-2))
    vi.advanceTimersByTime(110)
    assert.deepStrictEqual(seen.slice(0, 5), [0, -1, 1, -2, 2])
    vi.advanceTimersByTime(10_000)
    assert.lengthOf(seen, 102)
  })

  it("pass over who has gone", () => {
    const turns = new ReloadQueue(() => 0)
    const { pages, seen } = told(turns, 4)
    turns.forget("a", pages[1]!)
    vi.advanceTimersByTime(1000)
    assert.deepStrictEqual(seen, [0, 2, 3])
    turns.ask("a", pages[1]!)
    vi.advanceTimersByTime(25)
    assert.deepStrictEqual(seen, [0, 2, 3, 1])
  })
})
