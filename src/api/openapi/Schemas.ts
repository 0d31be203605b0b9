/**
 * Puts derived schemas into the form that the document has: without alternatives of one and bounds that every JSON
 * integer has, and with a text for every field.
 */
import { AMOUNT_CAP } from "../../domain/Money.ts"
import { exampleValueOf } from "./ExampleValues.ts"
import type { JsonSchema } from "./Examples.ts"
import { fieldTextOf } from "./FieldTexts.ts"

/** Refines a schema. `path` is the name of the component that it belongs to, and the names of fields within it. */
export const refined = (schema: JsonSchema, path: ReadonlyArray<string>): JsonSchema => {
  const { allOf, anyOf, items, maximum, minimum, properties, ...own } = schema
  const nested = (one: JsonSchema) => refined(one, path)
  // An alternative without rules accepts everything.
  const alternatives = anyOf?.some((one) => Object.keys(one).length === 0) === true ? undefined : anyOf?.map(nested)
  const only = alternatives?.length === 1 ? alternatives[0]! : {}
  return {
    // A part has the refinements of its whole, and no type of its own.
    ...Object.assign({}, ...(allOf ?? []).map(nested)),
    ...only,
    ...own,
    ...(alternatives !== undefined && alternatives.length > 1 && { anyOf: alternatives }),
    ...(items !== undefined && { items: nested(items) }),
    ...(minimum !== undefined && minimum !== Number.MIN_SAFE_INTEGER && { minimum }),
    ...(maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER && { maximum }),
    ...(properties !== undefined && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, member]) => [name, refinedField(member, [...path, name])])
      )
    })
  }
}

const refinedField = (field: JsonSchema, path: ReadonlyArray<string>): JsonSchema => {
  const text = fieldTextOf(path)
  const isCap = field.description === AMOUNT_CAP && text !== undefined
  const description = isCap ? `${text} ${AMOUNT_CAP}` : (field.description ?? text)
  const example = exampleValueOf(path)
  return {
    ...refined(field, path),
    ...(description !== undefined && { description }),
    ...(example !== undefined && { examples: [example] })
  }
}
