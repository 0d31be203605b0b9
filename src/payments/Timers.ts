/** What happens when a timer is due. Time may have overtaken it: a handler whose object has moved on does nothing. */
import { Effect, Layer } from "effect"
import type { ProcessorNotConfigured } from "../domain/Errors.ts"
import type { DueTimer } from "../engine/Timers.ts"
import { Postponed, TimerHandler } from "../engine/Timers.ts"
import type { Transaction } from "../engine/Transaction.ts"
import * as ApiKeys from "./ApiKeys.ts"
import * as CheckoutSessions from "./CheckoutSessions.ts"
import * as PaymentIntents from "./PaymentIntents.ts"
import { PaymentsConfig } from "./PaymentsConfig.ts"
import { Processor } from "./Processor.ts"
import * as Refunds from "./Refunds.ts"
import type { TimerName } from "./TimerNames.ts"
import { isTimerName, subjectOf } from "./TimerNames.ts"

type Handler = (objectId: string) => Effect.Effect<void, Postponed, Transaction | PaymentsConfig | Processor>

/** What a processor that was taken out of the configuration has to say waits until it is back (semantics 9.9). */
const unlessWithoutProcessor = <E extends { readonly _tag: string }, R>(
  settle: Effect.Effect<void, E | ProcessorNotConfigured, R>
): Effect.Effect<void, Postponed, R> =>
  Effect.catch(settle, (error) => (error._tag === "ProcessorNotConfigured" ? new Postponed() : Effect.die(error)))

/** The lifecycle behind each timer. One that dies is tried again: its object is gone, which is a broken invariant. */
const HANDLERS: Readonly<Record<TimerName, Handler>> = {
  "payment_intent.settle": (id) => unlessWithoutProcessor(PaymentIntents.settle(id)),
  "payment_intent.expire_hold": (id) => Effect.orDie(PaymentIntents.expireHold(id)),
  "refund.settle": (id) => unlessWithoutProcessor(Refunds.settle(id)),
  "api_key.expire": ApiKeys.expire,
  "checkout.session.expire": CheckoutSessions.expireWhenDue
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
