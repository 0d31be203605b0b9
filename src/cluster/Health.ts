/** Health checks of runners by a TLS handshake. The library's own health check takes up to a minute. */
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import { Effect } from "effect"
import { isIPv6 } from "node:net"
import type { ConnectionOptions } from "node:tls"
import * as tls from "node:tls"

/** Time after which a runner without an answer counts as dead, in milliseconds. */
const ANSWER_MILLIS_MAX = 1500

/** Base URL of a runner's internal listener, without a trailing slash. */
export const urlOf = ({ host, port }: Pick<RunnerAddress.RunnerAddress, "host" | "port">): string =>
  `https://${isIPv6(host) ? `[${host}]` : host}:${port}`

/** Time limit of a check whether a runner is certainly gone, in milliseconds. */
const REFUSED_MILLIS_MAX = 300

export const addressOf = (url: string): RunnerAddress.RunnerAddress => {
  const { hostname, port } = new URL(url)
  return RunnerAddress.make(hostname.replace(/^\[|\]$/gu, ""), port === "" ? 443 : Number(port))
}

/** `unknown`: the runner is frozen, unreachable or busy, or it is not a runner of this installation. */
export type Presence = "answered" | "refused" | "unknown"

export interface Health {
  readonly isAlive: (address: RunnerAddress.RunnerAddress) => Effect.Effect<boolean>
  /** Whether connections to the address are refused. For a frozen or unreachable runner they are not. */
  readonly isGone: (address: RunnerAddress.RunnerAddress) => Effect.Effect<boolean>
  /** Checks quickly which kind of process listens at a URL. Simultaneous calls share one check. */
  readonly presenceOf: (url: string) => Effect.Effect<Presence>
}

/** Makes health checks. With these TLS options, only a runner of the installation can complete the handshake. */
export const make = (options: ConnectionOptions): Health => {
  const running = new Map<string, Promise<Presence>>()
  const presenceOf: Health["presenceOf"] = (url) =>
    Effect.promise(() => {
      const known = running.get(url)
      if (known !== undefined) return known
      const presence = check(options, addressOf(url), REFUSED_MILLIS_MAX).finally(() => running.delete(url))
      running.set(url, presence)
      return presence
    })
  return {
    isAlive: (address) => Effect.promise(async () => (await check(options, address, ANSWER_MILLIS_MAX)) === "answered"),
    isGone: (address) => Effect.map(presenceOf(urlOf(address)), (presence) => presence === "refused"),
    presenceOf
  }
}

const check = (
  options: ConnectionOptions,
  { host, port }: RunnerAddress.RunnerAddress,
  millisMax: number
): Promise<Presence> =>
  new Promise((resolve) => {
    const socket = tls.connect({ ...options, host, port })
    const end = (presence: Presence) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(presence)
    }
    const timer = setTimeout(() => end("unknown"), millisMax)
    socket.once("secureConnect", () => end("answered"))
    socket.on("error", (error) => end("code" in error && error.code === "ECONNREFUSED" ? "refused" : "unknown"))
  })
