/** The fields of a schema in words: a tree of names, types, rules and texts, which the reference renders. */
import { type JsonSchema, type JsonSchemas, resolve } from "../../api/openapi/Examples.ts"
import { TAGS } from "../../api/openapi/Tags.ts"
import { EMITTED_EVENT_TYPES } from "../../domain/Event.ts"

export interface Field {
  readonly name: string
  /** In words: `text of at most 256 characters`. */
  readonly type: string
  readonly isNullable: boolean
  readonly isRequired: boolean
  readonly description: string
  /** The allowed values; empty if there are too many to show or any. */
  readonly values: ReadonlyArray<string>
  /** The resource whose page describes the object, by the name of its tag. */
  readonly resource?: string
  readonly children: ReadonlyArray<Field>
}

/** The kinds of objects by the prefix of their IDs. */
const KINDS: Readonly<Record<string, string>> = {
  cus: "a customer",
  pi: "a PaymentIntent",
  cs: "a Checkout Session",
  csli: "a line item",
  plink: "a payment link",
  plli: "a line of a payment link",
  prod: "a product",
  price: "a price",
  ref: "a refund",
  op: "an operation at a processor",
  ch: "a charge",
  pm: "a payment method",
  mer: "a merchant",
  evt: "an event",
  we: "a webhook endpoint",
  whd: "a webhook delivery",
  req: "a request",
  key: "an API key"
}

/** Patterns in words. A test requires one for every pattern of the document. */
const PATTERNS: Readonly<Record<string, string>> = {
  "^whsec_[0-9A-Za-z]{32}$": "secret, `whsec_…`",
  "^[\\x21-\\x7e]{1,255}$": "1 to 255 characters without spaces",
  "^[0-9]{12,19}$": "12 to 19 digits",
  "^[0-9]{3,4}$": "3 or 4 digits",
  "^[A-Za-z]{2}$": "two letters",
  "^[A-Za-z]{3}$": "three letters",
  "^\\d{1,12}(\\.\\d{1,12})?$": "decimal number as text, with at most 12 digits before and after the point",
  "^(?:0|[1-9][0-9]{0,10})$": "Unix time in seconds",
  "^[A-Z]{1,20}$": "capital letters",
  "^t=[0-9]+(,v1=[0-9a-f]{64})+$": "`t=<Unix seconds>,v1=<hexadecimal>`"
}

/** Returns a pattern in words; undefined if there are none. */
export const patternInWords = (pattern: string): string | undefined => {
  const [, prefix = ""] = /^\^([a-z]+)_$/.exec(pattern) ?? []
  return KINDS[prefix] === undefined ? PATTERNS[pattern] : `ID of ${KINDS[prefix]}, \`${prefix}_…\``
}

const VALUES_MAX = 14

/** Texts without a limit of their own may have so many characters. */
const TEXT_LENGTH_MAX = 5000

const isNull = ({ enum: values, type }: JsonSchema): boolean =>
  type === "null" || (values?.length === 1 && values[0] === "")

/** The alternatives of a schema without null and the empty text, which both unset a field. */
const alternatives = (schema: JsonSchema, schemas: JsonSchemas): ReadonlyArray<JsonSchema> => {
  const { anyOf, ...own } = resolve(schema, schemas)
  if (anyOf === undefined) return [schema]
  return anyOf.filter((one) => !isNull(one)).map((one) => (one.$ref === undefined ? { ...own, ...one } : one))
}

const isNullable = (schema: JsonSchema, schemas: JsonSchemas): boolean =>
  resolve(schema, schemas).anyOf?.some(({ type }) => type === "null") === true

/** The resource of a reference to an object that has a page of its own. */
const resourceOf = ({ $ref }: JsonSchema): string | undefined =>
  TAGS.find((tag) => $ref !== undefined && $ref.endsWith(`/${tag.schema}`))?.name

