/**
 * Holds back whoever guesses passwords (semantics 9.64). Three counts of a quarter of an hour each allow an attempt, in
 * this order: the failed attempts of an address, those for one person from that address, and those for the person from
 * all addresses. An attempt that one of them refuses counts in none, so an address that is refused changes nothing any
 * more; and one address can use up a third of a person's attempts at most, so by itself it keeps nobody else out.
 *
 * What an attempt counts for a person it counts whether it succeeds or not: an email address may be that of people of
 * several merchants, and a password that is right for one of them is a guess at the others'.
 *
 * People are counted by what was entered, whether there is such a person or not, and by its hash, so memory is bounded
 * by the number of keys. Counts are in memory: a start forgets them. Who is held back still comes in by a link.
 */
import { hash } from "node:crypto"
import { Clock, Context, Effect, Layer } from "effect"
import { addressGroup } from "../../domain/Networks.ts"
import { FixedWindows } from "../../http/RateLimits.ts"

const WINDOW_MILLIS = 15 * 60 * 1000
/** Failed attempts per address and window: an office has several people. */
export const ADDRESS_FAILURES_MAX = 50
/** Attempts per person, address and window. */
export const PERSON_ATTEMPTS_MAX = 10
/** Attempts per person and window, from all addresses together. */
export const PERSON_ATTEMPTS_MAX_ANYWHERE = 3 * PERSON_ATTEMPTS_MAX
const DELAY_MILLIS_MAX = 1000
const DELAY_MILLIS = 50

/** What an attempt comes to that was not made. */
export const HELD_BACK = "held back"

export interface Attempted {
  /** An email address or a person's id, as it was entered. */
  readonly who: string
  /** The IP address that it comes from. */
  readonly address: string
}

export interface SignInLimitsShape {
  /**
   * Runs a check that answers with undefined for a wrong password, or answers that there were too many attempts. A
   * failure is answered after a while, longer each time. A check that cannot be made, and fails, counts as none.
   */
  readonly attempt: <A, E, R>(
    of: Attempted,
    check: Effect.Effect<A | undefined, E, R>
  ) => Effect.Effect<A | undefined | typeof HELD_BACK, E, R>
}

const delayAfter = (attempts: number): number => Math.min(DELAY_MILLIS * 2 ** attempts, DELAY_MILLIS_MAX)

/** A key of a fixed length, whatever was entered. */
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
