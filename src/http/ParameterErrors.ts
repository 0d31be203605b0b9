/**
 * Selects the one error of a failed decode that the client receives (semantics requests.unknown, parameters.paths,
 * parameters.null, requests.order): unknown parameters first, then missing ones, then invalid ones, including strings
 * that cannot be stored (semantics requests.order.schema), each in the order of the contract's fields.
 */
import { type Cause, type Exit, type Schema, SchemaAST, type SchemaIssue } from "effect"
import { ParameterInvalid, ParameterMissing, ParameterUnknown } from "../domain/Errors.ts"
import { type Violation, violations } from "../domain/Rule.ts"
import { STORABLE_RULE, UNSTORABLE } from "./JsonBody.ts"

export type ParameterError = ParameterUnknown | ParameterMissing | ParameterInvalid

/**
 * Returns a parameter's name in errors (semantics parameters.paths): `amount`, `payment_method_data[card][number]`,
 * `line_items[0][price]`.
 */
export const parameterPath = (path: ReadonlyArray<PropertyKey>): string => {
  let name = ""
  for (const key of path) name = name === "" ? String(key) : `${name}[${String(key)}]`
  return name
}

/** Returns the first error of a failed decode of `input` by `schema`. The decode must have collected all errors. */
export const parameterErrorOf = (
  schema: SchemaAST.AST,
  failed: Exit.Failure<unknown, Schema.SchemaError>,
  input: unknown
): ParameterError => {
  const found = violations(issueOf(failed.cause))
  const unknown = found.find(({ kind }) => kind === "unknown")
  if (unknown !== undefined) return new ParameterUnknown({ param: parameterPath(unknown.path) })
  const missing = found.find((violation) => isMissing(schema, violation, input))
  if (missing !== undefined) return new ParameterMissing({ param: parameterPath(missing.path) })
  const { path, rule } = found[0]!
  if (path.length === 0) return new ParameterInvalid({ param: null, rule: "a JSON object" })
  const isText = valueAt(input, path) !== UNSTORABLE
  return new ParameterInvalid({ param: parameterPath(path), rule: isText ? rule : STORABLE_RULE })
}

const issueOf = (cause: Cause.Cause<Schema.SchemaError>): SchemaIssue.Issue => {
  for (const reason of cause.reasons) if (reason._tag === "Fail") return reason.error.issue
  throw new Error("A schema failed for a reason other than its input", { cause })
}

/** `null` for a required parameter counts as its absence (semantics parameters.null). */
const isMissing = (schema: SchemaAST.AST, { kind, path }: Violation, input: unknown): boolean =>
  kind === "missing" || (path.length > 0 && valueAt(input, path) === null && isRequired(schema, path))

const valueAt = (input: unknown, path: ReadonlyArray<PropertyKey>): unknown => {
  let value = input
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<PropertyKey, unknown>)[key]
  }
  return value
}

/** True if the contract has a required parameter at this path. */
const isRequired = (ast: SchemaAST.AST, [key, ...rest]: ReadonlyArray<PropertyKey>): boolean => {
  if (key === undefined) return true
  if (SchemaAST.isUnion(ast)) return ast.types.some((type) => isRequired(type, [key, ...rest]))
  if (SchemaAST.isArrays(ast)) return rest.length > 0 && ast.rest.some((type) => isRequired(type, rest))
  if (!SchemaAST.isObjects(ast)) return false
  const property = ast.propertySignatures.find(({ name }) => name === key)
  if (property === undefined) return false
  return rest.length > 0 ? isRequired(property.type, rest) : !SchemaAST.isOptional(property.type)
}
