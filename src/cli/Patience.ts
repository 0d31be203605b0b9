/** Waiting and retrying of commands that run until a person ends them. */
import { Effect, Schedule } from "effect"
import type { TillError } from "../client/index.ts"

/** The longest time for which the API keeps a request waiting for news, in seconds. */
export const WAIT_SECONDS = 25

/** True if a repeated request may succeed. */
export const isTransient = ({ type }: TillError): boolean =>
  type !== "invalid_request_error" && type !== "authentication_error"

/** Pauses that double from a quarter of a second to four seconds. */
const BACKOFF = Schedule.min([Schedule.exponential("250 millis"), Schedule.spaced("4 seconds")])

/** Repeats a request until the service is available again. Calls `onAway` for the first failure. */
export const patiently = <A>(
  request: Effect.Effect<A, TillError>,
  onAway: (error: TillError) => Effect.Effect<void> = () => Effect.void
): Effect.Effect<A, TillError> =>
  Effect.suspend(() => {
    let isAway = false
    const noted = Effect.tapError(request, (error) => {
      if (isAway || !isTransient(error)) return Effect.void
      isAway = true
      return onAway(error)
    })
    return Effect.retry(noted, { schedule: BACKOFF, while: isTransient })
  })
