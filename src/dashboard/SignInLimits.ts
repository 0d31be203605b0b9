/**
 * Holds back whoever guesses passwords (semantics 9.64). Of an address, and of a person, so many attempts fail in a
 * quarter of an hour; then both wait until it is over. Each failed attempt makes the next answer take longer. Somebody
 * who is kept out by this, or by somebody who guesses at them, still comes in by a link.
 *
 * People are counted by the address that was entered, whether there is such a person or not. Counts are in memory: a
 * start forgets them.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { addressGroup } from "../domain/Networks.ts"
import { FixedWindows } from "../http/RateLimits.ts"

const WINDOW_MILLIS = 15 * 60 * 1000
/** Failed attempts per person and window. */
export const PERSON_FAILURES_MAX = 10
/** Failed attempts per address and window: an office has several people. */
export const ADDRESS_FAILURES_MAX = 50
const DELAY_MILLIS_MAX = 1000
const DELAY_MILLIS = 50

export interface SignInLimitsShape {
  /** Counts an attempt, until it is said to have succeeded. Tells in how many seconds one may try; 0 if at once. */
  readonly attempt: (who: string, address: string) => Effect.Effect<number>
  /** The attempt has failed: answers after a while, longer each time. */
  readonly failed: (who: string) => Effect.Effect<void>
  /** The attempt has succeeded: neither it nor the person's earlier ones count. */
  readonly succeeded: (who: string, address: string) => Effect.Effect<void>
}

export class SignInLimits extends Context.Service<SignInLimits, SignInLimitsShape>()("till/dashboard/SignInLimits") {
  static readonly layer: Layer.Layer<SignInLimits> = Layer.sync(SignInLimits, () => {
    const people = new FixedWindows(PERSON_FAILURES_MAX, WINDOW_MILLIS)
    const addresses = new FixedWindows(ADDRESS_FAILURES_MAX, WINDOW_MILLIS)
    return {
      attempt: (who, address) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const standings = [people.count(who, now), addresses.count(addressGroup(address), now)]
          return Math.max(0, ...standings.map(({ isExceeded, resetSeconds }) => (isExceeded ? resetSeconds : 0)))
        }),
      failed: (who) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const { limit, remaining } = people.peek(who, now)
          return Effect.sleep(Math.min(DELAY_MILLIS * 2 ** (limit - remaining), DELAY_MILLIS_MAX))
        }),
      succeeded: (who, address) =>
        Effect.sync(() => {
          people.forget(who)
          addresses.uncount(addressGroup(address))
        })
    }
  })
}
