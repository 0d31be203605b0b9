/** Examples for the document, generated from its schemas, so every endpoint has a valid one. */

/** The part of JSON Schema that the document uses. */
export interface JsonSchema {
  readonly $ref?: string
  readonly description?: string
  readonly type?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly const?: unknown
  readonly examples?: ReadonlyArray<unknown>
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly oneOf?: ReadonlyArray<JsonSchema>
  readonly allOf?: ReadonlyArray<JsonSchema>
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: boolean | JsonSchema
  readonly items?: JsonSchema
  readonly pattern?: string
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly default?: unknown
  readonly propertyNames?: JsonSchema
}

export type JsonSchemas = Readonly<Record<string, JsonSchema>>

const UNIX_TIME = 1_773_014_400

const BY_NAME: Readonly<Record<string, unknown>> = {
  amount: 2000,
  unit_amount: 2000,
  unit_amount_decimal: "2000",
  quantity: 1,
  created: UNIX_TIME,
  updated: UNIX_TIME,
  canceled_at: UNIX_TIME,
  expires_at: UNIX_TIME + 86_400,
  exp_month: 12,
  exp_year: 2040,
  number: "4242424242424242",
  cvc: "123",
  last4: "4242",
  currency: "usd",
  name: "Jane Doe",
  email: "jane@example.com",
  phone: "+1 555 010 0199",
  description: "Order 6735",
  city: "Portland",
  country: "US",
  line1: "1 Main Street",
  postal_code: "97201",
  state: "OR",
  api_version: "2026-03-09",
  prefix: "sk_test_",
  decline_code: "generic_decline"
}

const BY_FORMAT: Readonly<Record<string, string>> = { email: "jane@example.com", uri: "https://example.com/order" }

/** Candidates for strings with a pattern. A schema whose pattern matches none of them needs `examples` of its own. */
const OF_ANY_KIND = ["text", "usd", "1", "12.5", "2026-03-09"]

/** Optional members that examples leave out, because other members exclude them. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "custom_unit_amount",
  "decline_code",
  "failure_reason",
  "last_payment_error",
  "package_dimensions",
  "previous_attributes",
  "recurring",
  "tiers",
  "tiers_mode",
  "transform_quantity"
])

const RANDOM = "08Qm3vXk1Zr9TbLw5YcHn2EaKs7DfGj4"
const ID_LENGTH = 24

export interface ExampleOptions {
  readonly schemas: JsonSchemas
  /** Whether to leave out optional members, as in a minimal request. */
  readonly requiredOnly: boolean
}

/** Returns the schema that a reference names; returns any other schema as it is. */
export const resolve = (schema: JsonSchema, schemas: JsonSchemas): JsonSchema => {
  if (schema.$ref === undefined) return schema
  const name = schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1)
  const found = schemas[name]
  if (found === undefined) throw new Error(`The document has no schema ${name}`)
  return resolve(found, schemas)
}

export const exampleOf = (schema: JsonSchema, options: ExampleOptions, name = ""): unknown => {
  const { allOf, anyOf, oneOf, ...own } = resolve(schema, options.schemas)
  const choices = anyOf ?? oneOf
  if (choices !== undefined) {
    const choice = choices.find(({ type }) => type !== "null") ?? choices[0]!
    return exampleOf({ ...own, ...resolve(choice, options.schemas) }, options, name)
  }
  const merged: JsonSchema = Object.assign({}, own, ...(allOf ?? []))
  if (merged.examples !== undefined) return merged.examples[0]
  if (merged.const !== undefined) return merged.const
  if (merged.enum !== undefined) return merged.enum[0]
  switch (merged.type) {
    case "object":
      return objectExample(merged, options, name)
    case "array":
      return merged.items === undefined ? [] : [exampleOf(merged.items, options, name)]
    case "string":
      return stringExample(merged, name)
    case "integer":
    case "number":
      return numberExample(merged, name)
    case "boolean":
      return name === "deleted" || name === "active"
    default:
      return null
  }
}

const objectExample = (schema: JsonSchema, options: ExampleOptions, name: string): unknown => {
  const required = new Set(schema.required)
  const members = Object.entries(schema.properties ?? {}).filter(
    ([key]) => required.has(key) || (!options.requiredOnly && !LEFT_OUT.has(key)) || key === "metadata"
  )
  if (schema.properties === undefined) return name === "metadata" ? { order_id: "6735" } : {}
  return Object.fromEntries(members.map(([key, member]) => [key, exampleOf(member, options, key)]))
}

const stringExample = ({ format, maxLength, minLength = 0, pattern = "" }: JsonSchema, name: string): string => {
  const random = /^\^([a-z]+_)(?:\[0-9A-Za-z\]\{(\d+)\}\$)?$/.exec(pattern)
  if (random !== null) return `${random[1]}${RANDOM.slice(0, Number(random[2] ?? ID_LENGTH))}`
  const known = BY_NAME[name]
  const candidates = [
    ...(format === undefined ? [] : [BY_FORMAT[format] ?? "text"]),
    ...(typeof known === "string" ? [known] : []),
    ...(name.endsWith("url") ? [BY_FORMAT["uri"]!] : []),
    ...OF_ANY_KIND
  ]
  const isMatch = new RegExp(pattern, "u")
  const text = candidates.find((candidate) => isMatch.test(candidate)) ?? "text"
  return text.padEnd(minLength, "x").slice(0, maxLength)
}

const numberExample = ({ maximum = Infinity, minimum = -Infinity }: JsonSchema, name: string): number => {
  const known = BY_NAME[name]
  return Math.min(Math.max(typeof known === "number" ? known : 1, minimum), maximum)
}
