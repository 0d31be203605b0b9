/** The process' event loop, as far as webhooks have to know how busy it is. */
import { Context, Effect } from "effect"
import { performance } from "node:perf_hooks"

/** A turn takes this long, or longer if the event loop is busy. */
const TURN_MILLIS = 1

export interface EventLoopShape {
  /** Leaves the event loop to all others for a turn; says for what share of it, from 0 to 1, it had nothing to do. */
  readonly turn: Effect.Effect<number>
}

/** Node's own, unless a test has another one. */
export const EventLoop: Context.Reference<EventLoopShape> = Context.Reference("till/webhooks/EventLoop", {
  defaultValue: () => ({
    turn: Effect.callback<number>((resume) => {
      const from = performance.eventLoopUtilization()
      const timer = setTimeout(() => {
        resume(Effect.succeed(1 - performance.eventLoopUtilization(from).utilization))
      }, TURN_MILLIS)
      return Effect.sync(() => clearTimeout(timer))
    })
  })
})
