/**
 * Whether another runner lives: at its address somebody proves in a handshake of TLS that it has the installation's
 * secret. The library's own health check takes up to a minute.
 */
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import { Effect } from "effect"
import { isIPv6 } from "node:net"
import type { ConnectionOptions } from "node:tls"
import * as tls from "node:tls"

/** Who takes longer to answer counts as dead, in milliseconds. */
const ANSWER_MILLIS_MAX = 1500

/** Base of the addresses of a runner's internal listener, without a trailing slash. */
export const urlOf = ({ host, port }: Pick<RunnerAddress.RunnerAddress, "host" | "port">): string =>
  `https://${isIPv6(host) ? `[${host}]` : host}:${port}`

/** Who is gone for sure is known sooner. */
const REFUSED_MILLIS_MAX = 300

export const addressOf = (url: string): RunnerAddress.RunnerAddress => {
  const { hostname, port } = new URL(url)
  return RunnerAddress.make(hostname.replace(/^\[|\]$/gu, ""), port === "" ? 443 : Number(port))
}

/** Who is not known to be either is frozen, far off, busy, or no runner of this installation. */
export type Presence = "answered" | "refused" | "unknown"

export interface Health {
  readonly isAlive: (address: RunnerAddress.RunnerAddress) => Effect.Effect<boolean>
  /** Tells whether nobody listens there, which takes no time to find out. One that is frozen or far off still does. */
  readonly isGone: (address: RunnerAddress.RunnerAddress) => Effect.Effect<boolean>
  /** Tells soon what can be told of who listens at a URL. However many want to know it at once, it is asked once. */
  readonly presenceOf: (url: string) => Effect.Effect<Presence>
}

/** Asks by terms under which only a runner of the installation ends the handshake. */
export const make = (terms: ConnectionOptions): Health => {
  const asked = new Map<string, Promise<Presence>>()
  const presenceOf: Health["presenceOf"] = (url) =>
    Effect.promise(() => {
      const known = asked.get(url)
      if (known !== undefined) return known
      const presence = ask(terms, addressOf(url), REFUSED_MILLIS_MAX).finally(() => asked.delete(url))
      asked.set(url, presence)
      return presence
    })
  return {
    isAlive: (address) => Effect.promise(async () => (await ask(terms, address, ANSWER_MILLIS_MAX)) === "answered"),
    isGone: (address) => Effect.map(presenceOf(urlOf(address)), (presence) => presence === "refused"),
    presenceOf
  }
}

const ask = (
  terms: ConnectionOptions,
  { host, port }: RunnerAddress.RunnerAddress,
  millisMax: number
): Promise<Presence> =>
  new Promise((resolve) => {
    const socket = tls.connect({ ...terms, host, port })
    const end = (presence: Presence) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(presence)
    }
    const timer = setTimeout(() => end("unknown"), millisMax)
    socket.once("secureConnect", () => end("answered"))
    socket.on("error", (error) => end("code" in error && error.code === "ECONNREFUSED" ? "refused" : "unknown"))
  })
