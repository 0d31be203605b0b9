/** Common changes between versions (spec: Versioning 6), each with its conversions forward and back. */
import { Result } from "effect"
import type { Change, JsonObject, RequestError, Route, VersionedAnswer, VersionedRequest } from "./ApiVersions.ts"
import { ParameterUnknown } from "./ParameterErrors.ts"

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Renames a member, keeping its position. */
const renamed = (value: JsonObject, from: string, to: string): JsonObject =>
  Object.fromEntries(Object.entries(value).map(([name, member]) => [name === from ? to : name, member]))

interface Names {
  readonly older: string
  readonly newer: string
}

/** A change that renames a field of an object. */
export const renamedField = (
  type: string,
  { newer, older }: Names
): Required<Pick<Change, "objects" | "publishable">> => ({
  objects: { [type]: (value) => renamed(value, newer, older) },
  publishable: { [type]: (fields) => fields.map((field) => (field === newer ? older : field)) }
})

/** Changes a body; a body that is not an object is left for the schema to refuse. */
export const inBody =
  (change: (body: JsonObject) => Result.Result<JsonObject, RequestError>) =>
  (request: VersionedRequest): Result.Result<VersionedRequest, RequestError> =>
    isObject(request.body)
      ? Result.map(change(request.body), (body) => ({ ...request, body }))
      : Result.succeed(request)

/** A change that renames a body's parameter. The previous version refuses the new name; its errors have the old one. */
export const renamedParameter = (
  route: Route,
  { newer, older }: Names
): Required<Pick<Change, "requests" | "answers">> => ({
  requests: {
    [route]: inBody((body) =>
      Object.hasOwn(body, newer)
        ? Result.fail(new ParameterUnknown({ param: newer }))
        : Result.succeed(renamed(body, older, newer))
    )
  },
  answers: { [route]: inErrors((error) => renamedIn(error, newer, older)) }
})

/** A change of the default of a body's parameter: the previous version keeps its own default. */
export const otherDefault = (route: Route, name: string, older: unknown): Required<Pick<Change, "requests">> => ({
  requests: {
    [route]: inBody((body) => Result.succeed((body[name] ?? null) === null ? { ...body, [name]: older } : body))
  }
})

/** Changes errors, and leaves other responses as they are. */
export const inErrors =
  (change: (error: JsonObject) => JsonObject) =>
  (answer: VersionedAnswer): VersionedAnswer => {
    const { error } = answer.body
    return isObject(error) ? { ...answer, body: { ...answer.body, error: change(error) } } : answer
  }

/** A change of an error's code. `doc_url` leads to the new code's page, which explains both. */
export const renamedErrorCode = (route: Route, { newer, older }: Names): Required<Pick<Change, "answers">> => ({
  answers: {
    [route]: inErrors((error) => (error["code"] === newer ? { ...error, code: older } : error))
  }
})

/** Renames a parameter in an error to the older version's name, in `param` and in the message. */
const renamedIn = (error: JsonObject, newer: string, older: string): JsonObject => {
  const { message, param } = error
  if (typeof param !== "string" || typeof message !== "string") return error
  const [first = ""] = param.split("[", 1)
  if (first !== newer) return error
  const named = `${older}${param.slice(first.length)}`
  return { ...error, param: named, message: message.replace(param, () => named) }
}
