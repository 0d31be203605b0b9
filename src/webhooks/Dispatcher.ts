/**
 * The dispatcher carries a delivery from due to attempted, and the attempt's outcome back into the journal.
 *
 * - waiting: New deliveries come from memory, in the order of their events (semantics webhooks.schedule). Retries, and
 *   deliveries from before a crash, come from the table by lease, nearest due first. `Lanes` decides which delivery is
 *   next and how many are under way; `Pace` limits how many begin in one turn of the event loop.
 * - attempted: One attempt of a delivery runs at a time (`Sender`), in the process that owns the account's partition.
 *   After a crash an attempt may be repeated; none is left out.
 * - over: The result, and what follows it (`AttemptResult`), is an outcome, which `OutcomeWriter` writes.
 *
 * On close, and for a partition that leaves, no attempt begins; running ones get a short time, and their outcomes are
 * written. The partition's next owner takes the rest from the table, after ending the leases of this process.
 *
 * A process that was frozen may have lost partitions without notice. It attempts only deliveries that are its own for
 * certain; the others wait until ownership is confirmed, or are dropped when the partition leaves.
 */
import { Cause, Clock, Context, Effect, Exit, Fiber, Latch, Layer, Semaphore } from "effect"
import type { Unavailable } from "../engine/Accounts.ts"
import { type AttemptOutcome, type Committed, Deliveries } from "../engine/Deliveries.ts"
import * as Loop from "../engine/process/Loop.ts"
import * as Metrics from "../engine/process/Metrics.ts"
import { endSpan, traceparentOf, Traces } from "../engine/process/Traces.ts"
import type { AccountId, Millis } from "../engine/log/Document.ts"
import type { StoredEvent } from "../engine/log/Events.ts"
import type { StorageFailure } from "../engine/log/Journal.ts"
import { type Partition, partitionOf, Placement } from "../engine/process/Placement.ts"
import { type AttemptResult, isSuccess, nextAfter, unanswered } from "./AttemptResult.ts"
import { type Attempt, Lanes, STALLED_MILLIS } from "./Lanes.ts"
import * as OutcomeWriter from "./OutcomeWriter.ts"
import { EventLoop, Pace } from "./Pace.ts"
import { type Endpoint, type Message, Sender } from "./Sender.ts"
import { logOf } from "../engine/process/Log.ts"

const log = logOf("webhooks")

/** Deliveries taken from the table at once, at most. */
const TAKE_MAX = 256
/** Pause before an attempt that could not begin: the engine was not available, or ownership is in doubt. */
const PUT_BACK_MILLIS = 1000
/** Time limits when closing or leaving a partition: for attempts under way, and then for writing their outcomes. */
const GRACE_MILLIS = 2000
const FLUSH_MILLIS = 1000

export interface EndpointsShape {
  /** The same as `resolve` if the endpoint is in memory, as nearly every one is; otherwise undefined. */
  readonly peek: (account: AccountId, destination: string) => Endpoint | undefined
  /** Undefined if the endpoint does not exist. */
  readonly resolve: (account: AccountId, destination: string) => Effect.Effect<Endpoint | undefined, Unavailable>
  /** Renders an event as JSON text: the same bytes for every attempt and endpoint (semantics webhooks.body). */
  readonly body: (account: AccountId, event: StoredEvent) => string
}

const WAITING = {
  name: "till_webhook_waiting",
  description: "Deliveries that wait in the memory of this process for their attempt."
}
const RUNNING = { name: "till_webhook_running", description: "Attempts of deliveries that run." }
const ATTEMPT_SECONDS = {
  name: "till_webhook_attempt_duration_seconds",
  description: "Time that an attempt of a delivery took, by what follows: nothing, nothing more, or another attempt.",
  labels: ["outcome"],
  boundaries: [...Metrics.SECONDS, 30]
}

