/** Notices: pages without a form. Here are those that several pages share, and texts about a failed payment. */
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import { type Brand, headHtml } from "./Brand.ts"
import { type Child, html, type Html } from "./Html.ts"
import { type Frame, layout } from "./Layout.ts"
import { testModePanel } from "./TestModePanel.ts"

export interface Notice {
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
  const content: Child = html`${testMode === true && testModePanel(false)} ${brand !== null && headHtml(brand)}
    <main class="${tone}">
      <p class="mark" aria-hidden="true">${MARKS[tone]}</p>
      <h1>${title}</h1>
      ${texts.map((text) => html`<p>${text}</p>`)}
      ${link != null && html`<p><a class="go" href="${link.href}" rel="noreferrer">${link.text}</a></p>`}
    </main>`
  return layout({ ...page, title, kind: "notice", brand, content })
}

/** The address does not exist. The reason is not given, so that ids cannot be probed. */
export const NOT_FOUND: Notice = {
  tone: "bad",
  title: "Page not found",
  texts: ["There is no payment at this address. Check the link, or go back to the shop and start again."]
}

/** The service is unavailable. A repeated submission takes effect once. */
export const UNAVAILABLE: Notice = {
  tone: "bad",
  title: "Please try again",
  texts: ["The payment service is not available right now. Try again in a minute: you will not be charged twice."]
}

export const NOT_FROM_HERE: Notice = {
  tone: "bad",
  title: "This form was not sent from the payment page",
  texts: ["You have not been charged. Open the payment page again and use its form."]
}

/**
 * Explains the last failed attempt to the payer; null if there is none. The API's messages are written for payers,
 * except the one about authentication, which speaks about the payer in the third person (semantics errors.table).
 */
export const failureTextOf = ({ last_payment_error: failure }: PaymentIntent): string | null => {
  if (failure == null) return null
  if (failure.code === "payment_intent_authentication_failure") return "Your bank could not confirm that it was you."
  return failure.message
}
