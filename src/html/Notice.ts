/** Notices: pages without a form. Here are those that several pages share, and texts about a failed payment. */
import type { DeclineCode } from "../domain/Cards.ts"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import { UNKNOWN_CARD_MESSAGE } from "../domain/TestCards.ts"
import { type Brand, headHtml } from "./Brand.ts"
import { type Child, html, type Html } from "./Html.ts"
import { type Frame, layout } from "./Layout.ts"
import { testModePanel } from "./TestModePanel.ts"
import type { TextKey } from "./texts/Catalogue.ts"
import type { Translation } from "./Translation.ts"

export interface Notice {
  readonly translation: Translation
  readonly tone: "good" | "waiting" | "bad"
  readonly title: string
  readonly texts: ReadonlyArray<string>
  /** A link to one of Till's addresses or the merchant's. */
  readonly link?: { readonly href: string; readonly text: string } | null
  readonly testMode?: boolean
  readonly awaitsResult?: boolean
  readonly brand?: Brand | null
  readonly depth?: number
  readonly frame?: Frame | null
}

const MARKS: Readonly<Record<Notice["tone"], string>> = { good: "✓", waiting: "…", bad: "!" }

export const notice = ({ brand = null, link, testMode, texts, title, tone, ...page }: Notice): Html => {
  const content: Child = html`${testMode === true && testModePanel(false, page.translation)}
    ${brand !== null && headHtml(brand)}
    <main class="${tone}">
      <p class="mark" aria-hidden="true">${MARKS[tone]}</p>
      <h1>${title}</h1>
      ${texts.map((text) => html`<p>${text}</p>`)}
      ${link != null && html`<p><a class="go" href="${link.href}" rel="noreferrer">${link.text}</a></p>`}
    </main>`
  return layout({ ...page, title, kind: "notice", brand, content })
}

/** The address does not exist. The reason is not given, so that ids cannot be probed. */
export const notFound = (translation: Translation): Notice => ({
  translation,
  tone: "bad",
  title: translation.text("not_found.title"),
  texts: [translation.text("not_found.text")]
})

/** The service is unavailable. A repeated submission takes effect once. */
export const unavailable = (translation: Translation): Notice => ({
  translation,
  tone: "bad",
  title: translation.text("unavailable.title"),
  texts: [translation.text("unavailable.text")]
})

export const foreignForm = (translation: Translation): Notice => ({
  translation,
  tone: "bad",
  title: translation.text("foreign_form.title"),
  texts: [translation.text("foreign_form.text")]
})

/** The payer's text about each reason for a decline. A lost or stolen card is not revealed. */
export const DECLINES = {
  generic_decline: "failure.card_declined",
  insufficient_funds: "failure.insufficient_funds",
  lost_card: "failure.card_declined",
  stolen_card: "failure.card_declined",
  expired_card: "failure.expired_card",
  incorrect_cvc: "failure.incorrect_cvc",
  processing_error: "failure.processing_error",
  do_not_honor: "failure.card_declined",
  authentication_required: "failure.authentication_required"
} as const satisfies Readonly<Record<DeclineCode, TextKey>>

/** Explains the last failed attempt to the payer; null if there is none. */
export const failureTextOf = (
  { last_payment_error: failure }: PaymentIntent,
  translation: Translation
): string | null => {
  if (failure === undefined) return null
  if (failure.code !== "card_declined") return translation.text("failure.not_authenticated")
  if (failure.message === UNKNOWN_CARD_MESSAGE) return translation.text("failure.not_a_test_card")
  return translation.text(DECLINES[failure.decline_code ?? "generic_decline"])
}