/** The fields of an object; those of its first form if there are several. */
export const fieldsOf = (schema: JsonSchema, schemas: JsonSchemas): ReadonlyArray<Field> => {
  const [first = schema] = alternatives(schema, schemas)
  const { properties = {}, required = [] } = resolve(first, schemas)
  return Object.entries(properties).map(([name, member]) =>
    fieldOf({ name, isRequired: required.includes(name), schema: member, schemas })
  )
}

export const fieldOf = ({
  isRequired,
  name,
  schema,
  schemas
}: {
  readonly name: string
  readonly isRequired: boolean
  readonly schema: JsonSchema
  readonly schemas: JsonSchemas
}): Field => {
  const all = alternatives(schema, schemas)
  const types = [...new Set(all.map((one) => typeOf(one, schemas)))]
  const item = all.map((one) => resolve(one, schemas).items ?? one)
  const resource = item.map(resourceOf).find((found) => found !== undefined)
  const values = item.flatMap((one) => resolve(one, schemas).enum ?? []).map(String)
  return {
    name,
    type: types.join(" or "),
    isNullable: isNullable(schema, schemas),
    isRequired,
    description: schema.description ?? "",
    values: values.length > VALUES_MAX ? [] : values,
    ...(resource !== undefined && { resource }),
    children: resource === undefined ? item.flatMap((one) => nestedFields(one, schemas)) : []
  }
}

const nestedFields = (schema: JsonSchema, schemas: JsonSchemas): ReadonlyArray<Field> =>
  resolve(schema, schemas).properties === undefined ? [] : fieldsOf(schema, schemas)

/** The type of one alternative in words. */
const typeOf = (schema: JsonSchema, schemas: JsonSchemas): string => {
  const found = resolve(schema, schemas)
  const { enum: values, items, maxItems, minItems, type } = found
  if (values !== undefined) return valuesInWords(values)
  switch (type) {
    case "array": {
      const [item, ...others] = items === undefined ? [] : alternatives(items, schemas)
      const of = item === undefined || others.length > 0 ? "values" : pluralOf(typeOf(item, schemas))
      return ["list of", countOf(minItems, maxItems), of].filter((part) => part !== "").join(" ")
    }
    case "string":
      return textOf(found)
    case "integer":
    case "number":
      return [type, rangeOf(found)].filter((part) => part !== "").join(", ")
    case "object":
      return found.properties === undefined ? "map of texts" : "object"
    default:
      return type ?? "any JSON"
  }
}

const valuesInWords = (values: ReadonlyArray<unknown>): string => {
  const types = Object.keys(EMITTED_EVENT_TYPES)
  if (values.length > VALUES_MAX && types.every((type) => values.includes(type))) return "event type"
  return values.length === 1 ? `\`${String(values[0])}\`` : "one of"
}

const pluralOf = (type: string): string => {
  if (type === "one of") return "values, each one of"
  if (type.startsWith("ID of")) return type.replace("ID of", "IDs of")
  return type.replace(/^[A-Za-z]+(?: type)?/u, (noun) => (noun === "text" ? "texts" : `${noun}s`))
}

const countOf = (min: number | undefined, max: number | undefined): string => {
  if (max === undefined) return ""
  return min === undefined || min === 0 ? `at most ${max}` : `${min} to ${max}`
}

const textOf = ({ format, maxLength = TEXT_LENGTH_MAX, pattern }: JsonSchema): string => {
  if (format === "email") return "email address"
  if (format === "uri") return "URL"
  if (pattern !== undefined) return patternInWords(pattern) ?? "text"
  return maxLength === TEXT_LENGTH_MAX ? "text" : `text of at most ${maxLength} characters`
}

const rangeOf = ({ maximum, minimum }: JsonSchema): string => {
  if (minimum !== undefined && maximum !== undefined) return `from ${minimum} to ${maximum}`
  if (minimum !== undefined) return `${minimum} or more`
  return maximum === undefined ? "" : `at most ${maximum}`
}
