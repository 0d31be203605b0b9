/**
 * An alarm: one sleeper waits until the next due time, and is woken early if a nearer one is set.
 *
 * Never sleeps longer than `SLEEP_MAX_MILLIS`, so that a stepped clock, or a timer that another process has set, is
 * noticed; that is also the slowest poll of an idle database.
 */
import { Clock, Context, Effect, Latch, Layer } from "effect"

const SLEEP_MAX_MILLIS = 30_000

export interface WakeUpShape {
  /** Something is due at this time. */
  readonly set: (dueAt: number) => void
  /** Waits until this time, or until something nearer is set. */
  readonly sleepUntil: (dueAt: number) => Effect.Effect<void>
}

export class WakeUp extends Context.Service<WakeUp, WakeUpShape>()("till/engine/WakeUp") {
  static readonly layer: Layer.Layer<WakeUp> = Layer.sync(WakeUp, () => make())
}

/** An alarm of one's own: each has one sleeper. */
export const make = (): WakeUpShape => {
  const nearer = Latch.makeUnsafe(false)
  // Before the first sleep everything is nearer than what the sleeper knows.
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
