/**
 * Decodes a request's body by the contract (semantics requests.unknown, parameters.paths, parameters.null), and
 * replaces card data by tokens.
 *
 * Card data is replaced immediately after decoding, before the body becomes a command that waits for its turn; the
 * handlers' types admit no card data. Payloads contain card data in two places: as `payment_method_data`, or as the
 * whole payload of a new payment method.
 */
import { Effect, Exit, Schema, SchemaAST } from "effect"
import { ParameterInvalid, ParameterUnknown } from "../domain/Errors.ts"
import type { PaymentMethodData } from "../domain/PaymentMethod.ts"
import type { TokenFailure, TokenizedPaymentMethodData } from "../payments/lifecycles/PaymentMethods.ts"
import { type Parsed, pathOfUnstorableText, STORABLE_RULE, withoutUnstorableText } from "./JsonBody.ts"
import { type ParameterError, parameterErrorOf, parameterPath } from "./ParameterErrors.ts"
import { andThen } from "./RequestFibers.ts"

/** Decodes a body, card data included. */
export type PayloadDecoder = (body: Parsed) => Exit.Exit<object, ParameterError>

/** Makes the decoder of an endpoint with the given schema, if any. */
export const makePayloadDecoder = (schema: Schema.Top | undefined): PayloadDecoder =>
  schema === undefined ? decodeNothing : makeSchemaDecoder(schema)

/**
 * Decodes the body of an endpoint without parameters: an empty object. A schema without fields would accept anything.
 */
const decodeNothing: PayloadDecoder = ({ value }) => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return Exit.fail(new ParameterInvalid({ param: null, rule: "a JSON object" }))
  }
  const [unknown] = Object.keys(value)
  return unknown === undefined
    ? Exit.succeed(value)
    : Exit.fail(new ParameterUnknown({ param: parameterPath([unknown]) }))
}

/** Decodes a valid body once. An invalid one is decoded again, to find all of its errors. */
const makeSchemaDecoder = (schema: Schema.Top): PayloadDecoder => {
  const decoder = schema as Schema.Decoder<object>
  const decode = Schema.decodeUnknownExit(decoder, { onExcessProperty: "error" })
  const decodeFlat = Schema.decodeUnknownExit(decoder)
  const diagnose = Schema.decodeUnknownExit(decoder, { onExcessProperty: "error", errors: "all" })
  const maps = mapsIn(schema.ast)
  const isFlat = flatnessOf(schema.ast, maps)
  return ({ escapes, value: sent }) => {
    const value = maps.reduce(withoutEmptyList, sent)
    const decoded = isFlat(value) ? decodeFlat(value) : decode(value)
    const unstorable = escapes ? pathOfUnstorableText(value) : undefined
    if (Exit.isSuccess(decoded) && unstorable === undefined) return Exit.succeed(decoded.value)
    const input = unstorable === undefined ? value : withoutUnstorableText(value)
    const diagnosed = diagnose(abridge(input))
    if (Exit.isFailure(diagnosed)) return Exit.fail(parameterErrorOf(schema.ast, diagnosed, input))
    if (Exit.isFailure(decoded)) return Exit.fail(parameterErrorOf(schema.ast, decoded, value))
    return Exit.fail(new ParameterInvalid({ param: parameterPath(unstorable!), rule: STORABLE_RULE }))
  }
}

type Path = ReadonlyArray<string>

/** Lists the paths of the parameters that are maps, whose keys are the client's. */
const mapsIn = (ast: SchemaAST.AST, path: Path = []): ReadonlyArray<Path> => {
  if (SchemaAST.isUnion(ast)) return ast.types.flatMap((type) => mapsIn(type, path))
  if (!SchemaAST.isObjects(ast)) return []
  const within = ast.propertySignatures.flatMap(({ name, type }) => mapsIn(type, [...path, String(name)]))
  return ast.indexSignatures.length > 0 ? [path, ...within] : within
}

/**
 * Makes a check that all members of a body are known, and none but maps is an object. Such a body is decoded without
 * Effect's check for unknown members, which makes a set of all known names each time.
 */
const flatnessOf = (ast: SchemaAST.AST, maps: ReadonlyArray<Path>): ((value: unknown) => boolean) => {
  if (!SchemaAST.isObjects(ast) || ast.indexSignatures.length > 0) return () => false
  const names = new Set(ast.propertySignatures.map(({ name }) => name))
  const mapNames = new Set(maps.filter((path) => path.length === 1).map(([name]) => name))
  return (value) => {
    if (!isObject(value)) return false
    for (const name in value) {
      const member = value[name]
      if (!names.has(name) || (isObject(member) && !mapNames.has(name))) return false
    }
    return true
  }
}

/**
 * Replaces an empty list by an empty object, because PHP encodes an empty map as an empty list (semantics
 * parameters.map).
 */
const withoutEmptyList = (value: unknown, [name, ...rest]: Path): unknown => {
  if (name === undefined) return Array.isArray(value) && value.length === 0 ? {} : value
  if (!isObject(value) || !Object.hasOwn(value, name)) return value
  const member = value[name]
  const changed = withoutEmptyList(member, rest)
  return changed === member ? value : { ...value, [name]: changed }
}

/** The most members of an array or object in a request, except for lists of names to choose from. */
const MEMBERS_MAX = 128

/** Drops members beyond the limit, so that a client cannot keep the service busy with a megabyte of errors. */
const abridge = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.slice(0, MEMBERS_MAX).map(abridge)
  const members = Object.entries(value).slice(0, MEMBERS_MAX)
  return Object.fromEntries(members.map(([name, member]) => [name, abridge(member)]))
}

/** Sends card data or a token to the processor. An `Exit`, unless the processor has to be asked. */
export type Tokenize = (
  data: PaymentMethodData,
  at: (name: string) => string
) => Effect.Effect<TokenizedPaymentMethodData, TokenFailure>

/** Replaces the card data or token of a decoded payload, if it has any. */
export const withoutCardData = (payload: unknown, tokenize: Tokenize): Effect.Effect<unknown, TokenFailure> => {
  if (isPaymentMethodData(payload)) return tokenize(payload, (name) => name)
  if (!isObject(payload)) return Exit.succeed(payload)
  const data = payload["payment_method_data"]
  if (!isPaymentMethodData(data)) return Exit.succeed(payload)
  const tokenized = tokenize(data, (name) => parameterPath(["payment_method_data", name]))
  return andThen(tokenized, (payment_method_data) => Exit.succeed({ ...payload, payment_method_data }))
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

const isPaymentMethodData = (value: unknown): value is PaymentMethodData =>
  isObject(value) && value["type"] === "card" && ("card" in value || "token" in value)
