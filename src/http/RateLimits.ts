/**
 * Limits the requests per minute of a merchant and of an address (semantics limits.rate), if the installation turns
 * limits on (semantics limits.rate). Publishable keys, which every visitor of the merchant's page has, count apart from
 * secret ones (semantics limits.rate): a visitor cannot use up the limit of the merchant's server.
 *
 * A request counts once it is authenticated, with any outcome, and is refused after its version was checked (semantics
 * requests.order). An unauthenticated request counts against its address, and the refusal replaces its 401; a valid key
 * is never refused because of its address. Limits count by the wall clock and in memory, so a restart resets them. If
 * there are several processes, the one that serves an account counts its requests, and each counts unauthenticated
 * requests that were sent to itself (semantics limits.rate.processes). Every answer under /v1 except preflights reports
 * the sender's limit.
 */
import { Clock, Effect, Exit } from "effect"
import { addressGroup } from "../domain/Networks.ts"
import type { AuthenticationFailure, Caller } from "./Authentication.ts"
import type { Received } from "./RequestContext.ts"
import type { ClientAddressOf } from "../server/ClientAddress.ts"
import { RateLimitExceeded } from "../server/HttpErrors.ts"

/** Requests per minute of a merchant in one environment, and with one type of key. */
export const ACCOUNT_LIMIT = 1500
/** Requests per minute to the API keys' endpoints, counted separately. */
export const API_KEYS_LIMIT = 10
/** Unauthenticated requests per minute of an address. */
export const ADDRESS_LIMIT = 100

export interface RateLimits {
  /** Counts an authenticated request. */
  readonly countCaller: (request: Received, caller: Caller) => Standing
  /** Counts a request that is not authenticated; undefined for a failure of the service. */
  readonly countFailure: (request: Received, failure: AuthenticationFailure) => Standing | undefined
  /** Returns the headers that report the request's standing, or that of its address if it was not counted. */
  readonly headersOf: (request: Received, standing: Standing | undefined) => Readonly<Record<string, string>>
}

/** Makes limits that count as long as the pipeline lives. */
export const make = Effect.fnUntraced(function* (clientAddressOf: ClientAddressOf): Effect.fn.Return<RateLimits> {
  const clock = yield* Clock.Clock
  const accounts = new FixedWindows(ACCOUNT_LIMIT)
  const apiKeys = new FixedWindows(API_KEYS_LIMIT)
  const addresses = new FixedWindows(ADDRESS_LIMIT)
  const now = () => clock.currentTimeMillisUnsafe()
  const groupOf = ({ incoming }: Received) => addressGroup(clientAddressOf(incoming))

  return {
    countCaller: ({ path }, { account, keyType }) =>
      (isOfApiKeys(path) ? apiKeys : accounts).count(`${account} ${keyType}`, now()),
    countFailure: (request, { _tag }) =>
      _tag === "Unavailable" ? undefined : addresses.count(groupOf(request), now()),
    headersOf: (request, standing) => {
      const { limit, remaining } = standing ?? addresses.peek(groupOf(request), now())
      return { "x-ratelimit-limit": String(limit), "x-ratelimit-remaining": String(remaining) }
    }
  }
})

/** Refuses a request that exceeds the limit. */
export const admit = (standing: Standing | undefined): Exit.Exit<void, RateLimitExceeded> =>
  standing?.isExceeded === true
    ? Exit.fail(new RateLimitExceeded({ retryAfterSeconds: standing.resetSeconds }))
    : Exit.void

const isOfApiKeys = (path: string): boolean => /^\/v1\/api_keys(?:\/|$)/.test(path)

/** The length of a window, in milliseconds. */
export const WINDOW_MILLIS = 60_000

/** The most keys that are counted at a time. */
export const KEYS_MAX = 100_000

/** A key's count in the current window. */
export interface Standing {
  readonly limit: number
  /** Requests allowed until the window ends. */
  readonly remaining: number
  /** True if the last counted request exceeded the limit. */
  readonly isExceeded: boolean
  /** Whole seconds until the window ends, from 1. */
  readonly resetSeconds: number
}

/**
 * Counts events by key in fixed windows, of a minute by default (semantics limits.rate).
 *
 * All windows begin and end with the clock's minute, and all counts are dropped then. A clock that is set back begins
 * new windows, so no sender ever waits for more than one.
 *
 * One key's count never causes another key's refusal, and memory is bounded: at `KEYS_MAX` keys, the half with the
 * lowest counts is dropped. A sender with very many addresses gains nothing that it could not have with another
 * address, and a key near its limit stays counted: it is dropped only if half as many other keys have counts as high.
 * Keys must be short; a caller whose keys are chosen by clients uses their hashes.
 */
export class FixedWindows {
  readonly #limit: number
  readonly #windowMillis: number
  readonly #counts = new Map<string, number>()
  #window = Number.NaN

  /** Allows `limit` per key and window. */
  constructor(limit: number, windowMillis: number = WINDOW_MILLIS) {
    this.#limit = limit
    this.#windowMillis = windowMillis
  }

  /** The number of counted keys. */
  get size(): number {
    return this.#counts.size
  }

  /** Counts an event at a time in Unix milliseconds. */
  count(key: string, nowMillis: number): Standing {
    this.#enter(nowMillis)
    const before = this.#counts.get(key)
    if (before === undefined && this.#counts.size >= KEYS_MAX) this.#makeRoom()
    // Counting stops at one beyond the limit.
    const used = Math.min((before ?? 0) + 1, this.#limit + 1)
    this.#counts.set(key, used)
    return this.#standing(used, nowMillis)
  }

  /** Returns the same without counting. */
  peek(key: string, nowMillis: number): Standing {
    this.#enter(nowMillis)
    return this.#standing(this.#counts.get(key) ?? 0, nowMillis)
  }

  /** Takes back one counted event of a key, if it was in the current window. */
  uncount(key: string): void {
    const used = this.#counts.get(key)
    if (used === 1) this.#counts.delete(key)
    else if (used !== undefined) this.#counts.set(key, used - 1)
  }

  #enter(nowMillis: number): void {
    const window = Math.floor(nowMillis / this.#windowMillis)
    if (window === this.#window) return
    this.#counts.clear()
    this.#window = window
  }

  /** Drops the keys with the lowest counts; among equal counts, the oldest. */
  #makeRoom(): void {
    let left = KEYS_MAX / 2
    for (let lowest = 1; left > 0; lowest++) {
      for (const [key, used] of this.#counts) {
        if (used === lowest && left-- > 0) this.#counts.delete(key)
      }
    }
  }

  #standing(used: number, nowMillis: number): Standing {
    const windowMillis = this.#windowMillis
    return {
      limit: this.#limit,
      remaining: Math.max(0, this.#limit - used),
      isExceeded: used > this.#limit,
      resetSeconds: Math.ceil((windowMillis - (nowMillis % windowMillis)) / 1000)
    }
  }
}
