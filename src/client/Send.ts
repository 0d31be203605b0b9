/**
 * Sends a request, repeats it after transient failures, and reads the response (Answer.ts).
 *
 * Every attempt of a POST carries the same `Idempotency-Key`, so all attempts together have one effect. A DELETE is
 * repeated too: if the first attempt was carried out and its response lost, the second finds its object deleted and
 * fails with `resource_missing`.
 *
 * Errors of the `HttpClient` hold the request and its `Authorization`, so this file replaces them with its own.
 */
import { Clock, Effect, Random, Redacted, Result } from "effect"
import { type Answer, meaningOf } from "./Answer.ts"
import type { Endpoint } from "./Endpoints.ts"
import { ConnectionError, type TillError } from "./Errors.ts"
import type { ClientOptions } from "./Options.ts"
import { type Call, type PlainRequest, refusalOf, requestOf } from "./Request.ts"

/** The defaults of all calls. */
export interface Defaults extends Omit<ClientOptions, "baseUrl"> {
  /** A secret or publishable key. */
  readonly apiKey: Redacted.Redacted
}

/**
 * Makes one attempt: sends the request and reads the whole response. Interruption closes the connection. Fails with a
 * description that may contain the API key.
 */
export type Exchange = (request: PlainRequest) => Effect.Effect<Answer, string>

/** Default maximum of attempts after the first. */
const RETRIES_MAX_DEFAULT = 3
/** The wait before the second attempt, doubled for each further one. */
export const BACKOFF_MIN_MILLIS = 250
export const BACKOFF_MAX_MILLIS = 8_000
/** The longest `Retry-After` that is waited for; with a longer one, the call fails with the error. */
export const RETRY_AFTER_MAX_SECONDS = 60

/** Returns whether a failure may pass: no response, 409 (the key is in use), 429, and 5xx. */
const isTransient = ({ status, type }: TillError): boolean =>
  type === "connection_error" || status === 409 || status === 429 || (status !== null && status >= 500)

/**
 * Returns the wait before the next attempt; undefined if there should be none.
 *
 * `attempt` is the number of the failed attempt, from 1. `random`, from 0 to 1, is jitter over half of the backoff. The
 * wait is never shorter than `Retry-After`.
 */
const retryDelayMillis = (error: TillError, attempt: number, random: number): number | undefined => {
  const retryAfter = error.retry_after ?? 0
  if (!isTransient(error) || retryAfter > RETRY_AFTER_MAX_SECONDS) return undefined
  const backoff = Math.min(BACKOFF_MAX_MILLIS, BACKOFF_MIN_MILLIS * 2 ** (attempt - 1))
  return Math.max(retryAfter * 1000, Math.round(backoff * (0.5 + random / 2)))
}

/**
 * Longer than the 25 s for which Till lets an attempt wait for another one with the same key (semantics
 * idempotency.in_use).
 */
const TIMEOUT_MILLIS_DEFAULT = 40_000

/** Makes attempts until one succeeds or fails permanently. */
export const send = Effect.fnUntraced(function* (
  exchange: Exchange,
  endpoint: Endpoint,
  { options, ...call }: Call,
  defaults: Defaults
): Effect.fn.Return<unknown, TillError> {
  const idempotencyKey = endpoint[0] === "POST" ? (options.idempotencyKey ?? crypto.randomUUID()) : null
  const refusal = refusalOf(call, idempotencyKey)
  if (refusal !== undefined) return yield* Effect.fail(refusal)
  const apiVersion = options.apiVersion ?? defaults.apiVersion
  const request = requestOf(endpoint, call, { idempotencyKey, apiVersion, apiKey: defaults.apiKey })
  const timeoutMillis = options.timeoutMillis ?? defaults.timeoutMillis ?? TIMEOUT_MILLIS_DEFAULT
  const retriesMax = options.retriesMax ?? defaults.retriesMax ?? RETRIES_MAX_DEFAULT
  for (let attempt = 1; ; attempt++) {
    const answer = yield* Effect.result(answerTo(exchange(request), timeoutMillis))
    const meaning = Result.isSuccess(answer)
      ? meaningOf(answer.success, idempotencyKey, yield* Clock.currentTimeMillis)
      : Result.fail(noAnswer(answer.failure, idempotencyKey, defaults.apiKey))
    if (Result.isSuccess(meaning)) return meaning.success
    const delayMillis = retryDelayMillis(meaning.failure, attempt, yield* Random.next)
    if (attempt > retriesMax || delayMillis === undefined) return yield* Effect.fail(meaning.failure)
    yield* Effect.sleep(delayMillis)
  }
})

/** Limits the time of an attempt. */
const answerTo = (exchange: Effect.Effect<Answer, string>, timeoutMillis: number): Effect.Effect<Answer, string> =>
  Effect.timeoutOrElse(exchange, {
    duration: timeoutMillis,
    orElse: () => Effect.fail(`no whole answer within ${timeoutMillis} ms`)
  })

/** Returns the description of the innermost cause. */
export const descriptionOf = (error: unknown): string => {
  let innermost = error
  while (innermost instanceof Error && innermost.cause instanceof Error) innermost = innermost.cause
  const { code, message } = innermost as { readonly code?: unknown; readonly message?: unknown }
  return [code, message].filter((part) => typeof part === "string" && part !== "").join(": ")
}

/** Makes the error. Descriptions come from other libraries, so the key is removed even from there. */
const noAnswer = (description: string, idempotencyKey: string | null, apiKey: Redacted.Redacted): ConnectionError =>
  new ConnectionError({
    message: `Till did not answer: ${withoutKey(description, Redacted.value(apiKey))}`,
    status: null,
    request_id: null,
    idempotency_key: idempotencyKey,
    retry_after: null
  })

const withoutKey = (text: string, apiKey: string): string =>
  [apiKey, btoa(`${apiKey}:`)].reduce((redacted, secret) => redacted.replaceAll(secret, "<redacted>"), text)
