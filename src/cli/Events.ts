/**
 * `till events`: prints events as they happen. One request waits at the API for events after the newest one, and is
 * answered when there are any (semantics requests.wait). The command continues after the service was unavailable.
 */
import { Console, Effect, Option, Stream } from "effect"
import type { EffectMethods } from "../client/effect.ts"
import type { Event, TillError } from "../client/index.ts"
import { timeOf } from "./Columns.ts"
import { connect, type ConnectionFlags } from "./Connection.ts"
import { outputClosed } from "./Output.ts"
import { patiently, WAIT_SECONDS } from "./Patience.ts"

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
  const filter = type === undefined ? {} : { type }
  let cursor = newest
  /** Waits for events, and returns a page of them, the newest first. */
  const next = Effect.suspend(() =>
    till.events.list(
      { ...filter, limit: PAGE, wait: WAIT_SECONDS, ...(cursor !== undefined && { ending_before: cursor }) },
      { retriesMax: 0 }
    )
  ).pipe(
    Effect.flatMap(({ data, has_more }) =>
      // Without a cursor, the page has the newest events, and more may have come before them.
      cursor === undefined && has_more
        ? Stream.runCollect(till.events.list.stream({ ...filter, limit: PAGE }))
        : Effect.succeed(data)
    ),
    Effect.catchIf(isForgotten, () =>
      Effect.sync(() => {
        cursor = undefined
        return []
      })
    )
  )
  for (;;) {
    const page = yield* patiently(next, ({ message }) => Console.error(`Retrying: ${message}`))
    for (const event of page.toReversed()) {
      yield* show(event)
      cursor = event.id
    }
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
