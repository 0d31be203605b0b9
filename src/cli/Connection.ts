/** Finds Till and its API key from a command's flags. Commands for trying things out accept only keys of test mode. */
import { Effect, Option, Redacted, Stdio, Stream } from "effect"
import * as net from "node:net"
import type { EffectMethods } from "../client/EffectMethods.ts"
import { Till } from "../client/effect.ts"
import * as Config from "../config.ts"
import { WrongArguments } from "./WrongArguments.ts"

export interface ConnectionFlags {
  readonly apiKey: Option.Option<Redacted.Redacted>
  readonly url: Option.Option<string>
}

export interface Connection {
  readonly till: EffectMethods
  readonly baseUrl: URL
  /** Absolute path of the folder in which commands keep files of this person. */
  readonly stateFolder: string
  /** How long an authorization holds, in seconds, if the service has the same environment as this command. */
  readonly authorizationHoldSeconds: number
}

/** Reads the first line of standard input. */
const keyOfInput = Effect.fnUntraced(function* () {
  const { stdin } = yield* Stdio.Stdio
  const line = yield* stdin.pipe(Stream.decodeText, Stream.splitLines, Stream.runHead)
  // An open standard input would keep the command running until its terminal or pipe closes.
  process.stdin.destroy()
  return Redacted.make(Option.getOrElse(line, () => "").trim(), { label: "API key" })
})

/** The prefixes of accepted keys, by the modes that a command supports. */
const PREFIXES = { test: ["sk_test_"], "test or live": ["sk_test_", "sk_live_"] } as const
type Modes = keyof typeof PREFIXES

/** Returns the key to use. Messages never repeat the argument. */
const apiKeyOf = Effect.fnUntraced(function* (
  flag: ConnectionFlags["apiKey"],
  preset: Redacted.Redacted | undefined,
  modes: Modes
) {
  if (Option.isSome(flag) && Redacted.value(flag.value) !== "-") {
    return yield* new WrongArguments({
      message: "other users can see a key on the command line: set TILL_API_KEY, or pipe the key to --api-key -"
    })
  }
  const apiKey = Option.isSome(flag) ? yield* keyOfInput() : preset
  if (apiKey === undefined) {
    return yield* new WrongArguments({
      message: "there is no API key: set TILL_API_KEY to sk_test_…, or pipe the key to --api-key -"
    })
  }
  const prefixes = PREFIXES[modes]
  if (!prefixes.some((prefix) => Redacted.value(apiKey).startsWith(prefix))) {
    const names = prefixes.map((prefix) => `${prefix}…`).join(" or ")
    return yield* new WrongArguments({ message: `the API key must be a secret key of ${modes} mode, ${names}` })
  }
  return apiKey
})

/** Creates a client from the flags, or else from the environment. */
export const connect = Effect.fnUntraced(function* (flags: ConnectionFlags, modes: Modes = "test") {
  const config = yield* Config.TillConfig
  const baseUrl = httpUrlOf(Option.getOrElse(flags.url, () => Config.publicUrlOf(config)))
  if (baseUrl === undefined) {
    return yield* new WrongArguments({ message: "--url must begin with http:// or https://" })
  }
  const apiKey = yield* apiKeyOf(flags.apiKey, config.apiKey ?? config.defaultKeys.secretTest, modes)
  yield* requireListening(baseUrl)
  const till = yield* Till.pipe(Effect.provide(Till.layerFetch({ apiKey, baseUrl })))
  const { authorizationHoldSeconds, stateFolder } = config
  return { till, baseUrl, authorizationHoldSeconds, stateFolder } satisfies Connection
}, Effect.provide(Config.layer))

/** Parses an absolute http or https URL; undefined if it is none. */
export const httpUrlOf = (text: string): URL | undefined => {
  const url = URL.parse(text)
  return url?.protocol === "http:" || url?.protocol === "https:" ? url : undefined
}

/** The longest wait for a connection, in milliseconds. Without one, the first request reports the reason. */
const CONNECT_MILLIS_MAX = 800

/** Fails at once if nothing listens at the address, which requests would be repeated for. */
const requireListening = ({ href, hostname, port, protocol }: URL): Effect.Effect<void, WrongArguments> =>
  Effect.callback<void, WrongArguments>((resume) => {
    const host = hostname.replaceAll(/^\[|\]$/gu, "")
    const socket = net.connect({ host, port: Number(port || (protocol === "https:" ? 443 : 80)) })
    socket.once("connect", () => {
      socket.destroy()
      resume(Effect.void)
    })
    socket.once("error", (error: NodeJS.ErrnoException) => {
      const message = `nothing listens at ${href}: start Till with \`till serve\`, or name its address with --url`
      resume(isRefused(error) ? Effect.fail(new WrongArguments({ message })) : Effect.void)
    })
    return Effect.sync(() => socket.destroy())
  }).pipe(Effect.timeoutOption(CONNECT_MILLIS_MAX), Effect.asVoid)

/** True also if a name has several addresses, all of which refuse. */
const isRefused = (error: NodeJS.ErrnoException): boolean =>
  error.code === "ECONNREFUSED" || (error instanceof AggregateError && error.errors.every(isRefused))
