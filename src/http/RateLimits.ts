/**
 * How many requests a merchant and an address may send in a minute (semantics R1), where the installation limits them at
 * all (R2). Publishable keys, which everybody has who has seen the merchant's page, count apart from secret ones (9.4):
 * nobody can use up what the merchant's server may send.
 *
 * A request counts once it is authenticated, whatever becomes of it, and is refused after its version was checked (T14).
 * A request that is not authenticated counts against the address that it came from, and the refusal takes the place of
 * its 401; a valid key is never refused for what its address did. Limits count by the wall clock, in this process: they
 * start anew with it. Every answer under /v1 but preflights says where its sender stands.
 */
import { isIPv6 } from "node:net"
import { Clock, Effect, Exit } from "effect"
import { HttpServerResponse } from "effect/http"
import type { AuthenticationFailure, Caller } from "./Authentication.ts"
import type { Exchange } from "./Exchange.ts"
import type { Standing } from "./FixedWindows.ts"
import { FixedWindows } from "./FixedWindows.ts"
import { RateLimitExceeded } from "./HttpErrors.ts"

/** Requests per minute of a merchant in one environment, and with one type of key. */
export const ACCOUNT_LIMIT = 1500
/** Of those, to API keys; they are counted apart. */
export const API_KEYS_LIMIT = 10
/** Requests per minute of an address that are not authenticated. */
export const ADDRESS_LIMIT = 100

type Response = HttpServerResponse.HttpServerResponse

/** What the pipeline does at its steps, where there are limits. */
export interface RateLimits {
  /** 2. Counts by what authentication comes to. */
  readonly authenticated: (
    exchange: Exchange,
    caller: Effect.Effect<Caller, AuthenticationFailure>
  ) => Effect.Effect<Caller, AuthenticationFailure | RateLimitExceeded>
  /** 4. Why the request is not answered, if it is one too many. */
  readonly refusal: (exchange: Exchange) => RateLimitExceeded | undefined
  /** The answer, with where its sender stands. */
  readonly show: (exchange: Exchange, response: Response) => Response
}

/** Counts for as long as the pipeline lives that it is made for. */
export const make: Effect.Effect<RateLimits> = Effect.map(Clock.Clock, (clock) => {
  const accounts = new FixedWindows(ACCOUNT_LIMIT)
  const apiKeys = new FixedWindows(API_KEYS_LIMIT)
  const addresses = new FixedWindows(ADDRESS_LIMIT)
  const standings = new WeakMap<Exchange, Standing>()
  const now = () => clock.currentTimeMillisUnsafe()
  const senderOf = ({ source }: Exchange) => addressGroup(source.socket.remoteAddress ?? "")
  const refusal = (exchange: Exchange) => {
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
          standings.set(exchange, addresses.count(senderOf(exchange), now()))
          return Exit.fail(refusal(exchange) ?? failure)
        }
      }),
    refusal,
    show: (exchange, response) => {
      const { limit, remaining } = standings.get(exchange) ?? addresses.peek(senderOf(exchange), now())
      return HttpServerResponse.setHeaders(response, {
        "x-ratelimit-limit": String(limit),
        "x-ratelimit-remaining": String(remaining)
      })
    }
  }
})

const isOfApiKeys = (path: string): boolean => /^\/v1\/api_keys(?:\/|$)/.test(path)

/** One sender: an IPv4 address, or the /64 that an IPv6 host has to choose its addresses from. */
export const addressGroup = (address: string): string => {
  const [plain = ""] = address.split("%", 1)
  if (!isIPv6(plain)) return plain
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1]
  if (mapped !== undefined) return mapped
  const [head = "", tail] = new URL(`http://[${plain}]`).hostname.slice(1, -1).split("::")
  const front = head === "" ? [] : head.split(":")
  const back = tail === undefined || tail === "" ? [] : tail.split(":")
  const zeros = tail === undefined ? 0 : 8 - front.length - back.length
  return [...front, ...Array<string>(zeros).fill("0"), ...back].slice(0, 4).join(":")
}
