/**
 * Receipts to payers (semantics mail.receipts): a merchant turns them on, and every live payment that succeeds then
 * queues one in its own record. A person can send the receipt of a single payment, in either environment.
 *
 * The setting is in the account whose payments it concerns, as a document with a subscription, like a webhook endpoint.
 * A payment asks the subscription, which is in memory whenever the account is.
 */
import { Effect, Schema } from "effect"
import type { CheckoutSession } from "../../domain/CheckoutSession.ts"
import { ParameterInvalid, type ResourceMissing } from "../../domain/Errors.ts"
import { isMailable, type Mail } from "../../domain/Mail.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { merchantIdOf } from "../shared/AccountIds.ts"
import { findDocument, type Kept, PAYMENT_INTENT } from "../shared/Documents.ts"
import * as Mails from "./Mails.ts"

const MailSettings = Schema.Struct({
  /** Always `mail_settings`. */
  id: Schema.String,
  receipts: Schema.Boolean
})
export const MAIL_SETTINGS: Kept<typeof MailSettings.Type> = {
  name: "mail_settings",
  shape: { value: MailSettings }
}
export const MAIL_SETTINGS_ID = "mail_settings"

/** The destination and the type of the subscription. No event has this type, so it gets no deliveries. */
const MAIL_DESTINATION = "mail"
const RECEIPT = "receipt"

/** Turns receipts of an account's payments on or off. */
export const setReceipts = (receipts: boolean): Effect.Effect<{ readonly id: string }, never, Transaction> =>
  Effect.map(Transaction, (transaction) => {
    const settings = { id: MAIL_SETTINGS_ID, receipts }
    transaction.put(MAIL_SETTINGS, settings)
    if (receipts) transaction.subscribe(MAIL_DESTINATION, [RECEIPT])
    else transaction.unsubscribe(MAIL_DESTINATION)
    return settings
  })

/** The address that the payer gave at the checkout; null without one. */
export const addressIn = (session: CheckoutSession | undefined): string | null =>
  session?.customer_details?.email ?? session?.customer_email ?? null

/** Queues the receipt of a payment that has just succeeded, if receipts are on and the payer may have an address. */
export const queueIfWanted = (
  transaction: Transaction,
  { customer, id, merchant_id }: PaymentIntent,
  session: CheckoutSession | undefined
): void => {
  if (transaction.destinationsOf(RECEIPT).length === 0) return
  const to = addressIn(session)
  if (to === null && customer === null) return
  Mails.queue(transaction, { purpose: "receipt", subject: id, merchantId: merchant_id, to })
}

/** Queues the receipt of a payment that has succeeded, to an address. */
export const send = Effect.fnUntraced(function* (
  id: string,
  to: string
): Effect.fn.Return<Mail, ResourceMissing | ParameterInvalid, Transaction> {
  const transaction = yield* Transaction
  const { value } = yield* findDocument(PAYMENT_INTENT, id)
  if (value.status !== "succeeded") {
    return yield* new ParameterInvalid({ param: "id", rule: "the ID of a payment that has succeeded" })
  }
  if (!isMailable(to))
    return yield* new ParameterInvalid({ param: "email", rule: "an address that mail can be sent to" })
  const merchantId = merchantIdOf(transaction.account)
  return Mails.queue(transaction, { purpose: "receipt", subject: id, merchantId, to })
})
