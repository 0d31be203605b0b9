/**
 * A request needs a fiber only if it has to wait. Nearly every step is an `Exit`, so most requests reach their command,
 * or their answer, without one.
 */
import { Effect, Exit } from "effect"
import { HttpConfig } from "../server/HttpConfig.ts"
import type { Failure } from "./ErrorTable.ts"
import type { Received } from "./RequestContext.ts"
import { REQUEST_MILLIS_MAX, RequestTimeouts } from "./RequestTimeouts.ts"

/** Continues with an effect's value; immediately, if the effect is an `Exit`. */
export const andThen = <A, E, B, E2>(
  effect: Effect.Effect<A, E>,
  next: (value: A) => Effect.Effect<B, E2>
): Effect.Effect<B, E | E2> => {
  if (!isOver(effect)) return Effect.flatMap(effect, next)
  return Exit.isSuccess(effect) ? next(effect.value) : refused(effect)
}

export const isOver = <A, E>(effect: Effect.Effect<A, E>): effect is Exit.Exit<A, E> => Exit.isExit(effect)

/** The failure of a step as the failure of the request. */
export const refused = <E>(step: Exit.Failure<unknown, E>): Exit.Exit<never, E> => step as Exit.Failure<never, E>

/** Makes the function that runs the parts of a request that have to wait. */
export const makeWaiting = Effect.fnUntraced(function* () {
  const { requestMillisMax } = yield* HttpConfig
  const timeouts = yield* RequestTimeouts.make(requestMillisMax ?? REQUEST_MILLIS_MAX)
  const runFork = Effect.runForkWith(yield* Effect.context<never>())

  /** Runs an effect in a fiber. A client that goes away interrupts it, but no command that has begun. */
  return <A>(
    { incoming, wait }: Received,
    work: Effect.Effect<A, Failure>,
    then: (exit: Exit.Exit<A, Failure>, hasWaited: boolean) => void
  ): void => {
    const fiber = runFork(work)
    const exit = fiber.pollUnsafe()
    if (exit !== undefined) return then(exit, false)
    fiber.addObserver((exit) => {
      timeouts.end(wait)
      then(exit, true)
    })
    timeouts.watch(wait, fiber)
    incoming.onGone(() => fiber.interruptUnsafe())
  }
})
