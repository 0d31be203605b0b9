/** Reads that wait for the storage: any burst is taken, and none is added to what waits for long. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import { MailboxFull, BoundedQueue } from "../../../src/engine/process/BoundedQueue.ts"
import * as Harness from "../Harness.ts"

describe("a waiting room", () => {
  it.effect("takes a burst, and nobody more while the first of many waits for too long", () =>
    Effect.gen(function* () {
      let now = 0
      const room = new BoundedQueue(1000, () => now)
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

  it.effect("does not mind that a few wait for long", () =>
    Effect.gen(function* () {
      let now = 0
      const room = new BoundedQueue(1000, () => now)
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
