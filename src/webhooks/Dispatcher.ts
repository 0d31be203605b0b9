/**
 * The dispatcher: from a delivery that is due to its attempt, and from the attempt's outcome back into the journal.
 *
 * - New deliveries come straight from memory, in the order of their events (semantics W12); retries, and what was left
 *   over by a crash, come from the table by lease, nearest due first. `RetrySchedule` says when the next attempt is.
 * - A delivery is attempted once at a time, by the process that has the partition of its account. After a crash an
 *   attempt may be repeated; none is left out.
 * - Who goes first, and how many at once, is decided by `Lanes`; how many begin in a turn of the event loop, by `Pace`.
 * - On close, and of a partition that leaves, nothing new begins; attempts under way get a moment, and what they came
 *   to is written. Whoever has the partition next takes the rest from the table: what was leased here is free for it.
 * - A process that was frozen may have lost partitions without knowing. It attempts nothing that is not its own for
 *   certain: that waits until it is, or is dropped when the partition leaves.
 */
import { Cause, Clock, Effect, FiberSet, Latch, Layer, Semaphore } from "effect"
import type { Fiber } from "effect"
import type { AttemptOutcome, Committed } from "../engine/Deliveries.ts"
import { Deliveries } from "../engine/Deliveries.ts"
import * as Loop from "../engine/process/Loop.ts"
import type { AccountId, Millis } from "../engine/log/Document.ts"
import type { StoredEvent } from "../engine/log/Events.ts"
import type { StorageFailure } from "../engine/log/Journal.ts"
import type { Partition } from "../engine/process/Placement.ts"
import { partitionOf, Placement } from "../engine/process/Placement.ts"
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
import * as Until from "./Until.ts"

/** Deliveries taken from the table in one go, at most. */
const TAKE_MAX = 256
/** Pause before an attempt that could not begin: the engine could not be asked, or it is in doubt whose it is. */
const PUT_BACK_MILLIS = 1000
/** Closing, or leaving a partition, waits so long for attempts under way, and then for their outcomes. */
const GRACE_MILLIS = 2000
const FLUSH_MILLIS = 1000

export const layer: Layer.Layer<never, never, Deliveries | Endpoints | Placement | Sender> = Layer.effectDiscard(
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const deliveries = yield* Deliveries
    const placement = yield* Placement
    const taking = Semaphore.makeUnsafe(1)
    const taken = taking.withPermit(Effect.void)
    const outcomes = yield* Outcomes.make(taken)
    const attempts = yield* makeAttempts
    const lanes = new Lanes()
    const work = Latch.makeUnsafe(false)
    const busy = Latch.makeUnsafe(false)
    /** Partitions that were this process', and are not any more or soon. */
    const left = new Set<Partition>()
    let closing = false

    const isMine = (account: AccountId) => !left.has(partitionOf(account))

    const ended = (one: Attempt, outcome: AttemptOutcome | null) => {
      if (lanes.end(one, outcome?.next === "delivered")) deliveries.wake()
      if (outcome === null) release(lanes, work, one)
      else outcomes.add(one.delivery.account, outcome, () => release(lanes, work, one))
      work.openUnsafe()
    }

    const putBack = Effect.fnUntraced(function* (one: Attempt, cause: Cause.Cause<unknown> | null) {
      if (cause !== null) yield* logPutBack(one, cause)
      one.paused = true
      yield* Effect.sleep(PUT_BACK_MILLIS)
      if (!isMine(one.delivery.account)) return ended(one, null)
      if (lanes.putBack(one)) deliveries.wake()
      work.openUnsafe()
    })

    const beginning = yield* makeBeginning(lanes, work, busy, () => {
      const one = closing ? undefined : lanes.next(clock.currentTimeMillisUnsafe())
      if (one === undefined) return false
      attempts.begin(one, ended, putBack)
      return true
    })

    /** Ends what is under way for these accounts. What ends without an outcome is not ours any more. */
    const finish = Effect.fnUntraced(function* (isMeant: (account: AccountId) => boolean) {
      for (const one of yield* attempts.finish(isMeant)) ended(one, null)
      yield* outcomes.finish(isMeant, FLUSH_MILLIS)
    })

    yield* Effect.forkScoped(Loop.forever("sending of webhooks", beginning))
    yield* Effect.forkScoped(Loop.forever("watch over webhooks", stalling(lanes, work, busy)))
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        closing = true
        return finish(() => true)
      })
    )
    const round = taking.withPermit(yield* makeRound(lanes, work, isMine))
    const found = placement.held()
    yield* placement.attend({
      gained: (partition) => Effect.map(deliveries.free([partition]), () => void left.delete(partition)),
      served: deliveries.wake,
      leaving: (partition) =>
        Effect.suspend(() => {
          left.add(partition)
          lanes.drop(partition)
          // What is being taken now is leased to this process, and must not be once others look for it.
          return Effect.andThen(
            Effect.timeoutOption(taken, GRACE_MILLIS),
            finish((account) => partitionOf(account) === partition)
          )
        })
    })
    const told = (committed: Committed) => {
      if (!isMine(committed.account)) return
      follow(lanes, committed)
      work.openUnsafe()
    }
    yield* Effect.forkScoped(carry(found, told, round))
  })
)

