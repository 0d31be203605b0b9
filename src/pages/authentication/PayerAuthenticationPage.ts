/**
 * The page on which a payer answers the bank's challenge (semantics payment_intents.authentication). It belongs to the
 * simulator: the payer chooses the outcome.
 */
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import { type Brand, headHtml } from "../../html/Brand.ts"
import { html, type Html } from "../../html/Html.ts"
import { layout } from "../../html/Layout.ts"
import { formatAmount } from "../../html/Money.ts"
import { failureTextOf, type Notice } from "../../html/Notice.ts"
import { testModePanel } from "../../html/TestModePanel.ts"

export interface AuthenticationPage {
  readonly paymentIntent: PaymentIntent
  readonly merchant: string
  readonly brand: Brand
  /** Language of the amounts. */
  readonly locale: string
  /** The terms that the payer agrees to. The answer is valid for these terms only. */
  readonly terms: string
  /** Makes the form's submission happen once. */
  readonly token: string
}

export const render = ({ brand, locale, merchant, paymentIntent, terms, token }: AuthenticationPage): Html => {
  const amount = formatAmount(paymentIntent.amount, paymentIntent.currency, locale)
  return layout({
    title: "Confirm your payment",
    kind: "notice",
    script: true,
    brand,
    content: html`${!paymentIntent.livemode && testModePanel(false)} ${headHtml(brand)}
      <main class="waiting">
        <p class="mark" aria-hidden="true">?</p>
        <h1>Confirm your payment</h1>
        <p>
          Your bank wants to confirm that you are paying <strong>${amount}</strong> to <strong>${merchant}</strong>.
        </p>
        <form id="authentication" method="post" action="./${paymentIntent.id}">
          <input type="hidden" name="terms" value="${terms}" />
          <input type="hidden" name="token" value="${token}" />
          <input type="hidden" name="client_secret" value="${paymentIntent.client_secret}" />
          <div id="message" class="message" role="alert" tabindex="-1"></div>
          <button class="pay" type="submit" name="outcome" value="success">Complete authentication</button>
          <button class="pay quiet" type="submit" name="outcome" value="failure">Fail authentication</button>
        </form>
      </main>`
  })
}

export interface Answered {
  readonly paymentIntent: PaymentIntent
  readonly merchant: string
  readonly brand: Brand
  /** Page of the hosted session that is paid for; null if there is none. */
  readonly checkoutUrl: string | null
}

/** The notice after an answer without a `return_url`. */
export const noticeOf = (answered: Answered): Notice => {
  const { brand, checkoutUrl, merchant, paymentIntent } = answered
  const link = checkoutUrl === null ? null : { href: checkoutUrl, text: `Go back to ${merchant}` }
  return { ...outcomeOf(answered), link, brand, testMode: !paymentIntent.livemode }
}

const outcomeOf = ({ merchant, paymentIntent }: Answered): Notice => {
  switch (paymentIntent.status) {
    case "succeeded":
    case "requires_capture":
      return {
        tone: "good",
        title: "Your payment went through",
        texts: [`${merchant} has received your payment. You can close this page.`]
      }
    case "processing":
    case "requires_confirmation":
      return {
        tone: "waiting",
        title: "Thank you for confirming",
        texts: [`${merchant} is completing your payment. You can close this page.`]
      }
    default: {
      const reason = failureTextOf(paymentIntent)
      const texts = ["You have not been charged.", `Go back to ${merchant} to pay in another way.`]
      return {
        tone: "bad",
        title: "Your payment did not go through",
        texts: reason === null ? texts : [reason, ...texts]
      }
    }
  }
}
