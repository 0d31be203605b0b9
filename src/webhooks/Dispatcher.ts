/**
 * The dispatcher: from a delivery that is due to its attempt, and from the attempt's outcome back into the journal.
 *
 * - New deliveries come straight from memory, in the order of their events (semantics W12); retries, and what was left
 *   over by a crash, come from the table by lease, nearest due first. `RetrySchedule` says when the next attempt is.
 * - In one process a delivery is attempted once at a time. After a crash an attempt may be repeated; none is left out.
 * - Who goes first, and how many at once, is decided by `Lanes`; how many begin in a turn of the event loop, by `Pace`.
 * - On close nothing new begins; attempts under way get a moment, and what they came to is written.
 */
import { Cause, Clock, Effect, FiberSet, Latch, Layer } from "effect"
import type { AttemptOutcome, Committed } from "../engine/Deliveries.ts"
import { Deliveries } from "../engine/Deliveries.ts"
import * as Loop from "../engine/Loop.ts"
import type { StoredEvent } from "../engine/Events.ts"
import type { Endpoint } from "./Endpoints.ts"
import { Endpoints } from "./Endpoints.ts"
import { EventLoop } from "./EventLoop.ts"
import type { Attempt } from "./Lanes.ts"
import { Lanes, STALLED_MILLIS } from "./Lanes.ts"
import * as Outcomes from "./Outcomes.ts"
import { Pace } from "./Pace.ts"
import { after } from "./RetrySchedule.ts"
import type { Message, Result } from "./Sender.ts"
import { isDelivered, Sender } from "./Sender.ts"

/** Deliveries taken from the table in one go, at most. */
const TAKE_MAX = 256
/** Pause before an attempt that could not begin, because the engine could not be asked. */
const PUT_BACK_MILLIS = 1000
/** Closing waits so long for attempts under way, and then for their outcomes. */
const GRACE_MILLIS = 2000
const FLUSH_MILLIS = 1000

export const layer: Layer.Layer<never, never, Deliveries | Endpoints | Sender> = Layer.effectDiscard(
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const deliveries = yield* Deliveries
    const { turn } = yield* EventLoop
    const outcomes = yield* Outcomes.make
    const attempts = yield* makeAttempts
    const lanes = new Lanes()
    const pace = new Pace()
    const work = Latch.makeUnsafe(false)
    const busy = Latch.makeUnsafe(false)
    let closing = false

    const ended = (one: Attempt, outcome: AttemptOutcome | null) => {
      if (lanes.end(one, outcome?.next === "delivered")) deliveries.wake()
      if (outcome === null) lanes.release(one.delivery)
      else outcomes.add(one.delivery.account, outcome, () => lanes.release(one.delivery))
      work.openUnsafe()
    }

    const putBack = Effect.fnUntraced(function* (one: Attempt, cause: Cause.Cause<unknown>) {
      yield* logPutBack(one, cause)
      one.paused = true
      yield* Effect.sleep(PUT_BACK_MILLIS)
      if (lanes.putBack(one)) deliveries.wake()
      work.openUnsafe()
    })

    /** Begins at most so many attempts, and answers how many it has begun. */
    const beginSome = (allowed: number): number => {
      for (let begun = 0; begun < allowed; begun++) {
        const one = closing ? undefined : lanes.next(clock.currentTimeMillisUnsafe())
        if (one === undefined) return begun
        attempts.begin(one, ended, putBack)
      }
      return allowed
    }

    const beginning = Effect.gen(function* () {
      yield* work.await
      work.closeUnsafe()
      for (;;) {
        const allowed = pace.allowed(clock.currentTimeMillisUnsafe(), lanes.hasNew)
        const begun = beginSome(allowed)
        if (begun < allowed) pace.caughtUp()
        if (begun === 0) return
        busy.openUnsafe()
        pace.turned(yield* turn)
      }
    })

    yield* Effect.forkScoped(Loop.forever("sending of webhooks", beginning))
    yield* Effect.forkScoped(Loop.forever("watch over webhooks", stalling(lanes, work, busy)))
    yield* Effect.addFinalizer(() =>
      Effect.gen(function* () {
        closing = true
        yield* attempts.close
        yield* Effect.timeoutOption(outcomes.flushed, FLUSH_MILLIS)
      })
    )
    yield* deliveries.onCommitted((committed) => {
      follow(lanes, committed)
      work.openUnsafe()
    })
    yield* Effect.forkScoped(deliveries.run(yield* makeRound(lanes, work)))
  })
)

/** Attempts that take long give their slots back. */
const stalling = Effect.fnUntraced(function* (lanes: Lanes, work: Latch.Latch, busy: Latch.Latch) {
  const clock = yield* Clock.Clock
  yield* busy.await
  yield* Effect.sleep(STALLED_MILLIS / 4)
  lanes.stall(clock.currentTimeMillisUnsafe())
  if (lanes.running === 0) busy.closeUnsafe()
  work.openUnsafe()
})

/** Takes what is due from the table, as far as there is room for it; answers when there may be more. */
const makeRound = Effect.fnUntraced(function* (lanes: Lanes, work: Latch.Latch) {
  const clock = yield* Clock.Clock
  const deliveries = yield* Deliveries
  return Effect.gen(function* () {
    const full = lanes.full
    const limit = Math.min(TAKE_MAX, lanes.room)
    if (limit === 0) return clock.currentTimeMillisUnsafe() + STALLED_MILLIS
    const taken = yield* deliveries.take({ limit, busy: full })
    for (const delivery of taken) lanes.add(delivery, null)
    work.openUnsafe()
    return taken.length === limit ? 0 : yield* deliveries.nextDueAt(full)
  })
})

