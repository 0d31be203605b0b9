/** What happened, newest first. */
import type { Child, Html } from "../../pages/Html.ts"
import { html } from "../../pages/Html.ts"
import type { Tone } from "./Values.ts"
import { time } from "./Values.ts"

export interface Happening {
  /** Unix seconds. */
  readonly at: number
  readonly title: Child
  readonly tone?: Tone
  /** In small letters: who, by what, why. */
  readonly detail?: Child
}

export const timeline = (happenings: ReadonlyArray<Happening>): Html =>
  html`<ol class="timeline">
    ${happenings.map(
      ({ at, detail, title, tone = "plain" }) =>
        html`<li class="${tone}">
          <div>${title}</div>
          <small>${time(at)}${detail != null && html` · ${detail}`}</small>
        </li>`
    )}
  </ol>`
