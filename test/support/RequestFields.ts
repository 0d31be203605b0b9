/**
 * Lists every parameter of the contract's document, at any depth. A test of all parameters iterates over them and
 * checks that its table is complete.
 */
import type { Document } from "../../src/api/openapi/Document.ts"
import { type JsonSchema, type JsonSchemas, resolve } from "../../src/api/openapi/Examples.ts"

/**
 * The parameters of each operation, by its id. Items of an array are named `images[]`, members of an object
 * `package_dimensions.height`, those whose names are the client's `metadata.*`, and query parameters `?limit`.
 */
export const requestFields = ({ components, paths }: Document): Readonly<Record<string, ReadonlyArray<string>>> => {
  const fields: Record<string, ReadonlyArray<string>> = {}
  for (const item of Object.values(paths)) {
    for (const { operationId, parameters, requestBody } of Object.values(item)) {
      const query = parameters.filter((parameter) => parameter.in === "query").map(({ name }) => `?${name}`)
      const schema = requestBody?.content["application/json"].schema
      const found = [...query, ...(schema === undefined ? [] : fieldsIn(schema, "", components.schemas))]
      fields[operationId] = found
    }
  }
  return fields
}

const fieldsIn = (declared: JsonSchema, path: string, schemas: JsonSchemas): ReadonlyArray<string> => {
  const { additionalProperties, allOf = [], anyOf = [], items, properties = {} } = resolve(declared, schemas)
  const below = (schema: JsonSchema, at: string) => [at, ...fieldsIn(schema, at, schemas)]
  const found = [
    ...Object.entries(properties).flatMap(([name, schema]) => below(schema, path === "" ? name : `${path}.${name}`)),
    ...(typeof additionalProperties === "object" ? below(additionalProperties, `${path}.*`) : []),
    ...(items === undefined ? [] : below(items, `${path}[]`)),
    ...[...anyOf, ...allOf].flatMap((schema) => fieldsIn(schema, path, schemas))
  ]
  return [...new Set(found)]
}
