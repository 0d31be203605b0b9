/**
 * Whether others are to send requests to this process. A balancer asks at `/readyz` and needs a while to learn of a
 * change, so a process that is to end says so first, and goes on to answer whatever still comes (semantics 9.52).
 */
import { Context, Effect, Layer } from "effect"
import { ApiServer } from "../server/Server.ts"

/** Requests are answered in each phase in which the server listens. */
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
  /** A balancer has so long to notice that the process is about to end, in milliseconds. */
  readonly noticeMillis: number
  /** Hands over to others what this process alone does, while requests are still taken. */
  readonly handOver: Effect.Effect<void>
  /** The two may take so long, in milliseconds. */
  readonly drainMillisMax: number
  /** Ends when nobody wants to wait for that any more. */
  readonly impatience: Effect.Effect<void>
}

/**
 * The process is ready while the layer lives. Its end comes before that of the server, and takes as long as others need
 * to do without the process; meanwhile kept connections end with their next answer.
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
