/** What the page of a session that can no longer be paid says, and the truth about the money (semantics S14). */
import type { CheckoutSession } from "../domain/CheckoutSession.ts"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import { formatAmount } from "./Money.ts"
import type { Notice } from "./Notice.ts"
import { successUrlOf } from "./SuccessUrl.ts"

export interface ClosedSession {
  readonly session: CheckoutSession
  /** Null if there was nothing to pay. */
  readonly paymentIntent: PaymentIntent | null
  readonly merchant: string
  /** Language of the amounts. */
  readonly locale: string
}

export const noticeOf = (closed: ClosedSession): Notice => {
  const { merchant, session } = closed
  const said = session.status === "expired" ? expired(closed) : completed(closed)
  // The shop thanks at its `success_url`: that is no place for a payer whose payment came to nothing.
  const href = said.tone === "bad" ? session.cancel_url : successUrlOf(session)
  const link = href === null ? null : { href, text: `Go back to ${merchant}` }
  return { ...said, link, testMode: !session.livemode }
}

const expired = ({ merchant }: ClosedSession): Notice => ({
  tone: "bad",
  title: "This checkout has expired",
  texts: [`You have not been charged. To buy from ${merchant}, go back to the shop and start again.`]
})

const completed = ({ locale, merchant, paymentIntent, session }: ClosedSession): Notice => {
  if (paymentIntent === null) {
    return { tone: "good", title: "Your order is complete", texts: ["There was nothing to pay."] }
  }
  const amount = (minor: number) => formatAmount(minor, paymentIntent.currency, locale)
  const refunded = paymentIntent.charges.data.reduce((sum, charge) => sum + charge.amount_refunded, 0)
  const total = amount(session.amount_total!)
  switch (paymentIntent.status) {
    case "succeeded":
      return {
        tone: "good",
        title: refunded === paymentIntent.amount_received ? "This order was refunded" : "This order is paid",
        texts: [
          `You paid ${amount(paymentIntent.amount_received)} to ${merchant}. You will not be charged again.`,
          ...(refunded > 0 ? [`${merchant} has refunded ${amount(refunded)}.`] : [])
        ]
      }
    case "requires_capture":
      return {
        tone: "good",
        title: "Your payment is authorized",
        texts: [`${merchant} has reserved ${total} on your card. The amount is taken when your order is confirmed.`]
      }
    case "processing":
      return {
        tone: "waiting",
        title: "Your payment is being processed",
        texts: [
          `Your bank has not yet confirmed the payment of ${total} to ${merchant}.`,
          "You need not do anything, and should not pay again. Open this page later to see the result."
        ]
      }
    case "canceled":
      return {
        tone: "bad",
        title: "Your payment was canceled",
        texts: [`Nothing was taken by ${merchant}. What was reserved on your card is released.`]
      }
    default:
      return {
        tone: "bad",
        title: "Your payment did not go through",
        texts: [`You have not been charged. Get in touch with ${merchant} to pay in another way.`]
      }
  }
}