/**
 * Takes what is new from memory and what is due from the table, once no lease is left of those who had these partitions
 * before. What is new until then is not leased.
 */
const carry = Effect.fnUntraced(function* (
  found: ReadonlyArray<Partition> | null,
  told: (committed: Committed) => void,
  round: Effect.Effect<Millis, StorageFailure>
) {
  const deliveries = yield* Deliveries
  yield* deliveries.free(found)
  yield* deliveries.onCommitted(told)
  return yield* deliveries.run(round)
})

/** Begins attempts while there are any, as many in a turn of the event loop as the pace allows. */
const makeBeginning = Effect.fnUntraced(function* (
  lanes: Lanes,
  work: Latch.Latch,
  busy: Latch.Latch,
  beginOne: () => boolean
) {
  const clock = yield* Clock.Clock
  const { turn } = yield* EventLoop
  const pace = new Pace()
  const beginSome = (allowed: number): number => {
    for (let begun = 0; begun < allowed; begun++) if (!beginOne()) return begun
    return allowed
  }
  return Effect.gen(function* () {
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
})

/** A delivery that is over may be due again already. */
const release = (lanes: Lanes, work: Latch.Latch, { delivery }: Attempt): void => {
  lanes.release(delivery)
  work.openUnsafe()
}

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
const makeRound = Effect.fnUntraced(function* (
  lanes: Lanes,
  work: Latch.Latch,
  isMine: (account: AccountId) => boolean
) {
  const clock = yield* Clock.Clock
  const deliveries = yield* Deliveries
  return Effect.gen(function* () {
    const full = lanes.full
    const limit = Math.min(TAKE_MAX, lanes.room)
    if (limit === 0) return clock.currentTimeMillisUnsafe() + STALLED_MILLIS
    const taken = yield* deliveries.take({ limit, busy: full })
    for (const delivery of taken) if (isMine(delivery.account)) lanes.add(delivery, null)
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

/** Told of an attempt that could not begin, and why; null if it is in doubt whose it is. */
type Failed = (one: Attempt, cause: Cause.Cause<unknown> | null) => Effect.Effect<void>

/** Carries attempts out. No fiber waits for one that only has to be sent. */
const makeAttempts = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const messages = yield* makeMessages
  const { isHere } = yield* Placement
  const sender = yield* Sender
  const run = yield* FiberSet.runtime(yield* FiberSet.make())()
  /** Those that are under way, with what gives them up. */
  const underWay = new Map<Attempt, () => void>()
  const { changed, until } = Until.make()

  const over = (one: Attempt) => {
    if (underWay.delete(one)) changed()
  }

  /** Goes on with an attempt in a fiber of its own. */
  const goOn = (one: Attempt, effect: Effect.Effect<void>): void => {
    // It may be over before there is a fiber to speak of.
    let fiber: Fiber.Fiber<void> | null = null
    underWay.set(one, () => fiber?.interruptUnsafe())
    fiber = run(effect)
  }

  const failing = (one: Attempt, cause: Cause.Cause<unknown> | null, failed: Failed) =>
    Effect.andThen(
      failed(one, cause),
      Effect.sync(() => over(one))
    )

  const send = (one: Attempt, message: Message | Result, ended: Ended, failed: Failed): void => {
    const { account, attempt, destination, id } = one.delivery
    if (!isHere(account)) return goOn(one, failing(one, null, failed))
    const startedAt = clock.currentTimeMillisUnsafe()
    let isDone = false
    const done = (result: Result) => {
      isDone = true
      const durationMillis = Math.max(clock.currentTimeMillisUnsafe() - startedAt, 0)
      const next = after(attempt, isDelivered(result))
      ended(one, { id, destination, attempt, startedAt, durationMillis, ...result, next })
      // Whoever waits for this goes on at once.
      over(one)
    }
    if ("error" in message) return done(message)
    const giveUp = sender.begin(message, done)
    if (!isDone) underWay.set(one, giveUp)
  }

  const load = (one: Attempt, ended: Ended, failed: Failed) =>
    Effect.matchCauseEffect(messages.load(one), {
      onSuccess: (message) =>
        Effect.sync(() => {
          if (message !== null) return send(one, message, ended, failed)
          ended(one, null)
          over(one)
        }),
      onFailure: (cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : failing(one, cause, failed))
    })

  return {
    /** Begins an attempt; `ended` is told of its outcome, or `failed` of why it could not even begin. */
    begin: (one: Attempt, ended: Ended, failed: Failed): void => {
      const message = messages.peek(one)
      if (message !== undefined) send(one, message, ended, failed)
      else goOn(one, load(one, ended, failed))
    },
    /**
     * Waits a moment for those of some accounts that are under way, and gives the others up: nobody hears what becomes
     * of them. So it does at once with those of accounts that may be others' by now. Answers which they are.
     */
    finish: Effect.fnUntraced(function* (isMeant: (account: AccountId) => boolean) {
      const meant = () => [...underWay].filter(([{ delivery }]) => isMeant(delivery.account))
      yield* Effect.timeoutOption(
        until(() => !meant().some(([{ delivery }]) => isHere(delivery.account))),
        GRACE_MILLIS
      )
      return meant().map(([one, giveUp]) => {
        underWay.delete(one)
        giveUp()
        return one
      })
    })
  }
})