/** Takes a record that is durable now, and starts or ends the deliveries that it names. */
const follow = (lanes: Lanes, { account, canceled, deliveries, wiped }: Committed) => {
  if (wiped) lanes.cancel(account, null)
  for (const destination of canceled) lanes.cancel(account, destination)
  for (const delivery of deliveries) lanes.add(delivery, delivery.content)
}

/**
 * The engine that is not there for a moment is no error of webhooks: they wait. Anything else is a mistake of Till's.
 */
const logPutBack = ({ delivery: { account, event, id } }: Attempt, cause: Cause.Cause<unknown>) =>
  (Cause.hasDies(cause)
    ? Effect.logError("A webhook could not be attempted", cause)
    : Effect.logWarning("A webhook could not be attempted yet", cause)
  ).pipe(Effect.annotateLogs({ account, delivery: id, event }))

/** Told what came of an attempt; null if there was nothing to attempt any more. */
type Ended = (one: Attempt, outcome: AttemptOutcome | null) => void

/** Could not be put into words. */
const UNSPEAKABLE: Result = { status: null, error: "could not be prepared" }

/** Makes messages of attempts: at once if all that they need is in memory, as it nearly always is. */
const makeMessages = Effect.gen(function* () {
  const deliveries = yield* Deliveries
  const endpoints = yield* Endpoints
  // One event goes to many endpoints.
  const bodies = new WeakMap<StoredEvent, Buffer>()

  const messageOf = ({ delivery }: Attempt, endpoint: Endpoint, event: StoredEvent): Message => {
    let body = bodies.get(event)
    if (body === undefined) {
      body = Buffer.from(endpoints.body(delivery.account, event))
      bodies.set(event, body)
    }
    return { endpoint, eventId: delivery.event, attempt: delivery.attempt, body }
  }

  const load = Effect.fnUntraced(function* (one: Attempt) {
    const { content, delivery } = one
    const endpoint = yield* endpoints.resolve(delivery.account, delivery.destination)
    if (endpoint === undefined) return null
    const event = content ?? (yield* deliveries.content(delivery))
    return messageOf(one, endpoint, event)
  })

  return {
    peek: (one: Attempt): Message | undefined => {
      if (one.content === null) return undefined
      const { account, destination } = one.delivery
      try {
        const endpoint = endpoints.peek(account, destination)
        return endpoint && messageOf(one, endpoint, one.content)
      } catch {
        // It fails again where that is logged.
        return undefined
      }
    },
    /** Null if there is nothing to attempt any more. */
    load: (one: Attempt) =>
      // A delivery that can never be prepared must not be tried for ever.
      Effect.catchDefect(load(one), (defect) =>
        Effect.as(Effect.logError("A webhook could not be prepared", defect), UNSPEAKABLE)
      )
  }
})

/** Carries attempts out. No fiber waits for one that only has to be sent. */
const makeAttempts = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const messages = yield* makeMessages
  const sender = yield* Sender
  const preparing = yield* FiberSet.make()
  const run = yield* FiberSet.runtime(preparing)()
  /** Those that are under way, with what gives them up. */
  const underWay = new Map<Attempt, () => void>()
  const idle = Latch.makeUnsafe(true)

  const send = (one: Attempt, message: Message | Result, ended: Ended): void => {
    const { attempt, destination, id } = one.delivery
    const startedAt = clock.currentTimeMillisUnsafe()
    const done = (result: Result) => {
      const durationMillis = Math.max(clock.currentTimeMillisUnsafe() - startedAt, 0)
      const next = after(attempt, isDelivered(result))
      ended(one, { id, destination, attempt, startedAt, durationMillis, ...result, next })
    }
    if ("error" in message) return done(message)
    let isDone = false
    const giveUp = sender.begin(message, (result) => {
      isDone = true
      underWay.delete(one)
      done(result)
      // Whoever waits for this goes on at once.
      if (underWay.size === 0) idle.openUnsafe()
    })
    if (isDone) return
    underWay.set(one, giveUp)
    idle.closeUnsafe()
  }

  return {
    /** Begins an attempt; `ended` is told of its outcome, or `failed` of why it could not even begin. */
    begin: (one: Attempt, ended: Ended, failed: (one: Attempt, cause: Cause.Cause<unknown>) => Effect.Effect<void>) => {
      const message = messages.peek(one)
      if (message !== undefined) return send(one, message, ended)
      run(
        Effect.matchCauseEffect(messages.load(one), {
          onSuccess: (message) => Effect.sync(() => (message === null ? ended(one, null) : send(one, message, ended))),
          onFailure: (cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : failed(one, cause))
        })
      )
    },
    /** Waits a moment for those that are under way, and gives the others up: nobody hears what becomes of them. */
    close: Effect.gen(function* () {
      yield* Effect.timeoutOption(Effect.andThen(FiberSet.awaitEmpty(preparing), idle.await), GRACE_MILLIS)
      yield* FiberSet.clear(preparing)
      for (const giveUp of underWay.values()) giveUp()
      underWay.clear()
    })
  }
})
