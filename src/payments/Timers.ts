/**
 * Runs a lifecycle when its timer is due. A handler does nothing if its object has changed so that the timer no longer
 * applies.
 *
 * Payments whose processor was removed from the configuration stay `processing` until it is configured again (semantics
 * keys.live_processor); a log line at the start counts them.
 */
import { Effect, Layer } from "effect"
import type { ProcessorNotConfigured } from "../domain/Errors.ts"
import type { StorageFailure } from "../engine/log/Journal.ts"
import { type DueTimer, Postponed, TimerHandler } from "../engine/actor/Timers.ts"
import type { Transaction } from "../engine/actor/Transaction.ts"
import { Views } from "../engine/views/Views.ts"
import { isLive } from "./AccountIds.ts"
import * as ApiKeys from "./ApiKeys.ts"
import * as CheckoutSessions from "./CheckoutSessions.ts"
import * as CheckoutSessionTransitions from "./CheckoutSessionTransitions.ts"
import * as DashboardSessions from "./DashboardSessions.ts"
import * as PaymentIntents from "./PaymentIntents.ts"
import { PaymentsConfig } from "./PaymentsConfig.ts"
import { Processor } from "./Processor.ts"
import * as Refunds from "./Refunds.ts"
import { isTimerName, subjectOf, type TimerName } from "./TimerNames.ts"

type Handler = (objectId: string) => Effect.Effect<void, Postponed, Transaction | PaymentsConfig | Processor>

/** Postpones a settlement until its processor is configured again (semantics keys.live_processor). */
const unlessWithoutProcessor = <E extends { readonly _tag: string }, R>(
  settle: Effect.Effect<void, E | ProcessorNotConfigured, R>
): Effect.Effect<void, Postponed, R> =>
  Effect.catch(settle, (error) => (error._tag === "ProcessorNotConfigured" ? new Postponed() : Effect.die(error)))

/** The lifecycle of each timer. A handler that dies is retried: its object is missing, which is a broken invariant. */
const HANDLERS: Readonly<Record<TimerName, Handler>> = {
  "payment_intent.settle": (id) => unlessWithoutProcessor(PaymentIntents.settle(id)),
  "payment_intent.expire_hold": (id) => Effect.orDie(PaymentIntents.expireHold(id)),
  "refund.settle": (id) => unlessWithoutProcessor(Refunds.settle(id)),
  "api_key.expire": ApiKeys.expire,
  "checkout.session.expire": CheckoutSessions.expireWhenDue,
  "checkout.session.reopen": CheckoutSessionTransitions.reopenWhenDue,
  "dashboard_session.expire": DashboardSessions.expire,
  "dashboard_link.expire": DashboardSessions.expireLink
}

/** Runs the lifecycle of a timer. Fails with `Postponed` if the timer has to fire later instead. */
export const handleTimer = ({ id, name }: DueTimer): ReturnType<Handler> =>
  isTimerName(name) ? HANDLERS[name](subjectOf(id)) : Effect.die(new Error(`No lifecycle handles the timer ${name}`))

export const layer: Layer.Layer<TimerHandler, never, PaymentsConfig | Processor> = Layer.effect(
  TimerHandler,
  Effect.map(Effect.context<PaymentsConfig | Processor>(), (services) =>
    TimerHandler.of((timer) => Effect.provideContext(handleTimer(timer), services))
  )
)

export const layerInstallation: Layer.Layer<TimerHandler> = Layer.succeed(TimerHandler, ({ id, name }) => {
  switch (name) {
    case "api_key.expire":
      return ApiKeys.expire(subjectOf(id))
    case "dashboard_session.expire":
      return DashboardSessions.expire(subjectOf(id))
    case "dashboard_link.expire":
      return DashboardSessions.expireLink(subjectOf(id))
    default:
      return Effect.die(new Error(`The installation has no ${name}`))
  }
})

const SETTLES = "payment_intent.settle" satisfies TimerName

/**
 * Logs the number of live payments that wait for a processor that is not configured, if there are any. Reads the views,
 * which lag behind the journal after a crash. Fails with `StorageFailure` if the views cannot be read.
 */
export const logWaiting: Effect.Effect<void, StorageFailure, Processor | Views> = Effect.gen(function* () {
  const { live } = yield* Processor
  if (live !== null) return
  const views = yield* Views
  const waiting = (yield* views.timerCounts(SETTLES)).filter(({ account }) => isLive(account))
  const count = waiting.reduce((sum, counted) => sum + counted.count, 0)
  if (count === 0) return
  yield* Effect.logWarning(
    `Live PaymentIntents that stay \`processing\` until TILL_LIVE_PROCESSOR names their processor again: ${count}`
  )
})
