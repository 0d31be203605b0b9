/**
 * Limits password guesses (semantics dashboard.guessing). An attempt must pass three counters of 15 minutes each, in
 * this order: failures of the IP address, attempts for the person from that address, and attempts for the person from
 * all addresses. A refused attempt counts nowhere, so a blocked address has no further effect; and one address uses up
 * a third of a person's attempts at most, so it cannot lock out other addresses.
 *
 * The person's counters include successful attempts: the same email address may belong to people of several merchants,
 * and a password that is right for one of them is a guess at the others'.
 *
 * People are counted by a hash of the entered email or id, whether they exist or not, so memory is bounded by the
 * number of keys. Counters are in memory only: a restart clears them. A blocked person can still sign in by a link.
 */
import { hash } from "node:crypto"
import { Clock, Context, Effect, Layer } from "effect"
import { addressGroup } from "../../domain/Networks.ts"
import { FixedWindows } from "../../http/RateLimits.ts"

const WINDOW_MILLIS = 15 * 60 * 1000
/** Failures per address and window; an office shares one address. */
export const ADDRESS_FAILURES_MAX = 50
/** Attempts per person, address and window. */
export const PERSON_ATTEMPTS_MAX = 10
/** Attempts per person and window, from all addresses together. */
export const PERSON_ATTEMPTS_MAX_ANYWHERE = 3 * PERSON_ATTEMPTS_MAX
const DELAY_MILLIS_MAX = 1000
const DELAY_MILLIS = 50

/** The outcome of an attempt that was refused. */
export const HELD_BACK = "held back"

export interface Attempted {
  /** The email address or person id, as entered. */
  readonly who: string
  /** The client's IP address. */
  readonly address: string
}

export interface SignInLimitsShape {
  /**
   * Runs a check, which returns undefined for a wrong password. Returns `HELD_BACK` after too many attempts. Each
   * failure is delayed longer than the one before. A check that fails with an error does not count.
   */
  readonly attempt: <A, E, R>(
    of: Attempted,
    check: Effect.Effect<A | undefined, E, R>
  ) => Effect.Effect<A | undefined | typeof HELD_BACK, E, R>
}

const delayAfter = (attempts: number): number => Math.min(DELAY_MILLIS * 2 ** attempts, DELAY_MILLIS_MAX)

/** A key of fixed length for any input. */
const keyOf = (...parts: ReadonlyArray<string>): string => hash("sha256", parts.join("\n"), "base64url")

export class SignInLimits extends Context.Service<SignInLimits, SignInLimitsShape>()("till/dashboard/SignInLimits") {
  static readonly layer: Layer.Layer<SignInLimits> = Layer.sync(SignInLimits, () => {
    const addresses = new FixedWindows(ADDRESS_FAILURES_MAX, WINDOW_MILLIS)
    const pairs = new FixedWindows(PERSON_ATTEMPTS_MAX, WINDOW_MILLIS)
    const people = new FixedWindows(PERSON_ATTEMPTS_MAX_ANYWHERE, WINDOW_MILLIS)
    const attempt: SignInLimitsShape["attempt"] = Effect.fnUntraced(function* ({ address, who }, check) {
      const now = yield* Clock.currentTimeMillis
      const [from, person] = [addressGroup(address), who.toLowerCase()]
      const counts = [
        [addresses, from],
        [pairs, keyOf(from, person)],
        [people, keyOf(person)]
      ] as const
      if (counts.some(([windows, key]) => windows.peek(key, now).remaining === 0)) return HELD_BACK
      for (const [windows, key] of counts) windows.count(key, now)
      const takeBack = ([windows, key]: (typeof counts)[number]) => windows.uncount(key)
      const found = yield* Effect.tapError(check, () => Effect.sync(() => counts.forEach(takeBack)))
      if (found !== undefined) takeBack(counts[0])
      else yield* Effect.sleep(delayAfter(PERSON_ATTEMPTS_MAX - pairs.peek(counts[1][1], now).remaining))
      return found
    })
    return { attempt }
  })
}
