/** How a command finds Till and says who it is. Only test mode: what these commands do is for trying things out. */
import { Data, Effect, Option, Redacted } from "effect"
import { Flag } from "effect/cli"
import * as app from "../app.ts"
import type { EffectMethods } from "../client/index.ts"
import { Till } from "../client/index.ts"

/** A command cannot be carried out with these arguments. */
export class WrongArguments extends Data.TaggedError("WrongArguments")<{ readonly message: string }> {}

export const connectionFlags = {
  apiKey: Flag.Redacted("api-key").pipe(
    Flag.optional,
    Flag.withDescription("Secret key, test mode (sk_test_…); TILL_SK_TEST by default")
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
  readonly defaults: app.ClientDefaults
}

/** A client by what the flags say, or else the environment. */
export const connect = Effect.fnUntraced(function* (flags: ConnectionFlags) {
  const defaults = yield* app.clientDefaults
  const apiKey = Option.getOrUndefined(flags.apiKey) ?? defaults.secretTest
  if (apiKey === undefined) {
    return yield* new WrongArguments({
      message: "there is no API key: give one with --api-key sk_test_… or in TILL_SK_TEST"
    })
  }
  if (!Redacted.value(apiKey).startsWith("sk_test_")) {
    return yield* new WrongArguments({ message: "the API key must be a secret one of test mode, sk_test_…" })
  }
  const baseUrl = httpUrlOf(Option.getOrElse(flags.url, () => defaults.baseUrl))
  if (baseUrl === undefined) {
    return yield* new WrongArguments({ message: "--url must begin with http:// or https://" })
  }
  const till = yield* Till.pipe(Effect.provide(Till.layerFetch({ apiKey, baseUrl })))
  return { till, baseUrl, defaults } satisfies Connection
})

/** An absolute URL over HTTP; undefined if it is none. */
export const httpUrlOf = (text: string): URL | undefined => {
  const url = URL.parse(text)
  return url?.protocol === "http:" || url?.protocol === "https:" ? url : undefined
}
