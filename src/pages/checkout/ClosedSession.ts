/** Notices about sessions that cannot be paid: they say whether the payer was charged (semantics pages.checkout). */
import { cancelUrlOf, type CheckoutSession, successUrlOf } from "../../domain/CheckoutSession.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import type { Brand } from "../../html/Brand.ts"
import { formatAmount } from "../../html/Money.ts"
import type { Notice } from "../../html/Notice.ts"
import type { Translation } from "../../html/Translation.ts"

export interface ClosedSession {
  readonly session: CheckoutSession
  readonly brand: Brand
  /** Null if there was nothing to pay. */
  readonly paymentIntent: PaymentIntent | null
  readonly merchant: string
  readonly translation: Translation
}

/** The content of a notice. */
type Outcome = Pick<Notice, "tone" | "title" | "texts" | "awaitsResult">

/** The notice for a complete or expired session. */
export const noticeOf = (closed: ClosedSession): Notice => {
  const { session } = closed
  const outcome = session.status === "expired" ? expired(closed) : completed(closed)
  // The shop thanks the payer at `success_url`, so a payer whose payment failed is not sent there.
  return { ...frameOf(closed, outcome.tone === "bad" ? cancelUrlOf(session) : successUrlOf(session)), ...outcome }
}

/** The parts that all notices of a session share; `href` leads to the shop. */
const frameOf = ({ brand, merchant, session, translation }: ClosedSession, href: string | null) => {
  // A session without a page of the shop has this page as its `success_url`.
  const isHere = href?.endsWith(`/checkout/${session.id}`) === true
  const link = href === null || isHere ? null : { href, text: translation.text("checkout.go_back", { merchant }) }
  return { translation, link, brand, testMode: !session.livemode }
}

/**
 * The notice for a session that is closed until a time after too many failed attempts (semantics checkout.attempts).
 */
export const pauseOf = (closed: ClosedSession, closedUntil: number): Notice => {
  const { session, translation } = closed
  const isLast = session.expires_at * 1000 <= closedUntil
  // The next full minute.
  const time = new Intl.DateTimeFormat(translation.locale, {
    hour: "numeric",
    minute: "2-digit",
    timeZone: "UTC",
    timeZoneName: "short"
  }).format(closedUntil + 59_999)
  return {
    ...frameOf(closed, cancelUrlOf(session)),
    tone: "bad",
    title: translation.text("paused.title"),
    texts: [
      translation.text("failure.not_charged"),
      isLast ? translation.text("paused.for_good") : translation.text("paused.until", { time })
    ]
  }
}

const expired = ({ merchant, translation }: ClosedSession): Outcome => ({
  tone: "bad",
  title: translation.text("expired.title"),
  texts: [translation.text("expired.text", { merchant })]
})

const completed = ({ merchant, paymentIntent, session, translation }: ClosedSession): Outcome => {
  if (paymentIntent === null) {
    return {
      tone: "good",
      title: translation.text("complete.title"),
      texts: [translation.text("complete.nothing_to_pay")]
    }
  }
  const shown = (minor: number) => formatAmount(minor, paymentIntent.currency, translation.moneyLocale)
  const amount = shown(session.amount_total!)
  switch (paymentIntent.status) {
    case "succeeded":
      return paid(paymentIntent, merchant, translation, shown)
    case "requires_capture":
      return {
        tone: "good",
        title: translation.text("authorized.title"),
        texts: [translation.text("authorized.text", { amount, merchant })]
      }
    case "processing":
      return {
        tone: "waiting",
        title: translation.text("processing.title"),
        texts: [translation.text("processing.text", { amount, merchant }), translation.text("processing.advice")],
        awaitsResult: true
      }
    case "canceled":
      return {
        tone: "bad",
        title: translation.text("canceled.title"),
        texts: [translation.text("canceled.text", { merchant })]
      }
    default:
      return {
        tone: "bad",
        title: translation.text("failed.title"),
        texts: [translation.text("failed.text", { merchant })]
      }
  }
}

const paid = (
  { amount_received, charges }: PaymentIntent,
  merchant: string,
  translation: Translation,
  shown: (minor: number) => string
): Outcome => {
  const refunded = charges.data.reduce((sum, charge) => sum + charge.amount_refunded, 0)
  return {
    tone: "good",
    title: translation.text(refunded === amount_received ? "refunded.title" : "paid.title"),
    texts: [
      translation.text("paid.text", { amount: shown(amount_received), merchant }),
      ...(refunded > 0 ? [translation.text("refunded.text", { amount: shown(refunded), merchant })] : [])
    ]
  }
}
