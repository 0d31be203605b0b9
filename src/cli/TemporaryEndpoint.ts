/**
 * The webhook endpoint of a `till listen`, which exists as long as the command runs.
 *
 * A killed command leaves its endpoint behind, marked with the address that it forwarded to. The next command that
 * forwards to the same address takes the endpoint over, with a new secret, and so receives the webhooks of the time in
 * between. Two running commands would both receive every webhook, so the second one refuses to start. If the endpoint
 * is deleted while the command runs, as by a test that empties the environment, the command creates another one.
 */
import { Data, Effect, Redacted, type Scope, Stream } from "effect"
import type { EffectMethods } from "../client/effect.ts"
import type { TillError } from "../client/index.ts"
import { INSTANCE_HEADER } from "./Forwarder.ts"
import { patiently, WAIT_SECONDS } from "./Patience.ts"

export interface TemporaryEndpointOptions {
  readonly till: EffectMethods
  readonly forwardTo: URL
  /** Address to which Till sends the webhooks. */
  readonly address: URL
  /** Id of this run, unlike those of other commands that forward to the same address. */
  readonly instance: string
  readonly enabledEvents: ReadonlyArray<string>
  /** Called if the endpoint could not be removed at the end. */
  readonly onLeftBehind: (id: string, error: TillError) => Effect.Effect<void>
}

/** Another running command forwards to the same address. */
export class AlreadyForwarded extends Data.TaggedError("AlreadyForwarded")<{ readonly forwardTo: URL }> {
  override get message(): string {
    return `another till listen forwards to ${this.forwardTo.href} already`
  }
}

const FORWARD_TO = "till_listen_forward_to"
const INSTANCE = "till_listen_instance"

export interface TemporaryEndpoint {
  readonly secret: Redacted.Redacted
  /** Waits until the endpoint is deleted, creates another one, and returns its secret. */
  readonly replaced: Effect.Effect<Redacted.Redacted, TillError | AlreadyForwarded>
}

/** Creates an endpoint that exists as long as the scope. */
export const temporaryEndpoint = Effect.fnUntraced(function* (
  options: TemporaryEndpointOptions
): Effect.fn.Return<TemporaryEndpoint, TillError | AlreadyForwarded, Scope.Scope> {
  const current = yield* Effect.acquireRelease(
    Effect.map(acquire(options), ({ id, secret }) => ({ id, secret: Redacted.make(secret) })),
    (current) => Effect.suspend(() => release(current.id, options))
  )
  const replaced = Effect.gen(function* () {
    while (!(yield* isGone(current.id, options)));
    const { id, secret } = yield* acquire(options)
    current.id = id
    return Redacted.make(secret)
  })
  return { secret: current.secret, replaced }
})

/** Waits until the endpoint is changed or deleted, or for the API's longest time. True if it is gone. */
const isGone = (id: string, { till }: TemporaryEndpointOptions): Effect.Effect<boolean, TillError> =>
  patiently(till.webhook_endpoints.retrieve(id, { wait: WAIT_SECONDS }, { retriesMax: 0 })).pipe(
    Effect.as(false),
    Effect.catchIf(isMissing, () => Effect.succeed(true))
  )

const isMissing = (error: TillError): boolean => "code" in error && error.code === "resource_missing"

const acquire = Effect.fnUntraced(function* (options: TemporaryEndpointOptions) {
  const { address, enabledEvents, forwardTo, instance, till } = options
  const abandoned = yield* findAbandoned(options)
  const parameters = {
    url: address.href,
    enabled_events: enabledEvents as ReadonlyArray<"*">,
    metadata: { [FORWARD_TO]: forwardTo.href, [INSTANCE]: instance }
  }
  if (abandoned === undefined) {
    const description = "Temporary: created by till listen"
    return yield* till.webhook_endpoints.create({ ...parameters, description })
  }
  // Rolls the secret first, so that no webhook signed with the old one arrives here.
  const { secret } = yield* till.webhook_endpoints.roll_secret(abandoned, { expires_in: 0 })
  yield* till.webhook_endpoints.update(abandoned, { ...parameters, status: "enabled" })
  return { id: abandoned, secret }
})

/** Finds the endpoint of a command that ended without removing it. */
const findAbandoned = Effect.fnUntraced(function* ({ forwardTo, till }: TemporaryEndpointOptions) {
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

/**
 * True if the endpoint's command is still running. Compares the instance's id, because the port may belong to another
 * program.
 */
const isListening = (url: string, instance: string | undefined): Effect.Effect<boolean> =>
  Effect.tryPromise(async () => {
    if (new URL(url).hostname !== "127.0.0.1") return false
    const response = await fetch(url, { redirect: "manual", signal: AbortSignal.timeout(2_000) })
    await response.body?.cancel()
    return response.headers.get(INSTANCE_HEADER) === instance
  }).pipe(Effect.orElseSucceed(() => false))

/** Gives up soon, because Till may have stopped and a person waits at the terminal; the next run finds the endpoint. */
const release = (id: string, { onLeftBehind, till }: TemporaryEndpointOptions) =>
  till.webhook_endpoints.delete(id, {}, { retriesMax: 1, timeoutMillis: 3_000 }).pipe(
    Effect.catch((error) => (isMissing(error) ? Effect.void : onLeftBehind(id, error))),
    Effect.asVoid
  )
