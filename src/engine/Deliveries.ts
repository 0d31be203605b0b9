/**
 * Deliveries: messages about events to external destinations, and the outcome of each attempt to send them.
 *
 * An event's record names a delivery for every destination subscribed at that time, so either both are durable or
 * neither is. Outcomes of attempts are records too: deliveries are a fold of the journal, like all state.
 *
 * - The process that owns an account's partition sends its deliveries (`Placement.ts`). Taking them (`onCommitted`,
 *   `take`) gives it a lease, so that it does not take them twice. All leases end when the partition moves: the
 *   previous owner has finished, or has died, and then a delivery is attempted twice at worst.
 * - An outcome counts only for a pending delivery and its next attempt: a repeated report, or one for a canceled
 *   delivery, changes nothing.
 */
import { Clock, Context, Effect, Layer, Schedule, type Scope } from "effect"
import { Accounts, type Unavailable } from "./Accounts.ts"
import { CommitFeed, type Committed } from "./views/CommitFeed.ts"
import type { AccountId, Millis } from "./log/Document.ts"
import * as Events from "./log/Events.ts"
import type { Journal, StorageFailure } from "./log/Journal.ts"
import * as Loop from "./process/Loop.ts"
import { type Partition, PARTITIONS, Placement } from "./process/Placement.ts"
import { LEASE_MILLIS, Projector } from "./actor/Projector.ts"
import type { AttemptOutcome } from "./log/Record.ts"
import type { StoredEvent } from "./log/Events.ts"
import { Transaction } from "./actor/Transaction.ts"
import { type DueDelivery, Views } from "./views/Views.ts"
import { logOf } from "./process/Log.ts"

const log = logOf("engine")

export type { Committed } from "./views/CommitFeed.ts"
export type { Attempt, AttemptOutcome, DeliveryState } from "./log/Record.ts"
export type { DeliveryRow } from "./views/Projection.ts"
export type { DueDelivery } from "./views/Views.ts"

/** Pause after the views could not be read. */
const RETRY_MILLIS = 1000
/** Contents read with one query, at most. */
const CONTENTS_MAX = 512

/**
 * Runs in the record of outcomes, for changes that follow from them. A failure would repeat the record for ever, so the
 * handler has none.
 */
export const OutcomeHandler = Context.Reference<
  (outcomes: ReadonlyArray<AttemptOutcome>) => Effect.Effect<void, never, Transaction>
>("till/engine/OutcomeHandler", { defaultValue: () => () => Effect.void })

export interface DeliveriesShape {
  /**
   * Calls the listener with each record with deliveries or cancellations when it becomes durable, in the order of its
   * account, before its command is answered; until the scope closes. The listener must be quick and must not throw. The
   * deliveries are leased to this process.
   */
  readonly onCommitted: (listener: (committed: Committed) => void) => Effect.Effect<void, never, Scope.Scope>

  /** Leases due deliveries of the held partitions for two minutes, longest due first, except to `busy` destinations. */
  readonly take: (options: {
    readonly limit: number
    readonly busy: ReadonlyArray<string>
  }) => Effect.Effect<ReadonlyArray<DueDelivery>, StorageFailure>

  /** When the next delivery of the held partitions is due, except to `busy` destinations; Infinity if none is. */
  readonly nextDueAt: (busy: ReadonlyArray<string>) => Effect.Effect<Millis, StorageFailure>

  /** Ends all processes' leases in these partitions (null: in all), where this process sends nothing during it. */
  readonly free: (partitions: ReadonlyArray<Partition> | null) => Effect.Effect<void>

  /** Runs `round` whenever deliveries may be due. A round returns the wall-clock time for the next one. */
  readonly run: (round: Effect.Effect<Millis, StorageFailure>) => Effect.Effect<never>

  readonly wake: () => void

  /** Writes outcomes as one record, and waits until it is durable. */
  readonly report: (account: AccountId, outcomes: ReadonlyArray<AttemptOutcome>) => Effect.Effect<void, Unavailable>

  /** Waits until `take` sees all outcomes reported before the call. */
  readonly seen: Effect.Effect<void>

  /** Reads the event of a delivery, with its object in the state of the event. */
  readonly content: (delivery: DueDelivery) => Effect.Effect<StoredEvent, StorageFailure>
}

export class Deliveries extends Context.Service<Deliveries, DeliveriesShape>()("till/engine/Deliveries") {
  static readonly layer: Layer.Layer<
    Deliveries,
    never,
    Accounts | CommitFeed | Journal | Placement | Projector | Views
  > = Layer.effect(
    Deliveries,
    Effect.suspend(() => make)
  )
}

const EVERY: ReadonlyArray<Partition> = Array.from({ length: PARTITIONS }, (_, partition) => partition)

const make = Effect.gen(function* () {
  const accounts = yield* Accounts
  const feed = yield* CommitFeed
  const placement = yield* Placement
  const projector = yield* Projector
  const views = yield* Views
  const readEvents = yield* Events.makeReader(CONTENTS_MAX)
  const handleOutcomes = yield* OutcomeHandler

  const held = () => placement.held() ?? EVERY
  const free: DeliveriesShape["free"] = (partitions) =>
    // First the projector writes this process' own leases, so that they end too.
    Effect.andThen(projector.drained, views.freeDeliveries(partitions ?? EVERY)).pipe(
      Effect.tapError((failure) => log.error("Leases could not be ended", failure.message)),
      Effect.retry({ schedule: Schedule.spaced(RETRY_MILLIS) }),
      Effect.orDie
    )

  return Deliveries.of({
    onCommitted: feed.listen,
    take: ({ busy, limit }) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        views.takeDeliveries({ now, limit, busy, partitions: held(), leasedUntil: now + LEASE_MILLIS })
      ),
    nextDueAt: (busy) => Effect.suspend(() => views.nextDelivery(busy, held())),
    free,
    run: (round) => {
      // A delivery may have become due just now: the views must have it.
      const once = Effect.andThen(projector.drained, round).pipe(
        Effect.flatMap((next) => feed.wakeUp.sleepUntil(next)),
        Effect.catch((failure) =>
          Effect.andThen(log.error("The deliveries could not be read", failure.message), Effect.sleep(RETRY_MILLIS))
        )
      )
      return Loop.forever("reading of deliveries", once)
    },
    wake: () => feed.wakeUp.set(0),
    report: (account, outcomes) =>
      accounts.run(
        account,
        Effect.flatMap(Transaction, (transaction) => {
          for (const outcome of outcomes) transaction.attempted(outcome)
          return handleOutcomes(outcomes)
        })
      ),
    seen: projector.caughtUp,
    content: ({ account, event, eventVersion }) =>
      Effect.map(readEvents([{ account, version: eventVersion, id: event }]), ([content]) => content!)
  })
})
