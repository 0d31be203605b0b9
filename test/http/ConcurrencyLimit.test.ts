/** The concurrency limit with storages of several kinds, all of which flush one batch at a time. */
import { assert, describe, it } from "@effect/vitest"
import { ConcurrencyLimit } from "../../src/http/ConcurrencyLimit.ts"

interface Outcome {
  readonly perSecond: number
  /** Average latency of the commands that ended in the second half. */
  readonly p99: number
}

/** Runs as many commands as allowed, all the time, on a storage with the given latency per flush of a given size. */
const run = (flushMillis: (count: number) => number, seconds: number): Outcome => {
  const limit = new ConcurrencyLimit()
  let now = 0
  let queue: Array<number> = []
  const taken: Array<number> = []
  while (now < seconds * 1000) {
    while (queue.length < limit.value) queue.push(now)
    limit.reached()
    // Commands that arrive during a flush go into the next one.
    const portion = Math.max(1, Math.min(512, Math.ceil(queue.length / 2)))
    const batch = queue.slice(0, portion)
    queue = queue.slice(portion)
    now += flushMillis(batch.length)
    for (const since of batch) {
      limit.observe(now - since, now)
      if (now > seconds * 500) taken.push(now - since)
    }
  }
  const ascending = taken.toSorted((a, b) => a - b)
  return {
    perSecond: taken.length / (seconds / 2),
    p99: ascending[Math.floor(ascending.length * 0.99)]!
  }
}

describe("the limit of concurrent commands", () => {
  it("is high for a good storage", () => {
    const { p99, perSecond } = run((count) => 2 + count * 0.04, 10)
    assert.isAbove(perSecond, 15_000)
    assert.isBelow(p99, 250)
  })

  it("is as high for a distant one, because fewer commands would take as long", () => {
    for (const millis of [50, 200, 400]) {
      const { perSecond } = run((count) => millis + count * 0.04, 60)
      assert.isAbove(perSecond, (0.8 * 512) / ((millis + 512 * 0.04) / 1000), `${millis} ms`)
    }
  })

  it("is low for one that is slow per byte", () => {
    for (const millis of [2, 5, 10, 20]) {
      const { p99, perSecond } = run((count) => 5 + count * millis, 60)
      assert.isBelow(p99, 2500, `${millis} ms each`)
      assert.isAbove(perSecond, 0.5 * (1000 / millis), `${millis} ms each`)
    }
  })
})
