/** What happens when a timer is due. Time may have overtaken it: a handler whose object has moved on does nothing. */
import { Effect, Layer } from "effect"
import type { DueTimer } from "../engine/Timers.ts"
import { TimerHandler } from "../engine/Timers.ts"
import type { Transaction } from "../engine/Transaction.ts"
import * as ApiKeys from "./ApiKeys.ts"
import * as CheckoutSessionPayments from "./CheckoutSessionPayments.ts"
import * as PaymentAttempts from "./PaymentAttempts.ts"
import * as PaymentIntents from "./PaymentIntents.ts"
import { PaymentsConfig } from "./PaymentsConfig.ts"
import { Processor } from "./Processor.ts"
import * as Refunds from "./Refunds.ts"
import type { TimerName } from "./TimerNames.ts"
import { isTimerName, subjectOf } from "./TimerNames.ts"

type Handler = (objectId: string) => Effect.Effect<void, never, Transaction | PaymentsConfig | Processor>

/**
 * The lifecycle behind each timer. One that fails is tried again: its object is gone, which is a broken invariant, or the
 * processor that it has to ask was taken out of the configuration.
 */
const HANDLERS: Readonly<Record<TimerName, Handler>> = {
  "payment_intent.settle": (id) => Effect.orDie(PaymentAttempts.settle(id)),
  "payment_intent.expire_hold": (id) => Effect.orDie(PaymentIntents.expireHold(id)),
  "refund.settle": (id) => Effect.orDie(Refunds.settle(id)),
  "api_key.expire": ApiKeys.expire,
  "checkout.session.expire": CheckoutSessionPayments.expireWhenDue
}

export const handleTimer = ({ id, name }: DueTimer): ReturnType<Handler> =>
  isTimerName(name) ? HANDLERS[name](subjectOf(id)) : Effect.die(new Error(`No lifecycle handles the timer ${name}`))

/** The engine's handler of timers. */
export const layer: Layer.Layer<TimerHandler, never, PaymentsConfig | Processor> = Layer.effect(
  TimerHandler,
  Effect.map(Effect.context<PaymentsConfig | Processor>(), (services) =>
    TimerHandler.of((timer) => Effect.provideContext(handleTimer(timer), services))
  )
)

/** The same where only the installation's own account is used: nothing there needs a processor, or what is configured. */
export const layerInstallation: Layer.Layer<TimerHandler> = Layer.succeed(TimerHandler, ({ id, name }) =>
  name === "api_key.expire" ? ApiKeys.expire(subjectOf(id)) : Effect.die(new Error(`The installation has no ${name}`))
)
