/**
 * Flags by which a command finds Till and its API key. Commands for trying things out accept only keys of test mode.
 *
 * A key is read from the environment or from standard input, never from the command line: every user of the machine can
 * read that while the command runs, and shells write it to a file.
 */
import { Data, Effect, Option, Redacted, Stdio, Stream } from "effect"
import { Flag } from "effect/cli"
import * as app from "../app.ts"
import { type EffectMethods, Till } from "../client/index.ts"

/** The command cannot run with these arguments. */
export class WrongArguments extends Data.TaggedError("WrongArguments")<{ readonly message: string }> {}

export const connectionFlags = {
  apiKey: Flag.Redacted("api-key").pipe(
    Flag.optional,
    Flag.withMetavar("-"),
    Flag.withDescription(
      "- reads the secret key (sk_test_…) from standard input; TILL_API_KEY or TILL_SK_TEST by default"
    )
  ),
  url: Flag.String("url").pipe(
    Flag.optional,
    Flag.withDescription("Till's address; by default from TILL_PUBLIC_URL or PORT, or http://localhost:4242")
  )
}

export interface ConnectionFlags {
  readonly apiKey: Option.Option<Redacted.Redacted>
  readonly url: Option.Option<string>
}

export interface Connection {
  readonly till: EffectMethods
  readonly baseUrl: URL
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
  const config = yield* app.TillConfig
  const baseUrl = httpUrlOf(Option.getOrElse(flags.url, () => app.publicUrlOf(config)))
  if (baseUrl === undefined) {
    return yield* new WrongArguments({ message: "--url must begin with http:// or https://" })
  }
  const apiKey = yield* apiKeyOf(flags.apiKey, config.apiKey ?? config.defaultKeys.secretTest, modes)
  const till = yield* Till.pipe(Effect.provide(Till.layerFetch({ apiKey, baseUrl })))
  return { till, baseUrl, authorizationHoldSeconds: config.authorizationHoldSeconds } satisfies Connection
}, Effect.provide(app.configuration))

/** Parses an absolute http or https URL; undefined if it is none. */
export const httpUrlOf = (text: string): URL | undefined => {
  const url = URL.parse(text)
  return url?.protocol === "http:" || url?.protocol === "https:" ? url : undefined
}
