/**
 * Runs a lifecycle when its timer is due. A handler does nothing if its object has changed so that the timer no longer
 * applies.
 *
 * Payments whose processor was removed from the configuration stay `processing` until it is configured again (semantics
 * keys.live_processor); a log line at the start counts them.
 */
import { Effect, Layer } from "effect"
import type { StorageFailure } from "../engine/log/Journal.ts"
import { type DueTimer, Postponed, TimerHandler } from "../engine/actor/Timers.ts"
import type { Transaction } from "../engine/actor/Transaction.ts"
import { Views } from "../engine/views/Views.ts"
import { isLive } from "./shared/AccountIds.ts"
import * as ApiKeys from "./merchants/ApiKeys.ts"
import * as CheckoutSessions from "./lifecycles/CheckoutSessions.ts"
import * as CheckoutSessionTransitions from "./lifecycles/CheckoutSessionTransitions.ts"
import * as CustomerErasure from "./erasure/CustomerErasure.ts"
import * as DashboardSessions from "./team/DashboardSessions.ts"
import * as Mails from "./mail/Mails.ts"
import * as OperationOutcomes from "./lifecycles/OperationOutcomes.ts"
import type { RemoteError } from "./lifecycles/PaymentIntents.ts"
import * as PaymentIntents from "./lifecycles/PaymentIntents.ts"
import { PaymentsConfig } from "./shared/PaymentsConfig.ts"
import type { AnswerWriter } from "./shared/AnswerWriter.ts"
import type { Processors } from "./processing/Processor.ts"
import * as Refunds from "./lifecycles/Refunds.ts"
import { isTimerName, subjectOf, type TimerName } from "./shared/TimerNames.ts"
import * as UnpaidTests from "./erasure/UnpaidTests.ts"
import * as WebhookOutages from "./webhooks/WebhookOutages.ts"
import { logOf } from "../engine/process/Log.ts"

const log = logOf("payments")

type Services = PaymentsConfig | Processors | AnswerWriter

type Handler = (objectId: string) => Effect.Effect<void, Postponed, Transaction | Services>

const PASSING: ReadonlySet<string> = new Set<RemoteError["_tag"]>([
  "OperationInProgress",
  "ProcessorNotConfigured",
  "ProcessorUnavailable"
])

/**
 * Postpones a timer until its processor is configured or answers again (semantics keys.live_processor), or an operation
 * of its payment has an outcome (semantics operations.one).
 */
const whenPossible = <E extends { readonly _tag: string }, R>(
  handler: Effect.Effect<void, E | RemoteError, R>
): Effect.Effect<void, Postponed, R> =>
  Effect.catch(handler, (error) => (PASSING.has(error._tag) ? new Postponed() : Effect.die(error)))

/** The lifecycle of each timer. A handler that dies is retried: its object is missing, which is a broken invariant. */
const HANDLERS: Readonly<Record<TimerName, Handler>> = {
  "payment_intent.settle": (id) => whenPossible(PaymentIntents.settle(id)),
  "payment_intent.expire_hold": (id) => whenPossible(PaymentIntents.expireHold(id)),
  "refund.settle": (id) => whenPossible(Refunds.settle(id)),
  "operation.attend": OperationOutcomes.attend,
  "api_key.expire": ApiKeys.expire,
  "checkout.session.expire": (id) => whenPossible(CheckoutSessions.expireWhenDue(id)),
  "checkout.session.reopen": CheckoutSessionTransitions.reopenWhenDue,
  "dashboard_session.expire": DashboardSessions.expire,
  "dashboard_link.expire": DashboardSessions.expireLink,
  "mail.attempt": Mails.begin,
  "webhook_endpoint.alert": WebhookOutages.alert,
  "data.erase": CustomerErasure.resume,
  "data.forget": UnpaidTests.resume
}

/** Runs the lifecycle of a timer. Fails with `Postponed` if the timer has to fire later instead. */
export const handleTimer = ({ id, name }: DueTimer): ReturnType<Handler> =>
  isTimerName(name) ? HANDLERS[name](subjectOf(id)) : Effect.die(new Error(`No lifecycle handles the timer ${name}`))

export const layer: Layer.Layer<TimerHandler, never, Services> = Layer.effect(
  TimerHandler,
  Effect.map(Effect.context<Services>(), (services) =>
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
    case "data.erase":
    case "data.forget":
    case "mail.attempt":
      // Only the service sends mail and erases data.
      return Effect.fail(new Postponed())
    default:
      return Effect.die(new Error(`The installation has no ${name}`))
  }
})

const SETTLES = "payment_intent.settle" satisfies TimerName

/**
 * Logs the number of live payments that wait for a processor that is not configured, if there are any. Reads the views,
 * which lag behind the journal after a crash. Fails with `StorageFailure` if the views cannot be read.
 */
export const logWaiting: Effect.Effect<void, StorageFailure, PaymentsConfig | Views> = Effect.gen(function* () {
  const { liveProcessor } = yield* PaymentsConfig
  if (liveProcessor !== null) return
  const views = yield* Views
  const waiting = (yield* views.timerCounts(SETTLES)).filter(({ account }) => isLive(account))
  const count = waiting.reduce((sum, counted) => sum + counted.count, 0)
  if (count === 0) return
  yield* log.warning(
    `Live PaymentIntents that stay \`processing\` until TILL_LIVE_PROCESSOR names their processor again: ${count}`
  )
})
