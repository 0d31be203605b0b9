/**
 * Forms. They work without scripts: a form behind a button is a `details` element, which opens by itself.
 *
 * A form belongs to one action and one session. Its token says so, and makes the submission happen once. After a
 * mistake, the page shows the form again as it was sent, with an error beside each wrong field.
 */
import { type Child, html, type Html } from "../../html/Html.ts"
import type { FormValues } from "../../html/Forms.ts"
import { type Fields, fieldOf, fieldsOf, type Problem } from "./Fields.ts"
import { instantOf } from "./TimeZones.ts"
import type { Visit } from "./Visit.ts"

export { type Fields, fieldsOf, type Problem, seenField } from "./Fields.ts"

export interface Form {
  readonly visit: Visit
  /** Target of the form, below the environment: `/payments/pi_…/refund`. */
  readonly action: `/${string}`
  readonly submit: string
  readonly tone?: "primary" | "danger" | "quiet"
  /** Adds a second button, which sends a field `preview` and scrolls to the element with this id. */
  readonly preview?: string
  /** True for a form that edits an object: hidden fields hold the shown values, and only changes are saved. */
  readonly isEdit?: boolean
  /** True for a form with a `file` field, whose action has `isUpload`. */
  readonly isUpload?: boolean
  /** True if `content` has buttons of its own: the Enter key in a field still presses the form's button. */
  readonly hasButtons?: boolean
  readonly problem?: Problem | null | undefined
  readonly content?: (fields: Fields) => Child
  /** A table with a checkbox in each row, which selects the rows that the action applies to. The button is above it. */
  readonly choices?: Html
}

/** The problem, if it belongs to this form. */
const ownProblem = ({ action, problem, visit }: Form): Problem | null =>
  problem?.action === `/${visit.mode}${action}` ? problem : null

/** The error about the whole form, or the first error about a parameter without a field. */
const messageOf = ({ errors, message, values }: Problem): string | null =>
  message ?? Object.entries(errors).find(([param]) => fieldOf(param, values) === undefined)?.[1] ?? null

const DAY_MILLIS = 86_400_000

/** The span of a day in Unix seconds, without its end. */
export interface Day {
  readonly from: number
  readonly until: number
}

/** Reads a value of a `date` field: the day in a time zone; undefined if it is not a date. */
export const readDay = (text: string, zone: string): Day | undefined => {
  const wall = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(wall)) return undefined
  return { from: instantOf(zone, wall) / 1000, until: instantOf(zone, wall + DAY_MILLIS) / 1000 }
}

/** Prefix of field ids, from the form's action: two forms of a page may have fields of the same name. */
const prefixOf = (action: string): string => `f${action.replaceAll(/[^0-9A-Za-z]+/g, "-")}`

/** The row above a table with checkboxes. Selecting all rows and showing the count need the script. */
const choicesHtml = (button: Html, choices: Html): Html =>
  html`<div class="choosing">
      <span hidden=""
        ><label class="check"><input type="checkbox" data-choose-all="" /> Select all on this page</label></span
      >
      ${button}
    </div>
    ${choices}`

export const form = (made: Form): Html => {
  const { action, choices, content, hasButtons, isEdit, isUpload, preview, submit, tone, visit } = made
  const problem = ownProblem(made)
  const message = problem && messageOf(problem)
  const count = choices && html` <span data-chosen=""></span>`
  const encoding = isUpload === true && html`formenctype="multipart/form-data"`
  const button = html`<button type="submit" class="${tone ?? "primary"}" ${encoding}>${submit}${count}</button>`
  return html`<form method="post" action="${visit.to(action)}">
    ${hasButtons === true && html`<input type="submit" class="unseen" tabindex="-1" aria-hidden="true" value="${submit}" />`}
    <input type="hidden" name="token" value="${visit.token(`/${visit.mode}${action}`)}" />
    ${message !== null && html`<p class="message" role="alert">${message}</p>`}
    ${content?.(fieldsOf(prefixOf(action), problem, isEdit))}
    ${choices === undefined ? button : choicesHtml(button, choices)}
    ${
      preview !== undefined &&
      html`<button type="submit" name="preview" value="on" formaction="${visit.to(action)}#${preview}">Preview</button>`
    }
  </form>`
}

export const dialog = (label: string, made: Form): Html =>
  html`<details class="dialog" ${ownProblem(made) !== null && html`open=""`}>
    <summary class="button ${made.tone ?? ""}">${label}</summary>
    <div class="sheet">${form(made)}</div>
  </details>`

/** The search field of a list. */
export const searchField =
  (hint: Child = null) =>
  (fields: Fields): Child =>
    fields.text({ name: "query", label: "Search", type: "search", hint })

export interface Filters {
  readonly errors?: Problem["errors"]
  /** The first field. On phones all others are folded. */
  readonly search?: (fields: Fields) => Child
  readonly submit?: string
}

/** A filter form. It sends GET, so a filtered list can be bookmarked. */
export const filters = (
  visit: Visit,
  path: `/${string}` | "",
  content: ((fields: Fields) => Child) | null,
  { errors = {}, search, submit = "Filter" }: Filters = {}
): Html => {
  const values: FormValues = new Map(visit.query)
  const fields = fieldsOf("filter", { action: "", message: null, errors, values })
  const isAsked = visit.query.size > 0
  return html`<form class="filters" method="get" action="${visit.to(path)}" role="search">
    ${search?.(fields)}
    ${
      content !== null &&
      html`<details class="fold" ${isAsked && html`open=""`}>
        <summary>Filters</summary>
        <div>${content(fields)}</div>
      </details>`
    }
    <p class="row">
      <button type="submit">${submit}</button>
      ${isAsked && html`<a href="${visit.to(path)}">Clear</a>`}
    </p>
  </form>`
}
