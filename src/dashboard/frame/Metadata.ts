/**
 * Metadata on an object's page, and its edit form: a row per key, and empty rows for new keys.
 *
 * Hidden fields hold the values that the form was rendered with, so that only edited keys are saved. An edited key that
 * was changed concurrently is refused, with its current value beside it (semantics dashboard.editing).
 */
import { Effect, Schema } from "effect"
import {
  type Metadata,
  METADATA_KEY_LENGTH_MAX,
  METADATA_KEYS_MAX,
  METADATA_VALUE_LENGTH_MAX,
  MetadataParameter
} from "../../domain/Metadata.ts"
import type { Command } from "../../http/IdempotentCommand.ts"
import type { FormValues } from "../../html/Forms.ts"
import { type Child, html } from "../../html/Html.ts"
import type { Resource } from "../../payments/shared/Documents.ts"
import { requireUnchanged, valueOf, type WithMetadata } from "../../payments/shared/MetadataConflict.ts"
import { dialog, type Fields, type Problem, seenField } from "./Form.ts"
import { facts, metadataSection, section } from "./Values.ts"
import { action, Invalid, type Show } from "./Page.ts"
import type { Visit } from "./Visit.ts"

const NEW_ROWS = [0, 1, 2] as const

/** Field names. Browsers rewrite line breaks in names, so keys are percent-encoded. */
const valueField = (key: string) => `metadata[${encodeURIComponent(key)}]`
const newKeyField = (row: number) => `new[${row}][key]`
const newValueField = (row: number) => `new[${row}][value]`

/** A value as a form sends it back: browsers rewrite line breaks, and surrounding white space is trimmed. */
const normalizeValue = (value: string | undefined = ""): string => value.replaceAll(/\r\n?/g, "\n").trim()

interface SentRow {
  readonly key: string
  readonly field: string
  readonly value: string
  /** The value that the form was rendered with; empty for a new key. */
  readonly seen: string
}

/** Keys that existed when the form was opened. */
const oldKeysIn = (values: FormValues): ReadonlyArray<string> =>
  [...values.keys()].flatMap((field) => {
    const encoded = /^metadata\[([^[\]]*)\]$/.exec(field)?.[1]
    return encoded === undefined ? [] : [new URLSearchParams(`key=${encoded}`).get("key")!]
  })

const oldRowsIn = (values: FormValues): ReadonlyArray<SentRow> =>
  oldKeysIn(values).map((key) => ({
    key,
    field: valueField(key),
    value: normalizeValue(values.get(valueField(key))),
    seen: normalizeValue(values.get(seenField(valueField(key))))
  }))

const newRowsIn = (values: FormValues): ReadonlyArray<SentRow> =>
  NEW_ROWS.map((row) => ({
    key: values.get(newKeyField(row)) ?? "",
    field: newValueField(row),
    value: normalizeValue(values.get(newValueField(row))),
    seen: ""
  }))

const changedRows = (values: FormValues): ReadonlyArray<SentRow> | Invalid => {
  const old = oldRowsIn(values)
  const keys = new Set(old.map(({ key }) => key))
  const added: Array<SentRow> = []
  for (const [row, sent] of newRowsIn(values).entries()) {
    if (sent.key === "" && sent.value === "") continue
    if (sent.key === "") return new Invalid({ [newKeyField(row)]: "Enter a key for this value." })
    if (sent.value === "") return new Invalid({ [sent.field]: "Enter a value." })
    if (keys.has(sent.key)) return new Invalid({ [newKeyField(row)]: "This key already exists above." })
    keys.add(sent.key)
    added.push(sent)
  }
  return [...old.filter(({ seen, value }) => value !== seen), ...added]
}

const isKey = (key: string): boolean => Schema.is(MetadataParameter)(Object.fromEntries([[key, "x"]]))

/** The form field for a parameter in a refusal: the API names keys, the form has rows. */
const fieldOf = (param: string, values: FormValues): string => {
  const added = newRowsIn(values)
  const wrong = added.findIndex(({ key }) => key !== "" && !isKey(key))
  if (param === "metadata" && wrong !== -1) return newKeyField(wrong)
  return [...oldRowsIn(values), ...added].find(({ key }) => param === `metadata[${key}]`)?.field ?? param
}