/** Observes the lanes, and makes the function that measures an attempt. With the level `Debug`, it logs each, too. */
const makeMeasure = Effect.fnUntraced(function* (lanes: Lanes) {
  const context = yield* Effect.context<never>()
  yield* Metrics.observeGauge(WAITING, () => lanes.waiting)
  yield* Metrics.observeGauge(RUNNING, () => lanes.running)
  const measure = yield* Metrics.histograms(ATTEMPT_SECONDS, [["delivered"], ["exhausted"], ["retried"]])
  return (account: AccountId, { attempt, durationMillis, error, id, next, status }: AttemptOutcome): void => {
    const outcome = typeof next === "string" ? next : "retried"
    measure([outcome], durationMillis / 1000)
    log.debugIn(context, { cause: "attempt" }, () => ({
      text: "A webhook was attempted",
      annotations: { account, delivery: id, attempt, outcome, status, error, duration_ms: durationMillis }
    }))
  }
})

/** Port: the merchant's endpoints and the texts of events. */
export class Endpoints extends Context.Service<Endpoints, EndpointsShape>()("till/webhooks/Endpoints") {}

export const layer: Layer.Layer<never, never, Deliveries | Endpoints | Placement | Sender> = Layer.effectDiscard(
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const deliveries = yield* Deliveries
    const placement = yield* Placement
    const taking = Semaphore.makeUnsafe(1)
    const taken = taking.withPermit(Effect.void)
    const outcomes = yield* OutcomeWriter.make(taken)
    const lanes = new Lanes()
    const work = Latch.makeUnsafe(false)
    const busy = Latch.makeUnsafe(false)
    /** Partitions that have left this process, or are leaving it. */
    const left = new Set<Partition>()
    let closing = false

    const isMine = (account: AccountId) => !left.has(partitionOf(account))

    const measure = yield* makeMeasure(lanes)

    const onEnd = (attempt: Attempt, outcome: AttemptOutcome | null) => {
      if (outcome !== null) measure(attempt.delivery.account, outcome)
      if (lanes.end(attempt, outcome?.next === "delivered")) deliveries.wake()
      if (outcome === null) release(lanes, work, attempt)
      else outcomes.add(attempt.delivery.account, outcome, () => release(lanes, work, attempt))
      work.openUnsafe()
    }

    const putBack = Effect.fnUntraced(function* (attempt: Attempt, cause: Cause.Cause<unknown> | null) {
      if (cause !== null) yield* logPutBack(attempt, cause)
      attempt.paused = true
      yield* Effect.sleep(PUT_BACK_MILLIS)
      if (!isMine(attempt.delivery.account)) return null
      if (lanes.putBack(attempt)) deliveries.wake()
      work.openUnsafe()
      return PUT_BACK
    })

    const attempts = yield* makeAttempts(putBack, onEnd)
    const beginning = yield* makeBeginning(lanes, work, busy, () => {
      const attempt = closing ? undefined : lanes.next(clock.currentTimeMillisUnsafe())
      if (attempt === undefined) return false
      attempts.begin(attempt)
      return true
    })

    /** Ends the work for the chosen accounts. Attempts without an outcome are left to the next owner. */
    const finish = (isChosen: (account: AccountId) => boolean) =>
      Effect.andThen(attempts.finish(isChosen), outcomes.finish(isChosen, FLUSH_MILLIS))

    yield* Effect.forkScoped(Loop.forever("sending of webhooks", beginning))
    yield* Effect.forkScoped(Loop.forever("watch over webhooks", stalling(lanes, work, busy)))
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        closing = true
        return finish(() => true)
      })
    )
    const round = taking.withPermit(yield* makeRound(lanes, work, isMine))
    const heldAtStart = placement.held()
    yield* placement.listen({
      onAcquired: (partition) => Effect.map(deliveries.free([partition]), () => void left.delete(partition)),
      onServed: deliveries.wake,
      onLeaving: (partition) =>
        Effect.suspend(() => {
          left.add(partition)
          lanes.drop(partition)
          // Deliveries being taken now get this process' lease, which must happen before the next owner ends all
          // leases.
          return Effect.andThen(
            Effect.timeoutOption(taken, GRACE_MILLIS),
            finish((account) => partitionOf(account) === partition)
          )
        })
    })
    const onCommitted = (committed: Committed) => {
      if (!isMine(committed.account)) return
      follow(lanes, committed)
      work.openUnsafe()
    }
    yield* Effect.forkScoped(carry(heldAtStart, onCommitted, round))
  })
)

