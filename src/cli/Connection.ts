/**
 * A command finds Till and says who it is. Those that are for trying things out take keys of test mode only.
 *
 * A key comes from the environment or from standard input, never from the command line, which every user of the machine
 * can read as long as the command runs, and which shells write down.
 */
import { Data, Effect, Option, Redacted, Stdio, Stream } from "effect"
import { Flag } from "effect/cli"
import * as app from "../app.ts"
import type { EffectMethods } from "../client/index.ts"
import { Till } from "../client/index.ts"

/** A command cannot be carried out with these arguments. */
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
    Flag.withDescription("Where Till listens; by default what TILL_PUBLIC_URL or PORT say, or http://localhost:4242")
  )
}

export interface ConnectionFlags {
  readonly apiKey: Option.Option<Redacted.Redacted>
  readonly url: Option.Option<string>
}

export interface Connection {
  readonly till: EffectMethods
  readonly baseUrl: URL
  /** An authorization holds this long, in seconds, where the service has the same environment. */
  readonly authorizationHoldSeconds: number
}

/** The first line of standard input. */
const keyOfInput = Effect.fnUntraced(function* () {
  const { stdin } = yield* Stdio.Stdio
  const line = yield* stdin.pipe(Stream.decodeText, Stream.splitLines, Stream.runHead)
  // Left open, it would keep the command from ending before its terminal or pipe does.
  process.stdin.destroy()
  return Redacted.make(Option.getOrElse(line, () => "").trim(), { label: "API key" })
})

/** The modes that a command is for, and how the keys begin that it takes. */
const PREFIXES = { test: ["sk_test_"], "test or live": ["sk_test_", "sk_live_"] } as const
type Modes = keyof typeof PREFIXES

/** The key that the command is to use. Messages never repeat what was given. */
const apiKeyOf = Effect.fnUntraced(function* (
  flag: ConnectionFlags["apiKey"],
  preset: Redacted.Redacted | undefined,
  modes: Modes
) {
  if (Option.isSome(flag) && Redacted.value(flag.value) !== "-") {
    return yield* new WrongArguments({
      message: "others can see a key on the command line: set TILL_API_KEY, or pipe it to --api-key -"
    })
  }
  const apiKey = Option.isSome(flag) ? yield* keyOfInput() : preset
  if (apiKey === undefined) {
    return yield* new WrongArguments({
      message: "there is no API key: set TILL_API_KEY to sk_test_…, or pipe it to --api-key -"
    })
  }
  const prefixes = PREFIXES[modes]
  if (!prefixes.some((prefix) => Redacted.value(apiKey).startsWith(prefix))) {
    const names = prefixes.map((prefix) => `${prefix}…`).join(" or ")
    return yield* new WrongArguments({ message: `the API key must be a secret one of ${modes} mode, ${names}` })
  }
  return apiKey
})

/** A client by what the flags say, or else the environment. */
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

/** An absolute URL over HTTP; undefined if it is none. */
export const httpUrlOf = (text: string): URL | undefined => {
  const url = URL.parse(text)
  return url?.protocol === "http:" || url?.protocol === "https:" ? url : undefined
}
