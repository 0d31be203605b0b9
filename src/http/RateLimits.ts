/**
 * Limits how many requests a merchant and an address may send in a minute (semantics R1), where the installation wants
 * limits at all (R2). Publishable keys, which everybody has who has seen the merchant's page, count apart from secret
 * ones (9.4): nobody can use up what the merchant's server may send.
 *
 * A request counts once it is authenticated, whatever becomes of it, and is refused after its version was checked
 * (T14). A request that is not authenticated counts against the address that it came from, and the refusal takes the
 * place of its 401; a valid key is never refused for what its address did. Limits count by the wall clock, in this
 * process: they start anew with it. Of several processes, the one that serves an account counts its requests, and each
 * counts by address what it was sent itself (9.51). Every answer under /v1 but preflights says where its sender stands.
 */
import { Clock, Effect, Exit } from "effect"
import { addressGroup } from "../domain/Networks.ts"
import type { AuthenticationFailure, Caller } from "./Authentication.ts"
import type { Received } from "./RequestContext.ts"
import type { ClientAddressOf } from "../server/ClientAddress.ts"
import { RateLimitExceeded } from "../server/HttpErrors.ts"

/** Requests per minute of a merchant in one environment, and with one type of key. */
export const ACCOUNT_LIMIT = 1500
/** Of those, to API keys; they are counted apart. */
export const API_KEYS_LIMIT = 10
/** Requests per minute of an address that are not authenticated. */
export const ADDRESS_LIMIT = 100

/** The pipeline does this at its steps, where there are limits. */
export interface RateLimits {
  /** 2. Counts by what authentication comes to. */
  readonly authenticated: (
    exchange: Received,
    caller: Effect.Effect<Caller, AuthenticationFailure>
  ) => Effect.Effect<Caller, AuthenticationFailure | RateLimitExceeded>
  /** 4. Refuses the request if it is one too many. */
  readonly admit: (exchange: Received) => Exit.Exit<void, RateLimitExceeded>
  /** Gives the headers that tell with the answer where its sender stands. */
  readonly headersOf: (exchange: Received) => Readonly<Record<string, string>>
}

/** Makes limits that count for as long as the pipeline lives. */
export const make = Effect.fnUntraced(function* (clientAddressOf: ClientAddressOf): Effect.fn.Return<RateLimits> {
  const clock = yield* Clock.Clock
  const accounts = new FixedWindows(ACCOUNT_LIMIT)
  const apiKeys = new FixedWindows(API_KEYS_LIMIT)
  const addresses = new FixedWindows(ADDRESS_LIMIT)
  const standings = new WeakMap<Received, Standing>()
  const now = () => clock.currentTimeMillisUnsafe()
  const groupOf = ({ incoming }: Received) => addressGroup(clientAddressOf(incoming))
  const refusal = (exchange: Received) => {
    const standing = standings.get(exchange)
    return standing?.isExceeded ? new RateLimitExceeded({ retryAfterSeconds: standing.resetSeconds }) : undefined
  }

  return {
    authenticated: (exchange, caller) =>
      Effect.matchEffect(caller, {
        onSuccess: (found) => {
          const windows = isOfApiKeys(exchange.path) ? apiKeys : accounts
          standings.set(exchange, windows.count(`${found.account} ${found.keyType}`, now()))
          return Exit.succeed(found)
        },
        onFailure: (failure): Exit.Exit<never, AuthenticationFailure | RateLimitExceeded> => {
          // What the service itself cannot answer is held against nobody.
          if (failure._tag === "Unavailable") return Exit.fail(failure)
          standings.set(exchange, addresses.count(groupOf(exchange), now()))
          return Exit.fail(refusal(exchange) ?? failure)
        }
      }),
    admit: (exchange) => {
      const refused = refusal(exchange)
      return refused === undefined ? Exit.void : Exit.fail(refused)
    },
    headersOf: (exchange) => {
      const { limit, remaining } = standings.get(exchange) ?? addresses.peek(groupOf(exchange), now())
      return { "x-ratelimit-limit": String(limit), "x-ratelimit-remaining": String(remaining) }
    }
  }
})

const isOfApiKeys = (path: string): boolean => /^\/v1\/api_keys(?:\/|$)/.test(path)

/** The length of a window. */
export const WINDOW_MILLIS = 60_000

/** Keys that are counted at once, at most. */
export const KEYS_MAX = 100_000

/** Tells where a key stands in the current window. */
export interface Standing {
  readonly limit: number
  /** So many more are allowed until the window ends. */
  readonly remaining: number
  /** True if what was counted last was more than is allowed. */
  readonly isExceeded: boolean
  /** Until the window ends, in whole seconds, from 1. */
  readonly resetSeconds: number
}

/**
 * Counts how often something happened in the current window, a minute by default, by key (semantics R1: fixed windows).
 *
 * All windows end together, with the clock's minute, and are then forgotten together. A clock that is set back begins
 * new windows, so nobody ever waits longer than for one.
 *
 * Nobody is refused because of other keys, and memory is bounded: with `KEYS_MAX` keys, the half with the lowest counts
 * is forgotten. A sender with very many addresses gains nothing that it could not have by yet another one, and a key
 * that has come near its limit stays counted: to have it forgotten, half as many others have to be counted as often.
 * Keys have to be short; whoever counts by a text that a client chooses takes its hash.
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

  /** Counts the keys that it knows of. */
  get size(): number {
    return this.#counts.size
  }

  /** Counts one more, at a time in Unix milliseconds. */
  count(key: string, nowMillis: number): Standing {
    this.#enter(nowMillis)
    const before = this.#counts.get(key)
    if (before === undefined && this.#counts.size >= KEYS_MAX) this.#makeRoom()
    // One beyond the limit is as good as many.
    const used = Math.min((before ?? 0) + 1, this.#limit + 1)
    this.#counts.set(key, used)
    return this.#standing(used, nowMillis)
  }

  /** The same, without counting. */
  peek(key: string, nowMillis: number): Standing {
    this.#enter(nowMillis)
    return this.#standing(this.#counts.get(key) ?? 0, nowMillis)
  }

  /** Takes back one that was counted of a key, if it was in the current window. */
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

  /** The oldest go first among keys of one count. */
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
