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
import type { Translation } from "../../html/Translation.ts"

export interface AuthenticationPage {
  readonly paymentIntent: PaymentIntent
  readonly merchant: string
  readonly brand: Brand
  readonly translation: Translation
  /** The terms that the payer agrees to. The answer is valid for these terms only. */
  readonly terms: string
  /** Makes the form's submission happen once. */
  readonly token: string
}

export const render = ({ brand, merchant, paymentIntent, terms, token, translation }: AuthenticationPage): Html => {
  const amount = formatAmount(paymentIntent.amount, paymentIntent.currency, translation.moneyLocale)
  const strong = (text: string) => html`<bdi><strong>${text}</strong></bdi>`
  const texts = { unreachable: translation.text("problem.unreachable") }
  const title = translation.text("authentication.title")
  return layout({
    title,
    kind: "notice",
    script: true,
    brand,
    translation,
    content: html`${!paymentIntent.livemode && testModePanel(false, translation)} ${headHtml(brand)}
      <main class="waiting">
        <p class="mark" aria-hidden="true">?</p>
        <h1>${title}</h1>
        <p>${translation.html("authentication.text", { amount: strong(amount), merchant: strong(merchant) })}</p>
        <form id="authentication" method="post" action="./${paymentIntent.id}" data-texts="${JSON.stringify(texts)}">
          <input type="hidden" name="terms" value="${terms}" />
          <input type="hidden" name="token" value="${token}" />
          <input type="hidden" name="client_secret" value="${paymentIntent.client_secret}" />
          <div id="message" class="message" role="alert" tabindex="-1"></div>
          <button class="pay" type="submit" name="outcome" value="success">
            ${translation.text("authentication.complete")}
          </button>
          <button class="pay quiet" type="submit" name="outcome" value="failure">
            ${translation.text("authentication.fail")}
          </button>
        </form>
      </main>`
  })
}

export interface Answered {
  readonly paymentIntent: PaymentIntent
  readonly merchant: string
  readonly brand: Brand
  readonly translation: Translation
  /** Page of the hosted session that is paid for; null if there is none. */
  readonly checkoutUrl: string | null
}

/** The notice after an answer, or a return, without a `return_url`. */
export const noticeOf = (answered: Answered): Notice => {
  const { brand, checkoutUrl, merchant, paymentIntent, translation } = answered
  const text = translation.text("checkout.go_back", { merchant })
  const link = checkoutUrl === null ? null : { href: checkoutUrl, text }
  return { ...outcomeOf(answered), translation, link, brand, testMode: !paymentIntent.livemode }
}

type Outcome = Pick<Notice, "tone" | "title" | "texts" | "awaitsResult">

const outcomeOf = ({ merchant, paymentIntent, translation }: Answered): Outcome => {
  switch (paymentIntent.status) {
    // The processor has not said yet whether the payer has authenticated.
    case "requires_action":
      return {
        tone: "waiting",
        title: translation.text("processing.title"),
        texts: [translation.text("processing.advice")],
        awaitsResult: true
      }
    case "succeeded":
    case "requires_capture":
      return {
        tone: "good",
        title: translation.text("authenticated.paid_title"),
        texts: [translation.text("authenticated.paid", { merchant })]
      }
    case "processing":
    case "requires_confirmation":
      return {
        tone: "waiting",
        title: translation.text("authenticated.pending_title"),
        texts: [translation.text("authenticated.pending", { merchant })]
      }
    default: {
      const reason = failureTextOf(paymentIntent, translation)
      const texts = [translation.text("failure.not_charged"), translation.text("authenticated.failed", { merchant })]
      return {
        tone: "bad",
        title: translation.text("failed.title"),
        texts: reason === null ? texts : [reason, ...texts]
      }
    }
  }
}