/**
 * Takes new deliveries from memory and due ones from the table, after ending the leases of the partitions' previous
 * owners. Deliveries that are committed before that are not leased.
 */
const carry = Effect.fnUntraced(function* (
  partitions: ReadonlyArray<Partition> | null,
  onCommitted: (committed: Committed) => void,
  round: Effect.Effect<Millis, StorageFailure>
) {
  const deliveries = yield* Deliveries
  yield* deliveries.free(partitions)
  yield* deliveries.onCommitted(onCommitted)
  return yield* deliveries.run(round)
})

/** Begins attempts as long as any wait, in each turn of the event loop as many as the pace allows. */
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

/** Releases a delivery whose attempt is over. The delivery may already be due again. */
const release = (lanes: Lanes, work: Latch.Latch, { delivery }: Attempt): void => {
  lanes.release(delivery)
  work.openUnsafe()
}

/** Takes the slots of attempts that take long. */
const stalling = Effect.fnUntraced(function* (lanes: Lanes, work: Latch.Latch, busy: Latch.Latch) {
  const clock = yield* Clock.Clock
  yield* busy.await
  yield* Effect.sleep(STALLED_MILLIS / 4)
  lanes.stall(clock.currentTimeMillisUnsafe())
  if (lanes.running === 0) busy.closeUnsafe()
  work.openUnsafe()
})

/** Takes due deliveries from the table while there is room. Returns the time at which more may be due. */
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

/** Adds the deliveries that a durable record names, and cancels those that it ends. */
const follow = (lanes: Lanes, { account, canceled, deliveries, wiped }: Committed) => {
  if (wiped) lanes.cancel(account, null)
  for (const destination of canceled) lanes.cancel(account, destination)
  for (const delivery of deliveries) lanes.add(delivery, delivery.content)
}

/** Logs a warning while the engine is not available, for which webhooks wait. Anything else is a bug in Till. */
const logPutBack = ({ delivery: { account, event, id } }: Attempt, cause: Cause.Cause<unknown>) =>
  Cause.hasDies(cause)
    ? log.error("A webhook could not be attempted", cause, { annotations: { account, delivery: id, event } })
    : log.warning("A webhook could not be attempted yet", cause, { annotations: { account, delivery: id, event } })

/** Result of an attempt whose message could not be made. */
const UNPREPARED: AttemptResult = unanswered("could not be prepared")

const makeMessages = Effect.gen(function* () {
  const deliveries = yield* Deliveries
  const endpoints = yield* Endpoints
  // One event is sent to many endpoints.
  const bodies = new WeakMap<StoredEvent, Buffer>()

  const messageOf = ({ delivery }: Attempt, endpoint: Endpoint, event: StoredEvent): Message => {
    let body = bodies.get(event)
    if (body === undefined) {
      body = Buffer.from(endpoints.body(delivery.account, event))
      bodies.set(event, body)
    }
    return { endpoint, eventId: delivery.event, attempt: delivery.attempt, body }
  }

  const load = Effect.fnUntraced(function* (attempt: Attempt) {
    const { content, delivery } = attempt
    const endpoint = yield* endpoints.resolve(delivery.account, delivery.destination)
    if (endpoint === undefined) return null
    const event = content ?? (yield* deliveries.content(delivery))
    return messageOf(attempt, endpoint, event)
  })

  return {
    /** The message, if its parts are in memory, as they nearly always are. */
    peek: (attempt: Attempt): Message | undefined => {
      if (attempt.content === null) return undefined
      const { account, destination } = attempt.delivery
      try {
        const endpoint = endpoints.peek(account, destination)
        return endpoint && messageOf(attempt, endpoint, attempt.content)
      } catch {
        // `load` meets the same error and logs it.
        return undefined
      }
    },
    /** Null if the endpoint does not exist. */
    load: (attempt: Attempt) =>
      // A message that can never be made must not be tried for ever.
      Effect.catchDefect(load(attempt), (defect) =>
        Effect.as(log.error("A webhook could not be prepared", defect), UNPREPARED)
      )
  }
})

