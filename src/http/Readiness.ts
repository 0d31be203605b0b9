/**
 * Readiness of this process for requests. A load balancer polls `/readyz` and needs a while to notice a change, so a
 * process first reports that it is stopping, and goes on to answer all requests that arrive (semantics
 * operation.health).
 */
import { Context, Effect, Layer } from "effect"
import { ApiServer } from "../server/Server.ts"

/** The phases of a process. While the server listens, it answers requests in every phase. */
export type Phase = "starting" | "serving" | "stopping"

export class Readiness extends Context.Service<
  Readiness,
  { readonly phase: () => Phase; readonly enter: (phase: Phase) => void }
>()("till/http/Readiness") {
  static readonly layer: Layer.Layer<Readiness> = Layer.sync(Readiness, () => {
    let current: Phase = "starting"
    return {
      phase: () => current,
      enter: (phase) => {
        current = phase
      }
    }
  })
}

export interface Serving {
  /** Time for a load balancer to notice that the process is stopping, in milliseconds. */
  readonly noticeMillis: number
  /** Hands this process' accounts over to other processes, while requests are still accepted. */
  readonly handOver: Effect.Effect<void>
  /** The longest time for both, in milliseconds. */
  readonly drainMillisMax: number
  /** Ends when the operator asks not to wait any longer. */
  readonly impatience: Effect.Effect<void>
}

/**
 * Reports the process as ready while the layer lives. When the layer closes, before the server does, it waits until
 * other processes have taken over; during that time, connections end with their next answer.
 */
export const serving = ({
  drainMillisMax,
  handOver,
  impatience,
  noticeMillis
}: Serving): Layer.Layer<never, never, ApiServer | Readiness> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { endConnections } = yield* ApiServer
      const { enter } = yield* Readiness
      const drain = Effect.all([handOver, Effect.sleep(noticeMillis)], { concurrency: 2, discard: true })
      yield* Effect.acquireRelease(
        Effect.sync(() => enter("serving")),
        () =>
          Effect.sync(() => enter("stopping")).pipe(
            Effect.andThen(endConnections),
            Effect.andThen(Effect.timeoutOption(Effect.raceFirst(drain, impatience), drainMillisMax))
          )
      )
    })
  )
