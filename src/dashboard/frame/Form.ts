/**
 * Forms. They work without scripts: a form that is not always there stands in a `details`, which opens by itself.
 *
 * Each form is made for one action and one session, by a token that also makes it happen once. After a mistake the page
 * is shown again, with the form as it was sent and what is wrong beside its fields.
 */
import type { Child, Html } from "../../html/Html.ts"
import { html } from "../../html/Html.ts"
import type { FormValues } from "../../html/Forms.ts"
import type { DashboardPath } from "./Links.ts"
import type { Visit } from "./Visit.ts"

/** What was wrong with a form that was sent, or what it would come to. */
export interface Problem {
  /** The form, by where it was sent to; as `visit.at` takes it. */
  readonly action: DashboardPath
  /** What is wrong with it as a whole; null if only fields are. */
  readonly message: string | null
  /** By field. */
  readonly errors: Readonly<Record<string, string>>
  readonly values: FormValues
  /** What its command's preview has answered, if somebody wanted to see that only. */
  readonly preview?: unknown
}

export interface Form {
  readonly visit: Visit
  /** Where it is sent to, in this environment: `/payments/pi_…/refund`. */
  readonly action: `/${string}`
  /** What the button says. */
  readonly submit: string
  readonly tone?: "primary" | "danger" | "quiet"
  /** A second button sends it with a field `preview`, and leads to the part of the page that has this id. */
  readonly preview?: string
  /** True for a form that edits: it holds what it has shown of each field, so that only what is changed counts. */
  readonly isEdit?: boolean
  readonly problem?: Problem | null | undefined
  readonly content?: (fields: Fields) => Child
  /** A table with a box in each row, by which somebody chooses what the form is about. The button stands above it. */
  readonly choices?: Html
}

/** Makes the fields of one form. */
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
  /** So many lines have room; 4 by default. One grows with its text. */
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

/** The field that a parameter is, or is in: `tiers` for `tiers[1][up_to]`; undefined if the form has none. */
const fieldOf = (param: string, values: FormValues): string | undefined => {
  for (let name = param; ; name = name.slice(0, name.lastIndexOf("["))) {
    if (values.has(name)) return name
    if (!name.endsWith("]")) return undefined
  }
}

/** What the API says of a parameter, beside the field of that name: its reader sees labels, and no names. */
const besideField = (name: string, error: string | undefined): string | undefined =>
  error
    ?.replace(`The \`${name}\` field must`, "This must")
    .replace(/^Missing required parameter: .*/, "This is required.")

/** The name of the field that holds what a form which edits has shown of another. */
export const seenField = (name: string): string => `seen[${name}]`

/** Fields of a form whose ids begin with `prefix`, as they were sent or as they are given. */
export const fieldsOf = (prefix: string, problem: Problem | null, isEdit = false): Fields => {
  const { errors = {}, values } = problem ?? {}
  /** What nobody has changed gives way to what it is by now. */
  const sent = (name: string, value = "") =>
    values === undefined || (isEdit && values.get(name) === values.get(seenField(name)))
      ? value
      : (values.get(name) ?? value)
  const seen = (name: string, value = "") =>
    isEdit && html`<input type="hidden" name="${seenField(name)}" value="${value}" />`
  const errorOf = (name: string) =>
    besideField(name, errors[name]) ??
    Object.entries(errors).find(([param]) => values && fieldOf(param, values) === name)?.[1]
  return {
    text: ({ autocomplete = "off", hint, inputmode, label, name, required = false, type = "text", value }) => {
      const [id, error] = [`${prefix}-${name}`, errorOf(name)]
      // A browser shows no line ends in it, and sends none.
      return html`<div class="field">
        ${seen(name, value?.replaceAll(/[\r\n]/g, ""))}
        <label for="${id}">${label}</label>
        <input
          id="${id}"
          name="${name}"
          type="${type}"
          autocomplete="${autocomplete}"
          value="${type === "password" ? "" : sent(name, value)}"
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
${sent(name, value)}</textarea>
        ${noteOf(id, hint, error)}
      </div>`
    },
    choice: ({ hint, label, name, options, value }) => {
      const [id, error] = [`${prefix}-${name}`, errorOf(name)]
      const chosen = sent(name, value)
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

/** The problem, if it is this form's. */
const ownProblem = ({ action, problem, visit }: Form): Problem | null =>
  problem?.action === `/${visit.mode}${action}` ? problem : null

/** What is wrong as a whole, or with what the form has no field for. */
const messageOf = ({ errors, message, values }: Problem): string | null =>
  message ?? Object.entries(errors).find(([param]) => fieldOf(param, values) === undefined)?.[1] ?? null

export const DAY_SECONDS = 86_400

/** The day in a field of type `date`: the Unix seconds of its beginning in UTC, or undefined for what is no day. */
export const readDay = (text: string): number | undefined =>
  /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)) ? Date.parse(text) / 1000 : undefined

/** The start of the ids of a form's fields: two forms of a page may have fields of the same name. */
const prefixOf = (action: string): string => `f${action.replaceAll(/[^0-9A-Za-z]+/g, "-")}`

/** Above the rows of which some are chosen. All of them at once, and how many there are, is for who has scripts. */
const choosing = (button: Html, choices: Html): Html =>
  html`<div class="choosing">
      <span hidden=""
        ><label class="check"><input type="checkbox" data-choose-all="" /> Choose all on this page</label></span
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
    ${choices === undefined ? button : choosing(button, choices)}
    ${
      preview !== undefined &&
      html`<button type="submit" name="preview" value="on" formaction="${visit.to(action)}#${preview}">Preview</button>`
    }
  </form>`
}

/** A form that a button opens. It stands open while something is wrong with it. */
export const dialog = (label: string, made: Form): Html =>
  html`<details class="dialog" ${ownProblem(made) !== null && html`open=""`}>
    <summary class="button ${made.tone ?? ""}">${label}</summary>
    <div class="sheet">${form(made)}</div>
  </details>`

/**
 * A form that asks for a list: its fields are the list's filters, and its address is a view that can be kept. A phone
 * folds them, but what `search` is.
 */
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
