/**
 * Decodes query parameters by the contract (semantics requests.unknown, requests.order, lists.limit, lists.filters,
 * expand.unknown, expand.spelling, parameters.text). Errors are reported in this order: unknown parameters, missing
 * ones, then invalid ones (including repeated and empty ones) in the order of the contract. `expand[]` is a parameter
 * of every GET; each endpoint defines its values.
 */
import { Exit, Schema, SchemaAST } from "effect"
import { ParameterInvalid, ParameterMissing, ParametersExclusive, ParameterUnknown } from "../domain/Errors.ts"
import { FieldNotExpandable } from "../server/HttpErrors.ts"
import { isStorable, STORABLE_RULE } from "./JsonBody.ts"
import { type ParameterError, parameterErrorOf } from "./ParameterErrors.ts"

const EXPAND = "expand[]"

/** Decoded parameters, by name. */
export type Query = Readonly<Record<string, unknown>>

/** Decodes the text after the `?`. */
export type QueryDecoder = (
  query: string
) => Exit.Exit<Query, ParameterError | ParametersExclusive | FieldNotExpandable>

/** Makes the decoder of an endpoint with the given query schema, if any. `route` is the endpoint's name in messages. */
export const makeQueryDecoder = (
  schema: Schema.Top | undefined,
  options: { readonly expand: boolean; readonly route: string }
): QueryDecoder => {
  const { ast } = schema ?? Schema.Struct({})
  const fields = SchemaAST.isObjects(ast) ? ast.propertySignatures : []
  const names = new Set(fields.map(({ name }) => String(name)))
  const required = fields.filter(({ type }) => !SchemaAST.isOptional(type)).map(({ name }) => String(name))
  const lists = new Set([...names].filter((name) => name.endsWith("[]")))
  if (options.expand) lists.add(EXPAND)
  const expandable = new Set(fields.flatMap(({ name, type }) => (name === EXPAND ? literalsOf(type) : [])))
  const decoder = (schema ?? Schema.Struct({})) as Schema.Decoder<Query>
  const decodeFields = Schema.decodeUnknownExit(decoder)
  // Finds all errors, and takes longer for valid parameters.
  const diagnose = Schema.decodeUnknownExit(decoder, { errors: "all" })
  const decode = (input: Query): ReturnType<QueryDecoder> => {
    const decoded = decodeFields(input)
    if (Exit.isSuccess(decoded)) return Exit.succeed(decoded.value)
    const diagnosed = diagnose(input)
    return Exit.fail(parameterErrorOf(ast, Exit.isFailure(diagnosed) ? diagnosed : decoded, input))
  }
  /**
   * Returns the error of the parameters before an invalid one. Required parameters after it are filled in and cannot
   * fail.
   */
  const wrongBefore = (
    input: Query,
    values: ReadonlyMap<string, ReadonlyArray<string>>
  ): ParameterError | undefined => {
    const behind = required.filter((name) => !(name in input))
    const whole = { ...Object.fromEntries(behind.map((name) => [name, values.get(name)![0]])), ...input }
    const diagnosed = diagnose(whole)
    const error = Exit.isSuccess(diagnosed) ? undefined : parameterErrorOf(ast, diagnosed, whole)
    return error?.param != null && behind.includes(error.param) ? undefined : error
  }
  const ofNothing = decode({})
  const documented = new Set([...names, ...lists])
  const problemOf = (name: string, given: ReadonlyArray<string>): ParameterInvalid | FieldNotExpandable | undefined => {
    if (name === EXPAND) {
      const field = given.find((asked) => !expandable.has(asked))
      return field === undefined ? undefined : new FieldNotExpandable({ field, route: options.route })
    }
    const rule = wrongIn(given, lists.has(name))
    return rule === undefined ? undefined : new ParameterInvalid({ param: name, rule })
  }

  return (query) => {
    if (query === "") return ofNothing
    const values = new Map<string, Array<string>>()
    for (const [name, value] of new URLSearchParams(query)) {
      const canonical = canonicalName(name, lists)
      const known = values.get(canonical)
      if (known === undefined) values.set(canonical, [value])
      else known.push(value)
    }
    for (const name of values.keys()) {
      if (!names.has(name) && !lists.has(name)) return Exit.fail(new ParameterUnknown({ param: name }))
    }
    const missing = required.find((name) => !values.has(name))
    if (missing !== undefined) return Exit.fail(new ParameterMissing({ param: missing }))
    const input: Record<string, unknown> = {}
    for (const name of documented) {
      const given = values.get(name)
      if (given === undefined) continue
      const problem = problemOf(name, given)
      if (problem !== undefined) {
        // The parameters before it are not decoded yet, and may be invalid, too.
        return Exit.fail(wrongBefore(input, values) ?? problem)
      }
      input[name] = name === EXPAND ? [...new Set(given)] : lists.has(name) ? given : given[0]
    }
    const decoded = decode(input)
    return hasBothCursors(input) && Exit.isSuccess(decoded) ? bothCursors : decoded
  }
}

/** Semantics lists.cursors. */
const bothCursors = Exit.fail(new ParametersExclusive({ first: "starting_after", second: "ending_before" }))

const hasBothCursors = (input: Query): boolean => "starting_after" in input && "ending_before" in input

/**
 * `expand`, `expand[]` and `expand[0]` are one parameter (semantics expand.spelling), and so are those of any other
 * list.
 */
const canonicalName = (name: string, lists: ReadonlySet<string>): string => {
  const list = `${name.replace(/\[\d*\]$/, "")}[]`
  return lists.has(list) ? list : name
}

/** Returns the rule that a parameter's values break regardless of its schema. */
const wrongIn = (values: ReadonlyArray<string>, isList: boolean): string | undefined => {
  if (values.length > 1 && !isList) return "given only once"
  if (values.includes("")) return "left out or given a value"
  return values.every(isStorable) ? undefined : STORABLE_RULE
}

/** Lists the literals that a parameter accepts. */
const literalsOf = (ast: SchemaAST.AST): ReadonlyArray<string> => {
  if (SchemaAST.isArrays(ast)) return ast.rest.flatMap(literalsOf)
  if (SchemaAST.isUnion(ast)) return ast.types.flatMap(literalsOf)
  return SchemaAST.isLiteral(ast) ? [String(ast.literal)] : []
}
