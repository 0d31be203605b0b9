/**
 * Fields of forms. Each shows the submitted value after a mistake, with the error beside it. Fields behind a heading
 * are a `details` element: it opens without a script, and is open where a field in it has a value or an error.
 */
import { type Child, html, type Html } from "../../html/Html.ts"
import type { FormValues } from "../../html/Forms.ts"
import type { DashboardPath } from "./Links.ts"

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

export interface Fields {
  readonly text: (field: TextField) => Html
  readonly area: (field: AreaField) => Html
  readonly choice: (field: ChoiceField) => Html
  readonly check: (field: CheckField) => Html
  readonly color: (field: ColorField) => Html
  readonly file: (field: FileField) => Html
  readonly rows: (table: RowsField) => Html
  readonly more: (more: More) => Html
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

export interface ColorField extends Field {
  /** `#rrggbb`; null if none is set. */
  readonly value: string | null
  /** A colour field always has a value: this one if none is set. */
  readonly initial: string
}

export interface FileField extends Field {
  /** Media types, separated by commas. */
  readonly accept: string
}

/** A table with a field per cell, such as the tiers of a price. Cells have names such as `tiers[0][up_to]`. */
export interface RowsField {
  readonly name: string
  /** Describes the table for screen readers. */
  readonly caption: string
  /** One row, in the names of cells and in errors: `Tier`. */
  readonly row: string
  readonly columns: ReadonlyArray<{
    readonly name: string
    readonly label: string
    readonly inputmode: "decimal" | "numeric"
    readonly placeholder?: string
  }>
  readonly count: number
  /** Index of the row that has the focus at first; undefined for none. */
  readonly focused: number | undefined
}

/** Fields behind a heading. */
export interface More {
  readonly title: string
  readonly hint?: Child
  /** Names of fields: if one of them was submitted with a value, the fields are shown. */
  readonly names: ReadonlyArray<string>
  readonly content: Child
}

export interface CheckField extends Omit<Field, "hint"> {
  readonly checked?: boolean
}

/** Everything that a field needs from its form. */
interface Context {
  readonly prefix: string
  readonly values: FormValues | undefined
  /** The submitted value, or else the given one. */
  readonly valueFor: (name: string, value?: string) => string
  /** The hidden field beside a field of an edit form. */
  readonly seen: (name: string, value?: string) => Child
  readonly errorOf: (name: string) => string | undefined
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
export const fieldOf = (param: string, values: FormValues): string | undefined => {
  for (let name = param; ; name = name.slice(0, name.lastIndexOf("["))) {
    if (values.has(name)) return name
    if (!name.endsWith("]")) return undefined
  }
}

/** Name of the hidden field with the value that an edit form was rendered with. */
export const seenField = (name: string): string => `seen[${name}]`

const contextOf = (prefix: string, problem: Problem | null, isEdit: boolean): Context => {
  const { besideFields = {}, errors = {}, values } = problem ?? {}
  return {
    prefix,
    values,
    // In an edit form, a field that was left unchanged shows the current value instead of the submitted one.
    valueFor: (name, value = "") =>
      values === undefined || (isEdit && values.get(name) === values.get(seenField(name)))
        ? value
        : (values.get(name) ?? value),
    seen: (name, value = "") => isEdit && html`<input type="hidden" name="${seenField(name)}" value="${value}" />`,
    errorOf: (name) =>
      besideFields[name] ??
      errors[name] ??
      Object.entries(errors).find(([param]) => values && fieldOf(param, values) === name)?.[1]
  }
}

/** Builds a form's fields. Their ids begin with `prefix`. */
export const fieldsOf = (prefix: string, problem: Problem | null, isEdit = false): Fields => {
  const context = contextOf(prefix, problem, isEdit)
  return {
    text: (field) => textHtml(context, field),
    area: (field) => areaHtml(context, field),
    choice: (field) => choiceHtml(context, field),
    check: ({ checked = false, label, name }) => {
      const isChecked = context.values?.has(name) ?? checked
      return html`<label class="check"
        ><input type="checkbox" name="${name}" value="on" ${isChecked && html`checked=""`} /> ${label}</label
      >`
    },
    color: (field) => colorHtml(context, field),
    file: ({ accept, hint, label, name }) => {
      const [id, error] = [`${prefix}-${name}`, context.errorOf(name)]
      return html`<div class="field">
        <label for="${id}">${label}</label>
        <input id="${id}" name="${name}" type="file" accept="${accept}" required="" ${ariaOf(id, hint, error)} />
        ${noteOf(id, hint, error)}
      </div>`
    },
    rows: (table) => rowsHtml(context, table),
    more: (more) => moreHtml(context, more)
  }
}

const textHtml = (context: Context, field: TextField): Html => {
  const { autocomplete = "off", hint, inputmode, label, name, required = false, type = "text", value } = field
  const [id, error] = [`${context.prefix}-${name}`, context.errorOf(name)]
  // Browsers neither show nor send line breaks in a text field.
  return html`<div class="field">
    ${context.seen(name, value?.replaceAll(/[\r\n]/g, ""))}
    <label for="${id}">${label}</label>
    <input
      id="${id}"
      name="${name}"
      type="${type}"
      autocomplete="${autocomplete}"
      value="${type === "password" ? "" : context.valueFor(name, value)}"
      ${inputmode !== undefined && html`inputmode="${inputmode}"`}
      ${required && html`required=""`}${ariaOf(id, hint, error)}
    />
    ${noteOf(id, hint, error)}
  </div>`
}

const areaHtml = (context: Context, { hint, label, name, required = false, rows = 4, value }: AreaField): Html => {
  const [id, error] = [`${context.prefix}-${name}`, context.errorOf(name)]
  return html`<div class="field">
    ${context.seen(name, value)}
    <label for="${id}">${label}</label>
    <textarea id="${id}" name="${name}" rows="${rows}" ${required && html`required=""`}${ariaOf(id, hint, error)}>
${context.valueFor(name, value)}</textarea>
    ${noteOf(id, hint, error)}
  </div>`
}

const choiceHtml = (context: Context, { hint, label, name, options, value }: ChoiceField): Html => {
  const [id, error] = [`${context.prefix}-${name}`, context.errorOf(name)]
  const chosen = context.valueFor(name, value)
  return html`<div class="field">
    ${context.seen(name, value)}
    <label for="${id}">${label}</label>
    <select id="${id}" name="${name}" ${ariaOf(id, hint, error)}>
      ${options.map(([option, text]) => html`<option value="${option}" ${option === chosen && html`selected=""`}>${text}</option>`)}
    </select>
    ${noteOf(id, hint, error)}
  </div>`
}

const colorHtml = (context: Context, { hint, initial, label, name, value }: ColorField): Html => {
  const [id, error] = [`${context.prefix}-${name}`, context.errorOf(name)]
  return html`<div class="field">
    ${context.seen(name, value ?? "")}
    <label for="${id}">${label}</label>
    <input
      id="${id}"
      name="${name}"
      type="color"
      value="${context.valueFor(name, value ?? "") || initial}"
      ${ariaOf(id, hint, error)}
    />
    ${noteOf(id, hint, error)}
  </div>`
}

/** Errors are below the table, where they have room, and name their row and column. */
const rowsHtml = (context: Context, { caption, columns, count, focused, name, row }: RowsField): Html => {
  const cellName = (index: number, column: string) => `${name}[${index}][${column}]`
  const rows = Array.from({ length: count }, (_, index) => index)
  const complaints = rows.flatMap((index) =>
    columns.flatMap((column) => {
      const error = context.errorOf(cellName(index, column.name))
      const id = `${context.prefix}-${cellName(index, column.name)}-error`
      return error === undefined
        ? []
        : [html`<p class="error" id="${id}">${row} ${index + 1}, ${column.label.toLowerCase()}: ${error}</p>`]
    })
  )
  const cell = (index: number, { inputmode, label, name: column, placeholder }: RowsField["columns"][number]) => {
    const [id, error] = [`${context.prefix}-${cellName(index, column)}`, context.errorOf(cellName(index, column))]
    return html`<input
      id="${id}"
      name="${cellName(index, column)}"
      type="text"
      inputmode="${inputmode}"
      autocomplete="off"
      aria-label="${row} ${index + 1}, ${label.toLowerCase()}"
      ${placeholder !== undefined && html`placeholder="${placeholder}"`}
      value="${context.valueFor(cellName(index, column))}"
      ${index === focused && column === columns[0]!.name && html`autofocus=""`}${ariaOf(id, null, error)}
    />`
  }
  return html`<div class="field">
    <input type="hidden" name="${name}" value="" />
    <table class="rows">
      <caption class="unseen">
        ${caption}
      </caption>
      <thead>
        <tr>
          ${columns.map(({ label }) => html`<th scope="col">${label}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (index) =>
            html`<tr>
              ${columns.map((column) => html`<td>${cell(index, column)}</td>`)}
            </tr>`
        )}
      </tbody>
    </table>
    ${complaints} ${noteOf(`${context.prefix}-${name}`, null, context.errorOf(name))}
  </div>`
}

const moreHtml = ({ values }: Context, { content, hint, names, title }: More): Html => {
  const shown = html`${content}`
  const isOpen = shown.text.includes('class="error"') || names.some((name) => (values?.get(name) ?? "") !== "")
  return html`<details class="more" ${isOpen && html`open=""`}>
    <summary>${title}${hint != null && html` <small>${hint}</small>`}</summary>
    <div>${shown}</div>
  </details>`
}
