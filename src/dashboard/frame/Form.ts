/**
 * Forms. They work without scripts: a form behind a button is a `details` element, which opens by itself.
 *
 * A form belongs to one action and one session. Its token says so, and makes the submission happen once. After a
 * mistake, the page shows the form again as it was sent, with an error beside each wrong field.
 */
import { type Child, html, type Html } from "../../html/Html.ts"
import type { FormValues } from "../../html/Forms.ts"
import type { DashboardPath } from "./Links.ts"
import type { Visit } from "./Visit.ts"

export interface Problem {
  /** The address that the form was sent to, as `visit.at` takes it. */
  readonly action: DashboardPath
  /** An error about the whole form; null if only fields are wrong. */
  readonly message: string | null
  readonly errors: Readonly<Record<string, string>>
  /** Errors that read differently beside the field of this name, because its label is there. */
  readonly besideFields?: Readonly<Record<string, string>>
  readonly values: FormValues
  /** The result of the command's preview; undefined if no preview was requested. */
  readonly preview?: unknown
}

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
  readonly problem?: Problem | null | undefined
  readonly content?: (fields: Fields) => Child
  /** A table with a checkbox in each row, which selects the rows that the action applies to. The button is above it. */
  readonly choices?: Html
}

export interface Fields {
  readonly text: (field: TextField) => Html
  readonly area: (field: AreaField) => Html
  readonly choice: (field: ChoiceField) => Html
  readonly check: (field: CheckField) => Html
}

interface Field {
  readonly name: string
  readonly label: string
  readonly hint?: Child
}

export interface TextField extends Field {
  readonly value?: string
  readonly type?: "text" | "email" | "password" | "url" | "search" | "date" | "datetime-local"
  readonly inputmode?: "decimal" | "numeric"
  readonly autocomplete?: string
  readonly required?: boolean
}

export interface AreaField extends Omit<TextField, "type" | "inputmode" | "autocomplete"> {
  /** Visible lines, 4 by default. With 1, the field grows with its text. */
  readonly rows?: number
}

export interface ChoiceField extends Field {
  readonly value?: string
  readonly options: ReadonlyArray<readonly [value: string, label: string]>
}

export interface CheckField extends Omit<Field, "hint"> {
  readonly checked?: boolean
}

const noteOf = (id: string, hint: Child, error: string | undefined): Child => [
  hint != null && hint !== false ? html`<p class="hint" id="${id}-hint">${hint}</p>` : null,
  error === undefined ? null : html`<p class="error" id="${id}-error">${error}</p>`
]

const ariaOf = (id: string, hint: Child, error: string | undefined): Child => {
  const described = [hint != null && hint !== false ? `${id}-hint` : "", error === undefined ? "" : `${id}-error`]
  const text = described.join(" ").trim()
  return [
    text === "" ? null : html` aria-describedby="${text}"`,
    error === undefined ? null : html` aria-invalid="true"`
  ]
}

/** The field for a parameter or its parent: `tiers` for `tiers[1][up_to]`; undefined if the form has none. */
const fieldOf = (param: string, values: FormValues): string | undefined => {
  for (let name = param; ; name = name.slice(0, name.lastIndexOf("["))) {
    if (values.has(name)) return name
    if (!name.endsWith("]")) return undefined
  }
}

/** Name of the hidden field with the value that an edit form was rendered with. */
export const seenField = (name: string): string => `seen[${name}]`

