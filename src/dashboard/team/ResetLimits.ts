/**
 * Limits the mails about forgotten passwords (semantics mail.password_resets), as `SignInLimits` limits guesses and
 * with smaller counts: an address asks for few mails, and a mailbox gets few from all addresses.
 *
 * Mailboxes are counted by a hash of the entered email, whether a person has it or not. Counters are in memory.
 */
import { hash } from "node:crypto"
import { Context, Layer } from "effect"
import { addressGroup } from "../../domain/Networks.ts"
import { FixedWindows } from "../../http/RateLimits.ts"
import type { Attempted } from "../frame/SignInLimits.ts"

const WINDOW_MILLIS = 15 * 60 * 1000
/** Requests per IP address and window; an office shares one address. */
export const ADDRESS_RESETS_MAX = 20
/** Requests per email, IP address and window. */
export const PERSON_RESETS_MAX = 3
/** Requests per email and window, from all IP addresses together. */
const PERSON_RESETS_MAX_ANYWHERE = 3 * PERSON_RESETS_MAX

const keyOf = (...parts: ReadonlyArray<string>): string => hash("sha256", parts.join("\n"), "base64url")

export class ResetLimits extends Context.Service<
  ResetLimits,
  {
    /** Counts a request, and returns true; or returns false for one too many, which counts nowhere. */
    readonly count: (of: Attempted, nowMillis: number) => boolean
  }
>()("till/dashboard/ResetLimits") {
  static readonly layer: Layer.Layer<ResetLimits> = Layer.sync(ResetLimits, () => {
    const addresses = new FixedWindows(ADDRESS_RESETS_MAX, WINDOW_MILLIS)
    const pairs = new FixedWindows(PERSON_RESETS_MAX, WINDOW_MILLIS)
    const people = new FixedWindows(PERSON_RESETS_MAX_ANYWHERE, WINDOW_MILLIS)
    return {
      count: ({ address, who }, nowMillis) => {
        const [from, person] = [addressGroup(address), who.toLowerCase()]
        const counts = [
          [addresses, from],
          [pairs, keyOf(from, person)],
          [people, keyOf(person)]
        ] as const
        if (counts.some(([windows, key]) => windows.peek(key, nowMillis).remaining === 0)) return false
        for (const [windows, key] of counts) windows.count(key, nowMillis)
        return true
      }
    }
  })
}
