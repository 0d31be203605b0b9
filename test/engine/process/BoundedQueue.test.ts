/** Waiting reads: a burst of any size is accepted, but no more once many have waited for long. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import { MailboxFull, BoundedQueue } from "../../../src/engine/process/BoundedQueue.ts"
import * as Harness from "../Harness.ts"

describe("a bounded queue", () => {
  it.effect("accepts a burst, and no more while the first of many waits for too long", () =>
    Effect.gen(function* () {
      let now = 0
      const room = new BoundedQueue(1000, { monotonicTimeNanosUnsafe: () => BigInt(now) * 1_000_000n })
      const storage = Latch.makeUnsafe(false)
      const read = Effect.forkChild(room.during(storage.await))
      const burst = yield* Effect.forEach(Array.from({ length: 500 }), () => read)
      yield* Harness.settled
      now = 600
      const late = yield* read
      yield* Harness.settled
      assert.instanceOf(yield* Effect.flip(Fiber.join(late)), MailboxFull)
      storage.openUnsafe()
      for (const fiber of burst) yield* Fiber.join(fiber)
      assert.isTrue(room.isEmpty)
      yield* Fiber.join(yield* read)
    })
  )

  it.effect("accepts more while only a few wait for long", () =>
    Effect.gen(function* () {
      let now = 0
      const room = new BoundedQueue(1000, { monotonicTimeNanosUnsafe: () => BigInt(now) * 1_000_000n })
      const storage = Latch.makeUnsafe(false)
      const read = Effect.forkChild(room.during(storage.await))
      const fibers = [yield* read]
      yield* Harness.settled
      now = 10_000
      fibers.push(yield* read)
      yield* Harness.settled
      storage.openUnsafe()
      for (const fiber of fibers) yield* Fiber.join(fiber)
      assert.isTrue(room.isEmpty)
    })
  )
})
