/** Pages that only say something: that a payment was made, that a session has expired, that nothing is here. */
import type { Child, Html } from "./Html.ts"
import { html } from "./Html.ts"
import type { Frame } from "./Layout.ts"
import { layout } from "./Layout.ts"
import { testModePanel } from "./TestCardsPanel.ts"

export interface Notice {
  readonly tone: "good" | "waiting" | "bad"
  readonly title: string
  /** Sentences, each a paragraph. */
  readonly texts: ReadonlyArray<string>
  /** Where to go on from here: one of Till's own addresses or of the merchant's own. */
  readonly link?: { readonly href: string; readonly text: string } | null
  readonly testMode?: boolean
  /** As in the layout. */
  readonly frame?: Frame | null
}

const MARKS: Readonly<Record<Notice["tone"], string>> = { good: "✓", waiting: "…", bad: "!" }

export const notice = ({ frame = null, link, testMode, texts, title, tone }: Notice): Html => {
  const content: Child = html`${testMode === true && testModePanel(false)}
    <main class="${tone}">
      <p class="mark" aria-hidden="true">${MARKS[tone]}</p>
      <h1>${title}</h1>
      ${texts.map((text) => html`<p>${text}</p>`)}
      ${link != null && html`<p><a class="go" href="${link.href}" rel="noreferrer">${link.text}</a></p>`}
    </main>`
  return layout({ title, kind: "notice", frame, content })
}

/** Nothing is found under the address. Says no more, whatever is wrong with it. */
export const NOT_FOUND: Notice = {
  tone: "bad",
  title: "Page not found",
  texts: ["There is no payment at this address. Check the link, or go back to the shop and start again."]
}

/** The service cannot answer now; nothing was done, or it is done once only. */
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
