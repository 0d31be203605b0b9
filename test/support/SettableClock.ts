/** A clock whose time the test sets. It sleeps as the system's clock does, and then until the gate opens, if given. */
import { Clock, Effect, Layer } from "effect"

export const clockOf = (now: () => number, gate?: Effect.Effect<void>): Layer.Layer<never> =>
  Layer.effect(
    Clock.Clock,
    Effect.map(Clock.Clock, (system): Clock.Clock => ({
      currentTimeMillisUnsafe: now,
      currentTimeMillis: Effect.sync(now),
      currentTimeNanosUnsafe: () => BigInt(now()) * 1_000_000n,
      currentTimeNanos: Effect.sync(() => BigInt(now()) * 1_000_000n),
      monotonicTimeNanosUnsafe: () => system.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: system.monotonicTimeNanos,
      sleep: (duration) => (gate === undefined ? system.sleep(duration) : Effect.andThen(system.sleep(duration), gate))
    }))
  )
