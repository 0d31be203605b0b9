/**
 * The running time: how long the service has run, written as a time. Idempotency keys are remembered by it (semantics
 * 9.36), so no step of the wall clock makes Till forget one too early, or keep one for years.
 *
 * It begins as the wall clock of an installation's first start, goes on with the monotonic clock while a process runs,
 * and stands still between processes: each begins where the ones before it have kept it, which they do every minute. So
 * after a crash it is up to a minute behind, and keys are remembered for that much longer. Of several processes at a
 * time, the one that is furthest leads.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { Millis } from "../log/Document.ts"
import type { StorageFailure } from "../log/Journal.ts"
import { Views } from "../views/Views.ts"

export interface RunningTimeShape {
  /** Reads what was kept, the first time, and keeps it; `now` may be asked once it has succeeded. */
  readonly ready: Effect.Effect<void, StorageFailure>
  /** Never goes back. */
  readonly now: () => Millis
  /** Keeps the time, and answers with it: no process will be behind what was answered. */
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
          // Kept before any key is remembered by it: the times of keys, which may be damaged, are not asked again.
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
