/**
 * The time of a simulation: the test clock together with the machine's clock functions. The ids and keys of a
 * simulation follow from its seed, because they determine the partition of an account, and so its runner.
 */
import { vi } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import crypto from "node:crypto"
import { syncBuiltinESMExports } from "node:module"
import { randomText } from "../../src/engine/log/Identifiers.ts"
import * as Harness from "../engine/Harness.ts"
import { Random } from "../support/Random.ts"

/** Replaces the machine's clock functions within the scope. */
export const fakeTimers = Effect.asVoid(
  Effect.acquireRelease(
    Effect.sync(() => {
      const toFake = ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] as const
      vi.useFakeTimers({ toFake: [...toFake], now: Harness.START })
    }),
    () => Effect.sync(() => vi.useRealTimers())
  )
)

/** Advances all clocks. */
export const advance = (millis: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    vi.advanceTimersByTime(millis)
    return TestClock.adjust(millis)
  })

/** Derives ids and keys from a seed within the scope. */
export const seededIds = (seed: number) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const random = new Random(seed)
      const fill = vi.spyOn(crypto, "randomFillSync").mockImplementation((bytes) => {
        const view = bytes as Uint8Array
        for (let i = 0; i < view.length; i++) view[i] = random.below(256)
        return bytes
      })
      syncBuiltinESMExports()
      // Uses up the random bytes generated before.
      while (fill.mock.calls.length === 0) randomText(1)
      return fill
    }),
    (fill) =>
      Effect.sync(() => {
        fill.mockRestore()
        syncBuiltinESMExports()
      })
  )
