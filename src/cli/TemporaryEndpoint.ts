/**
 * The webhook endpoint of a `till listen`: there as long as the command runs, however Till fares meanwhile.
 *
 * A command that was killed leaves its endpoint behind, marked with where it forwarded to. The next one that forwards
 * to the same place takes it over, with a new secret, and so gets what happened in between. Two at a time would each
 * get everything, so the second one refuses. If somebody deletes it under a running command, as a test does that
 * empties the environment, it gets a successor.
 */
import { Data, Effect, Redacted, type Scope, Stream } from "effect"
import type { EffectMethods, TillError } from "../client/index.ts"
import { INSTANCE_HEADER } from "./Forwarder.ts"

export interface TemporaryEndpointOptions {
  readonly till: EffectMethods
  readonly forwardTo: URL
  /** The webhooks are taken there. */
  readonly address: URL
  /** Names this run, among those that forward to the same place. */
  readonly instance: string
  readonly enabledEvents: ReadonlyArray<string>
  /** Told if the endpoint could not be removed in the end. */
  readonly onLeftBehind: (id: string, error: TillError) => Effect.Effect<void>
}

/** Somebody else forwards to the same place. */
export class AlreadyForwarded extends Data.TaggedError("AlreadyForwarded")<{ readonly forwardTo: URL }> {
  override get message(): string {
    return `another till listen forwards to ${this.forwardTo.href} already`
  }
}

const FORWARD_TO = "till_listen_forward_to"
const INSTANCE = "till_listen_instance"

export interface TemporaryEndpoint {
  readonly secret: Redacted.Redacted
  /** Waits until the endpoint is gone, makes another one, and answers with the secret of that. */
  readonly replaced: Effect.Effect<Redacted.Redacted, TillError | AlreadyForwarded>
}

/** Pause between two looks whether the endpoint is still there. */
const WATCH_MILLIS = 1000

/** An endpoint that exists as long as the scope. */
export const temporaryEndpoint = Effect.fnUntraced(function* (
  options: TemporaryEndpointOptions
): Effect.fn.Return<TemporaryEndpoint, TillError | AlreadyForwarded, Scope.Scope> {
  const current = yield* Effect.acquireRelease(
    Effect.map(acquire(options), ({ id, secret }) => ({ id, secret: Redacted.make(secret) })),
    (current) => Effect.suspend(() => release(current.id, options))
  )
  const replaced = Effect.gen(function* () {
    while (!(yield* isGone(current.id, options))) yield* Effect.sleep(WATCH_MILLIS)
    const { id, secret } = yield* acquire(options)
    current.id = id
    return Redacted.make(secret)
  })
  return { secret: current.secret, replaced }
})

/** Only Till can say so: one that does not answer may have it. */
const isGone = (id: string, { till }: TemporaryEndpointOptions): Effect.Effect<boolean> =>
  till.webhook_endpoints.retrieve(id, {}, { retriesMax: 0 }).pipe(
    Effect.as(false),
    Effect.catch((error) => Effect.succeed(isMissing(error)))
  )

const isMissing = (error: TillError): boolean => "code" in error && error.code === "resource_missing"

const acquire = Effect.fnUntraced(function* (options: TemporaryEndpointOptions) {
  const { address, enabledEvents, forwardTo, instance, till } = options
  const left = yield* leftBehind(options)
  const parameters = {
    url: address.href,
    enabled_events: enabledEvents as ReadonlyArray<"*">,
    metadata: { [FORWARD_TO]: forwardTo.href, [INSTANCE]: instance }
  }
  if (left === undefined) {
    const description = "Temporary: of a running till listen"
    return yield* till.webhook_endpoints.create({ ...parameters, description })
  }
  // The secret first: nothing that is signed with the old one should arrive here.
  const { secret } = yield* till.webhook_endpoints.roll_secret(left, { expires_in: 0 })
  yield* till.webhook_endpoints.update(left, { ...parameters, status: "enabled" })
  return { id: left, secret }
})

/** The endpoint of a command that has ended without removing it. */
const leftBehind = Effect.fnUntraced(function* ({ forwardTo, till }: TemporaryEndpointOptions) {
  const marked = yield* till.webhook_endpoints.list.stream({ limit: 100 }).pipe(
    Stream.filter(({ metadata }) => metadata[FORWARD_TO] === forwardTo.href),
    Stream.runCollect
  )
  for (const { metadata, url } of marked) {
    if (yield* isListening(url, metadata[INSTANCE])) return yield* new AlreadyForwarded({ forwardTo })
  }
  const [first, ...others] = marked
  for (const { id } of others) yield* till.webhook_endpoints.delete(id)
  return first?.id
})

/** True if the command that the endpoint belongs to still runs. Others may have its port by now. */
const isListening = (url: string, instance: string | undefined): Effect.Effect<boolean> =>
  Effect.tryPromise(async () => {
    if (new URL(url).hostname !== "127.0.0.1") return false
    const response = await fetch(url, { redirect: "manual", signal: AbortSignal.timeout(2_000) })
    await response.body?.cancel()
    return response.headers.get(INSTANCE_HEADER) === instance
  }).pipe(Effect.orElseSucceed(() => false))

/** Till may be gone, which should not keep a person at the terminal; the next run finds the endpoint. */
const release = (id: string, { onLeftBehind, till }: TemporaryEndpointOptions) =>
  till.webhook_endpoints.delete(id, {}, { retriesMax: 1, timeoutMillis: 3_000 }).pipe(
    Effect.catch((error) => (isMissing(error) ? Effect.void : onLeftBehind(id, error))),
    Effect.asVoid
  )
