/**
 * `till logs`: prints requests to the API and their outcomes, as they happen. It reads the request log over the API
 * (semantics request_log.cli), which contains neither card data nor secrets, and continues after the service was
 * unavailable.
 */
import { Console, Effect, Option, Stream } from "effect"
import type { EffectMethods } from "../client/effect.ts"
import type { TillError } from "../client/index.ts"
import { timeOf } from "./Columns.ts"
import { connect, type ConnectionFlags } from "./Connection.ts"
import { LogFollower } from "./LogFollower.ts"
import { outputClosed } from "./Output.ts"
import { isTransient } from "./Patience.ts"
import { WrongArguments } from "./WrongArguments.ts"

type RequestLog = Effect.Success<ReturnType<EffectMethods["request_logs"]["retrieve"]>>

const POLL_MILLIS = 1000
const PAGE = 100

/** The filters of requests: the fields of the request log by the names of the flags. */
export interface Filters {
  readonly status: Option.Option<string>
  readonly method: Option.Option<string>
  readonly path: Option.Option<string>
  readonly key: Option.Option<string>
  readonly apiVersion: Option.Option<string>
  readonly idempotencyKey: Option.Option<string>
  readonly object: Option.Option<string>
  readonly code: Option.Option<string>
}

/** The requests to print. */
export interface LogsOptions extends ConnectionFlags, Filters {
  /** The number of past requests. */
  readonly limit: number
  readonly follow: boolean
  readonly json: boolean
}

const queryOf = Effect.fnUntraced(function* (given: Filters) {
  const { apiVersion, code, idempotencyKey, key, method, object, path, status } = given
  if (Option.exists(key, (id) => !id.startsWith("key_"))) {
    // Messages never repeat the argument, which may be a key.
    return yield* new WrongArguments({ message: "--key takes the ID of an API key, key_…, and never a key" })
  }
  return Object.fromEntries(
    Object.entries({
      status,
      method: Option.map(method, (name) => name.toUpperCase()),
      path,
      api_key: key,
      api_version: apiVersion,
      idempotency_key: idempotencyKey,
      object,
      error_code: code
    }).flatMap(([name, value]) => (Option.isSome(value) ? [[name, value.value]] : []))
  )
})

/** Replaces control characters: parts of a request are a client's text, and a terminal would execute them. */
const withoutControls = (text: string): string => text.replaceAll(/\p{Cc}/gu, "\uFFFD")

const COLOURS = { good: 32, wrong: 33, bad: 31 }

/**
 * Formats a request as `2026-11-21T09:41:00Z 402 POST /v1/payment_intents req_… 12 ms card_declined`, with further
 * columns where they apply.
 */
export const lineOf = (request: RequestLog, isColoured: boolean): string => {
  const { created, duration_ms, error, id, idempotency_key, method, original_request, path, status } = request
  const colour = COLOURS[status < 400 ? "good" : status < 500 ? "wrong" : "bad"]
  const columns = [
    timeOf(created),
    isColoured ? `\u001B[${colour}m${status}\u001B[0m` : String(status),
    withoutControls(`${method} ${path}`),
    id,
    `${Math.round(duration_ms)} ms`,
    ...(error === null ? [] : [error.code]),
    ...(error?.param === null || error === null ? [] : [withoutControls(error.param)]),
    ...(idempotency_key === null ? [] : [`key ${withoutControls(idempotency_key)}`]),
    ...(original_request === null ? [] : [`replay of ${original_request}`])
  ]
  return columns.join("  ")
}

/** JSON escapes only ASCII's control characters; this escapes the others too. */
const jsonOf = (request: RequestLog): string =>
  JSON.stringify(request).replaceAll(
    /\p{Cc}/gu,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`
  )

const isForgotten = (error: TillError): boolean =>
  error.type === "invalid_request_error" && error.param === "ending_before"

type Query = Readonly<Record<string, string>>

const newestOf = (till: EffectMethods) =>
  Effect.map(till.request_logs.list({ limit: 1 }), ({ data: [newest] }) => newest?.id)

/** Lists the requests after one, or all, oldest first. */
const after = (till: EffectMethods, query: Query, id: string | undefined): Stream.Stream<RequestLog, TillError> => {
  if (id !== undefined) return till.request_logs.list.stream({ ...query, limit: PAGE, ending_before: id })
  const all = Stream.runCollect(till.request_logs.list.stream({ ...query, limit: PAGE }))
  return Stream.fromIterableEffect(Effect.map(all, (requests) => [...requests].toReversed()))
}

/** Shows new requests until it is interrupted or a request can no longer succeed. */
const follow = Effect.fnUntraced(function* (
  till: EffectMethods,
  follower: LogFollower<RequestLog, TillError>,
  show: (request: RequestLog) => Effect.Effect<void>
) {
  let isAway = false
  for (;;) {
    yield* Effect.sleep(POLL_MILLIS)
    isAway = yield* follower.poll(show).pipe(
      Effect.as(false),
      Effect.catchIf(isForgotten, () =>
        Effect.gen(function* () {
          yield* Console.error("Some requests left the log before they could be printed")
          follower.begin(yield* newestOf(till), [])
          return false
        })
      ),
      Effect.catchIf(isTransient, ({ message }) =>
        Effect.as(isAway ? Effect.void : Console.error(`Retrying: ${message}`), true)
      )
    )
  }
})

/** Prints past requests, then new ones. */
export const logs = Effect.fnUntraced(function* ({
  apiKey,
  follow: follows,
  json,
  limit,
  url,
  ...filters
}: LogsOptions) {
  const query: Query = yield* queryOf(filters)
  const { till } = yield* connect({ apiKey, url }, "test or live")
  const isColoured = process.stdout.isTTY && process.stdout.hasColors()
  const show = (request: RequestLog) => Console.log(json ? jsonOf(request) : lineOf(request, isColoured))
  const work = Effect.gen(function* () {
    const newest = yield* newestOf(till)
    const first = Stream.take(
      till.request_logs.list.stream({ ...query, limit: Math.min(Math.max(limit, 1), PAGE) }),
      limit
    )
    const shown = [...(yield* Stream.runCollect(first))].toReversed()
    yield* Effect.forEach(shown, show, { discard: true })
    if (!follows) return
    const follower = new LogFollower({ newest: newestOf(till), after: (id) => after(till, query, id) })
    follower.begin(newest, shown)
    yield* follow(till, follower, show)
  })
  return yield* Effect.raceFirst(work, outputClosed)
})
