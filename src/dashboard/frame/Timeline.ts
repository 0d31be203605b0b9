/** What happened, newest first: what it came to, when and by whom, and in small letters what it has set off. */
import type { Child, Html } from "../../html/Html.ts"
import { html } from "../../html/Html.ts"
import type { Tone } from "./Values.ts"
import { time } from "./Values.ts"

export interface Happening {
  /** Unix seconds. */
  readonly at: number
  readonly tone: Tone
  readonly title: Child
  readonly by: Child
  readonly detail: Child
}

export const timeline = (happenings: ReadonlyArray<Happening>): Html =>
  html`<ol class="timeline">
    ${happenings.map(
      ({ at, by, detail, title, tone }) =>
        html`<li class="${tone}">
          ${title}
          <p class="cause">${time(at)} · ${by}</p>
          ${detail}
        </li>`
    )}
  </ol>`