/** The error beside a row whose key was changed by another request since the form was opened. */
const conflictOf = ({ field, key }: SentRow, now: string | undefined): string => {
  if (now === undefined) return "This key was removed while you were editing. Save again to add it back."
  if (field !== valueField(key)) return "This key was added while you were editing. Edit it in its row above."
  return `This was changed to “${now}” while you were editing. Save again to replace it.`
}

/**
 * The form as it is shown after a refusal. Unchanged rows get the current value. A concurrent change is reported beside
 * its row, and then counts as seen.
 */
const shownAgain = (problem: Problem, metadata: Metadata): Problem => {
  const errors = new Map(
    Object.entries({ ...problem.errors, ...problem.besideFields }).map(([param, message]) => [
      fieldOf(param, problem.values),
      message
    ])
  )
  const values = new Map(problem.values)
  for (const row of [...oldRowsIn(problem.values), ...newRowsIn(problem.values)]) {
    const now = valueOf(metadata, row.key)
    if (row.value === row.seen) values.delete(row.field)
    else if (normalizeValue(now) !== row.seen) errors.set(row.field, conflictOf(row, now))
  }
  return { ...problem, errors: Object.fromEntries(errors), besideFields: {}, values }
}

const rows =
  (metadata: Metadata, sent: Problem | null) =>
  (fields: Fields): Child => {
    const keys = new Set([...Object.keys(metadata), ...oldKeysIn(sent?.values ?? new Map())])
    return [
      [...keys].map((key) =>
        fields.area({ name: valueField(key), label: key, value: valueOf(metadata, key) ?? "", rows: 1 })
      ),
      NEW_ROWS.map(
        (row) =>
          html`<div class="pair">
            ${fields.text({ name: newKeyField(row), label: "New key" })}
            ${fields.area({ name: newValueField(row), label: "Value", rows: 1 })}
          </div>`
      ),
      html`<p class="hint field">
        Clear a value to remove its key. Up to ${METADATA_KEYS_MAX} keys of ${METADATA_KEY_LENGTH_MAX} characters
        without square brackets, with values of up to ${METADATA_VALUE_LENGTH_MAX} characters.
      </p>`
    ]
  }

/** The metadata section, with an edit form for people who may edit. `path` is the object's page. */
export const metadataEditor = (
  visit: Visit,
  path: `/${string}`,
  metadata: Metadata,
  problem: Problem | null
): Child => {
  if (!visit.may("build")) return metadataSection(metadata)
  const action = `${path}/metadata` as const
  const own = problem?.action === `/${visit.mode}${action}` ? shownAgain(problem, metadata) : null
  const edit = dialog("Edit metadata", {
    visit,
    action,
    submit: "Save",
    problem: own,
    isEdit: true,
    content: rows(metadata, own)
  })
  const entries = Object.entries(metadata)
  return section("Metadata", entries.length === 0 ? html`<p class="hint">None.</p>` : facts(entries), edit)
}

interface MetadataEdit<A extends WithMetadata, H> {
  /** The object's name in the audit log: `customer`. */
  readonly name: string
  readonly page: `/${string}/:id`
  readonly kind: Resource<A, H>
  readonly show: Show
  readonly update: (id: string, parameters: { readonly metadata: MetadataParameter }) => Command
}

export const metadataAction = <A extends WithMetadata, H>({ kind, name, page, show, update }: MetadataEdit<A, H>) =>
  action({
    name: `${name}.update_metadata`,
    right: "build",
    page,
    path: `${page}/metadata`,
    show,
    notice: "Metadata saved.",
    isLong: true,
    prepare: (_, { id = "" }, values) => {
      const changed = changedRows(values)
      if (changed instanceof Invalid) return Effect.succeed(changed)
      const seen = new Map(changed.map((row) => [row.key, row.seen]))
      const metadata = Object.fromEntries(changed.map(({ key, value }) => [key, value]))
      return Effect.succeed({
        entered: { metadata, seen: Object.fromEntries(seen) },
        detail: [...seen.keys()].join(", ") || null,
        command: Effect.andThen(requireUnchanged(kind, id, seen, normalizeValue), update(id, { metadata }))
      })
    }
  })