/** Builds a form's fields, with the submitted values after a mistake. Their ids begin with `prefix`. */
export const fieldsOf = (prefix: string, problem: Problem | null, isEdit = false): Fields => {
  const { besideFields = {}, errors = {}, values } = problem ?? {}
  /** The submitted value. In an edit form, a field that was left unchanged shows the current value instead. */
  const valueFor = (name: string, value = "") =>
    values === undefined || (isEdit && values.get(name) === values.get(seenField(name)))
      ? value
      : (values.get(name) ?? value)
  const seen = (name: string, value = "") =>
    isEdit && html`<input type="hidden" name="${seenField(name)}" value="${value}" />`
  const errorOf = (name: string) =>
    besideFields[name] ??
    errors[name] ??
    Object.entries(errors).find(([param]) => values && fieldOf(param, values) === name)?.[1]
  return {
    text: ({ autocomplete = "off", hint, inputmode, label, name, required = false, type = "text", value }) => {
      const [id, error] = [`${prefix}-${name}`, errorOf(name)]
      // Browsers neither show nor send line breaks in a text field.
      return html`<div class="field">
        ${seen(name, value?.replaceAll(/[\r\n]/g, ""))}
        <label for="${id}">${label}</label>
        <input
          id="${id}"
          name="${name}"
          type="${type}"
          autocomplete="${autocomplete}"
          value="${type === "password" ? "" : valueFor(name, value)}"
          ${inputmode !== undefined && html`inputmode="${inputmode}"`}
          ${required && html`required=""`}${ariaOf(id, hint, error)}
        />
        ${noteOf(id, hint, error)}
      </div>`
    },
    area: ({ hint, label, name, required = false, rows = 4, value }) => {
      const [id, error] = [`${prefix}-${name}`, errorOf(name)]
      return html`<div class="field">
        ${seen(name, value)}
        <label for="${id}">${label}</label>
        <textarea id="${id}" name="${name}" rows="${rows}" ${required && html`required=""`}${ariaOf(id, hint, error)}>
${valueFor(name, value)}</textarea>
        ${noteOf(id, hint, error)}
      </div>`
    },
    choice: ({ hint, label, name, options, value }) => {
      const [id, error] = [`${prefix}-${name}`, errorOf(name)]
      const chosen = valueFor(name, value)
      return html`<div class="field">
        ${seen(name, value)}
        <label for="${id}">${label}</label>
        <select id="${id}" name="${name}" ${ariaOf(id, hint, error)}>
          ${options.map(([option, text]) => html`<option value="${option}" ${option === chosen && html`selected=""`}>${text}</option>`)}
        </select>
        ${noteOf(id, hint, error)}
      </div>`
    },
    check: ({ checked = false, label, name }) => {
      const isChecked = values?.has(name) ?? checked
      return html`<label class="check"
        ><input type="checkbox" name="${name}" value="on" ${isChecked && html`checked=""`} /> ${label}</label
      >`
    }
  }
}

/** The problem, if it belongs to this form. */
const ownProblem = ({ action, problem, visit }: Form): Problem | null =>
  problem?.action === `/${visit.mode}${action}` ? problem : null

/** The error about the whole form, or the first error about a parameter without a field. */
const messageOf = ({ errors, message, values }: Problem): string | null =>
  message ?? Object.entries(errors).find(([param]) => fieldOf(param, values) === undefined)?.[1] ?? null

export const DAY_SECONDS = 86_400

/** Reads a value of a `date` field: the start of the day in UTC, in Unix seconds; undefined if it is not a date. */
export const readDay = (text: string): number | undefined =>
  /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)) ? Date.parse(text) / 1000 : undefined

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
  const { action, choices, content, isEdit, preview, submit, tone, visit } = made
  const problem = ownProblem(made)
  const message = problem && messageOf(problem)
  const count = choices && html` <span data-chosen=""></span>`
  const button = html`<button type="submit" class="${tone ?? "primary"}">${submit}${count}</button>`
  return html`<form method="post" action="${visit.to(action)}">
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

/** A filter form. It sends GET, so a filtered list can be bookmarked. On phones all fields but `search` are folded. */
export const filters = (
  visit: Visit,
  path: `/${string}` | "",
  content: (fields: Fields) => Child,
  { errors = {}, search }: { readonly errors?: Problem["errors"]; readonly search?: (fields: Fields) => Child } = {}
): Html => {
  const values: FormValues = new Map(visit.query)
  const fields = fieldsOf("filter", { action: "", message: null, errors, values })
  const isAsked = visit.query.size > 0
  return html`<form class="filters" method="get" action="${visit.to(path)}" role="search">
    ${search?.(fields)}
    <details class="fold" ${isAsked && html`open=""`}>
      <summary>Filters</summary>
      <div>${content(fields)}</div>
    </details>
    <p class="row">
      <button type="submit">Filter</button>
      ${isAsked && html`<a href="${visit.to(path)}">Clear</a>`}
    </p>
  </form>`
}
