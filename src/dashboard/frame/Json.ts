/** JSON for reading: indented, with coloured tokens and a link on each id. */
import { withoutSecrets } from "../../domain/Secrets.ts"
import { parseJson } from "../../json/JsonParse.ts"
import { type Child, html, type Html } from "../../html/Html.ts"
import { addressOf } from "./ObjectLinks.ts"
import type { Visit } from "./Visit.ts"

/** JSON tokens: strings, with the colon after a field name; numbers; and `true`, `false`, `null`. */
const PARTS = /("(?:[^"\\]|\\.)*"?)(:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b/g

/** The minimum length tells ids from words such as `"per_unit"`. */
const ID = /^"[a-z]+_[0-9A-Za-z]{16,}"$/

const colorTokens = (visit: Visit, text: string): Child => {
  const parts: Array<Child> = []
  let end = 0
  for (const match of text.matchAll(PARTS)) {
    const [whole, string, colon, number] = match
    parts.push(text.slice(end, match.index))
    const kind =
      colon !== undefined ? "name" : string !== undefined ? "string" : number !== undefined ? "number" : "word"
    const address = kind === "string" && ID.test(whole) ? addressOf(visit, whole.slice(1, -1)) : null
    parts.push(
      address === null
        ? html`<span class="${kind}">${string ?? whole}</span>`
        : html`<a class="${kind}" href="${address}">${whole}</a>`,
      colon
    )
    end = match.index + whole.length
  }
  return [...parts, text.slice(end)]
}

/** Removes client secrets, as fields and within URLs: they allow paying, and the dashboard does not need them. */
const redact = (name: string, value: unknown): unknown =>
  name === "client_secret" ? undefined : typeof value === "string" ? withoutSecrets(value) : value

/** Content for developers, such as an object as JSON. It is folded: the other people of a merchant do without it. */
export const forDevelopers = (content: Child): Html =>
  html`<details class="developers">
    <summary>For developers</summary>
    <div>${content}</div>
  </details>`

/** Renders a value, or JSON text, without client secrets and keys. */
export const json = (visit: Visit, value: unknown, label: string): Html => {
  const text = JSON.stringify(typeof value === "string" ? parseJson(value) : value, redact, 2)
  return html`<pre
    class="json copy"
    tabindex="0"
    role="region"
    aria-label="${label}"
  ><code>${colorTokens(visit, text)}</code></pre>`
}