/** End of an attempt that could not begin and waits in its lane again. */
const PUT_BACK = "put back"

/** Outcome of an attempt; null if its endpoint does not exist, or another process has to make the attempt. */
type End = AttemptOutcome | typeof PUT_BACK | null

/** Pauses an attempt that could not begin. Null if it is left to another process; no cause if ownership is in doubt. */
type PutBack = (attempt: Attempt, cause: Cause.Cause<unknown> | null) => Effect.Effect<typeof PUT_BACK | null>

/**
 * Runs attempts, each in a fiber. `onEnd` receives the outcome of an attempt; null if its endpoint does not exist, or
 * the attempt was given up.
 */
const makeAttempts = Effect.fnUntraced(function* (
  putBack: PutBack,
  onEnd: (attempt: Attempt, outcome: AttemptOutcome | null) => void
) {
  const clock = yield* Clock.Clock
  const messages = yield* makeMessages
  const { isHere } = yield* Placement
  const sender = yield* Sender
  const traces = yield* Traces
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const underWay = new Map<Attempt, Fiber.Fiber<End>>()

  /** Sends a message. If the event's request was traced, the attempt belongs to its trace. */
  const sendTraced = ({ delivery }: Attempt, message: Message): Effect.Effect<AttemptResult> => {
    const parent = traces?.find(delivery.event)
    if (traces === undefined || parent === undefined) return sender.send(message)
    const span = traces.beginChild("webhook", "client", parent)
    const sent = sender.send({ ...message, traceparent: traceparentOf(span) })
    return Effect.tap(sent, ({ error, status }) =>
      Effect.sync(() => {
        const attributes = {
          "http.response.status_code": status,
          "till.delivery": delivery.id,
          "till.event": delivery.event
        }
        const problem = error ?? (status !== null && isSuccess(status) ? undefined : `The answer is ${status}.`)
        endSpan(span, performance.now(), {
          attributes: { ...attributes, "till.attempt": delivery.attempt },
          error: problem
        })
      })
    )
  }

  const send = (one: Attempt, message: Message | AttemptResult | null): Effect.Effect<End> => {
    const { account, attempt, destination, id } = one.delivery
    if (message === null) return Exit.succeed(null)
    if (!isHere(account)) return putBack(one, null)
    const startedAt = clock.currentTimeMillisUnsafe()
    return Effect.map("error" in message ? Exit.succeed(message) : sendTraced(one, message), (result) => {
      const durationMillis = Math.max(clock.currentTimeMillisUnsafe() - startedAt, 0)
      const next = nextAfter(attempt, result)
      return { id, destination, attempt, startedAt, durationMillis, ...result, next }
    })
  }

  const attempt = (one: Attempt): Effect.Effect<End> => {
    const message = messages.peek(one)
    const sent =
      message === undefined ? Effect.flatMap(messages.load(one), (message) => send(one, message)) : send(one, message)
    return Effect.catchCause(sent, (cause) => putBack(one, cause))
  }

  const chosenOf = (isChosen: (account: AccountId) => boolean) =>
    Array.from(underWay).flatMap(([{ delivery }, fiber]) => (isChosen(delivery.account) ? [fiber] : []))

  return {
    begin: (one: Attempt): void => {
      const fiber = run(attempt(one))
      underWay.set(one, fiber)
      fiber.addObserver((exit) => {
        underWay.delete(one)
        const end = Exit.isSuccess(exit) ? exit.value : null
        if (end !== PUT_BACK) onEnd(one, end)
      })
    },
    /**
     * Waits a short time for attempts of the chosen accounts, then gives the rest up. Attempts of accounts that this
     * process may no longer own are given up without waiting.
     */
    finish: Effect.fnUntraced(function* (isChosen: (account: AccountId) => boolean) {
      const ownedForSure = chosenOf((account) => isChosen(account) && isHere(account))
      yield* Effect.timeoutOption(Fiber.awaitAll(ownedForSure), GRACE_MILLIS)
      yield* Fiber.interruptAll(chosenOf(isChosen))
    })
  }
})
