/**
 * `till logs`: prints requests to the API and their outcomes, as they happen. It reads the request log over the API
 * (semantics request_log.cli), which contains neither card data nor secrets, and continues after the service was
 * unavailable.
 */
import { Console, Effect, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import type { EffectMethods, TillError } from "../client/index.ts"
import { timeOf } from "./Columns.ts"
import { connect, connectionFlags, WrongArguments } from "./Connection.ts"
import { LogFollower } from "./LogFollower.ts"

type RequestLog = Effect.Success<ReturnType<EffectMethods["request_logs"]["retrieve"]>>

const POLL_MILLIS = 1000
const PAGE = 100
const SHOWN_AT_FIRST = 10

const text = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.optional, Flag.withDescription(description))

const filterFlags = {
  status: text("status", "A status, 402, or a class of statuses, 4xx"),
  method: text("method", "GET, POST or DELETE"),
  path: text("path", "A prefix of the path: /v1/payment_intents"),
  key: text("key", "The ID of an API key: key_…"),
  apiVersion: text("api-version", "The API version of the answer"),
  idempotencyKey: text("idempotency-key", "The idempotency key"),
  object: text("object", "The ID of an object in the path or the answer: pi_…"),
  code: text("code", "An error code: card_declined")
}

const flags = {
  ...filterFlags,
  limit: Flag.Int("limit").pipe(
    Flag.filter(
      (limit) => limit >= 0,
      () => "a number that is not negative"
    ),
    Flag.withDefault(SHOWN_AT_FIRST),
    Flag.withDescription(`Number of past requests to print first; ${SHOWN_AT_FIRST} by default`)
  ),
  follow: Flag.Boolean("follow").pipe(
    Flag.withDefault(true),
    Flag.withDescription("Print new requests as they arrive; --no-follow exits instead")
  ),
  json: Flag.Boolean("json").pipe(Flag.withDefault(false), Flag.withDescription("Print one line of JSON per request")),
  ...connectionFlags
}

type Filters = { readonly [Name in keyof typeof filterFlags]: Option.Option<string> }

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

/** True if a repeated request may succeed. */
const isTransient = ({ type }: TillError): boolean =>
  type !== "invalid_request_error" && type !== "authentication_error"

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

/** Ends when the reader of standard output closes it, as `head` does. */
const outputClosed = Effect.callback<void>((resume) => {
  process.stdout.once("error", () => resume(Effect.void))
})

export const logs = Command.make("logs", flags, ({ apiKey, follow: follows, json, limit, url, ...filters }) =>
  Effect.gen(function* () {
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
).pipe(
  Command.withShortDescription("Print API requests as they happen"),
  Command.withDescription(
    "Print API requests and their outcomes as they happen, without card data and secrets. A secret key of live mode " +
      "shows live requests. Requests that take longer than 10 seconds may be missing."
  )
)
