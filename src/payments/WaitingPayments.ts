/**
 * Payments that wait for a processor which was taken out of the configuration. They stay `processing` until it is back, and
 * nothing fails them meanwhile (semantics 9.9), so whoever starts the service has to hear of them.
 */
import { Effect } from "effect"
import { Views } from "../engine/Views.ts"
import { isLive } from "./AccountIds.ts"
import { Processor } from "./Processor.ts"
import type { TimerName } from "./TimerNames.ts"

const SETTLES = "payment_intent.settle" satisfies TimerName

/** Logs how many live payments wait, if any do, in one line: those that the views know of, which a crash leaves behind. */
export const logWaiting = Effect.gen(function* () {
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
