/**
 * The running time: a clock that runs only while the service runs. It measures the retention of idempotency keys
 * (semantics idempotency.retention), so that a step of the wall clock neither deletes a key too early nor keeps it for
 * years.
 *
 * It starts at the wall clock's time of an installation's first start, follows the monotonic clock while a process
 * runs, and stands still between processes: each continues from the stored time, which is written every minute. So
 * after a crash it is up to a minute behind, and keys are kept for that much longer. With several processes, the
 * furthest time counts.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { Millis } from "../log/Document.ts"
import type { StorageFailure } from "../log/Journal.ts"
import { Views } from "../views/Views.ts"

/** How long the answer to an idempotency key is kept, in milliseconds of running time. */
export const RETENTION_MILLIS: Millis = 24 * 3600 * 1000

export interface RunningTimeShape {
  /** Loads the stored time on the first call. `now` may be called after it has succeeded. */
  readonly ready: Effect.Effect<void, StorageFailure>
  /** The running time, in milliseconds; never decreases. */
  readonly now: () => Millis
  /** Stores the running time and returns the stored one: no process will be behind it. */
  readonly keep: Effect.Effect<Millis, StorageFailure>
}

export class RunningTime extends Context.Service<RunningTime, RunningTimeShape>()("till/engine/RunningTime") {
  static readonly layer: Layer.Layer<RunningTime, never, Views> = Layer.effect(
    RunningTime,
    Effect.suspend(() => make)
  )
}

const NANOS_PER_MILLI = 1_000_000n

const make = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const views = yield* Views
  /** The running time when the monotonic clock stood at zero. */
  let offset: Millis | null = null
  const elapsed = (): Millis => Number(clock.monotonicTimeNanosUnsafe() / NANOS_PER_MILLI)

  const ready = Effect.suspend(() =>
    offset !== null
      ? Effect.void
      : Effect.map(
          // Stored before any key uses it: afterwards the times of keys, which may be corrupt, are not read for it.
          Effect.flatMap(views.runningTime(clock.currentTimeMillisUnsafe()), views.keepRunningTime),
          (time) => {
            offset ??= time - elapsed()
          }
        )
  )
  const now = (): Millis => {
    if (offset === null) throw new Error("The running time is not known yet")
    return offset + elapsed()
  }
  const keep = Effect.gen(function* () {
    yield* ready
    const kept = yield* views.keepRunningTime(now())
    offset = Math.max(offset!, kept - elapsed())
    return kept
  })
  return RunningTime.of({ ready, now, keep })
})
