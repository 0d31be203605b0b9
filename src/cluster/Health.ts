/** Whether another runner lives: its internal listener answers. The library's own health check takes up to a minute. */
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import { Effect } from "effect"
import * as http from "node:http"
import { isIPv6 } from "node:net"

/** Who takes longer to answer counts as dead, in milliseconds. */
const ANSWER_MILLIS_MAX = 1500
export const HEALTH_PATH = "/health"

/** Base of the addresses of a runner's internal listener, without a trailing slash. */
export const urlOf = ({ host, port }: Pick<RunnerAddress.RunnerAddress, "host" | "port">): string =>
  `http://${isIPv6(host) ? `[${host}]` : host}:${port}`

/** Who is gone for sure is known sooner. */
const REFUSED_MILLIS_MAX = 300

export const addressOf = (url: string): RunnerAddress.RunnerAddress => {
  const { hostname, port } = new URL(url)
  return RunnerAddress.make(hostname.replace(/^\[|\]$/gu, ""), port === "" ? 80 : Number(port))
}

/** Who is not known to be either is frozen, far off, or busy. */
export type Presence = "answered" | "refused" | "unknown"

export const isAlive = (address: RunnerAddress.RunnerAddress): Effect.Effect<boolean> =>
  Effect.promise(async () => (await ask(address, ANSWER_MILLIS_MAX)) === "answered")

/** Tells whether nobody listens there, which takes no time to find out. One that is frozen or far off still does. */
export const isGone = (address: RunnerAddress.RunnerAddress): Effect.Effect<boolean> =>
  Effect.map(presenceOf(urlOf(address)), (presence) => presence === "refused")

const asked = new Map<string, Promise<Presence>>()

/** Tells soon what can be told of who listens at a URL. However many want to know it at once, it is asked once. */
export const presenceOf = (url: string): Effect.Effect<Presence> =>
  Effect.promise(() => {
    const known = asked.get(url)
    if (known !== undefined) return known
    const presence = ask(addressOf(url), REFUSED_MILLIS_MAX).finally(() => asked.delete(url))
    asked.set(url, presence)
    return presence
  })

const ask = (address: RunnerAddress.RunnerAddress, millisMax: number): Promise<Presence> =>
  new Promise((resolve) => {
    const signal = AbortSignal.timeout(millisMax)
    http
      .get(`${urlOf(address)}${HEALTH_PATH}`, { signal, agent: false }, (response) => {
        response.resume()
        resolve(response.statusCode === 200 ? "answered" : "unknown")
      })
      .on("error", (error) => resolve("code" in error && error.code === "ECONNREFUSED" ? "refused" : "unknown"))
  })
