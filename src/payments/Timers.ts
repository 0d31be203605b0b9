/** What happens when a timer is due. Time may have overtaken it: a handler whose object has moved on does nothing. */
import { Effect, Layer } from "effect"
import type { DueTimer } from "../engine/Timers.ts"
import { TimerHandler } from "../engine/Timers.ts"
import type { Transaction } from "../engine/Transaction.ts"
import { expire as expireApiKey } from "./ApiKeys.ts"
import { expireWhenDue } from "./CheckoutSessionPayments.ts"
import { settle } from "./PaymentAttempts.ts"
import { expireHold } from "./PaymentIntents.ts"
import { PaymentsConfig } from "./PaymentsConfig.ts"
import { Processor } from "./Processor.ts"
import { settle as settleRefund } from "./Refunds.ts"
import * as TimerNames from "./TimerNames.ts"

/** Runs the lifecycle behind a timer. A timer whose object is gone, or that nobody knows, is a broken invariant. */
export const handleTimer = ({
  id,
  name
}: DueTimer): Effect.Effect<void, never, Transaction | PaymentsConfig | Processor> => {
  const subject = TimerNames.subjectOf(id)
  switch (name) {
    case TimerNames.SETTLE:
      return Effect.orDie(settle(subject))
    case TimerNames.EXPIRE_HOLD:
      return Effect.orDie(expireHold(subject))
    case TimerNames.SETTLE_REFUND:
      return Effect.orDie(settleRefund(subject))
    case TimerNames.EXPIRE_API_KEY:
      return expireApiKey(subject)
    case TimerNames.EXPIRE_CHECKOUT_SESSION:
      return expireWhenDue(subject)
    default:
      return Effect.die(new Error(`No lifecycle handles the timer ${name}`))
  }
}

/** The engine's handler of timers. */
export const layer: Layer.Layer<TimerHandler, never, PaymentsConfig | Processor> = Layer.effect(
  TimerHandler,
  Effect.map(Effect.context<PaymentsConfig | Processor>(), (services) =>
    TimerHandler.of((timer) => Effect.provideContext(handleTimer(timer), services))
  )
)
