/**
 * Outages of webhook endpoints (semantics mail.webhook_alert): the time since which every attempt at a live endpoint
 * has failed. After an hour the team gets one mail, and none again until a delivery has succeeded.
 *
 * The record with the outcomes of attempts notes the beginning and the end of an outage in the endpoint's hidden part.
 * All other outcomes change nothing there.
 */
import { Effect } from "effect"
import type { AttemptOutcome } from "../../engine/Deliveries.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { isLive, merchantIdOf } from "../shared/AccountIds.ts"
import { WEBHOOK_ENDPOINT, type WebhookEndpointHidden } from "../shared/Documents.ts"
import * as Mails from "../mail/Mails.ts"
import { PaymentsConfig } from "../shared/PaymentsConfig.ts"
import { timer, timerId } from "../shared/TimerNames.ts"

/** How long an endpoint fails before the team gets a mail. */
export const ALERT_AFTER_SECONDS = 3600

/** Returns the hidden part of an endpoint without an outage, and ends the wait for the mail. */
export const withoutOutage = (
  transaction: Transaction,
  id: string,
  hidden: WebhookEndpointHidden
): WebhookEndpointHidden => {
  const { failingSince, ...rest } = hidden
  if (failingSince === undefined) return hidden
  transaction.clearTimer(timerId("webhook_endpoint.alert", id))
  return rest
}

/** Notes where outages begin and end. Runs in the record of the outcomes. */
export const note = Effect.fnUntraced(function* (
  outcomes: ReadonlyArray<AttemptOutcome>
): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  if (!isLive(transaction.account)) return
  // The last outcome decides: an endpoint that has taken something since is not down.
  const last = new Map(outcomes.map(({ destination, next }) => [destination, next === "delivered"]))
  for (const [id, delivered] of last) {
    const endpoint = yield* transaction.get(WEBHOOK_ENDPOINT, id)
    if (endpoint === undefined || endpoint.value.status === "disabled") continue
    const { hidden, value } = endpoint
    if (delivered === (hidden.failingSince === undefined)) continue
    if (delivered) {
      transaction.put(WEBHOOK_ENDPOINT, value, withoutOutage(transaction, id, hidden))
    } else {
      transaction.put(WEBHOOK_ENDPOINT, value, { ...hidden, failingSince: transaction.now })
      transaction.setTimer(timer("webhook_endpoint.alert", id, transaction.now + ALERT_AFTER_SECONDS * 1000))
    }
  }
})

/** Queues the mail about an endpoint that still fails, when its timer is due. */
export const alert = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<void, never, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  const endpoint = yield* transaction.get(WEBHOOK_ENDPOINT, id)
  if (endpoint?.hidden.failingSince === undefined || !(yield* PaymentsConfig).sendsMail) return
  const merchantId = merchantIdOf(transaction.account)
  Mails.queue(transaction, { purpose: "webhook_alert", subject: id, merchantId, to: null })
})
