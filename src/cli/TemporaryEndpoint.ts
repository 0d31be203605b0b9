/**
 * The webhook endpoint of a `till listen`, which exists as long as the command runs.
 *
 * A killed command leaves its endpoint behind, marked with the address that it forwarded to. The next command that
 * forwards to the same address takes the endpoint over, with a new secret, and so receives the webhooks of the time in
 * between. Two running commands would both receive every webhook, so the second one refuses to start. If the endpoint
 * is deleted while the command runs, as by a test that empties the environment, the command creates another one.
 */
import { Clock, Data, Effect, Redacted, type Scope, Stream } from "effect"
import type { EffectMethods } from "../client/effect.ts"
import type { TillError } from "../client/index.ts"
import { INSTANCE_HEADER } from "./Forwarder.ts"

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

/** Pause between two looks for deletions, in milliseconds. */
const WATCH_MILLIS = 1000
/** The longest time without a check that the endpoint exists: a person can also delete it in the dashboard. */
const CHECK_MILLIS_MAX = 60_000

/** Creates an endpoint that exists as long as the scope. */
export const temporaryEndpoint = Effect.fnUntraced(function* (
  options: TemporaryEndpointOptions
): Effect.fn.Return<TemporaryEndpoint, TillError | AlreadyForwarded, Scope.Scope> {
  const current = yield* Effect.acquireRelease(
    Effect.map(acquire(options), ({ id, secret }) => ({ id, secret: Redacted.make(secret) })),
    (current) => Effect.suspend(() => release(current.id, options))
  )
  const replaced = Effect.gen(function* () {
    const mayBeGone = yield* deletions(options.till)
    do yield* Effect.sleep(WATCH_MILLIS)
    while (!((yield* mayBeGone) && (yield* isGone(current.id, options))))
    const { id, secret } = yield* acquire(options)
    current.id = id
    return Redacted.make(secret)
  })
  return { secret: current.secret, replaced }
})

/**
 * Makes a check for deletions since its last run. It reads the log of requests, because Till does not log requests to
 * that log; a check of the endpoint each second would fill it. A Till without the log has nothing to fill.
 */
const deletions = Effect.fnUntraced(function* (till: EffectMethods) {
  const newest = (query: { readonly method?: "DELETE" }) =>
    till.request_logs.list({ ...query, limit: 1 }, { retriesMax: 0 }).pipe(
      Effect.map(({ data: [request] }) => request?.id),
      Effect.orElseSucceed(() => undefined)
    )
  let last = yield* newest({ method: "DELETE" })
  let isLogged = last !== undefined
  let checkedAt = yield* Clock.currentTimeMillis
  return Effect.gen(function* () {
    isLogged ||= (yield* newest({})) !== undefined
    const deletion = isLogged ? yield* newest({ method: "DELETE" }) : undefined
    const now = yield* Clock.currentTimeMillis
    if (isLogged && deletion === last && now - checkedAt < CHECK_MILLIS_MAX) return false
    last = deletion
    checkedAt = now
    return true
  })
})

/** False if Till does not answer: the endpoint may exist. */
const isGone = (id: string, { till }: TemporaryEndpointOptions): Effect.Effect<boolean> =>
  till.webhook_endpoints.retrieve(id, {}, { retriesMax: 0 }).pipe(
    Effect.as(false),
    Effect.catch((error) => Effect.succeed(isMissing(error)))
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
