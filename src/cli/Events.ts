/**
 * `till events`: prints events as they happen. It reads the events over the API, from the newest one on, and continues
 * after the service was unavailable.
 */
import { Console, Effect, Option, Stream } from "effect"
import type { EffectMethods } from "../client/effect.ts"
import type { Event, TillError } from "../client/index.ts"
import { timeOf } from "./Columns.ts"
import { connect, type ConnectionFlags } from "./Connection.ts"
import { outputClosed } from "./Output.ts"

const POLL_MILLIS = 1000
const PAGE = 100

/** The events to print. */
export interface EventsOptions extends ConnectionFlags {
  readonly type: Option.Option<string>
  /** The number of past events. */
  readonly limit: number
  readonly follow: boolean
  readonly json: boolean
}

/** Formats an event as `2026-11-21T09:41:00Z payment_intent.succeeded evt_… pi_…`. */
const lineOf = ({ created, data, id, type }: Event): string => {
  const { id: subject } = data.object
  return [timeOf(created), type, id, ...(typeof subject === "string" ? [subject] : [])].join("  ")
}

/** True if a repeated request may succeed. */
const isTransient = ({ type }: TillError): boolean =>
  type !== "invalid_request_error" && type !== "authentication_error"

/** True if the environment was emptied: the newest event is gone. */
const isForgotten = (error: TillError): boolean =>
  error.type === "invalid_request_error" && error.param === "ending_before"

/** The newest event of any type, from which new ones are counted. */
const newestOf = (till: EffectMethods) => Effect.map(till.events.list({ limit: 1 }), ({ data: [newest] }) => newest?.id)

/** Prints events until it is interrupted, or until a request can no longer succeed. */
const follow = Effect.fnUntraced(function* (
  till: EffectMethods,
  type: string | undefined,
  newest: string | undefined,
  show: (event: Event) => Effect.Effect<void>
) {
  let cursor = newest
  let isAway = false
  const filter = type === undefined ? {} : { type }
  const poll = Effect.gen(function* () {
    const head = yield* newestOf(till)
    if (head === cursor) return
    const fresh =
      cursor === undefined
        ? Stream.fromIterableEffect(
            Effect.map(Stream.runCollect(till.events.list.stream({ ...filter, limit: PAGE })), (all) =>
              all.toReversed()
            )
          )
        : till.events.list.stream({ ...filter, limit: PAGE, ending_before: cursor })
    let last = head
    yield* Stream.runForEach(fresh, (event) =>
      Effect.tap(show(event), () =>
        Effect.sync(() => {
          cursor = event.id
          // Later than the head if it happened between the two requests.
          if (last === undefined || event.id > last) last = event.id
        })
      )
    )
    cursor = last
  })
  for (;;) {
    yield* Effect.sleep(POLL_MILLIS)
    isAway = yield* poll.pipe(
      Effect.as(false),
      Effect.catchIf(isForgotten, () =>
        Effect.sync(() => {
          cursor = undefined
          return false
        })
      ),
      Effect.catchIf(isTransient, ({ message }) =>
        Effect.as(isAway ? Effect.void : Console.error(`Retrying: ${message}`), true)
      )
    )
  }
})

/** Prints past events, then new ones. */
export const events = Effect.fnUntraced(function* ({ json, follow: follows, limit, type, ...flags }: EventsOptions) {
  const { till } = yield* connect(flags, "test or live")
  const show = (event: Event) => Console.log(json ? JSON.stringify(event) : lineOf(event))
  const filter = Option.getOrUndefined(type)
  const work = Effect.gen(function* () {
    const newest = yield* newestOf(till)
    const query = { ...(filter !== undefined && { type: filter }), limit: Math.min(Math.max(limit, 1), PAGE) }
    const shown = yield* Stream.runCollect(Stream.take(till.events.list.stream(query), limit))
    yield* Effect.forEach(shown.toReversed(), show, { discard: true })
    if (follows) yield* follow(till, filter, newest, show)
  })
  return yield* Effect.raceFirst(work, outputClosed)
})
