/**
 * A wake-up call for one sleeping fiber: it sleeps until a due time, and wakes early if a nearer one is set.
 *
 * It never sleeps longer than `SLEEP_MAX_MILLIS`, to notice a stepped clock and timers that another process has set.
 * An idle process therefore polls the database at that interval.
 */
import { Clock, Context, Effect, Latch, Layer } from "effect"

const SLEEP_MAX_MILLIS = 30_000

export interface WakeUpShape {
  /** Sets a due time, in Unix milliseconds; 0 wakes the fiber now. */
  readonly set: (dueAt: number) => void
  /** Sleeps until this time, or until a nearer one is set. */
  readonly sleepUntil: (dueAt: number) => Effect.Effect<void>
}

export class WakeUp extends Context.Service<WakeUp, WakeUpShape>()("till/engine/WakeUp") {
  static readonly layer: Layer.Layer<WakeUp> = Layer.sync(WakeUp, () => make())
}

/** Makes a separate wake-up call, for one more sleeping fiber. */
export const make = (): WakeUpShape => {
  const nearer = Latch.makeUnsafe(false)
  // Before the first sleep every due time counts as nearer.
  let waitingFor = Infinity
  return {
    set: (dueAt) => {
      if (dueAt < waitingFor) nearer.openUnsafe()
    },
    sleepUntil: (dueAt) =>
      Effect.gen(function* () {
        const delay = dueAt - (yield* Clock.currentTimeMillis)
        waitingFor = dueAt
        if (delay > 0) yield* Effect.timeoutOption(nearer.await, Math.min(delay, SLEEP_MAX_MILLIS))
        nearer.closeUnsafe()
        waitingFor = Infinity
      })
  }
}
