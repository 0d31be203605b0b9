/**
 * A notice is a page without a form: it says that a payment was made, that a session has expired, or that there is
 * nothing at an address. The notices that several pages show are here, and the words for a payment that has failed.
 */
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import type { Brand } from "./Brand.ts"
import { headHtml } from "./Brand.ts"
import type { Child, Html } from "./Html.ts"
import { html } from "./Html.ts"
import type { Frame } from "./Layout.ts"
import { layout } from "./Layout.ts"
import { testModePanel } from "./TestModePanel.ts"

export interface Notice {
  readonly tone: "good" | "waiting" | "bad"
  readonly title: string
  /** Sentences, each a paragraph. */
  readonly texts: ReadonlyArray<string>
  /** The way on: one of Till's own addresses or of the merchant's own. */
  readonly link?: { readonly href: string; readonly text: string } | null
  readonly testMode?: boolean
  /** As in `Layout`. */
  readonly awaitsResult?: boolean
  /** As in `Layout`. */
  readonly brand?: Brand | null
  /** As in `Layout`. */
  readonly depth?: number
  /** As in `Layout`. */
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

/** Nothing is found under the address. The page says no more, whatever is wrong, so that nobody can probe ids. */
export const NOT_FOUND: Notice = {
  tone: "bad",
  title: "Page not found",
  texts: ["There is no payment at this address. Check the link, or go back to the shop and start again."]
}

/** The service cannot answer now. Nothing was done, or it is done once only. */
export const UNAVAILABLE: Notice = {
  tone: "bad",
  title: "Please try again",
  texts: ["The payment service cannot answer at the moment. Try again in a minute: you will not pay twice."]
}

/** A form came from somewhere else than from the page. */
export const NOT_FROM_HERE: Notice = {
  tone: "bad",
  title: "This form was not sent from the payment page",
  texts: ["Nothing was paid. Open the payment page again and send its own form."]
}

/**
 * Says in words for the payer why the last attempt to pay has failed; null if none has. The API's messages are meant
 * for payers, except the one about an authentication, which speaks of the payer as somebody else (semantics §3).
 */
export const failureTextOf = ({ last_payment_error: failure }: PaymentIntent): string | null => {
  if (failure == null) return null
  if (failure.code === "payment_intent_authentication_failure") return "Your bank could not confirm that it was you."
  return failure.message
}
